"""What a learner writes is what the library computes; right answers of other forms pass."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.classroom.opening import compare, copy_weights
from course_lib.functional.cost import count_flops
from course_lib.functional.scaling import CHINCHILLA, fit_scaling_law
from course_lib.lessons.lesson_09 import laws
from course_lib.lessons.lesson_09.models import MODELS, three_models
from course_lib.lessons.lesson_09.recipes import columns
from course_lib.lessons.lesson_09.tasks import NAMES, TASKS, runs_to_fit
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.tasks import Draw

SOLUTION = {name: task.module or task.reference for name, task in TASKS.items()}
STARTS = [(0.0, A, B, s, s) for A in (3.0, 6.0) for B in (6.0, 9.0) for s in (0.4, 0.7)]  # the page's


def test_the_published_law_opens_in_the_solution_s_class():
    shipped = MODELS["law"]
    ours, mine = shipped.model(), SOLUTION["law"](0.5, 0.5, 0.5, 0.5, 0.5)
    copy_weights(ours, mine, shipped.names)
    compare(ours, mine, shipped.inputs(), shipped.names)
    torch.testing.assert_close(mine(*three_models()).exp(), CHINCHILLA(*three_models()))


def test_the_solution_fits_the_runs_as_the_library_does():
    runs = laws.shipped()
    given = columns(runs["grid"], "parameters", "tokens", "test")
    found, law = laws.of_parameters(SOLUTION["fit_law"](*given, STARTS)), fit_scaling_law(*given)
    for name in ("E", "A", "B", "alpha", "beta"):
        assert getattr(found, name) == pytest.approx(getattr(law, name), rel=1e-3)


def test_operations_by_hand_are_those_counted_but_for_scores_computed_twice():
    for dim, depth in ((12, 2), (32, 3)):
        model = GPT(GPTConfig(vocab_size=77, context_length=32, dim=dim, depth=depth, num_heads=4, dropout=0.0))
        counted = count_flops(lambda model=model: model(torch.zeros(1, 32, dtype=torch.long)).sum().backward())
        assert counted == SOLUTION["flops"](dim, depth, 32, 77, 32) + 2 * depth * 32 * 32 * dim


def test_with_no_use_the_cheapest_lifetime_is_the_optimal_allocation():
    law = (0.1, 4.5, 7.4, 0.6, 0.63)
    sizes = torch.logspace(3, 6, 3001, dtype=torch.float64)
    size, tokens, cost = SOLUTION["lifetime"](*law, 1.5, 0.0, sizes).tolist()
    N, D = SOLUTION["allocation"](*law[1:], cost).tolist()
    assert size == pytest.approx(N, rel=0.01) and tokens == pytest.approx(D, rel=0.01)
    smaller, more, _ = SOLUTION["lifetime"](*law, 1.5, 1e8, sizes).tolist()
    assert smaller < size and more > tokens


# right answers of other forms


class Unstacked(nn.Module):
    def __init__(self, log_E, log_A, log_B, alpha, beta):
        super().__init__()
        for name, value in zip(NAMES, (log_E, log_A, log_B, alpha, beta), strict=True):
            self.register_parameter(name, nn.Parameter(torch.tensor(value).double()))

    def forward(self, N, D):
        E, A, B = self.log_E.exp(), self.log_A.exp(), self.log_B.exp()
        return torch.log(E + A / N**self.alpha + B / D**self.beta)


class Float32(Unstacked):
    def __init__(self, *values):
        super().__init__(*values)
        self.float()


def by_hand(N, D, L, starts):
    """The Huber loss in its two parts, not divided, and a step in a list of losses."""
    found = []
    for start in starts:
        law = Unstacked(*start)
        optimizer = torch.optim.LBFGS(law.parameters(), max_iter=400, line_search_fn="strong_wolfe")

        def loss(law=law):
            r = (law(N, D) - torch.log(L)).abs()
            return torch.where(r < 1e-3, r**2 / 2, 1e-3 * (r - 5e-4)).sum() * 1e6

        def closure(optimizer=optimizer, loss=loss):
            optimizer.zero_grad()
            value = loss()
            value.backward()
            return value

        optimizer.step(closure)
        found.append((float(loss()), [float(p) for p in law.parameters()]))
    return torch.tensor(min(found)[1], dtype=torch.float64)


def looped(x, y, picks, level):
    b = torch.stack([SOLUTION["power_law"](x[row], y[row])[1] for row in picks if len(row.unique()) > 1])
    return torch.stack([b.quantile((1 - level) / 2), b.quantile((1 + level) / 2)])


def by_factors(log_A, log_B, alpha, beta, flops):
    a, b = beta / (alpha + beta), alpha / (alpha + beta)
    G = (alpha * math.exp(log_A) / (beta * math.exp(log_B))) ** (1 / (alpha + beta))
    return torch.tensor([G * (flops / 6) ** a, (flops / 6) ** b / G], dtype=torch.float64)


def by_lstsq(x, y):
    columns = torch.stack([torch.ones_like(x), x.log()], dim=1)
    log_a, slope = torch.linalg.lstsq(columns, y.log()[:, None]).solution[:, 0]
    return torch.stack([log_a.exp(), -slope])


def matrix_by_matrix(dim, depth, context, vocab, tokens):
    per_block = sum((3 * dim * dim, context * dim, context * dim, dim * dim, 4 * dim * dim, 4 * dim * dim))
    return int(2 * 3 * (depth * per_block + vocab * dim) * tokens)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("law", Unstacked),
        ("fit_law", by_hand),
        ("bootstrap_interval", looped),
        ("allocation", by_factors),
        ("flops", matrix_by_matrix),
        ("power_law", by_lstsq),
    ],
)
def test_right_answers_of_other_forms_pass(name, answer):
    assert TASKS[name].run(answer).passed


def test_float32_is_named():
    assert TASKS["law"].run(Float32).misconceptions == ["parameters in float32"]


def test_a_stuck_start_ends_far_above_the_right_one():
    N, D, L, starts = runs_to_fit(Draw(5))
    ends = [SOLUTION["fit_law"](N, D, L, [start]) for start in starts]
    errors = [F.l1_loss(SOLUTION["law"](*end.tolist())(N, D), L.log()).item() for end in ends]
    assert errors[1] < 0.01 < min(errors[0], errors[2])
