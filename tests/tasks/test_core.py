import pytest
import torch

from course_lib.tasks import Check, Draw, Finding, findings, run_checks
from course_lib.tasks.core import Probe
from course_lib.tasks.findings import CheckFailed


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
        (lambda x: 1 / 0, findings.STOPPED),
        (lambda: 1 + 1, "missing parameter"),
        (leave, findings.STOPPED),
        (3, findings.STOPPED),
        (None, findings.UNWRITTEN),
        (lambda x: None, findings.UNWRITTEN),
        (lambda x: print(end=""), findings.WRONG_TYPE),
        (lambda x: {"x": x}, findings.WRONG_TYPE),
        (lambda x: 2 * x.half(), findings.NUMBER_TYPE),
        (lambda x: x.numpy(), "not doubled"),
        (lambda x: x.tolist(), "not doubled"),
        (lambda x: x.as_subclass(Pretender), findings.WRONG_TYPE),
        (lambda x: x.T, findings.WRONG_SHAPE),
        (lambda x: x / 0, findings.NOT_FINITE),
        (overwrite, findings.CHANGES_INPUT),
        (lambda x: x, "not doubled"),
    ],
)
def test_whatever_a_function_does_is_a_finding(function, misconception):
    report = run_checks(function, [DOUBLES], asks="x")
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
    assert finding.misconception == findings.WRONG_TYPE
    assert finding.message == f"Your function returned a {pack.__name__} of 2, but one tensor is asked for."


def test_an_error_is_told_in_its_own_words_and_with_the_shapes():
    def broken(x):
        words = "no such key\nand a second line"
        raise LookupError(words)

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
    for seed in (0, 0, 1):
        run_checks(seen.append, [DOUBLES], seed=seed)
    assert torch.equal(seen[0], seen[1]) and not torch.equal(seen[0], seen[2])


def test_a_number_may_be_a_tensor_but_must_be_finite():
    def of(value):
        return Check(name="n", detects=(), run=lambda probe: [] if probe.number() == value else ["wrong"])

    assert run_checks(lambda: torch.tensor(0.5), [of(0.5)]).passed
    assert run_checks(lambda: float("nan"), [of(0.5)]).misconceptions == [findings.NOT_FINITE]
    assert run_checks(lambda: "much", [of(0.5)]).misconceptions == [findings.WRONG_TYPE]


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


def test_whole_numbers_are_the_same_for_the_same_seed_and_stay_in_their_range():
    numbers = Probe(None, seed=1).integers(2, 5, 100)
    assert numbers.equal(Probe(None, seed=1).integers(2, 5, 100))
    assert not numbers.equal(Probe(None, seed=2).integers(2, 5, 100))
    assert sorted(set(numbers.tolist())) == [2, 3, 4]


def test_sizes_are_drawn_and_no_two_of_them_are_alike():
    drawn = [Draw(seed).sizes(4) for seed in range(20)]
    assert all(len(set(sizes)) == 4 and min(sizes) >= 2 for sizes in drawn) and len(set(map(tuple, drawn))) > 15
    assert Draw(0, same=6).sizes(3) == [6, 6, 6]


def test_a_mask_shows_and_hides_something_in_each_row():
    mask = Draw(0).mask(3, 5, 4)
    assert mask.any(-1).all() and not mask.all(-1).any()
    assert not Draw(0).mask(3, 5, 4, blind=True)[:, 1].any()


@pytest.mark.parametrize(
    ("function", "arrived"),
    [
        (lambda x, y: x * y, [True, True]),
        (lambda x, y: x * y.detach(), [True, False]),
        (lambda x, y: x + torch.tensor(y.tolist()), [True, False]),
    ],
)
def test_gradients_are_those_that_arrive(function, arrived):
    found = Probe(function).gradients(torch.ones(3), 2 * torch.ones(3), output_gradient=torch.ones(3))
    assert [gradient is not None for gradient in found.inputs] == arrived and found.parameters == {}


def test_the_parameters_of_a_module_have_gradients_too():
    layer = Probe(torch.nn.Linear).make("Linear", 3, 2)
    found = layer.gradients(torch.ones(4, 3), output_gradient=torch.ones(4, 2))
    assert set(found.parameters) == {"weight", "bias"} and found.inputs[0].shape == (4, 3)


def test_general_words_hold_no_number_and_end_as_sentences():
    for message, _ in findings.WORDS.values():
        assert message[-1] in ".?" and not any(sign.isdigit() for sign in message)


def test_an_input_with_nan_in_it_is_not_taken_for_a_changed_one():
    x = torch.tensor([1.0, torch.nan])
    assert torch.equal(Probe(lambda x: x[:1]).call(x), x[:1])
    with pytest.raises(CheckFailed, match="overwrites"):
        Probe(lambda x: x.mul_(2)).call(x)


def make(result):
    return Probe(lambda: result).make("make_layer")


def set_parameters(values):
    Probe(torch.nn.Linear).make("Linear", 3, 2).set_parameters(values)


def gradients(function):
    Probe(function).gradients(torch.ones(3), output_gradient=torch.ones(3))


def halved_in_place(x):
    y = x.exp()
    y /= 2
    return y


NO_MODULE = "`make_layer` gave .* `torch.nn.Module` is needed"


@pytest.mark.parametrize(
    ("ask", "given", "misconception", "said"),
    [
        (make, None, findings.WRONG_TYPE, NO_MODULE),
        (make, torch.ones(2), findings.WRONG_TYPE, NO_MODULE),
        (make, torch.nn.Linear, findings.WRONG_TYPE, NO_MODULE),
        (set_parameters, {"weight": torch.ones(2, 3)}, findings.OTHER_PARAMETERS, "`bias` has .* not asked for"),
        (set_parameters, {"W": torch.ones(2, 3)}, findings.OTHER_PARAMETERS, "`W` is not there, only weight, bias"),
        (set_parameters, {"weight": torch.ones(3, 2)}, findings.OTHER_PARAMETERS, r"has shape \(2, 3\); \(3, 2\)"),
        (gradients, halved_in_place, findings.GRADIENT_LOST, "its gradient cannot be computed"),
        (gradients, lambda x: torch.tensor((2 * x).tolist()), findings.CUT_OFF, "cut off"),
        (gradients, lambda x: (2 * x).detach(), findings.CUT_OFF, "cut off"),
        (gradients, torch.no_grad()(lambda x: 2 * x), findings.CUT_OFF, "cut off"),
        (gradients, lambda x: torch.from_numpy(2 * x.numpy()), findings.CUT_OFF, "cut off"),
    ],
)
def test_what_a_probe_cannot_use_is_a_finding(ask, given, misconception, said):
    with pytest.raises(CheckFailed, match=said) as fault:
        ask(given)
    found = fault.value.finding
    assert found.misconception == misconception and ("x / y" in found.hint) == (given is halved_in_place)


def test_a_list_that_is_changed_is_noticed_and_the_callers_own_stays():
    links = [[(0, 0)], [(1, 1)]]
    with pytest.raises(CheckFailed, match="overwrites"):
        Probe(lambda given: given[0].clear()).call(links)
    assert links == [[(0, 0)], [(1, 1)]]
