"""Each rule passes the sound lesson of conftest.py and fires, alone, on the fault planted here."""

import inspect

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from course_lib.authoring import lesson_rules as rules
from course_lib.authoring.lesson_pages import counts, minutes, words
from course_lib.authoring.lesson_rules import RULES, Lesson, read_lesson, violations
from course_lib.classroom.page import Section
from course_lib.commands.lab import is_free
from tests.authoring.conftest import PIXEL, figure, printing, showing, stored


def code(lesson, text):
    """The first code cell that holds this text."""
    return next(cell for _, cell in lesson.code() if text in cell.source)


def write(lesson, markdown):
    lesson.notebook.cells.append(new_markdown_cell(markdown))


def output(lesson, mime, value):
    code(lesson, "page.quiz").outputs.append(new_output("display_data", data={mime: value}))


def printed(lesson, text, name="stdout"):
    code(lesson, "page.quiz").outputs.append(new_output("stream", name=name, text=text))


def section(lesson, number):
    return next(cell for cell in lesson.notebook.cells if f"section:{number}" in cell.metadata.get("tags", []))


def planted(lesson, fault):
    """What every rule says once the fault stands in a lesson that was built with it."""
    fault(lesson)
    lesson = stored(lesson)
    return {rule: said for rule in RULES if (said := list(rule(lesson)))}


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


@fault(rules.has_its_sections_in_order, "1, 2, 3, 4, 5, 7, optional; the page has 1, 2, 3, 4, 5, 6, 7, optional")
def beat_without_a_heading_of_its_own(lesson):
    del section(lesson, 6).metadata["tags"]
    holds = lesson.page.sections[5].holds
    lesson.page.sections = (
        *lesson.page.sections[:4],
        Section("Train", 13, holds=holds),
        Section("Look inside", 15),
        *lesson.page.sections[6:],
    )


@fault(rules.has_its_sections_in_order, "1, 2, 3, 4, 5, 7, 6, optional")
def beats_out_of_order(lesson):
    cells = lesson.notebook.cells
    start, end = cells.index(section(lesson, 7)), cells.index(section(lesson, "optional"))
    card = cells[start:end]
    del cells[start:end]
    place = cells.index(section(lesson, 6))
    cells[place:place] = card


@fault(rules.has_its_sections_in_order, "does not begin with a heading")
def beat_that_opens_with_text(lesson):
    section(lesson, 6).source = "In the paper ..."


@fault(rules.has_its_sections_in_order, "no cell begins with '## 6 · Look inside', to which the card leads")
def a_heading_that_the_card_does_not_have(lesson):
    section(lesson, 6).source = "## 6 · Another title"


@fault(rules.has_its_sections_in_order, "the page has 6 sections; a lesson has 7")
def page_of_six_beats(lesson):
    del section(lesson, 7).metadata["tags"]
    sections = lesson.page.sections
    lesson.page.sections = (*sections[:5], Section("Look inside", 20, holds=sections[5].holds), sections[7])


@fault(rules.has_its_sections_in_order, "page.close() comes once")
def page_that_is_not_closed(lesson):
    code(lesson, "page.close").source = "1"


@fault(rules.uses_what_the_page_has, "page.quizzes has no such name")
def quiz_that_nobody_wrote(lesson):
    code(lesson, 'quiz("axis")').source += '\npage.quiz("axes")'
    lesson.page.sections[2].__dict__["holds"] += ("axes",)


@fault(rules.uses_what_the_page_has, "page.results has heads, but no page.result(...)")
def result_that_is_never_shown(lesson):
    lesson.page.results["heads"] = None


@fault(rules.uses_what_the_page_has, "what section 7 `holds` do not agree about split")
def item_in_another_beat_than_the_card_says(lesson):
    cells = lesson.notebook.cells
    cell = code(lesson, 'exercise("split")')
    cells.remove(cell)
    cells.insert(cells.index(section(lesson, 7)) + 1, cell)


@fault(rules.predictions_before_it_shows, "shows the result 'bleu' before its prediction")
def result_before_the_bet(lesson):
    cells = lesson.notebook.cells
    cell = code(lesson, 'result("bleu"')
    cells.remove(cell)
    cells.insert(cells.index(section(lesson, 2)) + 1, cell)


@fault(rules.keeps_its_budgets, "71 cells; 70 are the most")
def too_many_cells(lesson):
    lesson.notebook.cells += [new_markdown_cell("") for _ in range(71 - len(lesson.notebook.cells))]


@fault(rules.keeps_its_budgets, "39 code cells; 38 are the most")
def too_many_code_cells(lesson):
    lesson.notebook.cells += [new_code_cell("1") for _ in range(39 - counts(lesson)["code cells"])]


@fault(rules.keeps_its_budgets, "2801 words; 2800 are the most")
def too_many_words(lesson):
    write(lesson, "word " * (2801 - counts(lesson)["words"]))


@fault(rules.keeps_its_budgets, "241 lines of code; 240 are the most")
def too_much_code(lesson):
    lines = 241 - counts(lesson)["lines of code"]
    cells = [new_code_cell("a = 1\n" * min(15, lines - start)) for start in range(0, lines, 15)]
    lesson.notebook.cells += cells


@fault(rules.keeps_its_budgets, "has 16 lines; 15 are the most")
def cell_too_long(lesson):
    code(lesson, "page.close").source = "page.close()\n" + "a = 1\n" * 15


@fault(rules.keeps_its_budgets, "a line of 89 characters; 88 are the most")
def line_too_long(lesson):
    code(lesson, "page.close").source = "page.close()\n\n#" + "x" * 88


@fault(rules.keeps_its_budgets, "4 listings; 3 are the most")
def too_many_listings(lesson):
    code(lesson, "show_source").outputs *= 4


@fault(rules.keeps_its_budgets, "lists 26 lines; 25 are the most")
def listing_too_long(lesson):
    code(lesson, "show_source").outputs[0].data["text/plain"] += "\n    pass" * 24


@fault(rules.keeps_its_budgets, "11 claims; 10 are the most")
def too_many_claims(lesson):
    code(lesson, "page.result").outputs[0].data["text/plain"] += "✓ It holds   ✗ It does not\n" * 4


@fault(rules.keeps_its_budgets, "9 figures; 8 are the most")
def too_many_figures(lesson):
    code(lesson, "page.quiz").outputs += [figure(f"number {n}") for n in range(9)]


@fault(rules.has_enough_to_do, "2 predictions; 3 is the least")
def one_bet_too_few(lesson):
    lesson.notebook.cells.remove(code(lesson, 'predict("heads")'))
    del lesson.page.predictions["heads"]
    lesson.page.sections[1].__dict__["holds"] = ("bleu", "length")


@fault(rules.has_enough_to_do, "0 quizzes that ask for a bug; 1 is the least")
def no_bug_to_find(lesson):
    lesson.page.quizzes["bug"] = lesson.page.quizzes["axis"]


@fault(rules.has_enough_to_do, "1 quizzes that ask for a number; 2 is the least")
def one_number_too_few(lesson):
    lesson.page.quizzes["sum"] = lesson.page.quizzes["axis"]


@fault(rules.has_enough_to_do, "0 uses of the learner's code; 1 is the least")
def exercises_that_are_never_used(lesson):
    code(lesson, "page.use").source = "attend = attention"


@fault(rules.has_enough_to_do, "0 playgrounds with goals; 1 is the least")
def playgrounds_without_goals(lesson):
    lesson.page.playgrounds.update(translator=inspect.getsource, masks=inspect.getsource)


@fault(rules.has_enough_to_do, "'positions' does not say how many minutes")
def exercise_without_minutes(lesson):
    lesson.page.tasks["positions"] = None


@fault(rules.takes_as_long_as_it_says, "promises 80 minutes; 75 are the most")
def lesson_too_long(lesson):
    lesson.page.sections = (Section("Whole game", 8, holds=("translator",)), *lesson.page.sections[1:])


@fault(rules.takes_as_long_as_it_says, "takes 93 minutes (text 16")
def more_text_than_the_minutes_allow(lesson):
    section(lesson, 1).source += "word " * (16 * 130 - 14)


@fault(rules.no_markdown_is_swallowed, "the list swallows 'It takes")
def line_below_a_list(lesson):
    write(lesson, "You can\n\n- compute\n  by hand,\n- write.\nIt takes an hour.")


@fault(rules.no_markdown_is_swallowed, "the table swallows 'The longest")
def line_below_a_table(lesson):
    write(lesson, "| a | b |\n|---|---|\n| 1 | 2 |\nThe longest path counts.")


@fault(rules.headings_are_plain, "LaTeX in the heading")
def formula_in_a_heading(lesson):
    write(lesson, "Text\n\n### Why $\\sqrt{d_k}$?")


@fault(rules.claims_nothing_about_time, "machine time ('seconds')")
def claim_about_seconds(lesson):
    code(lesson, "page.result").outputs[0].data["text/plain"] += "✓ It took fewer than 40 seconds\n"


@fault(rules.code_is_plain_python, "line 2 is not plain Python")
def magic(lesson):
    code(lesson, "page.close").source = "page.close()\n%time page.close()"
    lesson.notebook.cells.append(new_code_cell("page.close()"))


@fault(rules.code_is_plain_python, "is empty")
def empty_cell(lesson):
    lesson.notebook.cells.append(new_code_cell(" \n"))


@fault(rules.code_is_plain_python, "line 1 ends in a semicolon")
def semicolon(lesson):
    code(lesson, "page.close").source = "page.close();  # quiet"


@fault(rules.code_gives_nothing_away, "says `alt=` in visible code")
def alt_text_on_the_page(lesson):
    lesson.notebook.cells.append(new_code_cell("show(figure, alt='Attention wins')"))


STEP = "for step in range(9):\n    loss = 1.0\n    screen.update(step + 1, 9, loss=loss)\n"


@fault(rules.a_watched_training_can_be_stopped, "never asks for screen.stopped")
def loop_that_cannot_be_stopped(lesson):
    lesson.notebook.cells.append(new_code_cell(STEP + "screen.close()"))


@fault(rules.a_watched_training_can_be_stopped, "never asks for screen.stopped")
def listing_of_a_loop_that_cannot_be_stopped(lesson):
    code(lesson, "show_source").outputs[0].data["text/plain"] += f"\n{STEP}"


@fault(rules.copies_nothing_of_the_library, "copies is_free of commands/lab.py")
def implementation_copied(lesson):
    lesson.notebook.cells.append(new_code_cell(inspect.getsource(is_free)))


@fault(rules.only_output_may_be_ignored, "3 of 23 code cells")
def too_many_cells_ignored(lesson):
    code(lesson, "show_source").metadata["tags"] = ["nbval-ignore-output"]
    ignored = printing("print(clock())", metadata={"tags": ["nbval-ignore-output"]})
    lesson.notebook.cells += [ignored, new_code_cell("claim(ticks, 'It ticks')")]


@fault(rules.only_output_may_be_ignored, "'nbval-skip'")
def cell_skipped(lesson):
    code(lesson, "page.close").metadata["tags"] = ["nbval-skip"]


@fault(rules.only_output_may_be_ignored, "'# NBVAL_IGNORE_OUTPUT'")
def cell_ignored_by_a_comment(lesson):
    code(lesson, "page.close").source = "# NBVAL_IGNORE_OUTPUT\npage.close()"


@fault(rules.only_output_may_be_ignored, "no code cell beside it claims")
def ignored_cell_without_a_claim(lesson):
    code(lesson, "clock").metadata["tags"] = []
    code(lesson, "page.use").metadata["tags"] = ["nbval-ignore-output"]


@fault(rules.no_output_is_an_error, "ended in KeyError: 'q'")
def traceback_stored(lesson):
    error = new_output("error", ename="KeyError", evalue="'q'", traceback=["Traceback"])
    code(lesson, "page.quiz").outputs.append(error)


@fault(rules.no_output_is_an_error, "wrote to stderr")
def warning_stored(lesson):
    printed(lesson, "UserWarning: old", name="stderr")


@fault(rules.figures_carry_alt_text, "plain text is not 'Figure: ")
def figure_with_matplotlibs_plain_text(lesson):
    output(lesson, "image/png", PIXEL)


@fault(rules.figures_carry_alt_text, "without alt text: <img alt")
def html_image_without_alt_text(lesson):
    output(lesson, "text/html", f'<p>A map</p><img alt=" " src="data:image/png;base64,{PIXEL}">')


@fault(rules.figures_carry_alt_text, "without alt text: <svg")
def html_drawing_without_a_label(lesson):
    output(lesson, "text/html", "<svg width='3'><path/></svg>")


@fault(rules.figures_carry_alt_text, "![ ](heads.png)")
def markdown_image_without_alt_text(lesson):
    write(lesson, "![with](a.png) ![ ](heads.png)")


@fault(rules.colours_are_shown_before_a_run, "has the colour rgb(0 114 178/0.5)")
def colour_that_jupyterlab_drops(lesson):
    output(lesson, "text/html", '<td style="padding:0;background:rgb(0 114 178/0.5)"></td>')


@fault(rules.papers_are_linked, "names arXiv 1706.03762 without a link")
def paper_without_a_link(lesson):
    write(lesson, "[arXiv 1409.0473](https://arxiv.org/abs/1409.0473), arXiv\n1706.03762.")


@fault(rules.names_no_place_on_a_machine, "'/home/someone'")
def path_in_an_output(lesson):
    printed(lesson, "in /home/someone/x")


@fault(rules.names_no_place_on_a_machine, "'/tmp/x.pt'")
def path_in_a_source(lesson):
    lesson.notebook.cells.append(new_code_cell("load('/tmp/x.pt')"))


@fault(rules.stored_text_can_be_repeated, "memory address, 0x7f12ab34cd")
def memory_address(lesson):
    output(lesson, "text/plain", "<function f at 0x7f12ab34cd>")


@fault(rules.stored_text_can_be_repeated, "0.12345")
def five_decimals(lesson):
    code(lesson, "page.result").outputs[0].data["text/plain"] += "loss 0.12345"


@pytest.mark.parametrize("name", FAULTS)
def test_a_rule_fires_on_its_planted_fault_and_no_other_does(lesson, name):
    rule, says, plant = FAULTS[name]
    said = planted(lesson, plant)
    assert list(said) == [rule]
    assert any(says in sentence for sentence in said[rule]), said


# ------------------------------------------------------ faults that a build would mend, planted after it


def test_outputs_of_other_code_are_found(lesson):
    code(lesson, "page.close").source = "page.close(1)"
    assert "(build the notebook)" in next(rules.outputs_are_of_this_code(lesson))


@pytest.mark.parametrize("counts", [[None], [2], [1, 1]])
def test_a_notebook_not_run_from_top_to_bottom_is_found(lesson, counts):
    for (_, cell), count in zip(lesson.code(), counts, strict=False):
        cell["execution_count"] = count
    assert "one run from top to bottom" in next(rules.outputs_are_of_this_code(lesson))


def test_another_kernel_is_found(lesson):
    lesson.notebook.metadata.kernelspec["name"] = "my-env"
    assert list(rules.is_small_and_runs_everywhere(lesson)) == ["the kernel is 'my-env'; it should be 'python3'"]


def test_a_file_above_the_limit_is_found(lesson):
    printed(lesson, "x" * 1_500_000)
    nbformat.write(lesson.notebook, lesson.path)
    assert "1.5 MB is the most" in next(rules.is_small_and_runs_everywhere(lesson))


@pytest.mark.parametrize("name", ["attention.ipynb", "5_attention.ipynb", "05-Attention.ipynb"])
def test_a_file_with_another_kind_of_name_is_found(lesson, name):
    renamed = Lesson(path=lesson.path.with_name(name), notebook=lesson.notebook, page=lesson.page)
    assert name in next(rules.has_a_lesson_name(renamed))


def test_a_lesson_without_a_page_is_found(lesson):
    without = Lesson(path=lesson.path, notebook=lesson.notebook)
    assert "there is no `page`" in next(rules.has_a_lesson_name(without))


def test_stored_widgets_are_found(lesson):
    output(lesson, "application/vnd.jupyter.widget-view+json", {"model_id": "a1"})
    lesson.notebook.metadata["widgets"] = {"state": {}}
    said = list(rules.stored_text_can_be_repeated(lesson))
    assert "state of widgets" in said[0] and "view of a widget" in said[1]


# ------------------------------------------------------ what the rules count, and what they let pass


def test_words_are_those_that_a_reader_reads():
    text = "The *root* of $d_k$, [see here](https://x.org/a-b), isn't <b>one</b>.\n\n$$a + b$$\n\n```\ncode here\n```"
    assert words(new_markdown_cell(text)) == 9


def test_a_loop_that_asks_whether_it_is_stopped_passes(lesson):
    lesson.notebook.cells.append(new_code_cell(STEP + "    if screen.stopped:\n        break"))
    assert list(rules.a_watched_training_can_be_stopped(lesson)) == []


def test_hidden_code_takes_no_time_and_may_give_something_away(lesson):
    before = counts(lesson)["lines of code"], minutes(lesson)
    hidden = showing("show(figure, alt='Attention wins')\n" * 30, "", metadata={"jupyter": {"source_hidden": True}})
    lesson.notebook.cells.insert(0, hidden)
    lesson = stored(lesson)
    assert (counts(lesson)["lines of code"], minutes(lesson)) == before
    assert list(rules.code_gives_nothing_away(lesson)) == []


def test_what_is_optional_takes_none_of_the_promised_minutes(lesson):
    before = minutes(lesson)
    write(lesson, "word " * 500)
    assert minutes(stored(lesson)) == before


def test_the_third_edition_has_more_room_and_slower_readers_and_asks_for_a_model(lesson):
    before = sum(minutes(lesson).values())
    lesson.notebook.metadata["course"]["edition"] = 3
    assert sum(minutes(lesson).values()) > before
    missing = " ".join(rules.has_enough_to_do(lesson))
    assert "0 diagrams; 1 is the least" in missing and "0 models of the learner's own; 1 is the least" in missing
    write(lesson, "word " * (2801 - counts(lesson)["words"]))
    assert not [found for found in rules.keeps_its_budgets(lesson) if "words" in found]


def test_lesson_00_says_itself_what_it_holds(lesson):
    lesson.notebook.metadata.course.update(kind="start", at_least={"predictions": 3, "quizzes": 6})
    assert list(rules.has_enough_to_do(lesson)) == ["the page has 5 quizzes; 6 is the least"]


def test_a_question_may_ask_about_many_digits(lesson):
    printed(lesson, "0.00005\n")
    assert list(rules.stored_text_can_be_repeated(lesson)) == []


def test_an_ignored_cell_may_print_many_digits(lesson):
    code(lesson, "clock()").outputs[0]["text"] = "0.123456\n"
    assert list(rules.stored_text_can_be_repeated(lesson)) == []


def test_slashes_and_addresses_that_are_no_paths_pass(lesson):
    cell = code(lesson, "page.quiz")
    cell.outputs = [figure("a/tmp"), new_output("stream", name="stdout", text="https://x.org/home/a ../work/b 1/root")]
    assert list(rules.names_no_place_on_a_machine(lesson)) == []


def test_every_rule_has_a_planted_fault():
    mended_by_a_build = {rules.outputs_are_of_this_code, rules.is_small_and_runs_everywhere}
    assert set(RULES) == {rule for rule, _, _ in FAULTS.values()} | mended_by_a_build
