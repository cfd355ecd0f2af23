"""Lesson 06, The Transformer: the tables of its exercises; each formula has a knob for every mistake."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.generation.protocol import LanguageModel
from course_lib.tasks import Case, Draw, Finding, Task, gradients, mistakes
from course_lib.tasks.core import Probe

Layer = Callable[[Tensor], Tensor]

# block ------------------------------------------------------------------------------------------------------


def block(
    x: Tensor,
    sublayers: Sequence[Layer],
    norms: Sequence[Layer],
    *,
    way: str = "pre",
    reads: str = "stream",
    added: str = "stream",
    norm: str = "own",
    most: int | None = None,
) -> Tensor:
    """x = x + sublayer(norm(x)), for each sublayer in turn."""
    first = x
    for place, sublayer in enumerate(sublayers[:most]):
        own = norms[place if norm == "own" else 0]
        h, base = first if reads == "first" else x, first if added == "first" else x
        ways = {
            "pre": lambda h, base, f, n: base + f(n(h)),
            "post": lambda h, base, f, n: n(base + f(h)),
            "normed stream": lambda h, base, f, n: n(base) + f(n(h)),
            "norm of the output": lambda h, base, f, n: base + n(f(h)),
            "no residual": lambda h, base, f, n: f(n(h)),
            "no norm": lambda h, base, f, n: base + f(h),
        }
        x = ways[way](h, base, sublayer, own)
    return x


def sublayers(draw: Draw, *, count: int) -> tuple[Tensor, list[Layer], list[Layer]]:
    """Words, so many sublayers, and as many layer norms, with drawn weights."""
    B, T, D = draw.sizes(3)
    maps = [draw(D, D) / D**0.5 for _ in range(count)]
    gains = [(draw(D), draw(D)) for _ in range(count)]
    return (
        draw(B, T, D),
        [lambda h, W=W: torch.tanh(h @ W) for W in maps],
        [lambda h, gain=gain: F.layer_norm(h, h.shape[-1:], *gain) for gain in gains],
    )


IN_PLACE = Finding(
    "x changed in place",
    "Your code changes x in place, and the norm still needs the old x for its gradient: training stops with an error.",
    "Write `x = x + ...`, which makes a new tensor. A copy at the beginning does not help.",
)


def gradients_of_block(task: Task, probe: Probe) -> list[Finding]:
    """As for all tasks; torch's error about a change in place is told as what it is."""
    try:
        return gradients.run(task, probe)
    except RuntimeError as error:
        if "inplace operation" not in str(error):
            raise
        return [IN_PLACE]


BLOCK = Task(
    name="block",
    title="A pre-norm block",
    asks="x, sublayers, norms",
    reference=block,
    cases=(
        Case("two sublayers, as in an encoder", lambda draw: sublayers(draw, count=2)),
        Case("three sublayers, as in a decoder", lambda draw: sublayers(draw, count=3)),
    ),
    mistakes=mistakes(r"""
post-norm: way='post'
    The norm stands behind the addition: this is the block of 2017, post-norm.
    > In pre-norm nothing stands in the way of x itself: only what a sublayer reads is normalised.
norm on the residual path: way='normed stream'
    What is added to the sublayer's output is x after the norm.
    > Two uses of x: the sublayer reads norm(x), and its output is added to x as it was.
norm of the sublayer's output: way='norm of the output'
    The sublayer reads x as it is, and the norm is taken of what it returns.
    > The norm comes first: sublayer(norm(x)).
no residual path: way='no residual'
    Each sublayer's output replaces x.
    > It is added to x.
no norm: way='no norm'
    The sublayers read x as it is.
    > Each reads norm(x), with the norm of its own place in the list.
all sublayers read the same: reads='first'
    The later sublayers read what the block was given, not what the earlier ones have made of it.
    > One after the other: the second reads the x to which the first has added.
the first x added each time: added='first'
    What the earlier sublayers have added is lost again.
    > Go on with the sum: `x = x + ...`, not the x that came in.
one norm for all: norm='first'
    The first norm stands in front of every sublayer.
    > Each has a norm of its own: take both lists together, with `zip`.
stops too early: most=1 | 2
    Not all sublayers have been at work.
    > Does your `return` stand inside the loop? Is the number of sublayers written into your code?
"""),
    also=(replace(gradients, detects=(*gradients.detects, IN_PLACE.misconception), run=gradients_of_block),),
    minutes=6,
    text="Write the block of a Transformer from parts that are there: `sublayers` is a list of functions (attention "
    "and MLP in an encoder; a decoder has three), `norms` a list with a layer norm for each. Pre-norm: "
    "$x \\leftarrow x + \\mathrm{sublayer}(\\mathrm{norm}(x))$, one sublayer after the other. `x` has shape "
    "`(B, T, D)`, and so has the result.",
    hints=(
        "Say in words what the second sublayer reads, and what its output is added to.",
        "A loop over both lists at once: `for sublayer, norm in zip(sublayers, norms):`.",
        "In the loop one line: `x = x + sublayer(norm(x))`. Write no `x += ...`: that would overwrite the input.",
    ),
    solution="""
def my_block(x, sublayers, norms):
    for sublayer, norm in zip(sublayers, norms):
        x = x + sublayer(norm(x))
    return x
""",
)

# schedule ---------------------------------------------------------------------------------------------------


def schedule(
    step: int,
    dim: int,
    warmup: int,
    *,
    width: str = "d^-0.5",
    pick: str = "min",
    rise: str = "step w^-1.5",
    fall: str = "step^-0.5",
) -> float:
    """d_model^-0.5 min(step^-0.5, step warmup^-1.5): Vaswani et al. 2017, eq. (3)."""
    w = float(warmup)
    up = {"step w^-1.5": step * w**-1.5, "step w^-0.5": step * w**-0.5, "step/w": step / w, "w^-1.5": w**-1.5}[rise]
    down = {"step^-0.5": step**-0.5, "flat": w**-0.5, "step^-1": 1 / step}[fall]
    factor = {"min": min(up, down), "max": max(up, down), "rise": up, "fall": down}[pick]
    return factor * {"d^-0.5": dim**-0.5, "1": 1.0, "d^-1": 1 / dim, "d^0.5": dim**0.5}[width]


def early(draw: Draw) -> tuple[int, int, int]:
    """One of the first steps, a width, and the length of the warm-up."""
    dim, warmup = draw.sizes(2, 10, 60)
    return draw.integers(1, 3, 1).item(), dim, warmup


def late(draw: Draw) -> tuple[int, int, int]:
    """The same for a step behind the warm-up."""
    step, dim, warmup = early(draw)
    return step + draw.integers(1, 4, 1).item() * warmup, dim, warmup


SCHEDULE = Task(
    name="schedule",
    title="The learning rate",
    asks="step, dim, warmup",
    reference=schedule,
    cases=(
        Case("it rises in a straight line during the warm-up", early, tolerance=1e-6),
        Case("it falls with the root of the step behind it", late, tolerance=1e-6),
    ),
    mistakes=mistakes(r"""
never falls: pick='rise'
    Behind the warm-up the rate goes on rising.
    > Of the two numbers in the bracket the smaller one counts: behind the warm-up that is step^-0.5.
no warm-up: pick='fall' | 'max'
    In the beginning the rate is as large as it ever gets.
    > Of the two numbers in the bracket the smaller one counts: during the warm-up that is step · warmup^-1.5.
flat behind the warm-up: fall='flat'
    Behind the warm-up the rate stays where it is.
    > There it falls like step^-0.5.
wrong fall: fall='step^-1'
    The first number in the bracket is not step^-0.5.
    > `step ** -0.5` is one over the root of the step.
wrong rise: rise='step w^-0.5' | 'step/w' | 'w^-1.5'
    The second number in the bracket is not step · warmup^-1.5.
    > At step = warmup both numbers are the same, warmup^-0.5: is that so with yours?
without the width: width='1'
    The width of the model makes no difference.
    > The whole is multiplied by dim^-0.5: wider models take smaller steps.
wrong power of the width: width='d^-1' | 'd^0.5'
    The power of the width is not -0.5.
    > `dim ** -0.5` is one over the root of the width.
"""),
    minutes=4,
    text="Write the learning rate of the paper (eq. 3): "
    "$lr = d^{-0.5} \\cdot \\min(step^{-0.5},\\; step \\cdot warmup^{-1.5})$. `dim` is $d$, the width of the model; "
    "`step` counts from 1. The result is one number.",
    hints=(
        "Two factors: one is of the width alone, the other is the smaller of two numbers.",
        "A power with a negative exponent is written `step ** -0.5`.",
        "`min(step**-0.5, step * warmup**-1.5)`, times `dim**-0.5`.",
    ),
    solution="""
def my_schedule(step, dim, warmup):
    return dim**-0.5 * min(step**-0.5, step * warmup**-1.5)
""",
)

# smoothed_loss ----------------------------------------------------------------------------------------------


def smoothed_loss(
    logits: Tensor,
    targets: Tensor,
    smoothing: float,
    real: Tensor,
    *,
    read: str = "log",
    axis: int = -1,
    share: str = "1 - eps",
    spread: str = "all",
    over: str = "real",
    sign: int = -1,
) -> Tensor:
    """-sum_k q'(k) log p(k) with q'(k) = (1 - eps) [k = y] + eps / V: the mean over the real words."""
    eps, V = smoothing, logits.shape[-1]
    readings = {"log": logits.log_softmax, "unstable": lambda axis: logits.softmax(axis).log()}
    readings["overflow"] = lambda axis: (logits.exp() / logits.exp().sum(axis, keepdim=True)).log()
    log_p = (readings | {"p": logits.softmax, "logits": lambda axis: logits})[read](axis)
    picked, summed = log_p.gather(-1, targets[..., None])[..., 0], log_p.sum(dim=-1)
    own = {"1 - eps": 1 - eps, "1": 1.0}[share]
    rests = {"all": eps * summed / V, "none": torch.zeros_like(summed), "others": eps * (summed - picked) / (V - 1)}
    losses = sign * (own * picked + rests[spread])
    if over == "sentences":
        return ((losses * real).sum(dim=1) / real.sum(dim=1)).mean()
    if over in ("zeroed", "sum", "batch"):
        return (losses * real).sum() / {"zeroed": real.numel(), "sum": 1, "batch": len(real)}[over]
    return losses[{"real": real, "all": real | ~real, "padding": ~real}[over]].mean()


def sentences(draw: Draw, *, large: float = 1.0) -> tuple[Tensor, Tensor, float, Tensor]:
    """Scores, targets, a smoothing, and which words are real: the first ones of each row, a different number."""
    B, T, V = draw.sizes(3, 3)
    lengths = draw.integers(1, T, B)
    lengths[0], lengths[1] = 1, T - 1
    smoothing = (1 + draw.integers(0, 8, 1).item()) / 20
    return large * draw(B, T, V), draw.integers(0, V, B, T), smoothing, torch.arange(T) < lengths[:, None]


LARGE = Finding(
    "large scores do harm",
    "With small scores the result is right, with scores of some thousands it is not.",
    "The exponential of 1000 is infinite, and the logarithm of 0 minus infinity: `log_softmax` avoids both.",
)
SMOOTHED_LOSS = Task(
    name="smoothed_loss",
    title="A loss that is a little less sure",
    asks="logits, targets, smoothing, real",
    reference=smoothed_loss,
    cases=(
        Case("smoothed targets, the mean over the real words", sentences, tolerance=1e-5),
        Case("large scores do no harm", lambda draw: sentences(draw, large=1e3), tolerance=1e-5, otherwise=LARGE),
    ),
    mistakes=mistakes(r"""
no smoothing: share='1'; spread='none'
    The whole target lies on the right word.
    > Of the target, `smoothing` goes to all words alike.
smoothing is lost: spread='none'
    The right word has its 1 - ε, and the rest of the target is gone.
    > The missing ε is spread over all V words, the right one too.
only the other words share: spread='others'
    ε is spread over the other V - 1 words.
    > The uniform part goes to all V words, the right one too: ε / V each.
the right word keeps its whole: share='1'
    The target sums to 1 + ε.
    > What is spread must come from somewhere: the right word has 1 - ε (and its ε / V).
padding counts: over='all'
    The mean runs over all places, padding too.
    > Only where `real` is True: `losses[real]`.
padding counts in the denominator: over='zeroed'
    Losses at padding are zero, but their places count.
    > Divide by the number of real words: `losses[real].mean()` does.
only padding counts: over='padding'
    The mean runs over exactly the padding.
    > True means a real word.
sum instead of mean: over='sum' | 'batch'
    The losses are added up, or divided by the number of sentences.
    > Divide by the number of real words.
each sentence counts the same: over='sentences'
    The result is the mean of the sentences' means: words of short sentences weigh more.
    > One mean over all real words of the batch.
softmax without a logarithm: read='p'
    The probabilities themselves are added up.
    > Cross-entropy takes log p.
no softmax: read='logits'
    The scores are used as if they were logarithms of probabilities.
    > First `log_softmax`, over the words.
softmax over the wrong axis: axis=0 | 1
    The probabilities do not sum to one over the words.
    > The words are the last axis: `dim=-1`.
sign forgotten: sign=1
    The loss is negative: more of it would be better.
    > A logarithm of a probability is never positive; the loss is minus that.
large scores do harm: read='unstable' | 'overflow'
    With small scores the result is right, with scores of some thousands it is not.
    > The exponential of 1000 is infinite, and the logarithm of 0 minus infinity: `log_softmax` avoids both.
"""),
    also=(gradients,),
    forbids=(
        *("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss", "kl_div", "KLDivLoss"),
        *("smoothed_targets", "readable_cross_entropy"),
    ),
    minutes=8,
    text="Cross-entropy with smoothed labels: of each target, $1 - \\varepsilon$ lies on the right word and "
    "$\\varepsilon$ is spread over all $V$ words alike. "
    "$\\mathrm{loss} = -(1 - \\varepsilon) \\log p_y - \\frac{\\varepsilon}{V} \\sum_k \\log p_k$. `logits` is "
    "`(B, T, V)`, `targets` `(B, T)`, `smoothing` is $\\varepsilon$, and `real`, `(B, T)`, is True at real words: "
    "return the mean over those. Write it without PyTorch's own losses; `log_softmax` is allowed.",
    hints=(
        "First a loss for every place, shape `(B, T)`; padding comes last.",
        "`log_p = logits.log_softmax(dim=-1)`. The right word's is "
        "`log_p.gather(-1, targets[..., None])[..., 0]`; the sum over all words divided by V is a mean.",
        "`losses[real]` keeps the real words alone; take its mean.",
    ),
    solution="""
def my_smoothed_loss(logits, targets, smoothing, real):
    log_p = logits.log_softmax(dim=-1)
    right = log_p.gather(-1, targets[..., None])[..., 0]
    mixed = (1 - smoothing) * right + smoothing * log_p.mean(dim=-1)
    return -mixed[real].mean()
""",
)

# beam_step --------------------------------------------------------------------------------------------------


def beam_step(
    totals: Tensor,
    lengths: Tensor,
    ended: Tensor,
    log_probs: Tensor,
    penalty: float,
    *,
    summed: str = "both",
    power: str = "divide",
    counted: int = 1,
    over: str = "waits",
    among: str = "all",
    best: bool = True,
    cut: str = "V",
    columns: tuple[int, int] = (0, 1),
) -> Tensor:
    """The beam and the word of the N best continuations, by total / length^penalty."""
    N, V = log_probs.shape
    n = (lengths + counted)[:, None].expand(N, V).clone().to(log_probs.dtype)
    sums = log_probs if summed == "last" else totals[:, None] + log_probs
    if over != "goes on":
        sums = sums.clone()
        sums[ended] = totals[ended, None] if over == "everywhere" else -math.inf
        if over in ("waits", "grows"):
            sums[ended, 0] = totals[ended]
        if over != "grows":
            n[ended] = lengths[ended, None].to(n.dtype)
    powers = {"divide": n**penalty, "none": n**0, "multiply": n**-penalty, "wu": ((5 + n) / 6) ** penalty}
    scores = sums / (powers | {"times": n * penalty, "mean": n})[power]
    if among == "each":
        found, words = scores.max(dim=1)
        beams = found.argsort(descending=best)
        pairs = beams, words[beams]
    else:
        places = scores.flatten().topk(N, largest=best).indices
        size = {"V": V, "N": N}[cut]
        pairs = places // size, places % size
    return torch.stack([pairs[column] for column in columns], dim=1)


def beams(draw: Draw, *, over: bool = True) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
    """Beams of the same length, of which some have ended before, and what each may write next."""
    N, V = draw.sizes(2, 4)
    ended = draw(N) > 0
    ended[0], ended[-1] = False, True
    ended &= over
    written = draw.integers(4, 10, 1).item()
    lengths = torch.where(ended, draw.integers(1, written, N), written)
    log_probs = (2 * draw(N, V)).log_softmax(dim=-1)
    totals = -0.5 * (lengths + 1) ** 0.8 * (1 + 0.2 * draw(N)).abs() - 0.2 * draw(N).abs()
    return totals, lengths, ended, log_probs, 0.5 + draw.integers(0, 9, 1).item() / 10


def first(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
    """The first step: all beams are alike, so that only one of them counts, and it has words enough for all."""
    _, lengths, ended, log_probs, penalty = beams(draw, over=False)
    N = min(log_probs.shape)  # of fewer words than beams some would be picked at -inf, in any order
    totals = torch.full((N,), -math.inf)
    totals[0] = 0.0
    return totals, 0 * lengths[:N], ended[:N], log_probs[:1].repeat(N, 1), penalty


BEAM_STEP = Task(
    name="beam_step",
    title="One step of beam search",
    asks="totals, lengths, ended, log_probs, penalty",
    reference=beam_step,
    cases=(
        Case("the best of all continuations, whatever beam they come from", lambda draw: beams(draw, over=False)),
        Case("a beam that has ended waits, and competes by its own length", beams),
        Case("at the first step only one beam counts", first),
    ),
    mistakes=mistakes(r"""
what was written before is forgotten: summed='last'
    The continuations are ranked by their last word alone.
    > A beam's probability is a product over all its words; their logarithms are added.
no length penalty: power='none'
    The sums are compared as they are: long sequences have more terms, all negative, so short ones win.
    > Divide by length^penalty.
multiplied by the length: power='multiply'
    The sums are multiplied by length^penalty.
    > Divide: with a penalty of 1 the score is the mean per word.
another length penalty: power='wu' | 'times' | 'mean'
    The sums are divided by something else than length^penalty.
    > `lengths ** penalty`: the length is raised to the power.
the new word is not counted: counted=0
    The length is that before this step.
    > The sum has one more term now: the length is one more, too.
ended beams go on: over='goes on'
    A beam that has ended is continued like the others.
    > After the end there is nothing to write: such a beam keeps its total.
ended beams are lost: over='lost'
    No beam that has ended survives.
    > It stays in the race, with its total and its length: through word 0 alone.
ended beams multiply: over='everywhere'
    A beam that has ended comes out once for each word.
    > Only word 0 is possible for it: all others get minus infinity.
ended beams grow: over='grows'
    The length of a beam that has ended goes up.
    > Padding is no word: its length stays.
one continuation of each beam: among='each'
    Each beam keeps its own best continuation.
    > All N · V continuations compete: some beams have several among the best, others none.
the worst instead of the best: best=False
    The worst continuations survive.
    > `topk` takes the largest unless told otherwise.
places cut by the wrong size: cut='N'
    Beam and word are not those of the best places.
    > In a flattened (N, V) tensor, place i lies in row i // V and in column i % V.
beam and word swapped: columns=(1, 0)
    The word stands first, then the beam.
    > Column 0 is the beam, column 1 the word.
"""),
    minutes=10,
    text="$N$ beams, each with the `totals` of its log-probabilities, `(N,)`, its `lengths` in words, `(N,)`, whether "
    "it has `ended`, `(N,)`, and the `log_probs` of each next word, `(N, V)`. Of all continuations return the $N$ "
    "best, best first: a row (beam, word) for each, shape `(N, 2)`. The score of a continuation is its total divided "
    "by $\\mathrm{length}^{\\mathrm{penalty}}$, the new word counted in both. A beam that has ended goes on with word "
    "0 alone, padding, which costs nothing and adds no length.",
    hints=(
        "Make a table of all continuations' totals first, shape `(N, V)`: which two tensors are added?",
        "For beams that have ended set their rows to minus infinity, then their first column to their total. "
        "Their length stays: `lengths + 1` for the others alone.",
        "`scores.flatten().topk(N).indices` are places in the flattened table: beam `i // V`, word `i % V`.",
    ),
    solution="""
def my_beam_step(totals, lengths, ended, log_probs, penalty):
    N, V = log_probs.shape
    sums = totals[:, None] + log_probs
    sums[ended] = float("-inf")
    sums[ended, 0] = totals[ended]
    new_lengths = lengths + ~ended
    scores = sums / new_lengths[:, None] ** penalty
    best = scores.flatten().topk(N).indices
    return torch.stack([best // V, best % V], dim=1)
""",
)


@torch.inference_mode()
def search(
    step: Callable[..., Tensor],
    model: LanguageModel,
    *,
    start_id: int,
    end_id: int,
    num_beams: int,
    max_new_tokens: int,
    penalty: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Beam search for one sentence with a `beam_step`: the words of each beam, (N, T), and its score, best first.

    Unlike the library's, it keeps a beam that has ended in the beam. Padding, behind the end, is 0.
    """
    tokens = torch.full((num_beams, 1), start_id)
    lengths, ended = torch.zeros(num_beams, dtype=torch.long), torch.zeros(num_beams, dtype=torch.bool)
    totals = torch.full((num_beams,), -math.inf)
    totals[0] = 0.0  # at first all beams are alike
    cache = model.new_cache(1 + max_new_tokens)
    log_probs = model.next_logits(tokens[:1], cache).log_softmax(dim=-1).expand(num_beams, -1)
    cache.select(torch.zeros(num_beams, dtype=torch.long))
    for _ in range(max_new_tokens):
        beam, word = step(totals, lengths, ended, log_probs, penalty).unbind(dim=1)
        totals = totals[beam] + log_probs[beam, word].masked_fill(ended[beam], 0.0)
        lengths, tokens = lengths[beam] + ~ended[beam], torch.cat([tokens[beam], word[:, None]], dim=1)
        ended = ended[beam] | (word == end_id)
        if ended.all():
            break
        cache.select(beam)
        log_probs = model.next_logits(word[:, None], cache).log_softmax(dim=-1)
    return tokens[:, 1:], totals / lengths**penalty


# bpe_merge --------------------------------------------------------------------------------------------------


def bpe_merge(
    words: Sequence[Sequence[str]],
    counts: Sequence[int],
    *,
    weighed: bool = True,
    repeats: bool = True,
    across: bool = False,
    tie: str = "first",
    joins: str = "all",
) -> list[list[str]]:
    """The words with the commonest pair of neighbours joined; of several the one that is met first."""
    pairs = Counter()
    for word, count in zip(words, counts, strict=True):
        here = list(pairwise(word))
        for pair in here if repeats else dict.fromkeys(here):
            pairs[pair] += count if weighed else 1
    if across:
        for (left, right), count in zip(pairwise(words), counts, strict=False):
            pairs[left[-1], right[0]] += count
    order = list(pairs) if tie == "first" else list(pairs)[::-1]
    best = max(order, key=pairs.__getitem__)
    found = []
    for word in words:
        backwards = joins == "from the right"
        made, left = [], list(word)[::-1] if backwards else list(word)
        wanted, done = best[::-1] if backwards else best, False
        while left:
            here = tuple(left[:2])
            fits = here == wanted and not (done and joins == "first")
            piece = "".join(here[::-1] if backwards else here) if fits else left[0]
            made, done = [*made, piece], done or fits
            left = left[1 if fits and joins == "overlapping" and left[1:2] == left[2:3] else 1 + fits :]
        found.append(made[::-1] if backwards else made)
    return found


def pieces(draw: Draw, *, letters: str) -> tuple[list[list[str]], list[int]]:
    """Words of these letters, and how often each occurs; the commonest pair stands alone at the top."""
    words = [[letters[i] for i in draw.integers(0, len(letters), n)] for n in draw.sizes(5, 3, 8)]
    return words, (1 + draw.integers(0, 9, 5)).tolist()


BPE_MERGE = Task(
    name="bpe_merge",
    title="One merge of byte-pair encoding",
    asks="words, counts",
    reference=bpe_merge,
    cases=(
        Case("the commonest pair is joined", lambda draw: pieces(draw, letters="abcd")),
        Case("runs of one letter are joined from the left", lambda draw: pieces(draw, letters="ab")),
        Case("of several commonest pairs the one met first", lambda draw: (pieces(draw, letters="abcde")[0], [1] * 5)),
    ),
    mistakes=mistakes(r"""
counts of words ignored: weighed=False
    Each word was counted once, however often it occurs.
    > A pair in a word that occurs 7 times has occurred 7 times: add the word's count.
a pair counted once in a word: repeats=False
    A pair that stands twice in a word was counted once there.
    > Count every place: a pair that occurs twice in a word adds its count twice.
pairs across words: across=True
    The last piece of a word and the first of the next were taken for a pair.
    > Pairs lie inside a word.
last instead of first: tie='last'
    Of several commonest pairs the last was taken.
    > Take the one that is met first, reading the words in their order: `max` does so where `pairs` is a dictionary.
only the first pair of a word joined: joins='first'
    In each word only one pair was joined.
    > Go on to the end of the word.
joined from the right: joins='from the right'
    In a run such as a a a the last two pieces were joined.
    > Read from the left.
pieces used twice: joins='overlapping'
    In a run such as a a a the middle piece was joined to both sides.
    > After a join go on two pieces further.
"""),
    minutes=8,
    stretch=True,
    text="One step of byte-pair encoding. `words` is a list of words, each a list of pieces, as `['l', 'o', 'w']`; "
    "`counts` says how often each occurs in the text. Count all pairs of neighbours inside the words, take the "
    "commonest (of several the one that is met first), and return the words with that pair joined wherever it "
    "stands, read from the left.",
    hints=(
        "Two loops, one after the other: the first counts pairs in a dictionary, the second writes the words anew.",
        "`for pair in zip(word, word[1:]):` are a word's pairs; `max(pairs, key=pairs.get)` is the commonest.",
        "To write a word anew, walk through it with `i`: where `(word[i], word[i + 1])` is the pair, append both "
        "joined and go on at `i + 2`; else append `word[i]` and go on at `i + 1`.",
    ),
    solution="""
def my_bpe_merge(words, counts):
    pairs = {}
    for word, count in zip(words, counts):
        for pair in zip(word, word[1:]):
            pairs[pair] = pairs.get(pair, 0) + count
    best = max(pairs, key=pairs.get)
    merged = []
    for word in words:
        new, i = [], 0
        while i < len(word):
            if tuple(word[i : i + 2]) == best:
                new.append(word[i] + word[i + 1])
                i += 2
            else:
                new.append(word[i])
                i += 1
        merged.append(new)
    return merged
""",
)

TASKS = {task.name: task for task in (BLOCK, SCHEDULE, SMOOTHED_LOSS, BEAM_STEP, BPE_MERGE)}
