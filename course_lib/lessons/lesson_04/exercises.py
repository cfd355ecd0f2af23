"""Lesson 04, LSTM and GRU: its exercises; each formula has a knob for every mistake that learners make."""

import math

import torch
from torch import Tensor

from course_lib.tasks import Case, Draw, Task, gradients, mistakes

# lstm_step --------------------------------------------------------------------------------------------------


def lstm_step(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    W_ih: Tensor,
    W_hh: Tensor,
    b: Tensor,
    *,
    rows: str = "ifgo",
    kept: str = "f c",
    written: str = "i g",
    shown: str = "o tanh c",
    proposal: str = "tanh",
    gates: str = "sigmoid",
    reads: str = "both",
    gives: str = "h, c",
    cut: str = "last",
    bias: bool = True,
) -> tuple[Tensor, Tensor]:
    """(h_t, c_t) with c_t = f c + i g and h_t = o tanh(c_t)."""
    a = x @ W_ih.T + bias * b + (h @ W_hh.T if reads == "both" else 0)
    parts = [a[:, k::4] for k in range(4)] if cut == "every fourth" else a.chunk(4, dim=-1)
    part = dict(zip(rows, parts, strict=True))
    squash = torch.sigmoid if gates == "sigmoid" else torch.tanh
    i, f, o = (squash(part[name]) for name in "ifo")
    g = {"tanh": torch.tanh, "sigmoid": torch.sigmoid, "none": lambda a: a}[proposal](part["g"])
    old = {"f c": f * c, "c": c, "(1 - f) c": (1 - f) * c, "f h": f * h}[kept]
    new = old + {"i g": i * g, "g": g, "(1 - f) g": (1 - f) * g}[written]
    h = {"o tanh c": o * new.tanh(), "o c": o * new, "tanh c": new.tanh(), "o tanh old c": o * c.tanh()}[shown]
    return (h, new) if gives == "h, c" else (new, h)


def one_step(draw: Draw) -> tuple[Tensor, ...]:
    """An input, a state and the weights of one step."""
    B, D, H = draw.sizes(3)
    return draw(B, D), draw(B, H), 2 * draw(B, H), draw(4 * H, D), draw(4 * H, H), draw(4 * H)


LSTM_STEP = Task(
    name="lstm_step",
    title="One step of an LSTM",
    asks="x, h, c, W_ih, W_hh, b",
    reference=lstm_step,
    cases=(Case("the new output and the new cell", one_step),),
    mistakes=mistakes(r"""
gates taken from the wrong rows: rows='figo' | 'ifog' | 'fiog' | 'iofg' | 'igfo' | 'iogf' | 'gfio' | 'ofgi'
    The four parts of the sum have been mixed up.
    > Their rows stand in the order i, f, g, o: `i, f, g, o = a.chunk(4, dim=-1)`.
cut across: cut='every fourth'
    Every fourth number was taken for a gate, not one block of H numbers after the other.
    > `chunk(4, dim=-1)` cuts the 4H numbers into four blocks.
old cell kept whole: kept='c'
    Nothing is ever forgotten: the old cell went in whole.
    > The forget gate says which share of the old cell stays: $f \odot c$.
forget gate the wrong way round: kept='(1 - f) c'
    An open forget gate erases the cell.
    > 1 keeps and 0 forgets, in spite of its name.
h in place of c: kept='f h'
    The new cell is made from the old output, not from the old cell.
    > The cell has a road of its own: $c_t = f \odot c_{t-1} + \dots$
input gate left out: written='g' | '(1 - f) g'
    What is proposed was not multiplied by the input gate.
    > $i \odot g$: a gate of its own says how much of the proposal is written.
tanh of the cell left out: shown='o c'
    The cell is shown as it is, and may be larger than 1.
    > $h_t = o \odot \tanh(c_t)$.
output gate left out: shown='tanh c'
    The output does not depend on the output gate.
    > $h_t = o \odot \tanh(c_t)$.
the old cell shown: shown='o tanh old c'
    The output shows the cell as it was before this step.
    > First the new cell, then its output.
proposal without tanh: proposal='sigmoid' | 'none'
    What is proposed does not lie between -1 and 1.
    > g is a tanh; only the three gates are sigmoids.
gates without sigmoid: gates='tanh'
    The gates lie between -1 and 1.
    > A share from 0 to 1: `torch.sigmoid`.
state before left out: reads='x'
    The gates do not see the output of the step before.
    > Two products are added: `x @ W_ih.T` and `h @ W_hh.T`.
bias left out: bias=False
    The bias is missing.
    > `b` is added once to the sum of both products.
cell and output exchanged: gives='c, h'
    The cell came first.
    > Return `h, c`, in this order.
"""),
    forbids=("lstm_step", "LSTMCell", "LSTM"),
    minutes=9,
    text="$a = W_{ih} x_t + W_{hh} h_{t-1} + b$ has 4H numbers: H for each of i, f, g, o, **in this order**. Then "
    "$i, f, o = \\sigma(a_i), \\sigma(a_f), \\sigma(a_o)$ and $g = \\tanh(a_g)$; $c_t = f \\odot c_{t-1} + i \\odot g$ "
    "and $h_t = o \\odot \\tanh(c_t)$. `x` is `(B, D)`, `h` and `c` are `(B, H)`, `W_ih` is `(4H, D)`, `W_hh` "
    "`(4H, H)`, `b` `(4H,)`. Return the pair `h, c`.",
    hints=(
        "One product each for x and h makes all four parts at once. Which two of the six formulas come last?",
        "`a = x @ W_ih.T + h @ W_hh.T + b`, and `i, f, g, o = a.chunk(4, dim=-1)`; then the squashing.",
        "`c = f.sigmoid() * c + i.sigmoid() * g.tanh()`; the output needs `o.sigmoid()` and `c.tanh()`.",
    ),
    solution="""
def my_lstm_step(x, h, c, W_ih, W_hh, b):
    a = x @ W_ih.T + h @ W_hh.T + b
    i, f, g, o = a.chunk(4, dim=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return h, c
""",
)

# forget_backward --------------------------------------------------------------------------------------------


def forget_backward(
    dh: Tensor,
    dc: Tensor,
    c_before: Tensor,
    c: Tensor,
    f: Tensor,
    o: Tensor,
    *,
    paths: str = "both",
    shown: str = "slope",
    slope: str = "f (1 - f)",
    cell: str = "before",
    highway: str = "f",
    gated: bool = True,
    gives: str = "gate, cell",
) -> tuple[Tensor, Tensor]:
    """Gradients of the forget gate's sum a_f and of c_{t-1}, from those of h_t and c_t."""
    through = (
        dh
        * (o if gated else 1)
        * {"slope": 1 - c.tanh() ** 2, "no slope": 1, "tanh": c.tanh(), "no root": 1 - c**2}[shown]
    )
    arrived = {"both": dc + through, "later": dc, "shown": through}[paths]
    bend = {"f (1 - f)": f * (1 - f), "f": f, "none": torch.ones_like(f), "1 - f ** 2": 1 - f**2}[slope]
    da = arrived * (c_before if cell == "before" else c) * bend
    back = {"f": f, "none": torch.ones_like(f), "dc alone": f}[highway]
    pair = da, (dc if highway == "dc alone" else arrived) * back
    return pair if gives == "gate, cell" else pair[::-1]


def a_step_back(draw: Draw) -> tuple[Tensor, ...]:
    """Gradients that arrive at a step, and what its forward pass has kept."""
    B, H = draw.sizes(2)
    return draw(B, H), draw(B, H), 2 * draw(B, H), 2 * draw(B, H), draw(B, H).sigmoid(), draw(B, H).sigmoid()


FORGET_BACKWARD = Task(
    name="forget_backward",
    title="Backward through the forget gate",
    asks="dh, dc, c_before, c, f, o",
    reference=forget_backward,
    cases=(Case("the gate's sum, and the cell before", a_step_back),),
    mistakes=mistakes(r"""
path through the output forgotten: paths='later'
    What the loss says of h has not reached the cell.
    > $h_t = o \odot \tanh(c_t)$: so $c_t$ gets $dh \odot o \odot (1 - \tanh^2 c_t)$ as well.
path along the cell forgotten: paths='shown'
    What arrives from later steps along the cell is missing.
    > Two paths lead to $c_t$: add them.
slope of tanh missing: shown='no slope' | 'tanh' | 'no root'
    On the way from h to the cell the slope of tanh is wrong.
    > The derivative of $\tanh c$ is $1 - \tanh^2 c$.
slope of the sigmoid missing: slope='none' | 'f' | '1 - f ** 2'
    On the way from the gate to its sum the slope of the sigmoid is wrong.
    > The derivative of $\sigma(a)$ is $\sigma(a) (1 - \sigma(a))$, here $f (1 - f)$.
the cell after in place of the cell before: cell='after'
    The gate's gradient was made with the new cell.
    > In $c_t = f \odot c_{t-1} + i \odot g$ the gate meets $c_{t-1}$.
output gate left out: gated=False
    What came from h has not met the output gate on its way to the cell.
    > $h_t = o \odot \tanh(c_t)$: the derivative in $c_t$ has the factor $o$.
gradients exchanged: gives='cell, gate'
    The gradient of $c_{t-1}$ came first.
    > First that of $a_f$, then that of $c_{t-1}$.
highway without its gate: highway='none'
    The cell before got the gradient whole.
    > It is multiplied by $f$, as the cell itself was.
only the later part on the highway: highway='dc alone'
    The cell before did not get what came through h.
    > Both paths add up in $c_t$; their sum goes on.
"""),
    forbids=("backward", "grad"),
    minutes=9,
    text="In $c_t = f \\odot c_{t-1} + i \\odot g$, $h_t = o \\odot \\tanh(c_t)$ the loss's gradients have arrived: "
    "`dh` at $h_t$, and `dc` at $c_t$ from later steps. `c_before`, `c`, `f` and `o` were kept; all are `(B, H)`. "
    "Return a pair: the gradient of $a_f$, where $f = \\sigma(a_f)$, and that of $c_{t-1}$ along it. No autograd.",
    hints=(
        "By which two ways does $c_t$ act on the loss?",
        "All that arrives at $c_t$ is `dc + dh * o * (1 - c.tanh() ** 2)`. What is $c_t$'s derivative in $f$, and in "
        "$c_{t-1}$?",
        "The first result is that sum times `c_before`, times the slope `f * (1 - f)`; the second is that sum times "
        "`f`.",
    ),
    solution="""
def my_forget_backward(dh, dc, c_before, c, f, o):
    arrived = dc + dh * o * (1 - c.tanh() ** 2)
    return arrived * c_before * f * (1 - f), arrived * f
""",
)

# long_bias --------------------------------------------------------------------------------------------------


def long_bias(
    num_steps: int, share: float, *, root: bool = True, answer: str = "bias", odds: str = "kept over lost"
) -> float:
    """The b with sigmoid(b) ** num_steps = share."""
    gate = share ** (1 / num_steps) if root else 1 - (1 - share) / num_steps
    if answer == "gate":
        return gate
    ratio = {"kept over lost": gate / (1 - gate), "lost over kept": (1 - gate) / gate, "kept": gate}[odds]
    return math.log(ratio) if answer == "bias" else ratio


LONG_BIAS = Task(
    name="long_bias",
    title="A bias that remembers",
    asks="num_steps, share",
    reference=long_bias,
    cases=(
        Case(
            "the bias with which so much is left after so many steps",
            lambda draw: (draw.integers(5, 300, 1).item(), draw.integers(10, 90, 1).item() / 100),
        ),
    ),
    mistakes=mistakes(r"""
lost in equal portions: root=False
    The loss was shared out evenly among the steps; but each step keeps a share of what is *left*.
    > After T steps $f^T$ is left, so $f$ is the T-th root of the share.
gate in place of its bias: answer='gate'
    That is how far the gate has to be open, not its bias.
    > $f = \sigma(b)$: solve for $b$.
odds the wrong way round: odds='lost over kept'
    The sign of the bias is wrong: with it the gate is nearly closed.
    > $b = \ln \frac{f}{1 - f}$.
logarithm of the gate: odds='kept'
    The logarithm was taken of $f$ itself.
    > The inverse of the sigmoid is $\ln \frac{f}{1 - f}$.
logarithm forgotten: answer='odds'
    That is $f / (1 - f)$, not its logarithm.
    > Take `math.log` of it.
"""),
    minutes=5,
    text="A forget gate that stands still at $f = \\sigma(b)$ keeps $f^T$ of the cell after T steps. Which bias $b$ "
    "keeps `share` (between 0 and 1) after `num_steps`? Return a `float`. With `math`; a tensor is not needed.",
    hints=(
        "First without the sigmoid: how far open must the gate be, if half is to be left after two steps?",
        "$f = \\text{share}^{1/T}$. And the inverse of the sigmoid?",
        "From $f = 1 / (1 + e^{-b})$ follows $b = \\ln (f / (1 - f))$.",
    ),
    solution="""
def my_long_bias(num_steps, share):
    f = share ** (1 / num_steps)
    return math.log(f / (1 - f))
""",
)

# masked_steps -----------------------------------------------------------------------------------------------


def masked_steps(step, x: Tensor, h: Tensor, lengths: Tensor, *, past_end: str = "kept", edge: str = "below") -> Tensor:
    """The state of each sequence after its own last symbol."""
    begin, kept = h, h
    for t in range(x.shape[1]):
        read = step(x[:, t], h)
        valid = (t < lengths if edge == "below" else t <= lengths if edge == "one more" else t < lengths - 1)[:, None]
        if past_end == "read on":
            h = read
            continue
        h = torch.where(valid, read, {"kept": h, "zeros": 0 * h, "begin": begin}[past_end])
        kept = h
    return h if past_end == "read on" else kept


def padded(draw: Draw, *, full: bool = False) -> tuple:
    """A step with drawn weights, padded sequences, first states, and how long each sequence is."""
    B, T, D, H = draw.sizes(4, 3, 8)
    step = torch.nn.RNNCell(D, H)
    for weight in step.parameters():
        weight.data = draw(*weight.shape) / weight.shape[-1] ** 0.5
    lengths = torch.full((B,), T) if full else draw.integers(1, T, B)
    return step.requires_grad_(False), draw(B, T, D), draw(B, H), lengths


MASKED_STEPS = Task(
    name="masked_steps",
    title="Padding that changes nothing",
    asks="step, x, h, lengths",
    reference=masked_steps,
    cases=(
        Case("each sequence's state after its own last symbol", padded),
        Case("without padding: the last state", lambda draw: padded(draw, full=True), knobs=("edge",)),
    ),
    mistakes=mistakes(r"""
padding read: past_end='read on'
    Short sequences went on reading what was only filled in.
    > Where a sequence is over, its state stays as it is: `torch.where`.
state erased at the end: past_end='zeros' | 'begin'
    Where a sequence is over, its state was thrown away.
    > It keeps the state after its last symbol.
one symbol too many: edge='one more'
    Each sequence reads one symbol of its padding.
    > A sequence of length 3 has its symbols at t = 0, 1, 2: `t < lengths`.
last symbol left out: edge='one less'
    Each sequence stops one symbol early.
    > The last symbol stands at `lengths - 1`, and is read.
"""),
    also=(gradients,),
    minutes=6,
    text="Sentences of a batch differ in length: short ones are filled up. `step(x_t, h)` gives the next state; "
    "`x` is `(B, T, D)`, `h` `(B, H)`, `lengths` `(B,)` says how many symbols of each sequence are real. What is "
    "filled in may hold anything. Return each sequence's state after its own last symbol, `(B, H)`.",
    hints=(
        "Read all T symbols for all sequences. For which of them does step t count?",
        "`(t < lengths)[:, None]` is `(B, 1)`: True where symbol t is real.",
        "`h = torch.where((t < lengths)[:, None], step(x[:, t], h), h)`.",
    ),
    solution="""
def my_masked_steps(step, x, h, lengths):
    for t in range(x.shape[1]):
        real = (t < lengths)[:, None]
        h = torch.where(real, step(x[:, t], h), h)
    return h
""",
)

# gru_step ---------------------------------------------------------------------------------------------------


def gru_step(
    x: Tensor,
    h: Tensor,
    W_ih: Tensor,
    W_hh: Tensor,
    b_ih: Tensor,
    b_hh: Tensor,
    *,
    rows: str = "rzn",
    reset: str = "after",
    update: str = "z keeps",
    proposal: str = "tanh",
    biases: str = "both",
) -> Tensor:
    """(1 - z) n + z h."""
    b_ih, b_hh = b_ih * (biases in ("both", "b_ih")), b_hh * (biases in ("both", "b_hh"))
    read = dict(zip(rows, (x @ W_ih.T + b_ih).chunk(3, dim=-1), strict=True))
    kept = dict(zip(rows, (h @ W_hh.T + b_hh).chunk(3, dim=-1), strict=True))
    U, v = (dict(zip(rows, whole.chunk(3), strict=True))["n"] for whole in (W_hh, b_hh))
    r, z = (read["r"] + kept["r"]).sigmoid(), (read["z"] + kept["z"]).sigmoid()
    memory = {
        "after": lambda: r * kept["n"],
        "before": lambda: (r * h) @ U.T + v,
        "not the bias": lambda: r * (kept["n"] - v) + v,
        "none": lambda: kept["n"],
        "of everything": lambda: r * (read["n"] + kept["n"]) - read["n"],
    }[reset]()
    n = (torch.tanh if proposal == "tanh" else torch.sigmoid)(read["n"] + memory)
    return z * n + (1 - z) * h if update == "z writes" else n + z * h if update == "n whole" else (1 - z) * n + z * h


def gru_inputs(draw: Draw) -> tuple[Tensor, ...]:
    """An input, a state and the weights of one step."""
    B, D, H = draw.sizes(3)
    return draw(B, D), draw(B, H), draw(3 * H, D), draw(3 * H, H), draw(3 * H), draw(3 * H)


GRU_STEP = Task(
    name="gru_step",
    title="One step of a GRU",
    asks="x, h, W_ih, W_hh, b_ih, b_hh",
    reference=gru_step,
    cases=(Case("the new state", gru_inputs),),
    mistakes=mistakes(r"""
gates taken from the wrong rows: rows='zrn' | 'nzr' | 'rnz'
    The three parts have been mixed up.
    > Their rows stand in the order r, z, n.
update gate the wrong way round: update='z writes'
    An open update gate writes the proposal.
    > As in torch, $z$ is the share of the *old* state: $(1 - z) \odot n + z \odot h$.
proposal not scaled: update='n whole'
    The proposal was written whole.
    > One gate for both: $1 - z$ of the proposal, $z$ of the old state.
reset before the product: reset='before'
    The reset gate was multiplied with h before the product, as Cho et al. (2014) write it.
    > Here, as in torch, it acts on the result: $r \odot (U_n h + b)$.
bias outside of the reset: reset='not the bias'
    The bias of $U_n h$ was added behind the reset gate.
    > $r \odot (U_n h + b_{hn})$: the bias belongs inside.
bias left out: biases='b_ih' | 'b_hh' | 'none'
    One of the two biases is missing, or both are.
    > `x @ W_ih.T + b_ih`, and `h @ W_hh.T + b_hh`.
reset gate left out: reset='none'
    The reset gate makes no difference.
    > It multiplies $U_n h + b_{hn}$ in the proposal.
reset of everything: reset='of everything'
    The reset gate was multiplied with the input's part, too.
    > Only what comes from h is reset.
sigmoid in the proposal: proposal='sigmoid'
    The proposal lies between 0 and 1.
    > It is a tanh.
"""),
    also=(gradients,),
    forbids=("gru_step", "GRUCell", "GRU"),
    minutes=8,
    stretch=True,
    text="$r, z = \\sigma(W x_t + b + U h_{t-1} + b')$, $n = \\tanh(W_n x_t + b_n + r \\odot (U_n h_{t-1} + b'_n))$, "
    "$h_t = (1 - z) \\odot n + z \\odot h_{t-1}$. `W_ih` `(3H, D)`, `W_hh` `(3H, H)`, `b_ih` and `b_hh` `(3H,)` hold "
    "the rows of **r, z, n** in this order. `x` is `(B, D)`, `h` `(B, H)`. Return `(B, H)`.",
    hints=(
        "Two products make all six parts. Which of them may be added at once, and which one must wait for r?",
        "`(x @ W_ih.T + b_ih).chunk(3, dim=-1)`, and the same for h; r and z are sigmoids of sums.",
        "`n = torch.tanh(x_n + r * h_n)`; the last line is a blend of n and h.",
    ),
    solution="""
def my_gru_step(x, h, W_ih, W_hh, b_ih, b_hh):
    x_r, x_z, x_n = (x @ W_ih.T + b_ih).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ W_hh.T + b_hh).chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h
""",
)

TASKS = {task.name: task for task in (LSTM_STEP, FORGET_BACKWARD, LONG_BIAS, MASKED_STEPS, GRU_STEP)}
