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
    gradients,
    keeps_type,
    run_checks,
)
from course_lib.tasks.findings import (
    CUT_OFF,
    GRADIENT_DIFFERS,
    GRADIENT_LOST,
    NOT_AS_BY_HAND,
    NOT_FINITE,
    NUMBER_TYPE,
    RANDOM,
    UNEXPLAINED,
    WRONG_SHAPE,
    unexplained,
)
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


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda x, factor: factor * x, []),
        (lambda x, factor: -factor * x, ["wrong sign"]),
        (lambda x, factor: factor * x**3, ["squared"]),
        (lambda x, factor: -factor * x**2, ["wrong sign", "squared"]),
        (lambda x, factor: factor * x + 5, ["shifted"]),
        (lambda x, factor: factor * x + 4, [UNEXPLAINED]),
        (lambda x, factor: factor * x + torch.rand(x.shape), [RANDOM]),
        (lambda x, factor: factor * x.float(), [NUMBER_TYPE]),
        (lambda x, factor: (factor * x).float().to(x.dtype), [NUMBER_TYPE]),
        (lambda x, factor: factor * x.detach() + 0 * factor, [GRADIENT_LOST]),
        (lambda x, factor: factor * (2 * x - x.detach()), [GRADIENT_DIFFERS]),
        (lambda x, factor: (factor * x).detach(), [CUT_OFF]),
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


def test_the_same_number_everywhere_is_never_excused_by_a_mistake():
    forgotten = Mistake("numbers forgotten", "Gone.", "", ways=((("* x", "+ 0 * x"),),), costs=("scales",))
    task = Task("scaled", "", asks="x, factor", reference=SCALED, cases=TASK.cases, mistakes=(*MISTAKES, forgotten))
    _, signs, *_ = task.all_checks
    assert not run_checks(lambda x, factor: factor.expand(x.shape), [signs]).passed


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
    assert finding.misconception == NOT_AS_BY_HAND
    assert "your result is (3.01, 6.01); by hand it is (3, 6)." in finding.message


def test_what_no_mistake_explains_can_have_words_of_its_own():
    strange = Finding("strange", "Never seen.")
    task = Task(
        name="scaled",
        title="",
        asks="x, factor",
        reference=SCALED,
        cases=(Case("scales", lambda draw: (draw(2, 3), 2.0), default_finding=strange),),
        mistakes=MISTAKES,
    )
    assert task.run(lambda x, factor: 7 * x).findings == [strange]
    assert told(lambda x, factor: -2 * x, task) == ["wrong sign"]


def test_mistakes_that_need_axes_of_one_size_are_found_there():
    task = Task(
        name="product",
        title="",
        asks="q, k",
        reference=Solution("def product(q, k):\n    return q @ k.mT"),
        cases=(Case("products", lambda draw: (lambda n, m, d: (draw(n, d), draw(m, d)))(*draw.sizes(3))),),
        mistakes=(Mistake("not turned", "No.", "", ways=((("k.mT", "k"),),)),),
    )
    assert told(lambda q, k: q @ k, task) == ["not turned"]
    assert told(lambda q, k: q @ k[:1], task) != ["not turned"]


def test_a_module_is_made_and_given_parameters():
    linear = "class Linear(nn.Linear):\n    def forward(self, x):\n        return x @ self.weight.mT + self.bias\n"
    task = Task(
        name="Linear",
        title="",
        asks="x",
        module=torch.nn.Linear,
        reference=Solution(linear),
        cases=(Case("maps", lambda draw: TaskInput((draw(4, 3),), build=(3, 2))),),
        mistakes=(Mistake("no bias", "No.", "", ways=((("+ self.bias", ""),),)),),
        also=(gradients,),
    )

    class NoBias(torch.nn.Linear):
        def forward(self, x):
            return x @ self.weight.T

    class Cut(torch.nn.Linear):
        def forward(self, x):
            return x @ self.weight.T.detach() + self.bias

    assert told(torch.nn.Linear, task) == []
    assert told(NoBias, task) == ["no bias"] and told(Cut, task) == [GRADIENT_LOST]


def test_no_gradient_has_to_reach_what_the_result_does_not_depend_on():
    chosen = "def chosen(x, first, second):\n    return x * first + 0 * second\n"
    inputs = lambda draw: (draw(3), draw(3), draw(3))  # noqa: E731
    task = Task("chosen", "", asks="x, first, second", reference=Solution(chosen), cases=(Case("c", inputs, 4),))
    task = replace(task, also=(gradients,))
    assert told(lambda x, first, second: x * first, task) == []
    assert told(lambda x, first, second: x * first.detach(), task) == [GRADIENT_LOST]
    assert told(lambda x, first, second: x * first + second - second.detach(), task) == [GRADIENT_DIFFERS]


def test_a_general_property_may_be_worth_more_than_a_point():
    task = Task("t", "", asks="x", reference=lambda x: 2 * x, cases=(Case("c", lambda draw: (draw(2),), 4),))
    assert replace(task, also=(gradients,)).points == 5
    assert replace(task, also=(replace(gradients, points=3),)).points == 7


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


# edges ------------------------------------------------------------------------------------------------------

ROWS = Task(
    name="rows",
    title="",
    asks="x",
    reference=Solution("def rows(x):\n    return (x - x.amax(-1, keepdim=True)).exp()\n"),
    cases=(Case("rows", lambda draw: (200 * draw(*draw.sizes(2)) + 300,)),),
    mistakes=(
        Mistake("over the columns", "The columns.", "", ways=((("x.amax(-1, keepdim=True)", "0"),),)),
        Mistake("over everything", "Everything.", "", ways=((("x.amax(-1, keepdim=True)", "0.0"),),)),
    ),
)


def test_a_batch_of_one_is_drawn_and_what_cannot_do_it_is_told():
    assert ROWS.run(lambda x: (x - x.amax(-1, keepdim=True)).exp()).passed
    (finding,) = ROWS.run(lambda x: (x - x.amax(-1, keepdim=True)).exp().squeeze()).findings
    assert finding.misconception == WRONG_SHAPE and "(1, " in finding.message


def test_a_case_that_has_no_batch_of_one_is_asked_without():
    def matrix(draw):
        n, m = draw.sizes(2)
        return (draw(n, m), torch.tensor(n - 2))

    task = Task("pick", "", asks="x, i", reference=lambda x, i: x[i], cases=(Case("a row", matrix),))
    assert task.draw_single(task.cases[0], Draw(0)) is None or task.run(lambda x, i: x[i]).passed


def test_an_overflow_is_no_sign_of_a_mistake_that_others_would_overflow_with_too():
    (finding,) = ROWS.run(lambda x: (x * 1e9).exp() * torch.inf).findings
    assert finding.misconception == NOT_FINITE


def test_a_generator_is_the_same_for_all_who_are_called():
    drawn = Task(
        "drawn",
        "Drawn",
        asks="n, generator",
        reference=Solution("def drawn(n, generator):\n    return torch.rand(n, generator=generator)\n"),
        cases=(Case("numbers", lambda draw: (5, draw.generator)),),
    )
    assert drawn.run(lambda n, generator: torch.rand(n, generator=generator)).passed
    assert drawn.run(lambda n, generator: torch.rand(n)).misconceptions == [RANDOM]
    assert drawn.run(lambda n, generator: 2 * torch.rand(n, generator=generator)).misconceptions == [UNEXPLAINED]
