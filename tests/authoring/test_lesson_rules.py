"""Each rule passes the sound lesson of conftest.py and fires, alone, on the fault planted here."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from course_lib.authoring import lesson_rules as rules
from course_lib.authoring.lesson_rules import LESSON_PARTS, RULES, START_PARTS, read_lesson, violations
from course_lib.authoring.stamps import code_cells
from tests.authoring.conftest import PIXEL, figure, heading, printing, stored


def with_tag(lesson, tag):
    return next(cell for cell in lesson.notebook.cells if tag in cell.metadata.get("tags", []))


def code(lesson, text):
    return next(cell for cell in code_cells(lesson.notebook) if text in cell.source)


def planted(lesson, fault):
    """What every rule says once the fault stands in a lesson that was built with it."""
    fault(lesson)
    lesson = stored(lesson.notebook, lesson.path)
    return {rule.__name__: said for rule in RULES if (said := rule(lesson))}


def test_a_sound_lesson_keeps_every_rule(lesson):
    assert violations(read_lesson(lesson.path)) == []


# Each fault: the rule that should fire, part of what it should say, and how the fault is planted.
FAULTS = {}


def fault(rule, says):
    def register(plant):
        FAULTS[plant.__name__] = (rule, says, plant)
        return plant

    return register


@fault(rules.has_a_lesson_name, "'06'")
def number_of_another_lesson(lesson):
    lesson.notebook.metadata.course["lesson"] = "06"


@fault(rules.has_a_lesson_name, "'chapter'; for lesson 05 it is 'lesson'")
def kind_unknown(lesson):
    lesson.notebook.metadata.course["kind"] = "chapter"


@fault(rules.has_every_part_in_order, "'paper' is missing (the paper's own numbers")
def part_missing(lesson):
    lesson.notebook.cells.remove(with_tag(lesson, "part:paper"))


@fault(rules.has_every_part_in_order, "'practice' comes before 'exercises'")
def parts_out_of_order(lesson):
    with_tag(lesson, "part:practice").metadata["tags"] = ["part:questions"]
    cells = [cell for cell in lesson.notebook.cells if "part:questions" in cell.metadata.get("tags", [])]
    cells[0].metadata["tags"] = ["part:practice"]


@fault(rules.has_every_part_in_order, "tagged 'part:summary'")
def part_unknown(lesson):
    lesson.notebook.cells.append(heading("summary"))


@fault(rules.has_every_part_in_order, "does not begin with a heading")
def part_without_a_heading(lesson):
    with_tag(lesson, "part:paper").source = "In the paper ..."


@fault(rules.says_how_long_it_takes, "takes 80 minutes")
def minutes_not_told(lesson):
    lesson.notebook.metadata.course["minutes"] = 80


@fault(rules.says_how_long_it_takes, "60 to 90")
def lesson_too_long(lesson):
    lesson.notebook.metadata.course["minutes"] = 120
    with_tag(lesson, "part:objectives").source += " 120 minutes"


@fault(rules.says_how_long_it_takes, "None")
def minutes_unknown(lesson):
    del lesson.notebook.metadata.course["minutes"]


@fault(rules.has_enough_to_do, "7 quizzes; 8 is the least")
def one_quiz_too_few(lesson):
    code(lesson, "question-0").source = "pass"


@fault(rules.has_enough_to_do, "7 quizzes; 8 is the least")
def the_same_quiz_twice(lesson):
    code(lesson, "question-0").source = "quiz('question-1')"


@fault(rules.has_enough_to_do, "3 predictions; 4 is the least")
def one_prediction_too_few(lesson):
    code(lesson, "predict(").source = "predict('a')\npredict('b')\npredict('c')"


@fault(rules.has_enough_to_do, "3 exercises; 4 is the least")
def one_exercise_too_few(lesson):
    code(lesson, "check(").source = "pass"


@fault(rules.has_enough_to_do, "3 exercises; 4 is the least")
def exercise_without_a_check(lesson):
    code(lesson, "check('0'").source = "exercise('0')  # check('0', f)"


@fault(rules.has_enough_to_do, "1 widgets; 3 is the least")
def fewer_widgets_than_the_lesson_promises(lesson):
    lesson.notebook.metadata.course["at_least"] = {"widgets": 3}


@fault(rules.has_enough_to_do, "course.at_least.quizzes is 2; 8 is the least")
def lesson_that_lowers_the_bar(lesson):
    lesson.notebook.metadata.course["at_least"] = {"quizzes": 2}


@fault(rules.predicts_before_the_first_experiment, "before its first predict")
def result_before_the_prediction(lesson):
    cells = lesson.notebook.cells
    cells.insert(cells.index(code(lesson, "predict(")), printing("print(bleu)"))


@fault(rules.predicts_before_the_first_experiment, "has no predict")
def prediction_in_another_part(lesson):
    cells = lesson.notebook.cells
    cell = code(lesson, "predict(")
    cells.remove(cell)
    cells.remove(code(lesson, "print(bleu)"))
    cells.insert(cells.index(with_tag(lesson, "part:widget")) + 1, cell)


@fault(rules.shows_the_real_implementation, "shows no source")
def implementation_not_shown(lesson):
    code(lesson, "show_source").source = "print('trust us')"


@fault(rules.shows_the_real_implementation, "copies claim of course_lib.tasks.claims")
def implementation_copied(lesson):
    import inspect

    from course_lib.tasks.claims import claim

    lesson.notebook.cells.append(new_code_cell(inspect.getsource(claim)))


@fault(rules.code_is_plain_python, "line 2 is not plain Python")
def magic(lesson):
    code(lesson, "play()").source = "play()\n%time play()"


@fault(rules.code_is_plain_python, "is empty")
def empty_cell(lesson):
    lesson.notebook.cells.append(new_code_cell(" \n"))


@fault(rules.code_fits_a_slide, "line 2 has 61 characters")
def line_too_long(lesson):
    code(lesson, "play()").source = "# " + "x" * 58 + "\n# " + "x" * 59


@fault(rules.no_line_ends_in_a_semicolon, "line 1 ends in a semicolon")
def semicolon(lesson):
    code(lesson, "play()").source = "play();  # quiet\nprint('a;')"


@fault(rules.only_output_may_be_ignored, "2 of 19 code cells")
def too_many_cells_ignored(lesson):
    code(lesson, "claim(").metadata["tags"] = ["nbval-ignore-output"]
    cells = lesson.notebook.cells
    cells.insert(cells.index(code(lesson, "claim(")) + 1, printing("claim(True, 'yes')"))
    cells.remove(code(lesson, "show(picture)"))


@fault(rules.only_output_may_be_ignored, "'nbval-skip'")
def cell_skipped(lesson):
    code(lesson, "play()").metadata["tags"].append("nbval-skip")


@fault(rules.only_output_may_be_ignored, "'raises-exception'")
def cell_that_may_fail(lesson):
    code(lesson, "play()").metadata["tags"].append("raises-exception")


@fault(rules.only_output_may_be_ignored, "'# NBVAL_IGNORE_OUTPUT'")
def cell_ignored_by_a_comment(lesson):
    code(lesson, "play()").source = "# NBVAL_IGNORE_OUTPUT\nplay()"


@fault(rules.ignored_cells_are_followed_by_a_claim, "no claim(...) follows")
def ignored_cell_without_a_claim(lesson):
    code(lesson, "claim(").source = "print('fast')  # claim(fast)"


@fault(rules.ignored_cells_are_followed_by_a_claim, "no claim(...) follows")
def ignored_cell_at_the_end(lesson):
    lesson.notebook.cells.remove(code(lesson, "claim("))


@fault(rules.no_output_is_an_error, "ended in KeyError: 'q'")
def traceback_stored(lesson):
    error = new_output("error", ename="KeyError", evalue="'q'", traceback=["Traceback"])
    code(lesson, "play()").outputs.append(error)


@fault(rules.no_output_is_an_error, "wrote to stderr")
def warning_stored(lesson):
    warning = new_output("stream", name="stderr", text="UserWarning: old")
    code(lesson, "play()").outputs.append(warning)


@fault(rules.figures_carry_alt_text, "without alt text")
def figure_without_alt_text(lesson):
    code(lesson, "show(picture)").outputs[0].metadata = {}


@fault(rules.figures_carry_alt_text, "plain text is not 'Figure: ")
def figure_with_matplotlibs_plain_text(lesson):
    code(lesson, "show(picture)").outputs[0].data["text/plain"] = "<Figure size 640x480>"


@fault(rules.figures_carry_alt_text, "without alt text: <img src")
def html_image_without_alt_text(lesson):
    html = f'<p>A map</p><img src="data:image/png;base64,{PIXEL}" alt=" ">'
    code(lesson, "play()").outputs.append(new_output("display_data", data={"text/html": html}))


@fault(rules.figures_carry_alt_text, "without alt text: <svg")
def html_drawing_without_a_label(lesson):
    html = "<svg width='3'><path/></svg>"
    code(lesson, "play()").outputs.append(new_output("display_data", data={"text/html": html}))


@fault(rules.figures_carry_alt_text, "![](heads.png)")
def markdown_image_without_alt_text(lesson):
    lesson.notebook.cells.append(new_markdown_cell("![with](a.png) ![ ](heads.png)"))


@fault(rules.names_no_place_on_a_machine, "'/home/someone'")
def path_in_an_output(lesson):
    code(lesson, "play()").outputs.append(new_output("stream", name="stdout", text="in /home/someone/x"))


@fault(rules.names_no_place_on_a_machine, "'/tmp/x.pt'")
def path_in_a_source(lesson):
    code(lesson, "play()").source = "play('/tmp/x.pt')"


@fault(rules.stored_text_can_be_repeated, "memory address, 0x7f12ab34cd")
def memory_address(lesson):
    data = {"text/plain": "<function f at 0x7f12ab34cd>"}
    code(lesson, "play()").outputs.append(new_output("display_data", data=data))


@fault(rules.stored_text_can_be_repeated, "0.12345")
def five_decimals(lesson):
    code(lesson, "play()").outputs.append(new_output("stream", name="stdout", text="loss 0.12345"))


@pytest.mark.parametrize("name", FAULTS)
def test_a_rule_fires_on_its_planted_fault_and_no_other_does(lesson, name):
    rule, says, plant = FAULTS[name]
    said = planted(lesson, plant)
    if plant is implementation_copied:
        said.pop("code_fits_a_slide", None)  # the library's own lines are longer than a slide
    assert list(said) == [rule.__name__]
    assert any(says in sentence for sentence in said[rule.__name__])


# ------------------------------------------------------ faults that a build would mend, planted after it


def test_outputs_of_other_code_are_found(lesson):
    code(lesson, "play()").source = "play(1)"
    assert "(build the notebook)" in rules.outputs_are_of_this_code(lesson)[0]


@pytest.mark.parametrize("counts", [[None], [2], [1, 1]])
def test_a_notebook_not_run_from_top_to_bottom_is_found(lesson, counts):
    for cell, count in zip(code_cells(lesson.notebook), counts, strict=False):
        cell["execution_count"] = count
    assert "one run from top to bottom" in rules.was_run_from_top_to_bottom(lesson)[0]


def test_another_kernel_is_found(lesson):
    lesson.notebook.metadata.kernelspec["name"] = "my-env"
    assert rules.runs_on_the_usual_kernel(lesson) == ["the kernel is 'my-env'; it should be 'python3'"]


def test_a_file_above_the_limit_is_found(lesson):
    code(lesson, "play()").outputs.append(new_output("stream", name="stdout", text="x" * 1_500_000))
    nbformat.write(lesson.notebook, lesson.path)
    assert "1.5 MB is the most" in rules.is_small(lesson)[0]


@pytest.mark.parametrize("name", ["attention.ipynb", "5_attention.ipynb", "05-Attention.ipynb"])
def test_a_file_with_another_kind_of_name_is_found(lesson, name):
    renamed = rules.Lesson(path=lesson.path.with_name(name), notebook=lesson.notebook)
    assert name in rules.has_a_lesson_name(renamed)[0]


def test_stored_widgets_are_found(lesson):
    view = {"application/vnd.jupyter.widget-view+json": {"model_id": "a1"}}
    code(lesson, "play()").outputs.append(new_output("display_data", data=view))
    lesson.notebook.metadata["widgets"] = {"state": {}}
    said = rules.stored_text_can_be_repeated(lesson)
    assert "state of widgets" in said[0] and "view of a widget" in said[1]


# ------------------------------------------------------ what the rules let pass


def test_an_ignored_cell_may_print_many_digits(lesson):
    code(lesson, "clock()").outputs[0]["text"] = "0.123456\n"
    assert rules.stored_text_can_be_repeated(lesson) == []


def test_an_assertion_in_code_counts_as_a_claim(lesson):
    code(lesson, "claim(").source = "assert fast, 'slow'"
    assert rules.ignored_cells_are_followed_by_a_claim(lesson) == []


def test_parts_may_come_again_later(lesson):
    lesson.notebook.cells += [heading("experiment"), heading("reading")]
    assert rules.has_every_part_in_order(lesson) == []


def test_slashes_and_addresses_that_are_no_paths_pass(lesson):
    cell = code(lesson, "play()")
    cell.outputs = [figure("a/tmp"), new_output("stream", name="stdout", text="https://x.org/home/a ../work/b 1/root")]
    assert rules.names_no_place_on_a_machine(lesson) == []


def test_lesson_00_has_parts_of_its_own(lesson, tmp_path):
    cells = [heading(part, "It takes 20 minutes.") for part in START_PARTS]
    notebook = nbformat.v4.new_notebook(cells=[*cells, printing("print('hello')")])
    notebook.metadata["course"] = {"lesson": "00", "kind": "start", "minutes": 20}
    start = stored(notebook, tmp_path / "00_start_here.ipynb")
    assert violations(start) == []
    notebook.cells.pop(0)
    assert any("'objectives' is missing" in sentence for sentence in violations(start))


def test_every_rule_has_a_planted_fault():
    planted_here = {rule for rule, _, _ in FAULTS.values()}
    by_name = {"outputs_are_of_this_code", "was_run_from_top_to_bottom", "runs_on_the_usual_kernel", "is_small"}
    assert {rule.__name__ for rule in RULES} == {rule.__name__ for rule in planted_here} | by_name
    assert list(LESSON_PARTS)[0] == "objectives" and list(LESSON_PARTS)[-1] == "reading"
