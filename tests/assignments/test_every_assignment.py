"""What holds for every assignment: its checks, its text, its written and its open work. Its proof: test_whole_way."""

import contextlib
import io
import math
import re

import nbformat
import pytest
import torch
from torch import nn

from course_lib.classroom.assignments import NotPassed, check
from course_lib.grading.alternatives import every_choice, slots
from course_lib.grading.judge import CALL_SECONDS, LOAD_SECONDS
from course_lib.grading.leaderboard import open_task
from course_lib.grading.sandbox import Limits
from course_lib.grading.spec import load
from course_lib.grading.validation import visible_tasks
from course_lib.grading.written import written_questions
from course_lib.tasks import Draw
from course_lib.tasks.core import Probe
from course_lib.tasks.wrong import made_by
from tests.assignments.delivered import FOLDERS, NUMBERS, every_assignment, passed, read, table, told

BY_HAND = dict.fromkeys(("02", "03", "04", "06", "07", "08"), ["experiment", "in-your-own-words"])  # by a person
WITH_SCORES = ("08", "09", "14")


def tag(cell, name):
    return cell.metadata.get("nbgrader", {}).get(name)


every_table = pytest.mark.parametrize(
    ("number", "name"), [(number, name) for number in NUMBERS for name in read(number).tables]
)


# tables ---------------------------------------------------------------------------------------------


@every_table
def test_sizes_and_numbers_are_drawn(number, name):
    if cases := table(number, name).cases:
        drawn = [str([case.inputs(Draw(seed)) for case in cases]) for seed in (1, 1, 2)]
        assert drawn[0] == drawn[1] != drawn[2]


@every_table
def test_what_is_shown_of_a_task_fits_its_table(number, name):
    task, shown = table(number, name), visible_tasks(number)[name]
    assert list(visible_tasks(number)) == list(read(number).tables)
    assert (shown.asks, shown.title, shown.example) == (task.asks, task.title, task.example)
    assert not task.reference or told(made_by(task), shown.all_checks, task) == []


UNSEEN = {  # slips that need more than numbers small enough for a calculation by hand
    "changes its input",
    "equal weights for a query that sees nothing",
    "features of the heads interleaved",
    "heads mixed up by a reshape",
    "NaN for a query that sees nothing",
    "padding multiplied by zero",
    "a ready-made function",
    "times rounded",
}


@pytest.mark.parametrize("number", ["03", "04", "05"])
def test_nearly_every_known_slip_fails_in_the_notebook_already(number):
    for name, task in read(number).tables.items():
        shown = visible_tasks(number)[name].all_checks
        known = [one for one in task.mistakes if task.cases and one.ways and one.name not in UNSEEN]
        unseen = [one.name for one in known if not told(made_by(task, one.ways[0]), shown, task)]
        assert unseen == (["missing scale", "divided by d instead of its square root"] if name[0] == "G" else [])


@every_table
def test_the_released_cell_can_be_run_and_is_not_written_yet(number, name):
    loaded, names = read(number).loaded, {"__name__": "__main__"}
    for source in (*(cell.source for cell in loaded.cells if cell.kind == "setup"), loaded.stubs[name]):
        exec(source, names)
    with pytest.raises(NotPassed, match="not written yet"), contextlib.redirect_stdout(io.StringIO()):
        check(visible_tasks(number)[name], names[name])


NOT_SHOWN = """
09 huber_of_logs: half forgotten
09 law_with_floor: error in logarithms
10 ranking_loss: logarithm of a sigmoid that is 0
10 listwise_loss: exponentials that overflow
10 tilted_policy: exponentials that overflow
10 identity_loss: sum instead of mean
11 overlapping_patches: padding left out
11 shifted_patches: half a patch instead of the shift
11 add_positions: sines and cosines alternate
11 rotate_by_position: pairs half a vector apart
11 rollout_map: positive part after the mean
11 contribution_map: mean over the heads
11 keep_tokens: kept in order of attention
11 merge_tokens: class token joins a patch
12 receptive_field: borders of the shifted windows elsewhere
12 neighborhood_field: groups of equal size
12 continuous_bias: bias of the first layer forgotten
12 decomposed_bias: keys numbered as if not pooled
12 patch_expanding: both sides cropped
12 reassemble: new positions column by column
13 hog_target: nothing added before the square root
13 hog_target: patches counted down the columns
13 teacher_loss: nothing added to the variance
13 reconstruct: patches counted down the columns
13 reconstruct: channels not last
13 frequency_loss: the border is low
13 frequency_loss: nothing hidden
13 probe_scores: nothing added to the variance
14 roi_align: zeros beyond the outermost centres
14 ddim_step: the index -1
14 border_weights: distance along rows and columns
14 lovasz_softmax: divided by the number of all classes
14 average_precision: the threshold itself is not enough
14 average_precision: second best object matched
14 average_precision: not in the order of the scores
14 average_precision: divided by the number of found objects
14 panoptic_quality: half void is enough
15 span_mask: a gap behind the last token
15 text_infilling: spans without a token left out
15 look_ahead_mask: earlier copies visible
15 align: blank left out between equal symbols
15 align: blank between all symbols
15 align: probabilities multiplied
15 transducer_loss: frames of the padding
15 transducer_loss: probabilities multiplied
15 occupation: blank left out between equal symbols
15 occupation: probabilities multiplied
16 expert_policy: exponential too large
16 temporal_ensemble: weights too small
16 implicit_q: one sweep too many
16 sigmoid_loss: logarithm of zero
16 late_interaction: exponential too large
17 retention: negative powers
17 retention: a table of all pairs
17 streaming_attention: keys counted twice
17 delta_rule: a table of all pairs
17 heavy_hitters: one choice for all heads
17 log_partition: exponential too large
17 log_partition: sums over the larger layer
17 pseudo_log_likelihood: logarithm of zero
17 pseudo_log_likelihood: a table of all flipped images
"""


@pytest.mark.parametrize("row", NOT_SHOWN.split("\n")[1:-1])
def test_a_mistake_that_the_example_does_not_show_costs_part_of_the_points(row):
    place, _, mistake = row.partition(": ")
    task = table(*place.split())
    least = task.points / 5 if place > "13" else 2
    assert least <= sum(one.points for one in passed(task, mistake)) < task.points


@pytest.mark.parametrize(
    ("number", "name", "words"),
    [
        ("12", "train", {"Conv2d", "conv2d", "unfold"}),  # where attention is asked for
        ("15", "occupation", {"ctc_loss", "autograd", "backward", "grad"}),  # where the recursion is
    ],
)
def test_what_would_do_the_task_by_itself_is_forbidden(number, name, words):
    assert words <= set(table(number, name).forbids)


# the text -------------------------------------------------------------------------------------------


@every_assignment
def test_the_notebook_is_valid_and_holds_no_output(number):
    notebook = read(number).notebook
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    for cell in notebook.cells:
        assert cell.cell_type == "markdown" or (cell.outputs == [] and cell.execution_count is None)


@every_assignment
def test_each_task_has_a_statement_a_cell_to_fill_in_and_a_check(number):
    cells = read(number).notebook.cells
    order = [tag(cell, "grade_id") for cell in cells]
    for task in read(number).tables:
        start, behind = order.index(task), order.index(f"check-{task}")
        assert behind == start + 1 and "### BEGIN SOLUTION" in cells[start].source
        assert f'check(ASSIGNMENT["{task}"], {task})' in cells[behind].source


@every_assignment
def test_points_and_titles_in_the_text_are_those_of_the_tables_and_sum_to_a_hundred(number):
    files = read(number).files
    for choose in every_choice(files.source_notebook, files.place):
        release = files.chosen(choose)
        _points_and_titles_fit(number, load(release), nbformat.reads(release.source_notebook.decode(), 4).cells)


def _points_and_titles_fit(number, loaded, cells):
    given = [*loaded.check_points.values(), *loaded.manual_cells.values()]
    headings = [cell.source.splitlines()[0] for cell in cells if cell.source.startswith("## ")]
    rows = re.findall(r"^\| (\d) \| (.+?) \| (\d+) \| (\d+) \|$", cells[0].source, re.MULTILINE)
    by_hand = BY_HAND.get(number, ["in-your-own-words"])
    assert sum(given) == 100 and [*loaded.manual_cells] == by_hand
    assert headings == [f"## {n} · {title} ({points} points)" for n, title, points, _ in rows]
    assert [int(points) for *_, points, _ in rows] == given
    assert 120 <= sum(int(minutes) for *_, minutes in rows) <= 180 and "**It takes** 2 to 3 hours" in cells[0].source
    assert [title for _, title, *_ in rows][: -len(by_hand)] == [task.title for task in loaded.assignment.tasks]


@every_assignment
def test_tasks_for_half_of_the_points_have_an_alternative(number):
    files, worth = read(number).files, read(number).loaded.check_points
    alternatives = slots(files.source_notebook, files.place)
    assert [slot for slot, tasks in alternatives.items() if len(tasks) < 2] == []
    firsts = set().union(*(tasks[min(tasks)] for tasks in alternatives.values()))
    assert sum(worth[name] for name in read(number).tables if name in firsts) >= 50


@every_assignment
def test_the_text_names_every_limit(number):
    cells = read(number).notebook.cells
    cell, call, memory = f"{LOAD_SECONDS:g} seconds", f"{CALL_SECONDS:g}", f"{Limits().memory >> 30} GB"
    (limits,) = re.findall(r"^\*\*Limits\.\*\* .+?(?=\n\n)", cells[0].source, re.MULTILINE | re.DOTALL)
    assert re.search(rf"a cell may take {cell}.+ a call .+ {call},.+ {memory}", limits.replace("\n", " "))
    text = "\n".join(cell.source for cell in cells).replace("\n", " ")
    for task in visible_tasks(number).values():
        assert task.seconds is None or f"the grader stops after {task.seconds:g}" in text.lower()


@every_assignment
def test_answers_need_only_what_the_first_cell_imports(number):
    sources = [  # of all that the grader keeps and runs
        cell.source
        for cell in read(number).notebook.cells
        if cell.cell_type == "code" and tag(cell, "grade_id") and not tag(cell, "grade")
    ]
    imports = re.findall(r"^(?:import|from) (\w+)", "\n".join(sources), re.MULTILINE)
    assert set(imports) <= {"collections", "einops", "math", "numpy", "torch"}


# written and open work ------------------------------------------------------------------------------


def questions(number):
    return written_questions(read(number).files, FOLDERS.hidden(number)).values()


@every_assignment
def test_each_aspect_of_a_model_answer_has_partial_answers_of_whole_short_sentences(number):
    assert questions(number)
    for question in questions(number):
        assert question.text.startswith("## ")
        for aspect in question.aspects:
            assert 1 <= len(aspect.typical) <= 6, (question.grade_id, aspect.title)
            for points, comment in aspect.typical:
                assert points < aspect.points
                assert (comment[0].isupper() or comment[0] in '"`εI') and comment.endswith((".", "?")), comment
                sentences = re.split("[.?:] ", comment)
                assert max(len(sentence.split()) for sentence in sentences) <= 32, comment


def test_written_questions_weigh_a_quarter_in_at_least_half_of_the_assignments():
    weights = {number: sum(question.points for question in questions(number)) for number in NUMBERS}
    assert 2 * sum(points >= 25 for points in weights.values()) >= len(weights), weights


def test_three_assignments_have_an_open_task_with_a_score():
    assert tuple(number for number in NUMBERS if open_task(read(number).loaded) is not None) == WITH_SCORES


def says_nothing(text):
    """Logits that are 0 for each symbol, whatever came before."""
    network = nn.Embedding(9, 9)
    nn.init.zeros_(network.weight)
    return network


def study(budget, N, D, L, larger_N, larger_D):
    return torch.full_like(larger_N, 4.0) if len(L) else torch.tensor([[1e5, 1e8 / 6]])


def segment(images, labels):
    return nn.Conv2d(1, 3, 1)


@pytest.mark.parametrize(
    ("number", "answer", "low", "high"),
    [
        ("08", says_nothing, 2.7, math.log2(9)),  # uniform: log2(9) bits, less what is in the text
        ("09", study, 1, 1000),  # percent
        ("14", segment, 0, 0.6),
    ],
)
def test_the_checks_of_an_open_task_measure_its_score(number, answer, low, high):
    task = open_task(read(number).loaded)
    measured = []
    for one in task.scored:
        probe = Probe(answer, asks=task.asks)
        assert list(one.run(probe))  # not good enough for points
        measured += [probe.measured] if probe.measured is not None else []
    assert measured and all(low < score < high for score in measured), measured
