"""Lesson 03, Recurrent networks: its exercises; each formula has a knob for every mistake that learners make."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_lib.tasks import Case, Draw, Task, gradients, mistakes

# rnn_step ---------------------------------------------------------------------------------------------------

SQUASH = {"tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": torch.relu, "none": lambda a: a}


def rnn_step(
    x: Tensor,
    h: Tensor,
    W_ih: Tensor,
    W_hh: Tensor,
    b: Tensor,
    *,
    squash: str = "tanh",
    around: str = "all",
    state: str = "used",
    turned: bool = False,
    bias: bool = True,
) -> Tensor:
    """tanh(W_ih x + W_hh h + b)."""
    read, kept = x @ W_ih.T, h @ (W_hh if turned else W_hh.T)
    b, act = b if bias else 0 * b, SQUASH[squash]
    if state == "left out":
        return act(read + b)
    if around == "all":
        return act(read + kept + b)
    return {"input": act(read + b) + kept, "without bias": act(read + kept) + b, "each": act(read) + act(kept) + b}[
        around
    ]


def one_step(draw: Draw, *, first: bool = False) -> tuple[Tensor, ...]:
    """An input, a state and the weights of one step; `first`: the state is still empty."""
    B, D, H = draw.sizes(3)
    h = draw(B, H)
    return draw(B, D), 0 * h if first else h, draw(H, D) / D**0.5, draw(H, H) / H**0.5, draw(H)


RNN_STEP = Task(
    name="rnn_step",
    title="One step",
    asks="x, h, W_ih, W_hh, b",
    reference=rnn_step,
    cases=(
        Case("the new state, from an input and the state before", one_step),
        Case("the first step, from an empty state", lambda draw: one_step(draw, first=True), knobs=("bias",)),
    ),
    mistakes=mistakes(r"""
state before left out: state='left out'
    The state before makes no difference: each step forgets all that came.
    > Two products are added: of `W_ih` with x, and of `W_hh` with h.
no tanh: squash='none'
    The sum is returned as it is.
    > The last thing that is done to the sum is `torch.tanh`.
another function in place of tanh: squash='sigmoid' | 'relu'
    The states lie in another range than those of a tanh.
    > Elman's step has a tanh: from -1 to 1, and 0 stays 0.
tanh of a part: around='input' | 'without bias' | 'each'
    A part of the sum did not go through the tanh together with the rest.
    > First the whole sum, with its bias, then one tanh.
bias left out: bias=False
    The bias is missing.
    > `b` is added once, inside the tanh.
W_hh turned over: turned=True
    The state was multiplied with the transposed `W_hh`.
    > A row of h times `W_hh.T`: the same that `x @ W_ih.T` does.
"""),
    also=(gradients,),
    forbids=("rnn_step", "RNNCell", "RNN"),
    minutes=5,
    text="One step of Elman's network: $h_t = \\tanh(W_{ih} x_t + W_{hh} h_{t-1} + b)$. `x` is `(B, D)`, one input for "
    "each of B sequences; `h` is `(B, H)`, what was kept so far; `W_ih` is `(H, D)`, `W_hh` `(H, H)`, `b` `(H,)`. "
    "Return the new state, `(B, H)`. Stay in torch, so that gradients flow back, and change no input in place.",
    hints=(
        "How many numbers has one state, and which two products give so many?",
        "Inputs lie in rows: `x @ W_ih.T` is `(B, D)` times `(D, H)`.",
        "Add `h @ W_hh.T` and `b`, and put one `torch.tanh` around the sum.",
    ),
    solution="""
def my_rnn_step(x, h, W_ih, W_hh, b):
    return torch.tanh(x @ W_ih.T + h @ W_hh.T + b)
""",
)

# unroll -----------------------------------------------------------------------------------------------------

Step = Callable[[Tensor, Tensor], Tensor]


def unroll(
    step: Step,
    x: Tensor,
    h: Tensor,
    *,
    carry: str = "state",
    order: str = "forward",
    gives: str = "after",
) -> Tensor:
    """The states after each step."""
    steps = x.unbind(1)
    begin, states = h, []
    h = 0 * h if carry == "zeros first" else h
    for x_t in reversed(steps) if order != "forward" else steps:
        before = begin if carry == "start" else 0 * h if carry == "nothing" else h
        h = step(x_t, before)
        h = h + before if carry == "added" else h
        states.append(before if gives == "before" else h)
    states = states[::-1] if order == "backward, put back" else states
    return torch.stack(states, dim=1)


def sequence(draw: Draw, *, length: int | None = None) -> tuple[nn.Module, Tensor, Tensor]:
    """A step with drawn weights, sequences, and the states before the first step."""
    B, T, D, H = draw.sizes(4)
    step = nn.RNNCell(D, H)
    for weight in step.parameters():
        weight.data = draw(*weight.shape) / weight.shape[-1] ** 0.5
    return step.requires_grad_(False), draw(B, length or T, D), draw(B, H)


UNROLL = Task(
    name="unroll",
    title="All steps, one after another",
    asks="step, x, h",
    reference=unroll,
    cases=(
        Case("the state after each step", sequence),
        Case("a sequence of a single symbol", lambda draw: sequence(draw, length=1), knobs=("gives",)),
    ),
    mistakes=mistakes(r"""
state not carried on: carry='start'
    Every step began from the first state: nothing is remembered from one step to the next.
    > `h = step(x_t, h)` writes over `h`, so that the next step gets it.
first state ignored: carry='nothing' | 'zeros first'
    Every step, or the first one, began from zeros.
    > The first step gets the `h` that was given, each later one the state before it.
state added to itself: carry='added'
    The new state was added to the old one.
    > `step` gives the whole new state: it replaces the old one.
read from the end: order='backward' | 'backward, put back'
    The sequence was read backwards.
    > Time runs along axis 1, from 0 upwards.
states before the steps: gives='before'
    The list begins with the first state, and what came last is missing.
    > Keep what a step *returns*: first compute, then append.
"""),
    also=(gradients,),
    minutes=6,
    text="`step(x_t, h)` does one step, as above, with weights of its own. `x` is `(B, T, D)`, T inputs one after "
    "another; `h` is `(B, H)`, the state before the first. Return the states after each step, `(B, T, H)`.",
    hints=(
        "A loop over time. What has to survive from one turn of it to the next?",
        "`x[:, t]` is what all sequences have at time t, of shape `(B, D)`. Collect the states in a list.",
        "`h = step(x[:, t], h)`, then append `h`; in the end `torch.stack(states, dim=1)`.",
    ),
    solution="""
def my_unroll(step, x, h):
    states = []
    for t in range(x.shape[1]):
        h = step(x[:, t], h)
        states.append(h)
    return torch.stack(states, dim=1)
""",
)

# theta_gradient ---------------------------------------------------------------------------------------------


def theta_gradient(
    theta: Tensor,
    A: Tensor,
    dA: Tensor,
    *,
    reach: str = "all",
    turned: bool = True,
    state: str = "before",
    outer: str = "delta first",
    total: str = "sum",
) -> Tensor:
    """Sum over t of delta_t A_{t-1}^T, with delta_t = dA_t + theta^T delta_{t+1}."""
    T, back = len(dA), theta.T if turned else theta
    arrived, found = torch.zeros_like(dA[0]), []
    for t in range(T) if reach == "forward" else reversed(range(T)):
        nothing = torch.zeros_like(arrived)
        later = {"own": nothing, "one": dA[t + 1] if t + 1 < T else nothing}.get(reach, arrived)
        own = 0 * dA[t] if reach == "last slope" and t + 1 < T else dA[t]
        arrived = own + back @ later
        pair = (arrived, A[t] if state == "before" else A[t + 1])
        found.append(torch.outer(*(pair if outer == "delta first" else pair[::-1])))
    steps = torch.stack(found)
    return {"sum": steps.sum(0), "last twice": steps.sum(0) + steps[0], "without the first": steps[:-1].sum(0),
             "mean": steps.mean(0), "first": steps[-1], "last": steps[0]}[total]  # fmt: skip


def states_and_slopes(draw: Draw, *, only_last: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """A matrix, the states that it made, and the loss's own slope in each of them."""
    T, H = draw.sizes(2, 3, 7)
    theta, A = draw(H, H) / H**0.5, [draw(H)]
    for _ in range(T):
        A.append(theta @ A[-1] + draw(H))
    dA = draw(T, H)
    if only_last:
        dA[:-1] = 0
    return theta, torch.stack(A), dA


THETA_GRADIENT = Task(
    name="theta_gradient",
    title="The gradient, by hand",
    asks="theta, A, dA",
    reference=theta_gradient,
    cases=(
        Case("a loss that looks at every state", states_and_slopes),
        Case("a loss that looks at the last state only", lambda draw: states_and_slopes(draw, only_last=True)),
    ),
    mistakes=mistakes(r"""
later steps forgotten: reach='own'
    Each state is taken to matter for the loss by itself only, not for the states behind it.
    > Go from the end to the beginning, and hand on $\theta^\top \delta_{t+1}$.
one step back, and no further: reach='one'
    What arrives from later goes back a single step.
    > Hand on the whole $\delta_{t+1}$, not only the loss's own part of it.
from the beginning to the end: reach='forward'
    Errors were handed on forwards in time.
    > Go from the last step to the first: an error comes from later.
a state's own slope forgotten: reach='last slope'
    Only the last state's own slope was used.
    > Each step adds its own: `delta = dA[t] + theta.T @ delta`.
theta not turned over: turned=False
    What comes back was multiplied with theta, not with its transpose.
    > Forward each row of theta makes one number of the next state; backward the same numbers are read by columns.
the state after the step: state='after'
    Each step's share was taken with the state that it made.
    > In $A_t = \theta A_{t-1} + x_t$ theta meets $A_{t-1}$: that is `A[t]` in a list that begins with $A_0$.
outer product turned over: outer='state first'
    The result is the transpose of what it should be.
    > Row i, column j: how much state i of the new ones needs number j of the old: `torch.outer(delta, A_before)`.
mean over the steps: total='mean'
    The shares of the steps were averaged.
    > The same theta works in each step, so its shares *add*.
a share too many or too few: total='last twice' | 'without the first'
    One step's share counts twice, or the first step's is missing.
    > T steps, T shares: t runs from T - 1 down to 0.
one step's share alone: total='first' | 'last'
    Only one step's share is in the result.
    > Add the shares of all steps.
"""),
    minutes=10,
    text="No tanh here: $A_t = \\theta A_{t-1} + x_t$ for $t = 1 \\dots T$. `theta` is `(H, H)`, `A` is `(T + 1, H)`, "
    "the states from $A_0$ on, and `dA` is `(T, H)`: row `t - 1` says how the loss changes with $A_t$ *directly*. "
    "Return $\\partial L / \\partial \\theta$, `(H, H)`, with a loop and without autograd: $\\sum_t \\delta_t "
    "A_{t-1}^\\top$, with $\\delta_T = dA_T$ and $\\delta_t = dA_t + \\theta^\\top \\delta_{t+1}$.",
    hints=(
        "In which order can the $\\delta$s be computed? Which of them do you know at once?",
        "Begin with a `delta` and a `total` of zeros, and walk from the last step to the first.",
        "For t from T - 1 down to 0: `delta = dA[t] + theta.T @ delta`, and add `torch.outer(delta, A[t])`.",
    ),
    forbids=("backward", "grad"),
    solution="""
def my_theta_gradient(theta, A, dA):
    delta = torch.zeros_like(dA[0])
    total = torch.zeros_like(theta)
    for t in reversed(range(len(dA))):
        delta = dA[t] + theta.T @ delta
        total = total + torch.outer(delta, A[t])
    return total
""",
)

# clip -------------------------------------------------------------------------------------------------------


def clip(gradients: list[Tensor], limit: float, *, norm: str = "global", when: str = "too long") -> list[Tensor]:
    """The gradients, shortened together to a length of at most `limit`."""
    if norm == "by value":
        return [gradient.clamp(-limit, limit) for gradient in gradients]
    lengths = torch.stack([gradient.norm() for gradient in gradients])
    length = {
        "global": lengths.norm(),
        "each": lengths,
        "added": lengths.sum(),
        "longest": lengths.max(),
        "squared": lengths.square().sum(),
        "mean": lengths.square().mean().sqrt(),
    }[norm].expand(len(gradients))
    scales = limit / length
    scales = {"too long": scales.clamp(max=1), "always": scales, "too short": scales.clamp(min=1)}[when]
    return [scale * gradient for scale, gradient in zip(scales, gradients, strict=True)]


def some_gradients(draw: Draw, *, times: float = 3.0) -> tuple[list[Tensor], float]:
    """Gradients of three parameters, and a limit that their length is `times` as large as."""
    a, b, c = draw.sizes(3)
    found = [draw(a, b), 4 * draw(b), draw(c, a, b)]
    return found, (torch.cat([one.flatten() for one in found]).norm() / times).item()


CLIP = Task(
    name="clip",
    title="Clip by the global norm",
    asks="gradients, limit",
    reference=clip,
    cases=(
        Case("too long: all of them are shortened together", some_gradients),
        Case("short enough: nothing changes", lambda draw: some_gradients(draw, times=0.4), knobs=("when",)),
    ),
    mistakes=mistakes(r"""
each gradient by itself: norm='each'
    Each gradient was shortened by its own length: their proportions are lost, and with them the direction.
    > One length for all of them together, and one factor.
single numbers cut off: norm='by value'
    Numbers beyond the limit were cut off, which turns the direction.
    > Scale everything by one factor.
lengths added: norm='added'
    The lengths of the gradients were added up.
    > Pythagoras: the root of the sum of their *squares*.
root forgotten: norm='squared'
    The sum of squares was taken for the length.
    > Take its root.
the longest alone: norm='longest' | 'mean'
    The length is not that of all numbers together.
    > The root of the sum of the squares of all numbers in all gradients.
short ones made longer: when='always' | 'too short'
    Gradients that were short enough have changed.
    > The factor is `limit / norm`, but never more than 1.
"""),
    minutes=6,
    text="`gradients` is a list of tensors of any shapes, one for each parameter. Their global norm is the root of the "
    "sum of the squares of all numbers in all of them. If it is above `limit`, multiply **all** tensors by the same "
    "factor, so that it becomes `limit`; else leave them. Return the list; change no tensor in place.",
    hints=(
        "All gradients are one long arrow. What is its length, and what keeps its direction?",
        "Square each tensor and sum it, add the sums, take the root. The factor is `limit / norm`, or 1.",
        "`norm = sum(g.square().sum() for g in gradients).sqrt()`; `scale = (limit / norm).clamp(max=1)`.",
    ),
    forbids=("clip_grad_norm_",),
    solution="""
def my_clip(gradients, limit):
    norm = sum(g.square().sum() for g in gradients).sqrt()
    scale = (limit / norm).clamp(max=1)
    return [scale * g for g in gradients]
""",
)

# sample -----------------------------------------------------------------------------------------------------


def sample(
    logits: Tensor, temperature: float, u: Tensor, *, heat: str = "divides", axis: int = -1, pick: str = "cumulated"
) -> Tensor:
    """The first symbol up to which the shares of softmax(logits / temperature) add up to more than u."""
    scores = {
        "divides": lambda: logits / temperature,
        "multiplies": lambda: logits * temperature,
        "ignored": lambda: logits,
    }
    shares = scores[heat]().softmax(axis) if heat in scores else logits.softmax(axis)
    if heat == "divides shares":
        shares = shares / temperature
    if pick == "largest":
        return shares.argmax(-1)
    reached = {
        "cumulated": shares.cumsum(-1) > u[:, None],
        "share": shares > u[:, None],
        "one number": shares.cumsum(-1) > u[:1, None],
        "one before": shares.cumsum(-1) - shares > u[:, None],
    }[pick]
    return reached.int().argmax(-1)


def logits_heat_and_draws(draw: Draw, *, temperature: float | None = None) -> tuple[Tensor, float, Tensor]:
    """Logits of drawn sizes, a temperature, and a number between 0 and 1 for each row."""
    B, V = draw.sizes(2, 5, 9)
    heat = (0.5, 0.7, 1.6, 2.0)[draw.integers(0, 4, 1).item()] if temperature is None else temperature
    return 2 * draw(4 * B, V), heat, torch.rand(4 * B, generator=draw.generator)


SAMPLE = Task(
    name="sample",
    title="Draw the next symbol",
    asks="logits, temperature, u",
    reference=sample,
    cases=(
        Case("symbols drawn with the numbers in u", logits_heat_and_draws),
        Case(
            "temperature 1 draws from the shares",
            lambda draw: logits_heat_and_draws(draw, temperature=1.0),
            knobs=("pick", "axis"),
        ),
    ),
    mistakes=mistakes(r"""
multiplied by the temperature: heat='multiplies'
    A high temperature made likely symbols likelier.
    > The logits are *divided* by it: hot is random, cold is sure.
temperature left out: heat='ignored' | 'divides shares'
    The shares do not depend on the temperature as they should.
    > Divide the logits, before the softmax.
softmax over the rows: axis=0
    The shares of a row do not sum to one.
    > The symbols are the last axis.
always the likeliest: pick='largest'
    The likeliest symbol was taken, whatever u says.
    > Add up the shares from the first symbol on, until the sum is larger than u.
shares not added up: pick='share'
    Each share by itself was compared with u.
    > `cumsum(-1)`: the sums up to each symbol.
one number for all rows: pick='one number'
    Every row was drawn with the same number.
    > Row i goes with `u[i]`: compare with `u[:, None]`.
a symbol too far: pick='one before'
    Where u falls into a symbol's share, the next one was taken.
    > The first place at which the sum, with its own share in it, is above u.
"""),
    minutes=8,
    stretch=True,
    text="`logits` is `(B, V)`, `temperature` a number above 0, `u` `(B,)` numbers drawn evenly from 0 to 1. For each "
    "row take the softmax of the logits divided by the temperature, add up the shares from symbol 0 on, and return the "
    "first symbol at which the sum is larger than that row's u: `(B,)` whole numbers.",
    hints=(
        "Lay the shares side by side on a line from 0 to 1. In which of them does u fall?",
        "`shares.cumsum(-1)` are the right ends of the pieces; compare them with `u[:, None]`.",
        "The first True of a row: `(ends > u[:, None]).int().argmax(-1)`.",
    ),
    forbids=("multinomial", "Categorical"),
    solution="""
def my_sample(logits, temperature, u):
    shares = (logits / temperature).softmax(-1)
    ends = shares.cumsum(-1)
    return (ends > u[:, None]).int().argmax(-1)
""",
)

TASKS = {task.name: task for task in (RNN_STEP, UNROLL, THETA_GRADIENT, CLIP, SAMPLE)}
