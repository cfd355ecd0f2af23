import pytest
import torch

from course_lib.tasks import Check, Finding, run_checks
from course_lib.tasks.core import (
    CHANGES_INPUT,
    CUT_OFF,
    GRADIENT_LOST,
    NOT_AS_BY_HAND,
    NOT_FINITE,
    NUMBER_TYPE,
    OTHER_PARAMETERS,
    RANDOM,
    STOPPED,
    WRONG_SHAPE,
    WRONG_TYPE,
    Fault,
    Probe,
    explain,
    has_type,
    lets_gradients_through,
    repeats,
    worked_example,
)


def doubles(probe):
    x = probe.random(2, 3)
    wrong = (probe.tensor(x, shape=(2, 3)) - 2 * x).abs().max() > 1e-6
    return [Finding(misconception="not doubled", message="The result is not twice the input.")] if wrong else []


DOUBLES = Check(name="doubles", detects=("not doubled",), run=doubles)
ALWAYS = Check(name="always", detects=("always",), run=lambda _: [Finding(misconception="always", message="")])


def leave(x):
    raise SystemExit(0)


def overwrite(x):
    x *= 2
    return x


class Pretender(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args, **kwargs):
        raise RuntimeError("not today")


@pytest.mark.parametrize(
    ("function", "misconception"),
    [
        (lambda x: 1 / 0, STOPPED),
        (lambda: None, STOPPED),
        (leave, STOPPED),
        (None, STOPPED),
        (lambda x: None, WRONG_TYPE),
        (lambda x: x.numpy(), WRONG_TYPE),
        (lambda x: x.tolist(), WRONG_TYPE),
        (lambda x: x.as_subclass(Pretender), WRONG_TYPE),
        (lambda x: x.T, WRONG_SHAPE),
        (lambda x: x / 0, NOT_FINITE),
        (lambda x: x * torch.nan, NOT_FINITE),
        (overwrite, CHANGES_INPUT),
        (lambda x: x, "not doubled"),
    ],
)
def test_whatever_a_function_does_is_a_finding(function, misconception):
    report = run_checks(function, [DOUBLES])
    assert not report.passed and report.misconceptions == [misconception]
    assert report.findings[0].message


@pytest.mark.parametrize(
    "function",
    [lambda x: 2 * x, lambda x: (2 * x).double(), lambda x: 2 * x.requires_grad_()],
    ids=["plain", "double", "gradients"],
)
def test_a_right_function_passes(function):
    report = run_checks(function, [DOUBLES])
    assert report.passed and report.findings == [] and report.checks_run == ["doubles"]


@pytest.mark.parametrize("pack", [tuple, list])
def test_a_result_packed_with_others_is_told_so_in_a_sentence(pack):
    (finding,) = run_checks(lambda x: pack([2 * x, x]), [DOUBLES]).findings
    assert finding.misconception == WRONG_TYPE
    assert finding.message == f"Your function returned a {pack.__name__} of 2, but one tensor is asked for."


def test_an_error_is_told_in_its_own_words_and_with_the_shapes():
    def broken(x):
        raise LookupError("no such key\nand a second line")

    message = run_checks(broken, [DOUBLES]).findings[0].message
    assert "LookupError: no such key" in message and "(2, 3)" in message and "second" not in message


def test_a_misconception_is_named_once():
    assert run_checks(lambda x: x, [DOUBLES, ALWAYS, DOUBLES]).misconceptions == ["not doubled", "always"]


def test_nothing_runs_behind_a_gate_that_finds_something():
    gate = Check(name="gate", detects=DOUBLES.detects, run=doubles, gate=True)
    closed, opened = (run_checks(function, [gate, ALWAYS]) for function in (lambda x: x, lambda x: 2 * x))
    assert closed.checks_run == ["gate"] and closed.misconceptions == ["not doubled"]
    assert opened.checks_run == ["gate", "always"] and opened.misconceptions == ["always"]


def test_inputs_follow_the_seed():
    seen = []

    def spy(x):
        seen.append(x)
        return 2 * x

    for seed in (0, 0, 1):
        assert run_checks(spy, [DOUBLES], seed=seed).passed
    assert torch.equal(seen[0], seen[1]) and not torch.equal(seen[0], seen[2])


def test_a_number_may_be_a_tensor_but_must_be_finite():
    def of(value):
        return Check(name="n", detects=(), run=lambda probe: [] if probe.number() == value else ["wrong"])

    assert run_checks(lambda: torch.tensor(0.5), [of(0.5)]).passed
    assert run_checks(lambda: float("nan"), [of(0.5)]).misconceptions == [NOT_FINITE]
    assert run_checks(lambda: "much", [of(0.5)]).misconceptions == [WRONG_TYPE]


def test_explain_prefers_the_fewest_mistakes():
    options = {"sign": {1: None, -1: "sign"}, "other sign": {1: None, -1: "other"}, "size": {1: None, 2: "size"}}

    def build(**choice):
        return torch.tensor([choice["sign"] * choice["other sign"] * choice["size"] * 1.0])

    assert explain(torch.tensor([1.0]), build, options) == []
    assert explain(torch.tensor([2.0]), build, options) == ["size"]
    assert explain(torch.tensor([-2.0]), build, options) == ["other", "size"]
    assert explain(torch.tensor([7.0]), build, options) is None
    assert explain(torch.tensor([-2.0]), build, options, at_most=1) is None
    assert explain(torch.tensor([2.0]), build, options, at_most=1) == ["size"]


def test_no_check_is_no_pass():
    with pytest.raises(ValueError, match="at least one"):
        run_checks(lambda x: x, [])


def test_a_probe_gives_copies():
    x = torch.ones(3)
    Probe(lambda t: t).call(x).add_(1)
    assert (x == 1).all()


def test_a_module_is_called_with_the_parameters_it_was_given():
    layer = Probe(torch.nn.Linear).make("Linear", 3, 2)
    assert {name: value.shape for name, value in layer.parameters().items()} == {"weight": (2, 3), "bias": (2,)}
    layer.set_parameters({"weight": torch.ones(2, 3), "bias": torch.tensor([0.0, 1.0])})
    assert layer.tensor(torch.ones(4, 3), shape=(4, 2))[0].tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"weight": torch.ones(2, 3)}, "`bias` that was not asked for"),
        ({"W": torch.ones(2, 3), "bias": torch.ones(2)}, "no parameter `W`; it has `weight`, `bias`"),
        ({"weight": torch.ones(3, 2), "bias": torch.ones(2)}, r"`weight` has shape \(2, 3\), but \(3, 2\)"),
    ],
)
def test_parameters_of_other_names_or_shapes_are_a_finding(values, said):
    layer = Probe(torch.nn.Linear).make("Linear", 3, 2)
    with pytest.raises(Fault, match=said) as fault:
        layer.set_parameters(values)
    assert fault.value.finding.misconception == OTHER_PARAMETERS


@pytest.mark.parametrize("result", [None, torch.ones(2), torch.nn.Linear])
def test_what_is_no_module_is_a_finding(result):
    with pytest.raises(Fault, match="`make_layer` gave .* `torch.nn.Module` is needed") as fault:
        Probe(lambda: result).make("make_layer")
    assert fault.value.finding.misconception == WRONG_TYPE


def test_whole_numbers_are_the_same_for_the_same_seed_and_stay_in_their_range():
    numbers = Probe(None, seed=1).integers(2, 5, 100)
    assert numbers.equal(Probe(None, seed=1).integers(2, 5, 100))
    assert not numbers.equal(Probe(None, seed=2).integers(2, 5, 100))
    assert sorted(set(numbers.tolist())) == [2, 3, 4]


def twice(probe):
    x = probe.random(3)
    return probe.call(x), probe.call(x)


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda x: 2 * x, []),
        (lambda x: x / 0 * 0, []),  # NaN both times
        (lambda x: x + torch.rand(3), [RANDOM]),
        (lambda x: torch.dropout(x, 0.9, train=True) + torch.rand(1), [RANDOM]),
        (lambda x: None, []),  # for other checks to say
        (lambda x: 1 / 0, []),
    ],
)
def test_a_result_that_is_another_each_time_is_a_finding_and_ends_the_checks(function, found):
    report = run_checks(function, [repeats(twice), ALWAYS])
    assert report.misconceptions == (found or ["always"])


@pytest.mark.parametrize("number_type", [torch.float32, torch.float64])
def test_numbers_of_another_type_are_a_finding_that_names_both_types(number_type):
    check = has_type(lambda probe: [(probe.call(torch.ones(2)), number_type)], name="type")
    assert run_checks(lambda x: x.to(number_type), [check]).passed
    other = torch.float16
    (finding,) = run_checks(lambda x: x.to(other), [check]).findings
    assert finding.misconception == NUMBER_TYPE
    assert "`torch.float16`" in finding.message and f"`{number_type}`" in finding.message


def test_each_of_several_results_has_its_own_type():
    kinds = (torch.float32, torch.float64)
    check = has_type(lambda probe: [(probe.call(torch.ones(2, dtype=kind)), kind) for kind in kinds], name="types")
    assert run_checks(lambda x: 2 * x, [check]).passed
    assert run_checks(lambda x: x.float(), [check]).misconceptions == [NUMBER_TYPE]
    assert run_checks(lambda x: x.tolist(), [check]).misconceptions == [WRONG_TYPE]


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda x, y: x * y, []),
        (lambda x, y: 0 * x + y, []),
        (lambda x, y: x * y.detach(), [GRADIENT_LOST]),
        (lambda x, y: x + torch.tensor(y.tolist()), [GRADIENT_LOST]),
        (lambda x, y: torch.tensor((x * y).tolist()), [CUT_OFF]),
        (lambda x, y: (x * y).detach(), [CUT_OFF]),
        (torch.no_grad()(lambda x, y: x * y), [CUT_OFF]),
        (lambda x, y: torch.from_numpy(x.numpy() * y.numpy()), [CUT_OFF]),
        (lambda x, y: None, [WRONG_TYPE]),
        (lambda x, y: x @ torch.ones(7), [STOPPED]),
    ],
)
def test_gradients_that_do_not_flow_back_are_a_finding(function, found):
    def compute(probe):
        return probe, {"x": torch.ones(3), "y": torch.ones(3)}

    report = run_checks(function, [lets_gradients_through(compute)])
    assert report.misconceptions == found
    if found == [GRADIENT_LOST]:
        assert "`y`" in report.findings[0].message and "`x`" not in report.findings[0].message


def test_a_worked_example_shows_both_results():
    example = worked_example(lambda probe: probe.tensor(torch.ones(2)), [2.0, 2.0])
    assert run_checks(lambda x: 2 * x, [example]).passed
    (finding,) = run_checks(lambda x: 2 * x + 0.01, [example]).findings
    assert finding.misconception == NOT_AS_BY_HAND
    assert "your result is (2.01, 2.01); by hand it is (2, 2)." in finding.message
    (finding,) = run_checks(lambda x: torch.ones(20, 1), [example]).findings
    assert "a tensor of shape (20, 1)" in finding.message
