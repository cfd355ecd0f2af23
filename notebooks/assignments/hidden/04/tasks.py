"""Assignment 04, LSTM and GRU: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_04.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, mistakes


def coupled_step(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    W_ih: Tensor,
    W_hh: Tensor,
    b: Tensor,
    *,
    rows: str = "fog",
    written: str = "1 - f",
    kept: str = "f",
    shown: str = "new",
    proposal: str = "tanh",
    gives: str = "h, c",
) -> tuple[Tensor, Tensor]:
    """c_t = f c + (1 - f) g and h_t = o tanh(c_t)."""
    a = x @ W_ih.T + h @ W_hh.T + b
    part = dict(zip(rows, a.chunk(3, dim=-1), strict=True))
    f, o = part["f"].sigmoid(), part["o"].sigmoid()
    g = part["g"].tanh() if proposal == "tanh" else part["g"].sigmoid()
    new = {"f": f, "1 - f": 1 - f, "all": torch.ones_like(f)}[kept] * c
    new = new + {"f": f, "1 - f": 1 - f, "all": torch.ones_like(f)}[written] * g
    h = o * {"new": new.tanh(), "old": c.tanh(), "no tanh": new}[shown]
    return torch.stack([h, new] if gives == "h, c" else [new, h])


def one_step(draw: Draw) -> tuple[Tensor, ...]:
    """An input, a state and the weights of one step."""
    B, D, H = draw.sizes(3)
    return draw(B, D), draw(B, H), 2 * draw(B, H), draw(3 * H, D), draw(3 * H, H), draw(3 * H)


COUPLED = replace(
    SHOWN["coupled_step"],
    reference=coupled_step,
    cases=(Case("the new output and the new cell", one_step, 16),),
    mistakes=mistakes(r"""
gates taken from the wrong rows: rows='ofg' | 'fgo' | 'gfo' | 'gof'
    The three parts have been mixed up.
    > Their rows stand in the order f, o, g.
gate the wrong way round: kept='1 - f'; written='f'
    An open gate writes the proposal and forgets the cell.
    > f is the share that is *kept*, 1 - f the share that is written.
not coupled: written='all' | 'f'
    What is proposed was not scaled by 1 - f.
    > One gate for both: what it does not keep it writes.
nothing forgotten: kept='all'
    The old cell went in whole.
    > $f \odot c$.
tanh of the cell left out: shown='no tanh'
    The cell is shown as it is.
    > $h_t = o \odot \tanh(c_t)$.
the old cell shown: shown='old'
    The output shows the cell as it was before this step.
    > First the new cell, then its output.
sigmoid in the proposal: proposal='sigmoid'
    The proposal lies between 0 and 1.
    > g is a tanh.
cell and output exchanged: gives='c, h'
    The cell came first.
    > Row 0 of the result is h, row 1 is c.
"""),
    wrong={
        "gate the wrong way round": ("f * c + (1 - f) * g", "(1 - f) * c + f * g"),
        "not coupled": ("f * c + (1 - f) * g", "f * c + g"),
    },
)


def highway(f: Tensor, *, span: str = "after", total: str = "product", way: str = "back", how: str = "safe") -> Tensor:
    """The product of all gates behind each step."""
    T = f.shape[1]
    f = f if way == "back" else f.flip(1)
    whole = {"product": lambda: f.flip(1).cumprod(1).flip(1), "sum": lambda: f.flip(1).cumsum(1).flip(1)}
    if total == "power":
        left = torch.arange(T - 1, -1, -1)[:, None]
        found = f ** (left + (span != "after"))
    elif how == "divided":
        found = f.prod(1, keepdim=True) / f.cumprod(1)
    else:
        found = whole[total]()
        if span == "after":
            end = torch.full_like(found[:, :1], 1.0 if total == "product" else 0.0)
            found = torch.cat([found[:, 1:], end], dim=1)
        elif span == "zero at the end":
            found = torch.cat([found[:, 1:], 0 * found[:, :1]], dim=1)
    return found if way == "back" else found.flip(1)


def gates(draw: Draw, *, closed: bool = False) -> tuple[Tensor]:
    """Forget gates of drawn sizes; `closed`: some of them are shut."""
    B, T, H = draw.sizes(3, 3, 8)
    f = draw(B, T, H).sigmoid()
    return (torch.where(draw(B, T, H) > 1, 0.0, f) if closed else f,)


HIGHWAY = replace(
    SHOWN["highway"],
    reference=highway,
    cases=(
        Case("the product of the gates behind each step", gates, 11),
        Case("a gate that is shut lets nothing through", lambda draw: gates(draw, closed=True), 5, ("how",)),
    ),
    mistakes=mistakes(r"""
its own gate counted: span='with its own'
    The gate of step t itself is in the product.
    > $c_t$ was made *by* that gate; on its way to $c_T$ it meets those of steps t + 1 to T.
nothing left at the end: span='zero at the end'
    The last step has 0.
    > From $c_T$ to $c_T$ there is no gate: the product of nothing is 1.
gates added: total='sum'
    The gates were added up.
    > Each gate scales what the one before it left: they are multiplied.
one gate for all: total='power'
    Each step's own gate was taken to the power of the steps that are left.
    > The gates differ from step to step: multiply those that are met.
from the beginning: way='forward'
    The gates before each step were multiplied, not those behind it.
    > The gradient comes from the end.
divided by the gates before: how='divided'
    Where a gate is shut, the result is NaN: 0/0.
    > Multiply from the end, without a division: flip, `cumprod`, flip back.
"""),
    wrong={
        "divided by the gates before": (
            "    later = torch.cat([f[:, 1:], torch.ones_like(f[:, :1])], dim=1)\n"
            "    return later.flip(1).cumprod(dim=1).flip(1)\n",
            "    return f.prod(dim=1, keepdim=True) / f.cumprod(dim=1)\n",
        ),
    },
)


def both_ways(
    x: Tensor,
    lengths: Tensor,
    W_f: Tensor,
    U_f: Tensor,
    W_b: Tensor,
    U_b: Tensor,
    *,
    turned: str = "its own length",
    put: str = "back",
    padding: str = "zeros",
    order: str = "forward first",
    weights: str = "own",
) -> Tensor:
    """States of a reading from the left and of one from each row's own end."""
    B, T, _ = x.shape
    place, real = torch.arange(T), torch.arange(T) < lengths[:, None]
    turn = {
        "its own length": torch.where(real, lengths[:, None] - 1 - place, place),
        "whole rows": (T - 1 - place).expand(B, T),
        "not": place.expand(B, T),
    }[turned]

    def read(rows: Tensor, W: Tensor, U: Tensor) -> Tensor:
        h, states = torch.zeros(B, len(U), dtype=x.dtype), []
        for row in rows.unbind(1):
            h = torch.tanh(row @ W.T + h @ U.T)
            states.append(h)
        return torch.stack(states, dim=1)

    def taken(rows: Tensor) -> Tensor:
        return rows.gather(1, turn[..., None].expand(-1, -1, rows.shape[-1]))

    left = read(x, W_f, U_f)
    right = read(taken(x), *((W_f, U_f) if weights == "shared" else (W_b, U_b)))
    right = taken(right) if put == "back" else right
    if padding == "zeros":
        left, right = (states.masked_fill(~real[..., None], 0.0) for states in (left, right))
    if padding == "times zero":
        left, right = left * real[..., None], right * real[..., None]
    return torch.cat([left, right] if order == "forward first" else [right, left], dim=-1)


def rows_and_weights(draw: Draw, *, full: bool = False, padding: float = 3.0) -> tuple[Tensor, ...]:
    """Padded rows, their lengths, and the weights of two readings."""
    B, T, D, H = draw.sizes(4, 3, 8)
    lengths = torch.full((B,), T) if full else draw.integers(1, T, B)
    x = draw(B, T, D)
    x[0, -1] = draw(D) if full else padding
    return x, lengths, draw(H, D), draw(H, H) / H**0.5, draw(H, D), draw(H, H) / H**0.5


BOTH_WAYS = replace(
    SHOWN["both_ways"],
    reference=both_ways,
    cases=(
        Case("the states of both readings, for rows of all lengths", rows_and_weights, 15),
        Case(
            "rows without padding",
            lambda draw: rows_and_weights(draw, full=True),
            5,
            ("put", "order", "weights", "turned"),
        ),
        Case(
            "padding may hold anything, infinity, too",
            lambda draw: rows_and_weights(draw, padding=math.inf),
            2,
            ("padding",),
        ),
    ),
    mistakes=mistakes(r"""
padding read first: turned='whole rows'
    The backward reading began with what was only filled in.
    > It begins at the last *real* place of each row: `lengths - 1`.
read from the left twice: turned='not'
    Both readings go from left to right.
    > The second one begins at the end of each row.
not put back in order: put='as read'
    The backward states stand in the order in which they were read.
    > Place t of the result holds what both readings know *at place t*.
padding not erased: padding='left'
    Padded places hold states.
    > Zeros there, in both halves.
padding multiplied by zero: padding='times zero'
    What the padding holds still counts: infinity times 0 is NaN.
    > Put zeros there, `masked_fill` or `torch.where`, or do not read the padding at all.
halves exchanged: order='backward first'
    The backward half comes first.
    > Forward in the first H numbers, backward in the others.
one reading's weights for both: weights='shared'
    Both readings have the same weights.
    > The backward reading has `W_b` and `U_b`.
"""),
    wrong={
        "padding read first": ("for t in reversed(range(n)):", "for t in reversed(range(T)):"),
        "halves exchanged": ("[left, right], dim=-1", "[right, left], dim=-1"),
    },
)


def count_parameters(
    cell: str,
    input_dim: int,
    hidden_dim: int,
    num_layers: int,
    both_ways: bool,
    *,
    biases: int = 2,
    later: str = "states",
    readings: str = "both",
    gates: str = "right",
) -> float:
    """All weights and biases of torch's recurrent layers."""
    ways, H = 2 if both_ways else 1, hidden_dim
    blocks = {"rnn": 1, "gru": 3, "lstm": 4}[cell]
    blocks = {"right": blocks, "one": 1, "lstm": 4 if cell != "rnn" else 1}[gates]
    total = 0
    for layer in range(num_layers):
        inputs = H * {"states": ways, "one way": 1, "always twice": 2, "input": input_dim / H}[later]
        inputs = input_dim if layer == 0 else inputs
        total += (ways if readings == "both" else 1) * blocks * H * (inputs + H + biases)
    return float(total)


def a_layer(draw: Draw, *, layers: bool = False, both: bool = False) -> tuple[str, int, int, int, bool]:
    """The sizes of a recurrent network of one layer or of several, which reads one way or both."""
    D, H = draw.sizes(2, 2, 40)
    cell = ("lstm", "gru", "rnn")[draw.integers(0, 3, 1).item()]
    return cell, D, H, draw.integers(2, 6, 1).item() if layers else 1, both


COUNT = replace(
    SHOWN["count_parameters"],
    reference=count_parameters,
    cases=(
        Case("one layer that reads one way", a_layer, 3, ("biases", "gates"), 1e-6),
        Case("one layer that reads both ways", lambda draw: a_layer(draw, both=True), 1, ("readings",), 1e-6),
        Case("layers on layers, one way", lambda draw: a_layer(draw, layers=True), 2, ("later",), 1e-6),
        Case(
            "layers on layers, both ways",
            lambda draw: a_layer(draw, layers=True, both=True),
            4,
            ("later", "readings"),
            1e-6,
        ),
    ),
    mistakes=mistakes(r"""
one bias in place of two: biases=1
    One bias was counted for each unit.
    > torch keeps two, `bias_ih` and `bias_hh`: as in its own layers, count both.
no bias: biases=0
    Biases are missing.
    > Each of the two products has one.
later layers read the input: later='input'
    Each layer was given the input's width.
    > Layer 2 reads the states of layer 1.
later layers read one half: later='one way'
    Later layers were given H numbers.
    > Read both ways, a layer hands on 2H numbers.
later layers always read two halves: later='always twice'
    Later layers were given 2H numbers although each layer reads one way.
    > Only a layer that reads both ways hands on 2H numbers.
one reading counted: readings='one'
    The weights of the second reading are missing.
    > Read both ways, each layer has two sets of weights.
gates forgotten: gates='one'
    The number of gates makes no difference.
    > An LSTM has four blocks of weights, a GRU three.
"""),
    wrong={"one bias in place of two": ("hidden_dim + 2)", "hidden_dim + 1)")},
)

TRAIN = replace(
    SHOWN["train"],
    wrong={
        "not learned": ("            bias[H : 2 * H] = 4.0\n            bias[:H] = -2.0\n", "            pass\n"),
        "learned by heart": ("torch.randint(len(rows), (64,))", "torch.randint(8, (64,))"),
        "only the length of the training": ("states[:, -1]", "states[:, 15]"),
        "stopped with an error": ("torch.manual_seed(0)", "torch.manual_seed(rows)"),
        "not learned by its parameters": (
            "    optimizer =",
            "    behind = lambda rows: rows[range(len(rows)), (rows == 8).int().argmax(1) + 1]\n"
            "    model.forward = lambda rows: F.one_hot(behind(rows), 8).float()\n    return model\n    optimizer =",
        ),
    },
)

ASSIGNMENT = Assignment(
    "04",
    notebook="lstm_and_gru",
    title="LSTM and GRU",
    tasks=(COUPLED, HIGHWAY, BOTH_WAYS, COUNT, TRAIN),
    seconds={"train": 60},  # for the training, and all questions
)
