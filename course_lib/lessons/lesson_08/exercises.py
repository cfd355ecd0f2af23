"""Lesson 08, GPT: the tables of its exercises; each formula has a knob for every mistake that learners make."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_lib.layers.transformer import FeedForward, MultiHeadAttention
from course_lib.tasks import Case, Check, Draw, Finding, Task, gradients, mistakes
from course_lib.tasks.attention import MASK_MISTAKES, SCALE_MISTAKES, WRONG_AXIS, attention
from course_lib.tasks.core import Probe

# shifted_loss -----------------------------------------------------------------------------------------------


def shifted_loss(
    logits: Tensor,
    tokens: Tensor,
    *,
    shift: str = "next",
    axis: int = -1,
    laid: str = "right",
    log: str = "of softmax",
    total: str = "mean",
    sign: int = -1,
    unit: str = "nats",
) -> Tensor:
    """-log p(token t+1 | tokens up to t), the mean over all places but the last."""
    logits, targets = {
        "next": (logits[:, :-1], tokens[:, 1:]),
        "none": (logits, tokens),
        "back": (logits[:, 1:], tokens[:, :-1]),
        "two": (logits[:, :-2], tokens[:, 2:]),
        "round": (logits, tokens.roll(-1, dims=1)),
        "flattened": (logits.flatten(0, 1)[None, :-1], tokens.flatten()[None, 1:]),
    }[shift]
    if laid == "reshaped":
        logits = logits.reshape(len(logits), logits.shape[2], logits.shape[1]).mT
    shares = {
        "of softmax": lambda: logits.log_softmax(axis),
        "twice": lambda: logits.softmax(axis).log_softmax(axis),
        "missing": lambda: logits.softmax(axis),
        "raw": lambda: logits,
        "in two steps": lambda: logits.softmax(axis).log(),
        "by hand": lambda: (logits.exp() / logits.exp().sum(axis, keepdim=True)).log(),
    }[log]()
    losses = sign * shares.gather(2, targets[:, :, None]).squeeze(2) / (math.log(2) if unit == "bits" else 1)
    return losses.sum() / {"mean": losses.numel(), "sum": 1, "rows": len(losses), "all T": tokens.numel()}[total]


def logits_and_tokens(draw: Draw, *, size: float = 2.0) -> tuple[Tensor, Tensor]:
    """Logits of drawn sizes, and tokens among so many."""
    B, T, V = draw.sizes(3, 3, 9)
    return size * draw(B, T, V), draw.integers(0, V, B, T)


SHIFTED_LOSS = Task(
    name="shifted_loss",
    title="The loss of the next token",
    asks="logits, tokens",
    reference=shifted_loss,
    cases=(
        Case("each token is scored by the logits one place before it", logits_and_tokens),
        Case("large logits do no harm", lambda draw: logits_and_tokens(draw, size=300.0)),
    ),
    mistakes=mistakes(r"""
not shifted: shift='none'
    Each token is scored by the logits of its own place, where the model has already read it.
    > The logits at place t are a guess at token t+1: leave out the first token and the last logits.
shifted the wrong way: shift='back'
    The logits are asked for the token before the one that they have read.
    > The guess stands before what is guessed: `logits[:, :-1]` goes with `tokens[:, 1:]`.
shifted by two: shift='two'
    Each guess is compared with the token after the next.
    > Shift once. If the logits are cut and the tokens, too, each loses one place.
the last place is scored with the first token: shift='round'
    The last logits are compared with the first token of the row.
    > `roll` goes round in a circle. Nothing is known of the token behind the last: leave that place out.
flattened before the shift: shift='flattened'
    The rows were joined before the shift: a row's last logits are compared with the next row's first token.
    > Shift first, `logits[:, :-1]` and `tokens[:, 1:]`, then flatten.
softmax over the wrong axis: axis=1 | 0
    The probabilities do not sum to one over the vocabulary.
    > The vocabulary is the last axis of the logits.
classes reshaped to the front: laid='reshaped'
    The numbers of different places were mixed before the loss.
    > `reshape` keeps the order in memory. Flatten places, `(B (T-1), V)` and `(B (T-1))`, or use `transpose(1, 2)`.
softmax taken twice: log='twice'
    The loss takes a softmax of what is a softmax already.
    > `cross_entropy` wants logits: it takes the softmax and its logarithm by itself.
missing logarithm: log='missing'
    The result is the mean probability with a minus, not its logarithm.
    > The loss of a token is -log p.
missing softmax: log='raw'
    The logits themselves are averaged.
    > Logits become probabilities through a softmax over the vocabulary, then comes the logarithm.
logarithm of zero: log='in two steps' | 'by hand'
    With logits of some hundreds the loss is infinite or NaN: a probability has become 0 before its logarithm was taken.
    > `log_softmax` takes both in one step, and no number gets lost; `cross_entropy` does the same.
bits in place of nats: unit='bits'
    The loss is in bits: the logarithm has base 2, or the result was divided by ln 2.
    > In nats: the natural logarithm, `torch.log`, as it comes.
sum in place of a mean: total='sum' | 'rows'
    The losses are added up: the result grows with the number of places.
    > Take the mean over all rows and all T-1 places that are scored.
divided by T in place of T-1: total='all T'
    The sum of the losses is divided by the number of tokens, but each row's first is scored by nobody.
    > There are T-1 losses in a row: `.mean()` of them counts by itself.
sign forgotten: sign=1
    The result has the wrong sign.
    > A logarithm of a probability is negative, and a loss is not.
"""),
    also=(gradients,),
    minutes=5,
    text="From the `logits` `(B, T, V)` that a model gives for the `tokens` `(B, T)`, compute the mean of "
    "$-\\log p(\\text{token}_{t+1} \\mid \\text{tokens up to } t)$, over all rows and all places where there is a next "
    "token. `logits[b, t]` was made from the tokens 0 to t of row b. The result is a tensor with one number, in nats.",
    hints=(
        "Write out a row of four tokens and its four guesses. Which guess belongs to which token? What is left over?",
        "`logits[:, :-1]` are the guesses, `tokens[:, 1:]` what came.",
        "`nn.functional.cross_entropy` wants logits `(N, V)` and targets `(N,)`: flatten the first two axes of both.",
    ),
    solution="""
def my_shifted_loss(logits, tokens):
    guesses, came = logits[:, :-1], tokens[:, 1:]
    return nn.functional.cross_entropy(
        guesses.flatten(0, 1), came.flatten()
    )
""",
)

# causal_block -----------------------------------------------------------------------------------------------


def causal_block(
    x: Tensor,
    norm1: Callable[[Tensor], Tensor],
    attn: Callable[..., Tensor],
    norm2: Callable[[Tensor], Tensor],
    ffn: Callable[[Tensor], Tensor],
    *,
    norm: str = "before",
    mask: str = "past",
    path: str = "x",
    order: str = "in turn",
) -> Tensor:
    """x + attn(norm1(x)) under a causal mask, then x + ffn(norm2(x)): a pre-norm block as GPT-2's."""
    square = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
    seen = {"past": square.tril(), "all": square, "future": square.triu(), "later": ~square.tril()}
    seen |= {"earlier": square.tril(-1)}

    def look(h: Tensor) -> Tensor:
        return attn(h, mask=seen[mask][None, None])  # told from a mask for rows, should there be T of them

    begin = x
    for turn, (normed, sublayer) in enumerate([(norm1, look), (norm2, ffn)]):
        normed = norm1 if norm == "first twice" else normed
        h = x if norm in ("after", "none", f"not {turn + 1}") else normed(begin if order == "beside" else x)
        start = {"none": 0.0, "normed": h, "begin": begin}.get(path, x)
        x = normed(start + sublayer(h)) if norm == "after" else start + sublayer(h)
    return x


def drawn(module: nn.Module, draw: Draw) -> nn.Module:
    """The module with drawn weights, which need no gradient."""
    for weight in module.parameters():
        weight.data = draw(*weight.shape) / weight.shape[-1] ** 0.5
    return module.requires_grad_(False)


def for_pairs(attn: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same attention, for a mask (T, T) of pairs of tokens, too."""

    def look(h: Tensor, *, mask: Tensor | None = None) -> Tensor:
        return attn(h, mask=mask[None, None] if mask is not None and mask.ndim == 2 else mask)

    return look


def sublayers(draw: Draw) -> tuple[Tensor, nn.Module, Callable, nn.Module, nn.Module]:
    """Vectors of drawn sizes, and the four parts of a block for them."""
    B, T, d = draw.sizes(3, 2, 7)
    heads = draw.integers(1, 4, 1).item()
    D = heads * d
    attn = for_pairs(drawn(MultiHeadAttention(D, heads), draw))
    norm1, norm2 = (drawn(nn.LayerNorm(D), draw) for _ in range(2))
    return 3 * draw(B, T, D), norm1, attn, norm2, drawn(FeedForward(D, 2 * D, activation="gelu_tanh"), draw)


CAUSAL_BLOCK = Task(
    name="causal_block",
    title="A block that cannot see the future",
    asks="x, norm1, attn, norm2, ffn",
    reference=causal_block,
    cases=(Case("attention to the past, then the feed-forward network, each added to x", sublayers),),
    mistakes=mistakes(r"""
the future is seen: mask='all'
    Every token sees all tokens, the later ones, too: in training the answer stands before its eyes.
    > Give `attn` a mask: `torch.ones(T, T, dtype=torch.bool).tril()` is True where the key is not later than the query.
mask turned round: mask='future' | 'later'
    Every token sees the later ones, and none of the earlier.
    > True means: may look. Row i belongs to query i, with True for the keys 0 to i: the lower triangle, `tril`.
the token itself is hidden: mask='earlier'
    A token sees those before it, and not itself; the first sees nothing at all.
    > The diagonal belongs to the mask: a token is known where the next one is guessed.
norm behind the sum: norm='after'
    The norm stands behind the sum, as in the Transformer of lesson 06.
    > GPT-2 normalises what goes *into* a sublayer: x + attn(norm1(x)). Nothing is normalised on the path of x itself.
norm left out: norm='none' | 'not 1' | 'not 2'
    A sublayer gets x as it is.
    > Each of the two sublayers gets a normalised input, and each has a norm of its own.
one norm for both: norm='first twice'
    `norm1` stands before both sublayers.
    > Each has a norm of its own, with weights of its own: `norm2` belongs to `ffn`.
path around the sublayers missing: path='none'
    The sublayers' outputs replace x.
    > What a sublayer says is *added* to x.
the normalised vectors are added: path='normed'
    To a sublayer's output its own normalised input is added, not x.
    > Do not overwrite x by its norm: x + attn(norm1(x)).
second path begins at the start: path='begin'
    The output of `ffn` is added to the x that came in: what the attention said is lost there.
    > Go on with the sum: x = x + attn(...), then x = x + ffn(...).
both sublayers side by side: order='beside'
    `ffn` does not see what the attention has added.
    > One after the other: the second sublayer gets the norm of the first sum.
"""),
    also=(gradients,),
    minutes=7,
    text="GPT-2's block: $x \\leftarrow x + \\mathrm{attn}(\\mathrm{norm}_1(x))$, then "
    "$x \\leftarrow x + \\mathrm{ffn}(\\mathrm{norm}_2(x))$, for `x` of shape `(B, T, D)`. The four parts are given as "
    "functions. `attn(h, mask=mask)` takes a boolean mask `(T, T)`: `True` in row i and column j lets token i look at "
    "token j. Make it so that nobody sees a later token.",
    hints=(
        "Two lines, one for each sublayer, and a mask before them. What may token 0 see, and what token 1?",
        "Write the mask for T = 3 on paper: three rows, with True once, twice, three times. Which triangle is that?",
        "`torch.ones(T, T, dtype=torch.bool).tril()`; then `x = x + attn(norm1(x), mask=mask)`; likewise `ffn`.",
    ),
    solution="""
def my_causal_block(x, norm1, attn, norm2, ffn):
    T = x.shape[1]
    mask = torch.ones(T, T, dtype=torch.bool).tril()
    x = x + attn(norm1(x), mask=mask)
    return x + ffn(norm2(x))
""",
)

# top_p ------------------------------------------------------------------------------------------------------


def top_p(
    logits: Tensor,
    p: float,
    *,
    edge: str = "crossing in",
    least: bool = False,
    sums: str = "probabilities",
    back: str = "scatter",
    fill: float = -math.inf,
    gives: str = "logits",
) -> Tensor:
    """The logits of the fewest tokens whose probabilities sum to p or more; -inf elsewhere."""
    ordered, places = logits.sort(dim=-1, descending=not least)
    shares = ordered if sums == "logits" else ordered.softmax(-1)
    upto = shares.cumsum(-1)
    outside = {
        "crossing in": upto - shares >= p,
        "crossing out": upto > p,
        "one more": (upto - shares - shares.roll(1, -1).index_fill(-1, torch.tensor(0), 0.0)) >= p,
        "all in": upto < 0,
        "each over p": shares < p,
        "each over 1-p": shares < 1 - p,
        "part of the largest": shares < p * shares.amax(-1, keepdim=True),
    }[edge]
    if back in ("sorted", "gathered"):
        kept = ordered.masked_fill(outside, fill)
        return kept if back == "sorted" else kept.gather(-1, places)
    if back == "scatter":
        outside = torch.zeros_like(outside).scatter(-1, places, outside)
    elif back == "gather":
        outside = outside.gather(-1, places)
    kept = logits.masked_fill(outside, fill)
    return {"logits": kept, "shares": kept.softmax(-1), "cut": logits.softmax(-1).masked_fill(outside, 0.0)}[gives]


def odds(draw: Draw) -> tuple[Tensor, float]:
    """Logits of a vocabulary, and a p between 0.3 and 0.9."""
    B, T, V = draw.sizes(3, 2, 6)
    return 2 * draw(B, T, V + 8), 0.3 + 0.6 * torch.rand((), generator=draw.generator).item()


def one_for_all(draw: Draw) -> tuple[Tensor, float]:
    """In each row one token has nearly all of the probability."""
    logits, p = odds(draw)
    logits[..., draw.integers(0, logits.shape[-1], 1)] += 30
    return logits, p


ANOTHER_SET = Finding(
    "another set of tokens",
    "Other tokens are left than those of the nucleus.",
    "Sort one row by hand, add up its probabilities from the largest on, and stop as soon as the sum is p or more.",
)
TIES_KEPT = Finding(
    "all of equally likely tokens kept",
    "Of equally likely tokens more are left than are needed to reach p.",
    "A threshold cannot tell them apart: decide for places in the sorted row, and bring that mask back.",
)


def fewest_of_equals(probe: Probe) -> list[Finding]:
    """Of tokens that are equally likely any will do, but no more than are needed."""
    logits = torch.tensor([[2.0, 1, 1, 1, 1, 0], [0, 3, 0, 3, 3, 0]])
    actual = probe.tensor(logits, 0.5, shape=logits.shape, finite=False)
    kept, needed = actual.isfinite(), torch.tensor([[2, 1], [3, 3]])  # the two likeliest of each row
    if not torch.equal(actual[kept], logits[kept]):
        return [ANOTHER_SET]
    found = [row[some].sort(descending=True).values for row, some in zip(logits, kept, strict=True)]
    if all(row.tolist() == right for row, right in zip(found, needed.tolist(), strict=True)):
        return []
    return [TIES_KEPT if all(len(row) >= 2 for row in found) else ANOTHER_SET]


TOP_P = Task(
    name="top_p",
    title="The nucleus",
    asks="logits, p",
    reference=top_p,
    cases=(
        Case("the fewest tokens whose probabilities reach p", odds, otherwise=ANOTHER_SET),
        Case("a token that reaches p by itself stays", one_for_all, otherwise=ANOTHER_SET),
        Case("p = 1 leaves all", lambda draw: (odds(draw)[0] / 4, 1.0), otherwise=ANOTHER_SET),
    ),
    mistakes=mistakes(r"""
the token that crosses p is dropped: edge='crossing out'
    The tokens that are left sum to less than p; where one token is likelier than p, nothing is left.
    > The last token needed to reach p belongs to the nucleus. Look at the sum *before* a token: is it still below p?
one token too many: edge='one more'
    Behind the token that reaches p one more is left.
    > A token stays if the sum of those before it, `cumsum - probability`, is below p.
each probability compared with p: edge='each over p' | 'each over 1-p' | 'part of the largest'
    Each token's own probability is compared with a threshold.
    > It is the *sum* of the likeliest that has to reach p: sort, then `cumsum`.
sorted from the least likely: least=True
    The sum begins with the least likely tokens.
    > `sort(dim=-1, descending=True)`: the nucleus begins with the likeliest.
logits summed in place of probabilities: sums='logits'
    The cumulative sum runs over logits.
    > p is a probability: take the softmax of the sorted logits before `cumsum`.
nothing left out: edge='all in'
    All tokens are left.
    > What is unlikely gets the logit `-inf`: a new tensor is needed, `logits.masked_fill(mask, float("-inf"))`.
not put back in order: back='none'
    What was found for sorted tokens is used for the tokens as they stand: the wrong ones are filtered out.
    > `sort` gives the places, too: with them bring the mask back, `scatter(-1, places, mask)`.
put back by the wrong permutation: back='gather' | 'gathered'
    What was worked out in sorted order was brought back with `gather`, which permutes it the other way round.
    > In the sorted row, entry i belongs to token `places[i]`: it has to be *written* there, with `scatter`.
sorted logits returned: back='sorted'
    The result is in the order of the probabilities, not of the vocabulary.
    > Filter the logits as they came; only the mask is worked out in sorted order.
zeros in place of -inf: fill=0.0
    What is left out has the logit 0.
    > A logit of 0 still has a probability, exp(0) = 1 against the others. Which logit has none?
probabilities returned: gives='shares' | 'cut'
    The result holds probabilities.
    > Logits in, logits out: -inf where a token is left out, and the others as they were.
"""),
    checks=(
        Check(
            name="of equally likely tokens no more than are needed",
            detects=(TIES_KEPT.misconception, ANOTHER_SET.misconception),
            run=fewest_of_equals,
        ),
    ),
    minutes=8,
    text="Keep the **nucleus**: the fewest tokens whose probabilities sum to `p` or more, the likeliest first, of "
    "equally likely ones any. "
    "`logits` has shape `(..., V)`, one distribution in each row. The result has the same shape: the logits of the "
    "nucleus as they were, and `-inf` everywhere else.",
    hints=(
        "By hand: probabilities 0.2, 0.5, 0.3 and p = 0.6. In which order do you add them, and where do you stop?",
        "Sort with `descending=True`, take the softmax, then `cumsum`. A token stays if the sum before it is below p.",
        "That mask is in sorted order. `torch.zeros_like(mask).scatter(-1, places, mask)` brings it back, with the "
        "`places` that `sort` gave; then `masked_fill`.",
    ),
    solution="""
def my_top_p(logits, p):
    ordered, places = logits.sort(dim=-1, descending=True)
    shares = ordered.softmax(dim=-1)
    before = shares.cumsum(dim=-1) - shares
    outside = before >= p
    mask = torch.zeros_like(outside).scatter(-1, places, outside)
    return logits.masked_fill(mask, float("-inf"))
""",
)

# cached_step ------------------------------------------------------------------------------------------------


def cached_step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    past_k: Tensor,
    past_v: Tensor,
    *,
    of: str = "all",
    joined: str = "past first",
    sees: str = "up to itself",
    **knobs,
) -> Tensor:
    """What new tokens read from the cached ones, from each other and from themselves."""
    keys, values = {"all": ([past_k, k], [past_v, v]), "new": ([k], [v]), "past": ([past_k], [past_v])}[of]
    keys = keys[::-1] if joined == "new first" else keys
    values = values[::-1] if joined in ("new first", "values astray") else values
    keys, values = torch.cat(keys, dim=-2), torch.cat(values, dim=-2)
    place, query = torch.arange(keys.shape[-2]), torch.arange(q.shape[-2])[:, None]
    query = query + keys.shape[-2] - q.shape[-2]
    masks = {"everything": place >= 0 * query, "from the start": place <= query - query[0]}
    masks |= {"before itself": place < query, "up to itself": place <= query}
    return attention(q, keys, values, masks["everything" if of == "past" else sees], **knobs)


def new_and_cached(draw: Draw, *, new: int | None = None, past: int | None = None) -> tuple[Tensor, ...]:
    """Queries, keys and values of new tokens, and the keys and values of those in the cache."""
    B, H, T, T_past, d = draw.sizes(5)
    T, T_past = T if new is None else new, T_past if past is None else past
    return *(draw(B, H, T, d) for _ in range(3)), *(draw(B, H, T_past, d) for _ in range(2))


CACHED_STEP = Task(
    name="cached_step",
    title="One step with a cache",
    asks="q, k, v, past_k, past_v",
    reference=cached_step,
    cases=(
        Case("a new token reads all cached ones, the new ones before it, and itself", new_and_cached),
        Case("a single new token needs no mask", lambda draw: new_and_cached(draw, new=1)),
        Case("the cache may still be empty", lambda draw: new_and_cached(draw, past=0)),
    ),
    mistakes=SCALE_MISTAKES
    + WRONG_AXIS
    + tuple(one for one in MASK_MISTAKES if one.name in ("mask after the softmax", "hidden scores set to zero"))
    + mistakes(r"""
cache ignored: of='new'
    Only the new tokens are read.
    > All keys are those of the cache and the new ones: `torch.cat([past_k, k], dim=-2)`, and likewise the values.
own key and value forgotten: of='past'
    Only the cached tokens are read.
    > A token sees itself, too: its key and its value belong to those that are read.
new tokens before the cached ones: joined='new first'
    The new keys stand before those of the cache, so that the mask hides the wrong ones.
    > In the order of the text: first the cache, then what is new.
keys and values in different orders: joined='values astray'
    Keys and values are joined in different orders: a weight belongs to the value of another token.
    > Join both alike.
new tokens see each other's future: sees='everything'
    Where several tokens are new, the earlier of them see the later.
    > Query i of T_new is token T_past + i of the text: it sees the keys up to T_past + i.
mask aligned with the first key: sees='from the start'
    New token i sees only the first i + 1 keys of the whole text, as if it stood at its beginning.
    > The *last* query stands at the last key. `tril(T_past)` moves the diagonal; torch's own `is_causal` does not.
the token itself is hidden: sees='before itself'; blind='zeros' | 'nan'
    A new token does not see itself.
    > The key at its own place belongs to what it sees: `<=`.
"""),
    also=(gradients,),
    minutes=8,
    text="A cache holds the keys and values of all earlier tokens, so a step computes those of the new tokens alone. "
    "Write what attention then does. `q`, `k`, `v` of the new tokens have the shape `(..., T_new, d)`, `past_k` and "
    "`past_v` have `(..., T_past, d)`. Return what each new token reads, `(..., T_new, d)`: from the cache, from the "
    "new tokens before it, and from itself, with weights $\\mathrm{softmax}(q \\cdot k / \\sqrt d)$. T_past may be 0.",
    hints=(
        "Write it for one new token first: which keys does it compare itself with, and which of them must be hidden?",
        "Join the cache and the new keys along the axis of tokens, dim=-2, and the values alike; then weights.",
        "With several new tokens a mask is needed, `(T_new, T_past + T_new)`: all of the cache, and a triangle behind "
        "it. `torch.ones(T_new, T_past + T_new, dtype=torch.bool).tril(T_past)`.",
    ),
    solution="""
def my_cached_step(q, k, v, past_k, past_v):
    keys = torch.cat([past_k, k], dim=-2)
    values = torch.cat([past_v, v], dim=-2)
    T_new, T_past = q.shape[-2], past_k.shape[-2]
    seen = torch.ones(T_new, T_past + T_new, dtype=torch.bool)
    seen = seen.tril(T_past)
    scores = q @ keys.transpose(-2, -1) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~seen, float("-inf"))
    return scores.softmax(dim=-1) @ values
""",
)

# perplexity -------------------------------------------------------------------------------------------------


def perplexity(
    nats: Tensor,
    num_bytes: int,
    valid: Tensor | None = None,
    *,
    padding: str = "left out",
    mean: str = "of nats",
    base: str = "e",
    per: str = "byte",
    unit: str = "bits",
) -> Tensor:
    """exp(mean nats of a token), and the sum of all nats / (ln 2 num_bytes)."""
    losses = nats.flatten() if valid is None or padding == "ignored" else nats[valid]
    count = nats.numel() if padding == "counted" else len(losses)
    average = losses.sum() / count
    per_token = {"of nats": average.exp(), "of exp": losses.exp().sum() / count, "none": losses.sum().exp()}[mean]
    per_token = 2**average if base == "2" else per_token
    bits = losses.sum() / (math.log(2) if unit == "bits" else 1.0) / (num_bytes if per == "byte" else count)
    return torch.stack([per_token, bits])


def losses_and_bytes(draw: Draw, *, padded: bool = False) -> tuple:
    """The nats of some tokens, the number of bytes they stand for, and where they are real."""
    B, T = draw.sizes(2, 3, 8)
    given = draw(B, T).abs(), B * T + draw.integers(5, 30, 1).item()
    return (*given, torch.arange(T) < draw.integers(1, T, B, 1)) if padded else given


PERPLEXITY = Task(
    name="perplexity",
    title="Perplexity, and bits per byte",
    asks="nats, num_bytes, valid=None",
    reference=perplexity,
    cases=(
        Case("one over the token's geometric mean probability, and bits of a byte", losses_and_bytes),
        Case("padding does not count", lambda draw: losses_and_bytes(draw, padded=True)),
    ),
    mistakes=mistakes(r"""
padding counted as tokens: padding='ignored'
    The losses of padding count like all others.
    > `nats[valid]` are those of real tokens.
divided by the number of all places: padding='counted'
    The losses of padding are left out of the sum, but its places are counted in the mean.
    > Divide by the number of real tokens, `valid.sum()`.
mean of exponentials: mean='of exp'
    The exponential is taken of each loss before the mean.
    > First the mean of the losses, then one exponential.
exponential of the sum: mean='none'
    The exponential is taken of the whole sum of losses.
    > Perplexity is that of *a* token: take the mean first.
power of two of a loss in nats: base='2'
    Two is raised to the mean loss.
    > The losses are in nats, natural logarithms: it is e that undoes them.
nats per byte: unit='nats'
    The second number is in nats.
    > One bit is ln 2 nats: divide by `math.log(2)`.
bits per token: per='token'
    The second number is divided by the number of tokens.
    > Divide by the number of bytes, which is the same for every tokenizer.
"""),
    minutes=7,
    stretch=True,
    text="From the loss of each token, `nats`, a tensor of any shape, compute a tensor of **two** numbers: the "
    "perplexity, which is exp of the mean loss of a token, and the bits per byte, the sum of all losses in bits "
    "divided by `num_bytes`. Where `valid` is given, of the shape of `nats`, leave out the tokens where it is `False`: "
    "they are padding.",
    hints=(
        "Both begin with the same sum. By what is it divided in each case, and in which unit is it?",
        "`nats[valid]` leaves padding out. One bit is `math.log(2)` nats.",
        "`torch.stack([losses.mean().exp(), losses.sum() / math.log(2) / num_bytes])`.",
    ),
    solution="""
def my_perplexity(nats, num_bytes, valid=None):
    losses = nats.flatten() if valid is None else nats[valid]
    bits = losses.sum() / math.log(2)
    return torch.stack([losses.mean().exp(), bits / num_bytes])
""",
)

TASKS = {task.name: task for task in (SHIFTED_LOSS, CAUSAL_BLOCK, TOP_P, CACHED_STEP, PERPLEXITY)}
