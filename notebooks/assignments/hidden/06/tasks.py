"""Assignment 06, The Transformer: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_06.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, Finding, Given, mistakes

# layer_norm -------------------------------------------------------------------------------------------------


def layer_norm(
    x: Tensor,
    gain: Tensor,
    bias: Tensor,
    *,
    axis: int | tuple = -1,
    centred: bool = True,
    unbiased: bool = False,
    divisor: str = "inside",
    gained: bool = True,
    shifted: str = "behind",
) -> Tensor:
    """gain (x - mean) / sqrt(var + 1e-5) + bias, over the last axis."""
    mean, var = x.mean(axis, keepdim=True), x.var(axis, unbiased=unbiased, keepdim=True)
    roots = {"inside": (var + 1e-5).sqrt(), "outside": var.sqrt() + 1e-5, "none": var.sqrt(), "variance": var + 1e-5}
    y = (x - mean if centred else x) / (roots | {"small": (var + 1e-12).sqrt()})[divisor]
    gain, bias = gain if gained else torch.ones_like(gain), 0 * bias if shifted == "never" else bias
    return (y + bias) * gain if shifted == "before" else y * gain + bias


def rows(draw: Draw, *, spread: float = 1.0, mean: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
    """Words with their gain and bias; with hardly any spread, one word has none at all."""
    B, T, D = draw.sizes(3, 4, 9)
    x = spread * draw(B, T, D) + mean
    if spread < 1:
        x[-1, -1] = x[-1, -1, :1].clone()
    return x, 1 + draw(D), draw(D)


FAR = Finding(
    "a large mean does harm",
    "Where the numbers lie far from 0 and close together, the result is wrong.",
    "mean(x²) - mean(x)² is then the difference of two huge numbers. Subtract the mean first, then square.",
)
LAYER_NORM = replace(
    SHOWN["layer_norm"],
    reference=layer_norm,
    cases=(
        Case("each word is normalised by itself", rows, points=5, tolerance=1e-3),
        Case("numbers with hardly any spread stay small", lambda draw: rows(draw, spread=1e-3), 2, ("divisor",)),
        Case(
            "a large mean does no harm", lambda draw: rows(draw, mean=1e3), 1, ("none",), tolerance=3e-3, otherwise=FAR
        ),
    ),
    mistakes=mistakes(r"""
mean and variance over the wrong axes: axis=0 | 1 | (0, 1) | (1, 2) | (0, 1, 2)
    Mean and variance run over words or sentences.
    > Each word is normalised by itself, over its own numbers: `dim=-1`.
mean not subtracted: centred=False
    The numbers are divided, and not shifted.
    > Subtract the mean of the word first.
unbiased variance: unbiased=True
    The sum of squares is divided by D - 1.
    > LayerNorm divides by D: `unbiased=False`, or the mean of the squares.
no root: divisor='variance'
    The numbers are divided by the variance.
    > Divide by its root.
epsilon outside of the root: divisor='outside'
    ε is added to the root.
    > It stands under the root, beside the variance.
no epsilon, or another: divisor='none' | 'small'
    Words with hardly any spread are blown up, or come out as NaN.
    > Add 1e-5 to the variance.
gain and bias in the wrong order: shifted='before'
    The bias is added before the gain is multiplied.
    > First times gain, then plus bias.
gain missing: gained=False
    The gain makes no difference.
    > Multiply by `gain`, number by number.
bias missing: shifted='never'
    The bias makes no difference.
    > Add `bias`.
"""),
    wrong={
        "a large mean does harm": ("((x - mean) ** 2).mean(-1, keepdim=True)", "(x ** 2).mean(-1, True) - mean**2"),
        "a ready-made function": (
            "gain * (x - mean) / torch.sqrt(variance + 1e-5) + bias",
            "F.layer_norm(x, gain.shape, gain, bias)",
        ),
    },
)

# blocks -----------------------------------------------------------------------------------------------------


class Formula:
    """The parts of a block as functions of its parameters."""

    def __init__(self, build: tuple[int, ...], parameters: Mapping[str, Tensor]):
        self.heads, self.given = build[1], parameters

    def linear(self, name: str, x: Tensor) -> Tensor:
        return F.linear(x, self.given[f"{name}.weight"], self.given[f"{name}.bias"])

    def norm(self, number: int, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self.given[f"norm{number}.weight"], self.given[f"norm{number}.bias"])

    def keys_values(self, name: str, context: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.split(self.linear(f"{name}.{letter}_proj", context)) for letter in "kv")

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def attend(self, name: str, x: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        q = self.split(self.linear(f"{name}.q_proj", x))
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.linear(f"{name}.o_proj", heads.transpose(1, 2).flatten(2))

    def mlp(self, x: Tensor, activation: str) -> Tensor:
        inner = self.linear("up_proj", x)
        outer = self.linear("down_proj", F.relu(inner) if activation == "relu" else inner)
        return F.relu(outer) if activation == "last" else outer

    def add(self, x: Tensor, number: int, sublayer: Callable[[Tensor], Tensor], way: str, base: Tensor | None = None):
        norm, base = (lambda h: self.norm(number, h)), x if base is None else base
        ways = {
            "post": lambda: norm(base + sublayer(x)),
            "pre": lambda: base + sublayer(norm(x)),
            "norm of the output": lambda: base + norm(sublayer(x)),
            "no residual": lambda: norm(sublayer(x)),
            "no norm": lambda: base + sublayer(x),
        }
        return ways[way]()


WAYS = mistakes(r"""
pre-norm: way='pre'
    The norm stands before each sublayer, as in the lesson's block.
    > Here it stands behind the addition: norm(x + sublayer(x)).
norm of the sublayer's output: way='norm of the output'
    Only what the sublayer returns is normalised, and then added.
    > First add, then normalise the sum.
no residual path: way='no residual'
    Each sublayer's output replaces x.
    > The sublayer's output is added to x before the norm.
no norm: way='no norm'
    The sums are not normalised.
    > Behind each addition stands a norm.
""")
MLP = mistakes(r"""
no ReLU in the MLP: activation='none'
    Between the two maps of the MLP there is no ReLU.
    > Two linear maps in a row are one linear map: ReLU stands between them.
ReLU behind the MLP: activation='last'
    ReLU stands behind the second map.
    > It stands between `up_proj` and `down_proj`.
""")


def encode(
    build: tuple[int, ...],
    parameters: Mapping[str, Tensor],
    x: Tensor,
    mask: Tensor | None = None,
    *,
    way: str = "post",
    activation: str = "relu",
    norms: tuple[int, int] = (1, 2),
    second: str = "sum",
    masking: str = "right",
) -> Tensor:
    """y = norm1(x + attention(x)), then norm2(y + mlp(y))."""
    block = Formula(build, parameters)
    mask = None if masking == "ignored" or mask is None else ~mask if masking == "inverted" else mask
    if "first" in masking and mask is not None and mask.dim() == 4:
        mask = mask[:1] if masking == "first sentence" else mask[:, :1]

    def attend(h: Tensor) -> Tensor:
        return block.attend("attn", h, *block.keys_values("attn", h), mask)

    def think(h: Tensor) -> Tensor:
        return block.mlp(h, activation)

    if second == "mlp first":
        return block.add(block.add(x, norms[0], think, way), norms[1], attend, way)
    y = block.add(x, norms[0], attend, way)
    if second == "reads x":
        return block.add(x, norms[1], think, way, base=y)
    return block.add(y, norms[1], think, way, base=x if second == "added to x" else None)


def words(draw: Draw, *, masked: bool = False, own: bool = False) -> Given:
    """Words, whose width is a multiple of the number of heads, and a mask if so wanted; or for each head its own."""
    B, T, d, H, more = draw.sizes(5, high=6)
    mask = (draw.mask(B, H, T, T),) if own else (draw.mask(T, T),) if masked else ()
    return Given((draw(B, T, d * H), *mask), build=(d * H, H, d * H + more))


ENCODER = replace(
    SHOWN["EncoderBlock"],
    reference=encode,
    cases=(
        Case("attention, then the MLP, each with its sum and its norm", words, points=13),
        Case("hidden words are not seen", lambda draw: words(draw, masked=True), 4, ("masking",)),
        Case("each sentence, each head has a mask of its own", lambda draw: words(draw, own=True), 2, ("masking",)),
    ),
    mistakes=WAYS
    + MLP
    + mistakes(r"""
norms mixed up: norms=(2, 1) | (1, 1) | (2, 2)
    The norms are not in their places.
    > `norm1` belongs to attention, `norm2` to the MLP: each has weights of its own.
MLP first: second='mlp first'
    The MLP comes before attention.
    > First the words look at each other, then each thinks alone.
MLP reads what attention has read: second='reads x'
    The MLP reads the block's input, not what attention has made of it.
    > One after the other: the MLP reads the outcome of the first norm.
MLP added to the block's input: second='added to x'
    What attention has added is lost again.
    > The second sum is that of the MLP and of what the MLP has read.
mask ignored: masking='ignored'
    The output is the same with and without the mask.
    > Hand the mask on to attention.
mask inverted: masking='inverted'
    Exactly the hidden words are seen.
    > True means: may look. The given attention takes it as it is.
one mask for all: masking='first sentence' | 'first head'
    All sentences, or all heads, have the mask of the first.
    > A mask of shape (B, H, T, T) has one for each: the given attention takes it as it is.
"""),
    wrong={
        "parameters of other names or shapes": ("nn.LayerNorm(dim)", "nn.LayerNorm(dim, bias=False)"),
        "stopped with an error": ("mask=mask", "mask=mask if mask is None else mask[None, None]"),
    },
)


def decode(
    build: tuple[int, ...],
    parameters: Mapping[str, Tensor],
    x: Tensor,
    context: Tensor,
    cache: tuple[Tensor, Tensor] | None = None,
    *,
    way: str = "post",
    activation: str = "relu",
    norms: tuple[int, ...] = (1, 2, 3),
    seen: str = "past",
    kept: str = "all",
    cross: str = "context",
    order: str = "right",
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Causal self-attention over cache and x, attention to the context, the MLP: the output, and the new cache."""
    block = Formula(build, parameters)
    own = block.keys_values("attn", x)
    keys_values = own
    if cache is not None and kept != "forgotten":
        parts = (own, cache) if kept == "behind" else (cache, own)
        keys_values = tuple(torch.cat(pair, dim=2) for pair in zip(*parts, strict=True))
    T_q, T_k = x.shape[1], keys_values[0].shape[2]
    shift = {"past": T_k - T_q, "top left": 0, "one ahead": T_k - T_q + 1, "all": T_k}[seen]
    mask = torch.ones(T_q, T_k, dtype=torch.bool).tril(shift)

    def look(h: Tensor) -> Tensor:
        name = "attn" if cross == "same maps" else "cross_attn"
        k, v = block.keys_values(name, h if cross == "own words" else context)
        causal = torch.ones(T_q, k.shape[2], dtype=torch.bool).tril() if cross == "causal" else None
        return block.attend(name, h, k, v, causal)

    sublayers = {
        "self": lambda h: block.attend("attn", h, *keys_values, mask),
        "cross": look,
        "mlp": lambda h: block.mlp(h, activation),
    }
    names = ("cross", "self", "mlp") if order == "cross first" else ("self", "cross", "mlp")
    for number, name in zip(norms, names, strict=True):
        if name != "cross" or cross != "left out":
            x = block.add(x, number, sublayers[name], way)
    return x, own if kept == "last" else keys_values


def steps(draw: Draw, *, lengths: str) -> Given:
    """Words, a longer context, and the lengths of the pieces in which the words are read."""
    B, d, H, more, T_c = draw.sizes(5, high=6)
    pieces = {"all": [6], "one by one": [1] * 5, "pieces": [1 + draw.integers(0, 3, 1).item(), 3, 2]}[lengths]
    return Given((draw(B, sum(pieces), d * H), draw(B, T_c, d * H), pieces), build=(d * H, H, d * H + more))


KEEPS_WORDS = """return y, (keys, values)


class DecoderBlock(DecoderBlock):
    def forward(self, x, context, cache=None):
        words = x if cache is None else torch.cat([cache[0], x], dim=1)
        return super().forward(words, context)[0][:, -x.shape[1] :], (words, words)
"""
WITH_CACHE = ("seen", "kept")
DECODES_OTHERWISE = Finding(
    "result differs from the formula",
    "The numbers differ from what the formula gives.",
    "Compare with the formula term by term, beginning with a single word and a context of a single word.",
)
CACHED_OTHERWISE = Finding(
    "cached steps differ from the full pass",
    "With the cache, words read later do not come out as they do when all are read at once.",
    "The cache holds keys and values of all words so far, the oldest first; the new words see them, and each other "
    "as far as they stand before.",
)
DECODER = replace(
    SHOWN["DecoderBlock"],
    reference=decode,
    cases=(
        Case("all words at once", lambda draw: steps(draw, lengths="all"), 13, otherwise=DECODES_OTHERWISE),
        Case(
            *("word by word the same comes out", lambda draw: steps(draw, lengths="one by one"), 6, WITH_CACHE),
            otherwise=CACHED_OTHERWISE,
        ),
        Case(
            *("in pieces of several words, too", lambda draw: steps(draw, lengths="pieces"), 6, WITH_CACHE),
            otherwise=CACHED_OTHERWISE,
        ),
    ),
    mistakes=WAYS
    + MLP
    + mistakes(r"""
no causal mask: seen='all'
    Words see those behind them.
    > In training all words are there at once, and the later ones are the answer: hide them.
mask one place too wide: seen='one ahead'
    Each word sees the next one, too.
    > A word sees itself and those before it: `tril` of the square, with no shift to the right.
mask beginning at the first new word: seen='top left'
    With a cache, new words see too little of it.
    > The last new word stands at the last key: `tril(T_k - T_q)`. (`is_causal=True` lines up the first ones.)
cache not used: kept='forgotten'
    New words see nothing of what was read before.
    > Put the keys and values of the cache in front of the new ones.
only the last piece kept: kept='last'
    The cache holds the keys and values of the last piece alone.
    > Return all of them: the old ones and the new ones.
cache behind the new words: kept='behind'
    The old keys stand behind the new ones, where the mask takes them for later words.
    > The oldest first: `torch.cat([old, new], dim=2)`.
no attention to the context: cross='left out'
    The context makes no difference.
    > Between self-attention and the MLP stands `cross_attn`: queries from the words, keys and values from the context.
cross-attention looks at the words: cross='own words'
    Keys and values of `cross_attn` come from the decoder's words.
    > They come from the context.
causal mask in the cross-attention: cross='causal'
    A word sees only the first words of the context.
    > All of the context may be seen: it has been written already.
maps of the self-attention used twice: cross='same maps'
    The context is read with the maps of `attn`.
    > `cross_attn` has maps of its own.
cross-attention first: order='cross first'
    The context is read before the words have looked at each other.
    > Self-attention, cross-attention, MLP.
norms mixed up: norms=(1, 1, 1) | (2, 1, 3) | (1, 3, 2) | (3, 2, 1)
    The norms are not in their places.
    > `norm1`, `norm2` and `norm3` stand behind self-attention, cross-attention and MLP.
"""),
    wrong={
        "parameters of other names or shapes": ("nn.LayerNorm(dim)", "nn.LayerNorm(dim, bias=False)"),
        "mask beginning at the first new word": (".tril(T_k - T_q)", ".tril()"),
        "wrong kind of result": ("return y, (keys, values)", "return y"),
        "changes its input": ("T_q, T_k =", "_ = keys if cache is None else cache[0].zero_(); T_q, T_k ="),
        "another cache than keys and values": ("return y, (keys, values)\n", KEEPS_WORDS),
    },
)

# beam_search ------------------------------------------------------------------------------------------------


def beam_search(
    log_probs: Tensor,
    start: int,
    end: int,
    num_beams: int,
    penalty: float,
    longest: int,
    *,
    beams: str = "all",
    power: str = "divide",
    counted: int = 0,
    stop: str = "none left",
    cut_off: str = "count",
    over: str = "set aside",
    turned: bool = False,
    result: str = "words",
    jitter: Tensor | None = None,
) -> tuple[list[int], float]:
    """The words of the largest sum of logarithms / length^penalty that a beam finds, the end included; that score."""
    jitter = torch.zeros(longest, 1, 1) if jitter is None else jitter  # of each step
    tables = ((log_probs.mT if turned else log_probs) + jitter).tolist()
    running, finished, width = [([start], 0.0)], [], 1 if beams == "one" else num_beams
    for table in tables:
        found = [
            ([*words, word], total + log_p) for words, total in running for word, log_p in enumerate(table[words[-1]])
        ]
        found = sorted(found, key=lambda pair: pair[1], reverse=True)[:width]
        ended = [pair for pair in found if pair[0][-1] == end]
        finished += ended
        width -= len(ended) if beams == "narrowed" else 0
        running = found if over == "goes on" else [pair for pair in found if pair[0][-1] != end]
        if stop == "first" and ended:
            break
    finished += running if cut_off == "count" or not finished else []

    def score(pair: tuple[list[int], float]) -> float:
        n = len(pair[0]) - 1 + counted
        return pair[1] / {"none": 1, "multiply": n**-penalty, "mean": n}.get(power, n**penalty)

    best = max(finished, key=score)
    words, told = best[0], best[1] if power == "told as a sum" else score(best)
    return {"start": words, "no end": [w for w in words[1:] if w != end]}.get(result, words[1:]), told


def chances(draw: Draw, *, penalty: bool = True, ends: float = 0.0) -> tuple[Tensor, int, int, int, float, int]:
    """How likely each word is behind each other one, and what is asked of the search; its result has no equal.

    The same transitions in another order have the same probability: where such texts tie, rounding decides.
    """
    (V,) = draw.sizes(1, 6, 9)
    while True:
        given = _chances(draw, V, penalty=penalty, ends=ends)
        words = beam_search(*given)[0]
        longest = given[-1]
        if all(beam_search(*given, jitter=1e-5 * draw(longest, V, V))[0] == words for _ in range(10)):
            return given


def _chances(draw: Draw, V: int, *, penalty: bool, ends: float) -> tuple[Tensor, int, int, int, float, int]:
    start, end = draw(V).argsort()[:2].tolist()
    scores = 1.5 * draw(V, V)
    scores[:, end] += ends
    scores[start, end] -= 4
    power = (2 + draw.integers(0, 8, 1).item()) / 5 if penalty else 0.0
    num_beams, longest = 3 + draw.integers(0, 2, 1).item(), 5 + draw.integers(0, 4, 1).item()
    return scores.log_softmax(dim=-1), start, end, num_beams, power, longest


BEAMS = replace(
    SHOWN["beam_search"],
    reference=beam_search,
    cases=(
        Case("without a penalty the likeliest of what the beam finds", lambda draw: chances(draw, penalty=False), 6),
        Case("with a penalty the best score by length", chances, 8),
        Case("what is not finished in the end counts, too", lambda draw: chances(draw, ends=-1.5), 3),
        Case("much is finished early", lambda draw: chances(draw, ends=1.5), 3),
    ),
    mistakes=mistakes(r"""
greedy: beams='one'
    One sequence is followed, however many beams are asked for.
    > Keep the `num_beams` best of all continuations of all beams, not the best one of each.
fewer sequences after each end: beams='narrowed'
    With each sequence that has finished, one less is kept from then on.
    > In every step the `num_beams` best continuations are kept, of all sequences that are still running.
no length penalty: power='none' | 'told as a sum'
    Sums are compared, or returned, as they are.
    > Divide each sum by length^penalty before the best is chosen, and return that score.
multiplied by the length: power='multiply'
    The sums are multiplied by length^penalty.
    > Divide.
mean per word, whatever the penalty: power='mean'
    The sums are divided by the length itself.
    > The length is raised to the penalty first.
start counted as a word: counted=1
    The length counts the start.
    > Only what has been written counts, the end included.
stopped at the first end: stop='first'
    The search is over as soon as one sequence has ended.
    > The others may still win: go on while any is running, up to `longest` words.
unfinished sequences lost: cut_off='lost'
    What is still running after `longest` words is left out.
    > It counts as finished then, and competes with the others.
goes on behind the end: over='goes on'
    Sequences that have ended are continued.
    > Set them aside: behind the end nothing is written.
table read the wrong way: turned=True
    Rows and columns of the table are exchanged.
    > `log_probs[a, b]` is the logarithm of the probability that b follows a.
start returned, too: result='start'
    The start stands at the front of the result.
    > Return what has been written behind it.
end left out: result='no end'
    The end is missing from the result.
    > It is a word like the others, and is returned.
"""),
    wrong={
        "greedy": ("[:num_beams]", "[:1]"),
        "table read the wrong way": ("log_probs.tolist()", "log_probs.T.tolist()"),
        "wrong kind of result": ("return words, score", "return words"),
    },
)

BY_HEART = """model.table = nn.Parameter(F.one_hot(targets, 10).float())
    known = lambda s: (s[:, None] == sources).all(2).float().argmax(1)
    model.forward = lambda s, w: model.table[known(s)][:, : w.shape[1]]
    return model
"""
TRAIN = replace(
    SHOWN["train"],
    wrong={
        "not learned": ("range(150)", "range(1)"),
        "learned by heart": ("return model\n", BY_HEART),
        "looks ahead": ("mask=mask", "mask=None"),
        "says again what it has just read": ("written[chosen, :-1]", "written[chosen, 1:]"),
        "knows the symbols, not their places": ("+ self.places(place)", "+ 0 * self.places(place)"),
        "only sequences of one length": (".flip(0)", ""),
        "rule not learned from the data": (
            "place = torch.arange(sources.shape[1])",
            "return self.head(self.norm1(self.symbols(sources.flip(1)[:, : written.shape[1]])))\n"
            "        place = torch.arange(sources.shape[1])",
        ),
        "not learned by its parameters": (
            "return model\n",
            "model.forward = lambda s, w: F.one_hot(s.flip(1)[:, : w.shape[1]], 10).float()\n    return model\n",
        ),
        "stopped with an error": ("return model\n", "return model(sources)\n"),
    },
)

ASSIGNMENT = Assignment(
    "06",
    notebook="transformer",
    title="The Transformer",
    tasks=(LAYER_NORM, ENCODER, DECODER, BEAMS, TRAIN),
    seconds={"train": 60},  # for both trainings and all questions
)
