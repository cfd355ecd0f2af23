"""From one table come the checks, the findings and the explanation of several mistakes at once."""

from dataclasses import replace

import pytest
import torch

from course_lib.tasks import (
    Case,
    Comparison,
    Draw,
    Finding,
    Mistake,
    Task,
    TaskInput,
    findings,
    gradients,
    keeps_type,
    run_checks,
)  # fmt: skip
from course_lib.tasks.findings import unexplained
from course_lib.tasks.solution import Solution

SCALED = Solution("def scaled(x, factor):\n    return factor * x\n")
MISTAKES = (
    Mistake("wrong sign", "The sign is wrong.", "", ways=((("return", "return -"),),)),
    Mistake("squared", "No power.", "", ways=((("x\n", "x**2\n"),), (("x\n", "x**3\n"),)), costs=("scales",)),
    Mistake("shifted", "Something is added.", "", ways=((("* x", "* x + 5"),),), costs=("scales",)),
)
TASK = Task(
    name="scaled",
    title="Scale",
    asks="x, factor",
    reference=SCALED,
    cases=(
        Case("scales", lambda draw: (draw(*draw.sizes(2)), draw(1)), points=3),
        Case("signs", lambda draw: (draw(4, 2).abs(), draw(1).abs()), points=1),
    ),
    mistakes=MISTAKES,
    also=(keeps_type, gradients),
    example=((([1.0, 2.0], [3.0]), [3.0, 6.0]),),
)


def told(function, task=TASK):
    return task.run(function).misconceptions


def asking(asks, source, inputs, mistakes=(), **more):
    """A task with one case, and with mistakes by their names and the changes of the solution that make them."""
    made = tuple(Mistake(name, "No.", "", ways=((tuple(change),),)) for name, *change in mistakes)
    case = Case("the case", inputs, 4, default_finding=more.pop("otherwise", None))
    return Task(
        more.pop("name", "task"), "", asks=asks, reference=Solution(source), cases=(case,), mistakes=made, **more
    )


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda x, factor: factor * x, []),
        (lambda x, factor: -factor * x, ["wrong sign"]),
        (lambda x, factor: factor * x**3, ["squared"]),
        (lambda x, factor: -factor * x**2, ["wrong sign", "squared"]),
        (lambda x, factor: factor * x + 5, ["shifted"]),
        (lambda x, factor: factor * x + 4, [findings.UNEXPLAINED]),
        (lambda x, factor: factor * x + torch.rand(x.shape), [findings.RANDOM]),
        (lambda x, factor: factor * x.float(), [findings.NUMBER_TYPE]),
        (lambda x, factor: (factor * x).float().to(x.dtype), [findings.NUMBER_TYPE]),
        (lambda x, factor: factor * x.detach() + 0 * factor, [findings.GRADIENT_LOST]),
        (lambda x, factor: factor * (2 * x - x.detach()), [findings.GRADIENT_DIFFERS]),
        (lambda x, factor: (factor * x).detach(), [findings.CUT_OFF]),
    ],
)
def test_what_is_wrong_is_told_up_to_the_first_check_that_sees_it(function, wanted):
    assert told(function) == wanted


def test_every_check_has_its_points_and_a_general_property_one():
    assert [(check.name, check.points) for check in TASK.all_checks[:2]] == [("scales", 3), ("signs", 1)]
    assert [check.points for check in TASK.all_checks[2:]] == [1, 1, 0] and TASK.points == 6


def test_a_mistake_costs_in_its_own_case_alone():
    _, signs, *_ = TASK.all_checks
    assert run_checks(lambda x, factor: factor * x**2, [signs]).passed
    assert run_checks(lambda x, factor: -factor * x**2, [signs]).misconceptions == ["wrong sign"]


@pytest.mark.parametrize("answer", ["zeros", "constants", "second"])
def test_an_answer_that_does_not_depend_on_the_numbers_passes_no_case(answer):
    calls = []

    def function(x, factor):
        calls.append(1)
        if answer == "constants":
            return torch.arange(float(x.numel())).view(x.shape)
        return factor * x if answer == "second" and len(calls) == 1 else torch.zeros_like(x)

    for check in TASK.all_checks[:3]:
        calls.clear()
        assert not run_checks(function, [check]).passed


def test_the_example_shows_both_results():
    (check,) = TASK.by_hand
    (finding,) = run_checks(lambda x, factor: factor * x + 0.01, [check]).findings
    assert finding.misconception == findings.NOT_AS_BY_HAND
    assert "your result is (3.01, 6.01); by hand it is (3, 6)." in finding.message


def test_three_rows_are_shown_beginning_before_the_first_difference():
    wanted = torch.arange(24.0).view(2, 4, 3)
    actual = wanted.clone()
    actual[1, 0, 2] += 1
    finding = unexplained(actual, wanted)
    assert isinstance(finding, Comparison) and [row.place for row in finding.rows] == [(0, 3), (1, 0), (1, 1)]
    assert [row.first for row in finding.rows] == [None, 2, None] and finding.rows[1].yours == [12.0, 13.0, 15.0]


@pytest.mark.parametrize("shape", [(), (3,), (1, 2), (9, 1)])
def test_a_result_of_any_shape_can_be_shown(shape):
    rows = unexplained(torch.ones(shape), torch.zeros(shape)).rows
    assert 1 <= len(rows) <= 3 and rows[0].first == 0


def test_a_result_is_shown_beside_whole_numbers():
    rows = unexplained(torch.tensor([[0.5, 2.0]]), torch.tensor([[1, 2]])).rows
    assert [(row.yours, row.wanted, row.first) for row in rows] == [([0.5, 2.0], [1.0, 2.0], 0)]


def test_a_task_that_asks_nothing_is_refused():
    with pytest.raises(ValueError, match="'x' asks nothing"):
        Task(name="x", title="", asks="x")


# small tasks ------------------------------------------------------------------------------------------------


def test_the_same_number_everywhere_is_never_excused_by_a_mistake():
    forgotten = Mistake("numbers forgotten", "Gone.", "", ways=((("* x", "+ 0 * x"),),), costs=("scales",))
    _, signs, *_ = replace(TASK, mistakes=(*MISTAKES, forgotten)).all_checks
    assert not run_checks(lambda x, factor: factor.expand(x.shape), [signs]).passed


def test_what_no_mistake_explains_can_have_words_of_its_own():
    strange, source = Finding("strange", "Never seen."), "def scaled(x):\n    return 2 * x\n"
    task = asking("x", source, lambda draw: (draw(2, 3),), [("wrong sign", "return", "return -")], otherwise=strange)
    assert task.run(lambda x: 7 * x).findings == [strange]
    assert told(lambda x: -2 * x, task) == ["wrong sign"]


def test_mistakes_that_need_axes_of_one_size_are_found_there():
    def inputs(draw):
        n, m, d = draw.sizes(3)
        return draw(n, d), draw(m, d)

    task = asking("q, k", "def product(q, k):\n    return q @ k.mT", inputs, [("not turned", "k.mT", "k")])
    assert told(lambda q, k: q @ k, task) == ["not turned"]
    assert told(lambda q, k: q @ k[:1], task) != ["not turned"]


def test_a_module_is_made_and_given_parameters():
    source = "class Linear(nn.Linear):\n    def forward(self, x):\n        return x @ self.weight.mT + self.bias\n"
    inputs, no_bias = lambda draw: TaskInput((draw(4, 3),), build=(3, 2)), ("no bias", "+ self.bias", "")  # noqa: E731
    task = asking("x", source, inputs, [no_bias], name="Linear", module=torch.nn.Linear, also=(gradients,))

    class NoBias(torch.nn.Linear):
        def forward(self, x):
            return x @ self.weight.T

    class Cut(torch.nn.Linear):
        def forward(self, x):
            return x @ self.weight.T.detach() + self.bias

    assert told(torch.nn.Linear, task) == []
    assert told(NoBias, task) == ["no bias"] and told(Cut, task) == [findings.GRADIENT_LOST]


def test_no_gradient_has_to_reach_what_the_result_does_not_depend_on():
    source = "def chosen(x, first, second):\n    return x * first + 0 * second\n"
    task = asking("x, first, second", source, lambda draw: (draw(3), draw(3), draw(3)), also=(gradients,))
    assert told(lambda x, first, second: x * first, task) == []
    assert told(lambda x, first, second: x * first.detach(), task) == [findings.GRADIENT_LOST]
    assert told(lambda x, first, second: x * first + second - second.detach(), task) == [findings.GRADIENT_DIFFERS]
    assert task.points == 5 and replace(task, also=(replace(gradients, points=3),)).points == 7


def test_a_case_that_has_no_batch_of_one_is_asked_without():
    def matrix(draw):
        n, m = draw.sizes(2)
        return (draw(n, m), torch.tensor(n - 2))

    task = asking("x, i", "def pick(x, i):\n    return x[i]", matrix)
    assert task.draw_single(task.cases[0], Draw(0)) is None or task.run(lambda x, i: x[i]).passed


def test_a_generator_is_the_same_for_all_who_are_called():
    source = "def drawn(n, generator):\n    return torch.rand(n, generator=generator)\n"
    task = asking("n, generator", source, lambda draw: (5, draw.generator))
    assert told(lambda n, generator: torch.rand(n, generator=generator), task) == []
    assert told(lambda n, generator: torch.rand(n), task) == [findings.RANDOM]
    assert told(lambda n, generator: 2 * torch.rand(n, generator=generator), task) == [findings.UNEXPLAINED]


def test_a_batch_of_one_is_drawn_and_an_overflow_is_no_sign_of_a_mistake_that_others_would_overflow_with_too():
    source, part = "def rows(x):\n    return (x - x.amax(-1, keepdim=True)).exp()\n", "x.amax(-1, keepdim=True)"
    mistakes = [("over the columns", part, "0"), ("over everything", part, "0.0")]
    task = asking("x", source, lambda draw: (200 * draw(*draw.sizes(2)) + 300,), mistakes)
    assert told(lambda x: (x - x.amax(-1, keepdim=True)).exp(), task) == []
    (finding,) = task.run(lambda x: (x - x.amax(-1, keepdim=True)).exp().squeeze()).findings
    assert finding.misconception == findings.WRONG_SHAPE and "(1, " in finding.message
    assert told(lambda x: (x * 1e9).exp() * torch.inf, task) == [findings.NOT_FINITE]
