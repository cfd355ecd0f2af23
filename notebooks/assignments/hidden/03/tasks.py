"""Assignment 03, Recurrent networks: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

from collections import Counter
from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_03.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, mistakes


def deep_step(
    x: Tensor,
    h: Tensor,
    W: Tensor,
    U: Tensor,
    b: Tensor,
    *,
    reads: str = "below",
    weights: str = "own",
    keeps: str = "own",
    squash: str = "tanh",
    bias: bool = True,
    names: str = "W reads",
) -> Tensor:
    """The new states of all layers."""
    below, states = x, []
    W, U = (W, U) if names == "W reads" else (U, W)
    for layer in range(len(h)):
        one = layer if weights == "own" else 0
        before = h[layer] if keeps == "own" else h[-1] if keeps == "top" else h[max(0, layer - 1)]
        total = below @ W[one].T + before @ U[one].T + (b[one] if bias else 0)
        states.append(total.tanh() if squash == "tanh" else total)
        below = {"below": states[-1], "the input": x, "the old one": h[layer]}[reads]
    return torch.stack(states)


def some_layers(draw: Draw, *, layers: int | None = None) -> tuple[Tensor, ...]:
    """An input, the states of some layers, and their weights."""
    B, H, L = draw.sizes(3, 2, 6)
    L = layers or L
    weights = (draw(L, H, H) / H**0.5 for _ in range(2))
    return draw(B, H), draw(L, B, H), *weights, draw(L, H)


DEEP = replace(
    SHOWN["deep_step"],
    reference=deep_step,
    cases=(
        Case("the new states of all layers", some_layers, 11),
        Case("a single layer", lambda draw: some_layers(draw, layers=1), 3, ("squash", "bias", "names")),
    ),
    mistakes=mistakes(r"""
every layer reads the input: reads='the input'
    Every layer was given x.
    > Layer 2 reads the *new* state of layer 1, and so on.
old state of the layer below: reads='the old one'
    A layer was given what the one below it had *before* this step.
    > First the lower layer's new state, then the next layer reads it.
one layer's weights for all: weights='first'
    All layers have the weights of the first.
    > Layer l has `W[l]`, `U[l]` and `b[l]`.
another layer's memory: keeps='top' | 'the one below'
    A layer went on from the state of another one.
    > Each layer has a memory of its own: `h[l]`.
no tanh: squash='none'
    The sums are returned as they are.
    > One tanh in every layer.
bias left out: bias=False
    The biases are missing.
    > Each layer adds its own, inside the tanh.
W and U exchanged: names='U reads'
    The two matrices of a layer were exchanged.
    > W reads what comes from below, U the layer's own state.
"""),
    wrong={"bias left out": (" + b[layer])", ")")},
)


def states_at(
    theta: Tensor,
    start: Tensor,
    times: Tensor,
    *,
    power: str = "t",
    sides: str = "Q ... Q^T",
    sign: str = "kept",
) -> Tensor:
    """Q Lambda^t Q^T A_0 for each time."""
    values, Q = torch.linalg.eigh(theta)
    values, t = values.abs() if sign == "lost" else values, times[:, None].to(values.dtype)
    powers = {
        "t": lambda: values**t,
        "t + 1": lambda: values ** (t + 1),
        "1": lambda: values.expand(len(times), -1),
        "times": lambda: values * t,
        "exp": lambda: (values * t).exp(),
    }[power]()
    there, back = (Q.T, Q) if sides == "Q ... Q^T" else (Q, Q.T) if sides == "Q^T ... Q" else (Q.T, torch.eye(len(Q)))
    return (powers * (there.to(values.dtype) @ start)) @ back.to(values.dtype).T


def symmetric(draw: Draw, *, late: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """A symmetric matrix whose largest eigenvalue is 1 or a little more, a state, and some times."""
    H, T = draw.sizes(2, 3, 7)
    theta = draw(H, H).double()
    theta = theta + theta.T
    theta = theta / torch.linalg.eigvalsh(theta).abs().max() * (1.0 if late else 1.1)
    return theta, draw(H).double(), draw.integers(200, 2000, T) if late else draw.integers(0, 9, T)


POWERS = replace(
    SHOWN["states_at"],
    reference=states_at,
    cases=(
        Case("the states at some times", symmetric, 11),
        Case("states after many steps", lambda draw: symmetric(draw, late=True), 5, ("sides",)),
    ),
    mistakes=mistakes(r"""
eigenvalues times t: power='times'
    The eigenvalues were multiplied by t.
    > Each step multiplies by the eigenvalue once more: its t-th *power*.
exponential of the eigenvalues: power='exp'
    That is how a state moves in continuous time.
    > Here time comes in steps: $\lambda^t$.
one step too many: power='t + 1'
    At time 0 a step was taken already.
    > At time 0 the state is `start`: $\lambda^0 = 1$.
time left out: power='1'
    The result is the same at all times.
    > $\lambda^t$, for each of the times.
Q and its transpose exchanged: sides='Q^T ... Q'
    The start was turned by Q, not by its transpose.
    > The columns of Q are eigenvectors; $Q^\top A_0$ says how much of each there is.
not turned back: sides='not back'
    The result is written in eigenvectors, not in the coordinates of the start.
    > In the end multiply by Q.
sign of the eigenvalues lost: sign='lost'
    A negative eigenvalue was taken for a positive one.
    > Its powers change sign from step to step: keep it.
"""),
    wrong={"eigenvalues times t": ("values ** times[:, None]", "values * times[:, None]")},
)


def cut_gradient(
    theta: Tensor,
    A: Tensor,
    dA: Tensor,
    length: int,
    *,
    cut: str = "behind each piece",
    begin: str = "first step",
    turned: bool = True,
    state: str = "before",
    total: str = "sum",
) -> Tensor:
    """Backpropagation through time in which nothing flows from one piece of `length` steps into the one before."""
    T, back = len(dA), theta.T if turned else theta
    delta, found = torch.zeros_like(dA[0]), []
    for t in reversed(range(T)):  # step t makes A[t + 1]
        place = {"first step": t + 1, "one early": t, "one late": t + 2, "from the end": t + 1 - T}[begin]
        stopped = {"behind each piece": place % length == 0, "never": False, "always": True}[cut]
        delta = dA[t] + (0 if stopped else 1) * (back @ delta)
        found.append(torch.outer(delta, A[t] if state == "before" else A[t + 1]))
    return torch.stack(found).sum(0) if total == "sum" else torch.stack(found).mean(0)


def pieces(draw: Draw, *, whole: bool = False) -> tuple[Tensor, Tensor, Tensor, int]:
    """A matrix, its states, slopes of the loss, and how long a piece is."""
    H, length = draw.sizes(2, 4, 6)
    T = length * 3 + 2
    theta, A = draw(H, H) / H**0.5, [draw(H)]
    for _ in range(T):
        A.append(theta @ A[-1] + draw(H))
    return theta, torch.stack(A), draw(T, H), T + 2 if whole else length


CUT = replace(
    SHOWN["cut_gradient"],
    reference=cut_gradient,
    cases=(
        Case("the gradient, cut behind each piece", pieces, 13),
        Case("a piece that is longer than all steps", lambda d: pieces(d, whole=True), 5, ("turned", "state", "total")),
    ),
    mistakes=mistakes(r"""
never cut: cut='never'
    Gradients flow through the borders of the pieces.
    > Behind every `length`-th step begin again: what arrives from later pieces is dropped.
cut everywhere: cut='always'
    Nothing flows from one step to the one before.
    > Only at the borders of the pieces the flow stops.
border one step off: begin='one early' | 'one late'
    The pieces are cut one step away from where they should be.
    > The first piece is made of steps 1 to `length`.
pieces counted from the end: begin='from the end'
    The pieces were counted from the last step.
    > From the first one: the last piece may be short.
theta not turned over: turned=False
    What comes back was multiplied with theta, not with its transpose.
    > $\theta^\top \delta$.
the state after the step: state='after'
    Each step's share was taken with the state that it made.
    > Step t turned $A_{t-1}$ into $A_t$: its share is $\delta_t A_{t-1}^\top$.
mean over the steps: total='mean'
    The shares of the steps were averaged.
    > They add.
"""),
    wrong={
        "never cut": ("if (t + 1) % length == 0:", "if False:"),
        "border one step off": ("if (t + 1) % length == 0:", "if t % length == 0:"),
        "a ready-made function": (
            "return total",
            "return total + torch.func.vjp(torch.sin, 0 * theta)[1](0 * theta)[0]",
        ),
    },
)


def language_scores(
    labels: Tensor,
    names: list[str],
    asked: list[str],
    num_languages: int,
    *,
    letters: int = 3,
    cleaned: str = "not",
    edges: str = "both",
    smooth: str = "plus one",
    prior: str = "names",
    times: str = "each",
    base: str = "trigrams of all",
) -> Tensor:
    """Naive Bayes on trigrams: log prior + the sum of the logarithms of their smoothed shares."""

    def parts(name: str) -> list[str]:
        name = {"not": name, "lower": name.lower(), "strip": name.strip(), "both": name.lower().strip()}[cleaned]
        front = " " * (letters - 1) if edges in ("both", "front") else ""
        padded = front + name + (" " if edges in ("both", "behind") else "")
        found = [padded[i : i + letters] for i in range(len(padded) - letters + 1)]
        return found if times == "each" else list(dict.fromkeys(found))

    counts, labels = [Counter() for _ in range(num_languages)], labels.tolist()
    for name, label in zip(names, labels, strict=True):
        counts[label].update(parts(name))
    known = len(set().union(*counts))
    rows = []
    for name in asked:
        row = []
        for language, count in enumerate(counts):
            share = {"names": labels.count(language) / len(labels), "none": 1.0, "even": 1 / num_languages}[prior]
            whole = count.total() + {"trigrams of all": known, "own": len(count), "none": 0, "names": len(names)}[base]
            add = {"plus one": 1.0, "tiny": 1e-6, "half": 0.5}[smooth]
            shares = torch.tensor([(count[part] + add) / whole for part in parts(name)] or [1.0])
            row.append(torch.tensor(share).log() + shares.log().sum())
        rows.append(torch.stack(row))
    return torch.stack(rows)


def some_names(draw: Draw, *, letters: str = "abc", unseen: bool = False) -> tuple[Tensor, list[str], list[str], int]:
    """Names of a few letters in some languages, not equally many of each, and others."""

    def name(letters: str) -> str:
        length = draw.integers(3, 7, 1).item()
        return "".join(letters[i] for i in draw.integers(0, len(letters), length).tolist())

    C = draw.sizes(1, 2, 4)[0]
    labels = [*range(C), *[0] * 4, *draw.integers(0, C, 5).tolist()]
    names, count = [name(letters) for _ in labels], draw.integers(3, 7, 1).item()
    return torch.tensor(labels), names, [name("xyz" if unseen else letters) for _ in range(count)], C


SCORES = replace(
    SHOWN["language_scores"],
    reference=language_scores,
    cases=(
        Case("a score for each name and language", some_names, 12),
        Case("capital letters and blanks count as they are", lambda draw: some_names(draw, letters="aA b"), 2),
        Case("names of which no trigram is known", lambda draw: some_names(draw, unseen=True), 4, ("smooth", "prior")),
    ),
    mistakes=mistakes(r"""
names tidied up: cleaned='lower' | 'strip' | 'both'
    Capital letters, or blanks at an end of a name, make no difference.
    > A name is cut into trigrams as it is.
edges left out: edges='none' | 'front' | 'behind'
    How a name begins or ends does not count as it should.
    > Two blanks in front and one behind, before it is cut into threes.
another number of letters: letters=2 | 4
    The pieces are not three letters long.
    > `name[i : i + 3]`.
one not added: smooth='tiny' | 'half'
    A trigram that a language has not shown makes its score too small.
    > Add 1 to each count.
sum of the shares is not one: base='none' | 'own' | 'names'
    The counts were divided by another number.
    > By all trigrams of that language, plus V, the number of *different* trigrams in all training names.
prior left out: prior='none' | 'even'
    Languages with many names have no advantage.
    > Add the logarithm of the share of names that are in that language.
each trigram counted once: times='once'
    A trigram that comes twice in a name was counted once.
    > It counts as often as it comes, in training and in what is asked.
"""),
    wrong={
        "edges left out": ('name = "  " + name + " "', "name = name"),
        "one not added": ("(count[part] + 1)", "(count[part] + 1e-6)"),
        "names tidied up": ('"  " + name + " "', '"  " + name.lower().strip() + " "'),
    },
)

PAIRS = """    odds = torch.ones(4, 8, 8)
    which = spoken[:, None].expand(-1, 14), words[:, :-1], words[:, 1:]
    odds = odds.index_put(which, torch.ones(()), accumulate=True)
    odds = (odds / odds.sum(2, keepdim=True)).log()
    model.forward = lambda words: F.pad(
        odds[:, words[:, :-1], words[:, 1:]].permute(1, 2, 0).cumsum(1), (0, 0, 1, 0)
    )
    return model
    optimizer ="""
TRAIN = replace(
    SHOWN["train"],
    wrong={
        "reads ahead": (
            "states, _ = self.rnn(self.embed(words))",
            "states, _ = self.rnn(self.embed(words))\n        states = states + states.mean(dim=1, keepdim=True)",
        ),
        "not learned": ("range(800)", "range(1)"),
        "learned by heart": ("torch.randint(len(words), (64,))", "torch.randint(8, (64,))"),
        "only the length of the training": (
            "self.embed(words)",
            "self.embed(words * (torch.arange(words.shape[1]) < 15))",
        ),
        "stopped with an error": ("torch.manual_seed(0)", "torch.manual_seed(words)"),
        "not learned by its parameters": ("    optimizer =", PAIRS),
    },
)

ASSIGNMENT = Assignment(
    "03",
    notebook="recurrent_networks",
    title="Recurrent networks",
    tasks=(DEEP, POWERS, CUT, SCORES, TRAIN),
    seconds={"train": 60},  # for the training, and all questions
)
