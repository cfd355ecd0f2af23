"""Lesson 03, Recurrent networks: its results, each with figure, alt text, claims and what it means."""

import html
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.classroom.output import varies
from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.data.names import LANGUAGE_NAMES
from course_lib.functional.recurrent import gradient_norms, linear_recurrence, recurrent_matrix
from course_lib.layers.recurrent import RNN
from course_lib.lessons.lesson_03 import figures, learner
from course_lib.lessons.lesson_03.clipping import one_unit_loss
from course_lib.lessons.lesson_03.recipes import names as reader
from course_lib.lessons.lesson_03.shapes import Shape
from course_lib.tasks.claims import above, below

WIDTH, STEPS, BATCH = 64, 60, 32  # of the random networks whose gradients are measured
COUNTS = ("naive Bayes of trigrams", "logistic regression")


def mechanism(w: float, u: float, inputs: Sequence[float], target: float, *, predicted=None) -> Result:
    states = [0.0]
    for x in inputs:
        states.append(w * states[-1] + u * x)
    deltas = [(states[-1] - target) * w ** (len(inputs) - t) for t in range(1, len(inputs) + 1)]
    return Result(figures.mechanism(states, inputs, deltas))


def names(model: nn.Module, card: Mapping, *, predicted=None) -> Result:
    ids, valid, labels = reader.examples("test")
    with torch.no_grad():
        said = model(ids, valid=valid).argmax(dim=-1)
    right = 100 * (said == labels).float().mean().item()
    confusion = torch.zeros(len(LANGUAGE_NAMES), len(LANGUAGE_NAMES))
    confusion.index_put_((labels, said), torch.ones(len(labels)), accumulate=True)
    scores = {
        name: [100 * seed["test"][f"accuracy, {name}"] for seed in card["seeds"]]
        for name in ("RNN", "GRU", "LSTM", *COUNTS)
    }
    rows = [
        ("yours, an RNN", [right], figures.HERO),
        ("RNN, three seeds", scores["RNN"], figures.HERO),
        ("LSTM, three seeds", scores["LSTM"], figures.OTHER),
        ("GRU, three seeds", scores["GRU"], figures.OTHER),
        ("trigram counts", scores[COUNTS[0]][:1], figures.COUNTED),
        ("logistic regression on counts", scores[COUNTS[1]][:1], figures.COUNTED),
        ("always Czech", [100 * (labels == 0).float().mean().item()], figures.COUNTED),
    ]
    return Result(
        figures.names(rows, confusion, LANGUAGE_NAMES, predicted),
        claims={
            "counting": above(scores[COUNTS[0]][0] - max(right, *scores["RNN"]), 0),
        },
        came=right,
    )


def powers(matrices: Mapping[str, Float[Tensor, "2 2"]], *, predicted=None) -> Result:
    starts = torch.tensor([[1.8, 0.3], [0.4, 1.7], [-1.5, 0.9], [0.2, -0.25]])
    trails = {}
    for name, matrix in matrices.items():
        paths = []
        for start in starts:
            path = [start]
            for _ in range(14):
                path.append(matrix @ path[-1])
            paths.append(torch.stack(path))
        trails[name] = paths
    norms = {name: _norms(matrix) for name, matrix in SHEARED.items()}
    return Result(
        figures.powers(trails, norms),
        claims={
            "grows first": (above(max(norms["not symmetric"]), 19), below(max(norms["symmetric"]), 1.001)),
        },
    )


SHEARED = {
    "symmetric": torch.tensor([[0.9, 0.0], [0.0, 0.6]]),
    "not symmetric": torch.tensor([[0.9, 5.0], [0.0, 0.9]]),
}


def _norms(matrix: Float[Tensor, "2 2"], steps: int = 60) -> list[float]:
    state, found = torch.tensor([0.0, 1.0]) if matrix[0, 1] else torch.tensor([1.0, 0.0]), []
    for _ in range(steps + 1):
        found.append(state.norm().item())
        state = matrix @ state
    return found


def reach(model: nn.Module, *, predicted=None) -> Result:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(BATCH, STEPS, WIDTH, generator=draw)
    direction = torch.nn.functional.normalize(torch.randn(BATCH, WIDTH, generator=draw), dim=1)

    def matrix(radius: float) -> Tensor:
        return recurrent_matrix(WIDTH, radius, kind="orthogonal", generator=torch.Generator().manual_seed(1))

    linear = {
        radius: gradient_norms(lambda x, radius=radius: linear_recurrence(x, matrix(radius)), x, direction)
        for radius in (1.1, 1.0, 0.9)
    }
    network = RNN(WIDTH, WIDTH, bias=False)
    with torch.no_grad():
        network.cells[0].weight_ih.copy_(torch.eye(WIDTH))
        network.cells[0].weight_hh.copy_(matrix(1.0))
    squashed = {
        size: gradient_norms(lambda x: network(x)[0], size * x, direction).tolist() for size in (0.01, 0.1, 1.0)
    }
    trained = learner.reach_of(model, length=STEPS)
    radius = torch.linalg.eigvals(model.rnn.cells[0].weight_hh.detach()).abs().max().item()
    return Result(
        figures.reach({r: n.tolist() for r, n in linear.items()}, squashed, trained.tolist(), radius, predicted),
        claims={
            "tanh alone": below(squashed[1.0][30], 1e-4),
            "trained": (above(radius, 2), below(trained[20] / trained[0], 0.01)),
        },
        came=100 * linear[0.9][50].item(),
    )


def clipping(
    plain: Mapping[float, Sequence[Sequence[tuple[float, float]]]],
    clipped: Mapping[float, Sequence[Sequence[tuple[float, float]]]],
    *,
    predicted=None,
) -> Result:
    runs = [torch.tensor(list(way.values())) for way in (plain, clipped)]  # (sigmas, seeds, learning rates, 2)
    (ends, norms), (safe, short) = (way.unbind(dim=-1) for way in runs)
    w, b = torch.linspace(4.5, 7, 251), torch.linspace(-3.6, -2.4, 241)
    losses = one_unit_loss(w, b[:, None])
    return Result(
        figures.clipping(
            {"not clipped": (ends, norms), "clipped to norm 1": (safe, short)},
            (w.numpy(), b.numpy(), losses.numpy()),
            _steepest(w, b),
        ),
        claims={
            "large learning rates": above((ends - safe)[..., 1:].min(), 0.4),
            "better": above(ends.min() - safe.min(dim=2).values.max(), 0.05),
            "norms": (
                below(norms[..., 0].max(), 5),
                above(norms[..., 1:].min(), 7),
                above(norms[..., 1].min() - short[..., 1].max(), 0),
            ),
        },
        came=0,
        values={
            "calm": varies(f"{max(norms[..., 0].max(), short[..., 0].max()):.1f}"),
            "least": varies(_about(norms[..., 1:].min())),
            "most": varies(_about(norms[..., 1:].max())),
            "factor": varies(_about((norms.amax(dim=1) / norms.amin(dim=1))[:, 1:].max())),
        },
    )


def _about(number: float | Tensor) -> str:
    """A positive number to the next whole one, and a large one to its first digit: $9 \\cdot 10^8$."""
    if number < 10_000:
        return f"{number:,.0f}"
    digit, power = f"{number:.0e}".split("e")
    return rf"${digit} \cdot 10^{{{int(power)}}}$"


def _steepest(w: Tensor, b: Tensor) -> tuple[tuple[float, float], tuple[float, float]]:
    """A point on the cliff with w near 5.2, and the direction of the negative gradient there."""
    at = torch.stack([torch.full((20_001,), 5.2), torch.linspace(-2.9, -2.5, 20_001)]).requires_grad_()
    one_unit_loss(at[0], at[1]).sum().backward()
    best = at.grad.norm(dim=0).argmax()
    direction = -at.grad[:, best] / at.grad[:, best].norm()
    return tuple(at[:, best].tolist()), tuple(direction.tolist())


def shapes(all_five: Sequence[Shape], cards: Mapping[str, Mapping], *, predicted=None) -> Result:
    exact, blind = by_seed(cards["captions"], "exact"), by_seed(cards["captions"], "exact, without the picture")
    one_way, both = by_seed(cards["tags"], "accuracy"), by_seed(cards["tags"], "accuracy, both directions")
    commonest = by_seed(cards["tags"], "accuracy, commonest tag of the word")
    return Result(
        figures.shapes(all_five),
        claims={
            "captions": min(exact) > 0.5 and max(blind) < 0.05,
            "tags": max(commonest) < min(one_way) and max(one_way) < min(both),
        },
        values={"lowest": 100 * min(both), "highest": 100 * max(one_way)},
    )


def written(texts: Mapping[float, str], known: Mapping[float, float], *, predicted=None) -> Result:
    rows = "".join(
        f'<p style="margin:0.4em 0"><b>temperature {heat:g}</b> ({100 * known[heat]:.0f} % of the words are in the '
        f"training text)<br>{html.escape(text)}</p>"
        for heat, text in texts.items()
    )
    low, middle, high = sorted(known)
    return Result(
        f'<div style="max-width:52em">{rows}</div>',
        claims={"temperature": (above(known[low] - known[middle], 0), above(known[middle] - known[high], 0))},
    )


RESULTS = {function.__name__: function for function in (mechanism, names, powers, reach, clipping, shapes, written)}
