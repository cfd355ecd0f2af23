"""Lesson 15, Transformers everywhere: its exercises; each formula has a knob for every mistake that learners make."""

import torch
from torch import Tensor

from course_lib.functional.linear_attention import elu_features
from course_lib.tasks import Case, Draw, Finding, Task, gradients, keeps_type, mistakes

# corrupt ----------------------------------------------------------------------------------------------------


def corrupt(
    ids: list[int], spans: list[tuple[int, int]], first_sentinel: int, *, source: str = "a span", end: str = "sentinel",
    count: str = "down", target: str = "gaps", last: str = "excluded", tail: bool = True, swapped: bool = False,
) -> tuple[list[int], list[int]]:  # fmt: skip
    """What T5 reads and what it is to write."""
    read, write, place = [], [], 0
    for number, (first, stop) in enumerate(spans):
        sentinel = first_sentinel + {"down": -number, "up": number, "same": 0}[count]
        stop = stop + (last == "included")
        gap = ids[first:stop]
        marks = {"a span": [sentinel], "each token": [sentinel] * len(gap), "nothing": []}[source]
        read += [*ids[place:first], *marks]
        write += [sentinel, *gap] if target == "gaps" else gap
        place = stop
    closing = first_sentinel + {"down": -len(spans), "up": len(spans), "same": 0}[count] + (end == "repeated")
    write += [closing] if end != "nothing" and target == "gaps" else []
    read, write = [*read, *(ids[place:] if tail else [])], list(ids) if target == "whole text" else write
    return (write, read) if swapped else (read, write)


def a_text(draw: Draw) -> tuple[list[int], list[tuple[int, int]], int]:
    """A text with two spans, none of which touches the other or an edge."""
    length = int(draw.integers(12, 16, 1))
    first, second = int(draw.integers(1, 3, 1)), int(draw.integers(7, 9, 1))
    spans = [(first, first + int(draw.integers(1, 4, 1))), (second, second + int(draw.integers(2, 4, 1)))]
    return draw.integers(1, 50, length).tolist(), spans, 99


def edges(draw: Draw) -> tuple[list[int], list[tuple[int, int]], int]:
    """Spans at both ends of a text."""
    length = int(draw.integers(8, 12, 1))
    return draw.integers(1, 50, length).tolist(), [(0, 2), (length - 3, length)], 80


CORRUPT = Task(
    name="corrupt",
    title="Drop spans",
    asks="ids, spans, first_sentinel",
    reference=corrupt,
    cases=(
        Case("two spans inside a text", a_text),
        Case("spans at both ends", edges, knobs=("source", "end", "count", "target")),
    ),
    mistakes=mistakes(r"""
a sentinel for each token: source='each token'
    Each missing token has a sentinel in the source.
    > One sentinel for the whole span: how long it was, the model has to know.
no sentinels in the source: source='nothing'
    The source closes up over the gaps.
    > Where a span was, its sentinel stands.
closing sentinel missing: end='nothing'
    The target ends with the last missing token.
    > One more sentinel says that the last span is over.
closing sentinel repeated: end='repeated'
    The target ends with the sentinel of the last span once more.
    > The closing sentinel is a new one: `first_sentinel - len(spans)`.
tail lost: tail=False
    The text behind the last span is missing from the source.
    > `ids[place:]`, to the end.
source and target exchanged: swapped=True
    What is to be read stands second.
    > Source first, then target.
sentinels count up: count='up'
    The second sentinel is larger than the first.
    > As in the released vocabulary they count *down* from `first_sentinel`.
one sentinel for all: count='same'
    All gaps have the same sentinel: nobody could say which words belong to which.
    > The next span has the next sentinel, `first_sentinel - 1`.
target without sentinels: target='bare'
    The target holds the missing tokens and no sentinels.
    > Each span is written behind its sentinel.
the whole text as target: target='whole text'
    The target is the whole text.
    > Only what is missing is to be written: that is what makes it cheap.
one token too many: last='included'
    The token behind each span is missing, too.
    > `(first, end)` is meant as `ids[first:end]`.
"""),
    minutes=7,
    text="`ids` is a list of tokens, `spans` a list of pairs `(first, end)`, in order and without touching: "
    "`ids[first:end]` goes. Return two lists. The *source*: the text with **one** sentinel in place of each span. The "
    "*target*: each sentinel, then the tokens that were there, and one more sentinel at the end. Sentinels count down: "
    "`first_sentinel`, `first_sentinel - 1`, ...",
    hints=(
        "Go through the spans in order, and remember where the last one ended.",
        "For each span: what stood before it and a sentinel go to the source; the sentinel and `ids[first:end]` to the "
        "target.",
        "After the loop: the rest of the text to the source, `first_sentinel - len(spans)` to the target.",
    ),
    solution="""
def my_corrupt(ids, spans, first_sentinel):
    source, target, place = [], [], 0
    for number, (first, end) in enumerate(spans):
        sentinel = first_sentinel - number
        source += ids[place:first] + [sentinel]
        target += [sentinel] + ids[first:end]
        place = end
    return source + ids[place:], target + [first_sentinel - len(spans)]
""",
)

# collapse ---------------------------------------------------------------------------------------------------


def collapse(path: list[int], blank: int = 0, *, order: str = "merge, drop", blanks: str = "given") -> list[int]:
    """First repetitions become one symbol, then blanks go."""
    blank = blank if blanks == "given" else 0

    def merged(row: list[int]) -> list[int]:
        return [now for i, now in enumerate(row) if i == 0 or now != row[i - 1]]

    def dropped(row: list[int]) -> list[int]:
        return [now for now in row if now != blank]

    return {
        "merge, drop": lambda: dropped(merged(path)),
        "drop, merge": lambda: merged(dropped(path)),
        "merge": lambda: merged(path),
        "drop": lambda: dropped(path),
        "each once": lambda: list(dict.fromkeys(dropped(path))),
    }[order]()


def a_path(draw: Draw) -> tuple[list[int]]:
    """Frames with repetitions, equal symbols with a blank between them, and one that comes back."""
    a, b = draw.integers(1, 5, 1).item(), draw.integers(5, 8, 1).item()
    times = draw.integers(2, 4, 4).tolist()
    return ([0] * times[0] + [a] * times[1] + [0] + [a] * times[2] + [b] * times[3] + [a, 0],)


COLLAPSE = Task(
    name="collapse",
    title="Read the text off a path",
    asks="path, blank=0",
    reference=collapse,
    cases=(
        Case("a path with blanks and repetitions", a_path),
        Case("another blank", lambda draw: ([9 if s == 0 else s % 5 for s in a_path(draw)[0]], 9)),
    ),
    mistakes=mistakes(r"""
blanks dropped first: order='drop, merge'
    The blanks went first: two equal symbols with a blank between them became one.
    > The blank is what keeps them apart: merge first, then drop.
blanks kept: order='merge'
    The blanks are still there.
    > After merging, drop them.
repetitions kept: order='drop'
    A symbol that was said in several frames comes several times.
    > Equal neighbours are one symbol.
each symbol once: order='each once'
    A symbol that comes back later has been dropped.
    > Only *neighbours* are merged.
blank taken for 0: blanks='always 0'
    `blank` makes no difference.
    > Drop the symbol that `blank` names.
"""),
    minutes=4,
    text="`path` is a list with one symbol for each frame, `blank` the symbol that means *nothing*. Return the text as "
    "a list: first merge repetitions, then drop blanks.",
    hints=(
        "Which symbols begin something new? Those that differ from the one just before.",
        "Keep a symbol if it differs from the symbol before it *and* is no blank. Compare it with its neighbour in the "
        "path, not with the last one that you kept.",
        "Start with `before = None`, and at the end of each turn of the loop set `before = symbol`.",
    ),
    solution="""
def my_collapse(path, blank=0):
    text, before = [], None
    for symbol in path:
        if symbol != before and symbol != blank:
            text.append(symbol)
        before = symbol
    return text
""",
)

# to_go ------------------------------------------------------------------------------------------------------


def to_go(rewards: Tensor, *, order: str = "to come", own: bool = True) -> Tensor:
    """R_t = r_t + r_{t+1} + ..."""
    total = {
        "to come": lambda: rewards.flip(1).cumsum(1).flip(1),
        "so far": lambda: rewards.cumsum(1),
        "turned": lambda: rewards.flip(1).cumsum(1),
        "whole": lambda: rewards.sum(1, keepdim=True).expand_as(rewards).clone(),
        "of the batch": lambda: rewards.flip(0).cumsum(0).flip(0),
    }[order]()
    return total if own else total - rewards


def some_rewards(draw: Draw) -> tuple[Tensor]:
    return (draw(*draw.sizes(2, low=3)),)


TO_GO = Task(
    name="to_go",
    title="Returns-to-go",
    asks="rewards",
    reference=to_go,
    cases=(Case("what is still to come at each step", some_rewards),),
    mistakes=mistakes(r"""
what was got so far: order='so far'
    You return what has been got *so far*.
    > Look forward: the sum of this reward and of all that come after it.
turned round: order='turned'
    The steps come out in the wrong order.
    > After summing from the end, turn the steps round again.
the whole return everywhere: order='whole'
    Each step has the return of the whole walk.
    > What has been got is no longer to come.
summed over walks: order='of the batch'
    The sums run over the walks.
    > Each row is a walk: sum along axis 1.
own reward left out: own=False
    The reward of the step itself is missing.
    > $\hat R_t$ begins with $r_t$: it is paid for the action that is chosen now.
"""),
    also=(keeps_type,),
    example=((([[-1.0, -1.0, 0.0, 5.0]],), [[3.0, 4.0, 5.0, 5.0]]),),
    minutes=4,
    text="`rewards`, `(N, T)`, are those of N walks. Return $\\hat R_t = r_t + r_{t+1} + \\dots$, `(N, T)`: what was "
    "still to come when step t began, its own reward included.",
    hints=(
        "The last one is the last reward. The one before it?",
        "A cumulative sum from the end: turn the steps round, sum, turn them round again.",
        "`rewards.flip(1).cumsum(1)`, and what is missing is one more `flip(1)`.",
    ),
    solution="""
def my_to_go(rewards):
    return rewards.flip(1).cumsum(1).flip(1)
""",
)

# gated ------------------------------------------------------------------------------------------------------


def gated(x: Tensor, seen: Tensor, alpha: Tensor, *, squash: str = "tanh", way: str = "add") -> Tensor:
    """x + tanh(alpha) seen."""
    gate = {"tanh": alpha.tanh(), "none": alpha, "sigmoid": alpha.sigmoid(), "one more": 1 + alpha.tanh()}[squash]
    return {
        "add": lambda: x + gate * seen,
        "blend": lambda: (1 - gate) * x + gate * seen,
        "seen alone": lambda: gate * seen,
        "on x": lambda: gate * x + seen,
        "inside": lambda: x + (alpha * seen).tanh(),
    }[way]()


def stream_and_picture(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    B, T, D = draw.sizes(3)
    return draw(B, T, D), draw(B, T, D), 0.7 + draw(1)[0].abs()


GATED = Task(
    name="gated",
    title="A gate that opens from 0",
    asks="x, seen, alpha",
    reference=gated,
    cases=(
        Case("the stream, and what was seen, through the gate", stream_and_picture),
        Case(
            "alpha 0: the stream as it was",
            lambda draw: (*stream_and_picture(draw)[:2], torch.tensor(0.0)),
            knobs=("nothing",),
        ),
    ),
    mistakes=mistakes(r"""
tanh forgotten: squash='none'
    `alpha` itself is the gate: nothing holds it between -1 and 1.
    > $\tanh(\alpha)$.
sigmoid: squash='sigmoid'
    The gate is a sigmoid: at $\alpha = 0$ it is half open, and the model that was so good is disturbed at once.
    > $\tanh(0) = 0$: shut.
one too many: squash='one more'
    The gate is wide open at $\alpha = 0$.
    > $x + \tanh(\alpha) \cdot$ `seen`: nothing but `x` when it is shut.
blended: way='blend'
    As the gate opens, the stream fades: you blend.
    > The stream is never touched; what was seen is *added*.
stream lost: way='seen alone'
    The stream itself is missing.
    > A residual connection: `x` plus something.
gate on the stream: way='on x'
    The gate is at the stream, not at what was seen.
    > $x + \tanh(\alpha) \cdot$ `seen`.
tanh of everything: way='inside'
    The tanh is taken of what was seen, too.
    > Only $\alpha$ goes through the tanh.
"""),
    also=(keeps_type, gradients),
    example=((([[[1.0, 2.0]]], [[[10.0, -10.0]]], torch.tensor(0.0)), [[[1.0, 2.0]]]),),
    minutes=3,
    text="`x` and `seen`, both `(B, T, D)`: the words' stream, and what cross-attention found in the picture for each "
    "word. `alpha` is a tensor without axes that is learned. Return $x + \\tanh(\\alpha) \\cdot$ `seen`. It is one "
    "line; say to yourself what it does at $\\alpha = 0$.",
    hints=(
        "What must come out when alpha is 0? And when alpha is very large?",
        "A residual connection with a factor: `x + gate * seen`.",
        "The gate is `torch.tanh(alpha)`.",
    ),
    solution="""
def my_gated(x, seen, alpha):
    return x + torch.tanh(alpha) * seen
""",
)

# linear_step ------------------------------------------------------------------------------------------------


def linear_step(
    q: Tensor, k: Tensor, v: Tensor, s: Tensor, z: Tensor, *, features: str = "elu + 1", norm: str = "z",
    state: str = "new", adds: str = "sum", outer: str = "k v",
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """s + phi(k) v^T, z + phi(k), and phi(q)^T s / phi(q)^T z."""
    phi = {"elu + 1": elu_features, "elu": lambda x: elu_features(x) - 1, "none": lambda x: x,
           "exp": torch.exp}[features]  # fmt: skip
    fq, fk = phi(q), phi(k)
    s_new = (s if adds == "sum" else 0) + (fk[:, None] * v if outer == "k v" else k[:, None] * v)
    z_new = (z if adds == "sum" else 0) + (fk if outer == "k v" else k)
    s_read, z_read = (s_new, z_new) if state == "new" else (s, z)
    output = fq @ s_read
    return output / {"z": fq @ z_read, "none": 1, "steps": z_read.sum()}[norm], s_new, z_new


def a_step(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """A query, key and value, and what some earlier ones have left."""
    K, V = draw.sizes(2)
    k, v = elu_features(draw(3, K)), draw(3, V)
    return draw(K), draw(K), draw(V), k.mT @ v, k.sum(dim=0)


def far_below(q: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    return q - 30, *others


ROUNDED = Finding(
    "rounded to zero",
    "Far below 0 your result is not right: elu(x) + 1 takes 1 off and adds it again, and what is left is 0.",
    "Above 0 it is x + 1, below it is the exponential itself: `torch.where(x > 0, x + 1, x.clamp(max=0).exp())`.",
)

LINEAR_STEP = Task(
    name="linear_step",
    title="Attention, one step at a time",
    asks="q, k, v, s, z",
    reference=linear_step,
    cases=(
        Case("one step, after some others", a_step),
        Case("a query far below 0", lambda draw: far_below(*a_step(draw)), otherwise=ROUNDED),
    ),
    mistakes=mistakes(r"""
one forgotten in phi: features='elu'
    The 1 is missing in $\phi$: weights can be negative.
    > $\phi(x) = \mathrm{elu}(x) + 1$.
no phi: features='none'
    Queries and keys are used as they are.
    > $\phi$ of both: it makes them positive.
exp for phi: features='exp'
    Your $\phi$ is the exponential.
    > $\mathrm{elu}(x) + 1$ is $x + 1$ above 0, and $e^x$ only below.
not divided: norm='none'
    The output is not divided.
    > Divide by $\phi(q)^\top z$: then the weights sum to 1.
divided by something else: norm='steps'
    The output is divided by the sum of `z`.
    > Divide by $\phi(q)^\top z$.
read before it is written: state='old'
    The output is read off the *old* sums: no token sees itself.
    > First update `s` and `z`, then read.
nothing kept: adds='replace'
    The sums are replaced: only this token is remembered.
    > $s_i = s_{i-1} + \dots$.
phi forgotten in the sums: outer='bare k'
    What is added to the sums is made of the bare key.
    > $\phi(k)$, in `s` and in `z`.
"""),
    minutes=7,
    text="`q` and `k`, `(K,)`, and `v`, `(V,)`, belong to one token; `s`, `(K, V)`, and `z`, `(K,)`, are the sums over "
    "all tokens before it. Return three tensors: the output `(V,)`, and the new `s` and `z`. Change no input in place. "
    "$\\phi$ must stay above 0 for numbers far below 0, where `elu(x) + 1` is rounded to 0: there it is $e^x$.",
    hints=(
        "Three lines: the new `s`, the new `z`, the output. Which of them needs which?",
        "$\\phi(k)\\, v^\\top$ is a table of K rows and V columns: `torch.outer`.",
        "`phi = torch.where(x > 0, x + 1, x.clamp(max=0).exp())`. The output is `phi(q) @ s / (phi(q) @ z)`, "
        "with the *new* sums.",
    ),
    solution="""
def my_linear_step(q, k, v, s, z):
    q, k = (torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (q, k))
    s = s + torch.outer(k, v)
    z = z + k
    return q @ s / (q @ z), s, z
""",
)

# forward_step -----------------------------------------------------------------------------------------------


def forward_step(
    alpha: Tensor, probs: Tensor, states: Tensor, blank: int = 0, *, jump: str = "by rule", stay: bool = True,
    step: bool = True, times: bool = True,
) -> Tensor:  # fmt: skip
    """alpha_t(s) = (alpha(s) + alpha(s-1) + alpha(s-2) where it may jump) p(symbol of s)."""
    zero = alpha.new_zeros(2)
    one, two = torch.cat([zero[:1], alpha[:-1]]), torch.cat([zero, alpha[:-2]])
    differs = torch.cat([torch.zeros(2, dtype=torch.bool), states[2:] != states[:-2]])
    may = {
        "by rule": (states != blank) & differs,
        "never": torch.zeros_like(differs),
        "over symbols": torch.cat([torch.zeros(2, dtype=torch.bool), torch.ones(len(states) - 2, dtype=torch.bool)]),
        "equal symbols": states != blank,
    }[jump]
    total = alpha * stay + one * step + two * may
    return total * probs[states] if times else total


def a_lattice(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """States of a text with two equal symbols in it."""
    a, b = draw.integers(1, 4, 1).item(), draw.integers(4, 7, 1).item()
    states = torch.tensor([0, b, 0, a, 0, a, 0, b, 0])
    return draw(9).abs(), draw(7).softmax(dim=0), states


FORWARD_STEP = Task(
    name="forward_step",
    title="One step of CTC's recursion",
    asks="alpha, probs, states",
    reference=forward_step,
    cases=(Case("a text with two equal symbols", a_lattice),),
    mistakes=mistakes(r"""
never jumps: jump='never'
    No path leaves out a blank.
    > From one symbol to a *different* next one the blank may be left out: two states further.
blanks jump, too: jump='over symbols'
    Symbols are left out, or equal ones joined.
    > Only to a symbol that is no blank and differs from the one two states back.
equal symbols joined: jump='equal symbols'
    Two equal symbols follow each other without a blank: they would be merged.
    > Where `states[s] == states[s - 2]` the blank must not be left out.
cannot stay: stay=False
    No path stays in its state.
    > A symbol may last several frames: `alpha[s]` counts, too.
cannot move on: step=False
    No path moves on by one state.
    > `alpha[s - 1]` counts.
probability forgotten: times=False
    What this frame says is not multiplied in.
    > Times `probs[states]`: the probability of each state's symbol.
"""),
    also=(keeps_type,),
    minutes=12,
    stretch=True,
    text="`states`, `(L,)`, are the symbols of a text with a blank (0) before, between and behind them. `alpha`, "
    "`(L,)`, is for each state the probability of all paths that stand there after the last frame; `probs`, `(V,)`, "
    "what this frame says of each symbol. A path stays, moves on by one state, or by two, over a blank, to a symbol "
    "that differs from the last. Return the new `alpha`.",
    hints=(
        "From which states can a path have come to state s? Up to three.",
        "Shift `alpha` by one and by two places, with zeros in front. The shift by two counts only where "
        "`states[s]` is no blank and differs from `states[s - 2]`.",
        "At the end multiply by `probs[states]`.",
    ),
    solution="""
def my_forward_step(alpha, probs, states):
    zeros = torch.zeros_like(alpha[:2])
    one = torch.cat([zeros[:1], alpha[:-1]])
    two = torch.cat([zeros, alpha[:-2]])
    jump = states != 0
    jump[:2] = False
    jump[2:] &= states[2:] != states[:-2]
    return (alpha + one + two * jump) * probs[states]
""",
)

TASKS = {task.name: task for task in (CORRUPT, COLLAPSE, TO_GO, GATED, LINEAR_STEP, FORWARD_STEP)}
