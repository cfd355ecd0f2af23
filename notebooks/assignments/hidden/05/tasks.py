"""Assignment 05, Attention: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

from collections.abc import Mapping
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_05.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, Given, mistakes
from course_lib.tasks.attention import (
    ATTENTION_MISTAKES,
    HEADS_MISTAKES,
    LARGE_SCORES,
    MASK_MISTAKES,
    READS_HIDDEN,
    SCALE_MISTAKES,
    WRONG_AXIS,
    attention,
    split_heads,
    weights,
)

HIDING = ("masking",)
BLIND = ("blind",)


def contexts(
    q: Tensor,
    h: Tensor,
    W: Tensor,
    U: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    activation: str = "tanh",
    joined: str = "sum",
    read: str = "h",
    **weighing,
) -> Tensor:
    """softmax(v^T tanh(W q + U h)) h."""
    maps = {"sum": (W.mT, U.mT), "product": (W.mT, U.mT), "swapped": (U.mT, W.mT), "transposed": (W, U)}[joined]
    queries, annotations = (q @ maps[0])[:, :, None], (h @ maps[1])[:, None]
    if activation == "of parts":
        queries, annotations = queries.tanh(), annotations.tanh()
    inner = queries * annotations if joined == "product" else queries + annotations
    inner = {"tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": torch.relu}.get(activation, torch.clone)(inner)
    scores = (inner @ v).tanh() if activation == "outside" else inner @ v
    return weights(scores, mask, **weighing) @ (h if read == "h" else h @ U.mT)


def states(draw: Draw, *, blind: bool | None = None) -> tuple[Tensor, ...]:
    """q, h, W, U, v of drawn sizes, and a mask unless `blind` is None."""
    T_q, T_k, D_q, D_k, A = draw.sizes(5)
    B = draw.integers(1, 4, 1).item()
    given = draw(B, T_q, D_q), draw(B, T_k, D_k), draw(A, D_q), draw(A, D_k), draw(A)
    return given if blind is None else (*given, draw.mask(B, T_q, T_k, blind=blind))


ADDITIVE = replace(
    SHOWN["additive_attention"],
    reference=contexts,
    cases=(
        Case("the contexts: annotations, weighted by the scores of the small network", states, points=8),
        Case("hidden annotations get no weight", lambda draw: states(draw, blind=False), 3, HIDING),
        Case("who sees nothing gets zeros", lambda draw: states(draw, blind=True), 2, BLIND, otherwise=READS_HIDDEN),
    ),
    mistakes=WRONG_AXIS
    + MASK_MISTAKES
    + mistakes(r"""
missing tanh: activation='none'
    There is no tanh between the sum and v.
    > Without it the score is v·Wq + v·Uh, and the query cannot change which annotation wins.
tanh outside of the sum: activation='outside'
    The tanh is applied to the finished score.
    > It belongs between the sum W q + U h and the product with v.
tanh of each part alone: activation='of parts'
    The tanh is applied to W q and to U h one by one, and the results are added.
    > Then the query cannot change which annotation wins. Add first: tanh(W q + U h).
another function in place of tanh: activation='sigmoid' | 'relu'
    Another function stands where the paper has tanh.
    > Use `torch.tanh`.
product in place of the sum: joined='product'
    W q and U h are multiplied.
    > Additive attention adds them.
W and U swapped: joined='swapped'
    The queries are multiplied with U, the annotations with W.
    > W belongs to q, U to h.
projection with the transposed matrix: joined='transposed'
    The vectors are multiplied with the transposed matrices.
    > Row vectors come first here: W q, for all rows of a tensor at once, is `q @ W.T`.
no softmax: axis=None
    The annotations are added up with the scores themselves as weights.
    > Scores become weights through a softmax over the annotations.
projected annotations used as values: read='U h'
    The output is a weighted sum of U h.
    > U h is only for the scores; what is read are the annotations h themselves.
"""),
)


def local(q: Tensor, k: Tensor, v: Tensor, window: int, *, band: str = "both sides", **knobs) -> Tensor:
    """Attention of each word to those at most `window` places away."""
    place = torch.arange(q.shape[-2])
    behind = place[:, None] - place
    mask = {
        "both sides": behind.abs() <= window,
        "everywhere": behind == behind,
        "behind": (behind >= 0) & (behind <= window),
        "in all": behind.abs() <= window // 2,
        "one too few": behind.abs() < window,
        "one too many": behind.abs() <= window + 1,
        "blocks": place[:, None] // max(window, 1) == place // max(window, 1),
        "others": (behind.abs() <= window) & (behind != 0),
    }[band]
    return attention(q, k, v, mask, **knobs)


def sentence(
    draw: Draw, *, large: float = 1.0, axes: int = 1, window: int | None = None
) -> tuple[Tensor, Tensor, Tensor, int]:
    """q, k and v of words of drawn widths, with so many axes in front, and a window of 3 to 5."""
    front, (T, d, d_v) = draw.sizes(2, 1, 3)[:axes], draw.sizes(3, 7, 11)
    window = draw.integers(3, 6, 1).item() if window is None else window
    return large * draw(*front, T, d), draw(*front, T, d), draw(*front, T, d_v), window


WEIGHING = ("scale", "axis", "keys", "read", "masking", "blind", "stable")
OTHER_MASKS = ("mask ignored", *(mistake.name for mistake in MASK_MISTAKES[-2:]))  # here no mask is given
LOCAL = replace(
    SHOWN["local_attention"],
    reference=local,
    cases=(
        Case("what a word sees counts by the softmax of the scaled scores", sentence, 7, WEIGHING),
        Case("each word sees its neighbours, and all of them", sentence, 5, ("band",)),
        Case("with a window of 0 each word sees itself alone", lambda draw: sentence(draw, window=0), 1, ("band",)),
        Case("large scores do no harm", lambda draw: sentence(draw, large=1e3), 2, ("stable",), tolerance=1e-2),
        Case("heads in front of the words", lambda draw: sentence(draw, axes=2), 2, ("front",)),
        Case("nothing in front of the words", lambda draw: sentence(draw, axes=0), 1, ("front",)),
    ),
    mistakes=mistakes(r"""
window ignored: band='everywhere'
    Every word sees the whole sentence.
    > Compare places: `(i - j).abs() <= window`, for all i and j at once, is a mask of shape (T, T).
window only backwards: band='behind'
    A word sees the words before it, and none behind it.
    > The window reaches to both sides: it is the distance that counts, `abs()`.
window counted in all: band='in all'
    The window is taken for the number of neighbours on both sides together.
    > `window` neighbours on each side, and the word itself: 2 window + 1 words in all.
one neighbour too few: band='one too few'
    The words exactly `window` places away are hidden.
    > They belong to the window: `<=`.
one neighbour too many: band='one too many'
    Words that are window + 1 places away are seen.
    > At most `window` places away.
blocks instead of a band: band='blocks'
    The sentence is cut into blocks, and a word sees its own block.
    > The window goes along with the word.
the word itself is hidden: band='others'
    A word does not see itself.
    > A distance of 0 is within every window.
""")
    + tuple(known for known in ATTENTION_MISTAKES + LARGE_SCORES if known.name not in OTHER_MASKS),
    wrong={"window ignored": ("scores.masked_fill(~near, -math.inf)", "scores")},
)


def error_rate(
    predicted: list, sure: list, possible: list, *, among: str = "with sure", size: str = "sum", end: str = "error"
) -> float:
    """1 - (|A & S| + |A & P|) / (|A| + |S|), over all sentences."""
    counts = []
    for links in zip(predicted, sure, possible, strict=True):
        a, s, listed = map(set, links)
        p = {"with sure": listed | s, "as given": listed, "ignored": s}[among]
        counts.append(
            (len(a & s) + len(a & p), {"sum": len(a) + len(s), "union": len(a | s), "P": len(a) + len(p)}[size])
        )
    agreed = [sum(column) for column in zip(*counts, strict=True)]
    share = sum(a / n for a, n in counts) / len(counts) if end == "mean" else agreed[0] / agreed[1]
    return share if end == "agreement" else 1 - share


def alignments(draw: Draw, *, sentences: int | None = None) -> tuple[list, list, list]:
    """Links of some sentences: predicted, sure, and possible ones that are not listed as sure."""
    found = [], [], []
    for _ in range(sentences or draw.integers(2, 6, 1).item()):
        kind = draw.integers(0, 8, 4, 5)  # of all links: 0 to 2 sure, 3 and 4 possible, and half of all predicted
        guess = (draw(4, 5) > 0) | (torch.arange(20).view(4, 5) == 0)
        kind[0, :2] = torch.tensor([0, 3])
        for links, held in zip(found, (guess, kind < 3, (kind == 3) | (kind == 4)), strict=True):
            links.append([tuple(link) for link in held.nonzero().tolist()])
    return found


RATE = replace(
    SHOWN["alignment_error_rate"],
    reference=error_rate,
    cases=(
        Case("links are counted over all sentences", alignments, points=10),
        Case("one sentence alone", lambda draw: alignments(draw, sentences=1), 5, ("among", "size")),
    ),
    mistakes=mistakes(r"""
sure links not counted as possible: among='as given'
    A predicted sure link counts only once if it is not also listed as possible.
    > Every sure link is possible: P contains S.
possible links ignored: among='ignored'
    Possible links make no difference.
    > A predicted link that is only possible is no mistake: |A & P| counts it.
wrong denominator: size='union' | 'P'
    The denominator is not |A| + |S|.
    > Sizes are added, not the sets united; P does not enter there.
agreement in place of error: end='agreement'
    The result is one minus the error rate.
    > A perfect alignment has error rate 0.
average over sentences: end='mean'
    The result is the mean of the sentences' rates.
    > Add up the numbers of links over all sentences, and divide once.
"""),
)


def multi_head(
    build: tuple[int, int],
    parameters: Mapping[str, Tensor],
    x: Tensor,
    mask: Tensor | None = None,
    *,
    maps: str = "qkv",
    way: str = "right",
    joined: str = "right",
    scale: str = "sqrt d",
    mapped: bool = True,
    **weighing,
) -> Tensor:
    """Each head attends in its own slice of the width."""

    def mapping(letter: str, x: Tensor) -> Tensor:
        return F.linear(x, parameters[f"{letter}_proj.weight"], parameters[f"{letter}_proj.bias"])

    heads = 1 if way == "one" else build[1]
    q, k, v = (split_heads(mapping(letter, x), heads, way=way) for letter in maps)
    d = q.shape[-1]
    divisor = {"sqrt d": d**0.5, "none": 1, "sqrt D": build[0] ** 0.5, "d": d}[scale]
    found = weights(q @ k.mT / divisor, mask, **weighing) @ v
    found = found if way == "time first" else found.transpose(1, 2)
    found = {"right": found, "reshaped": found.transpose(1, 2), "interleaved": found.mT}[joined].reshape(x.shape)
    return mapping("o", found) if mapped else found


def words(draw: Draw, *, blind: bool | None = None, heads: int | None = None, own: bool = False) -> Given:
    """Words whose width is a multiple of the number of heads, and a mask, for each head its own if so wanted."""
    B, T, d, H = draw.sizes(4, high=6)
    H = heads or H
    x = (draw(B, T, d * H),)
    mask = () if blind is None else (draw.mask(B, H, T, T) if own else draw.mask(T, T, blind=blind),)
    return Given(x + mask, build=(d * H, H))


MANY_HEADS = replace(
    SHOWN["MultiHeadAttention"],
    reference=multi_head,
    cases=(
        Case("each head attends in its own slice of the width", words, points=12),
        Case("hidden words get no weight, in any head", lambda draw: words(draw, blind=False), 4, HIDING),
        Case("who sees nothing gets zeros", lambda draw: words(draw, blind=True), 2, BLIND, otherwise=READS_HIDDEN),
        Case("a single head is attention with four maps", lambda draw: words(draw, heads=1), 3),
        Case(
            "each sentence, each head has a mask of its own", lambda draw: words(draw, blind=False, own=True), 3, HIDING
        ),
    ),
    mistakes=SCALE_MISTAKES
    + WRONG_AXIS
    + MASK_MISTAKES
    + HEADS_MISTAKES
    + mistakes(r"""
heads mixed up by a reshape: joined='reshaped'
    The shape is right, but numbers of different positions ended up in one head.
    > Behind the heads, move the head axis back with `transpose(1, 2)`, then join.
features of the heads interleaved: joined='interleaved'
    The heads' outputs do not stand side by side: their numbers alternate.
    > Behind the heads: (h d), not (d h).
heads attend to each other: way='time first'
    Within each position, the heads attend to each other; no position sees another.
    > The last two axes must be positions and width: move the head axis before the time axis, `transpose(1, 2)`.
one head, however many are asked for: way='one'
    The whole width is one head: there is one set of weights for all numbers.
    > Each of the `num_heads` heads is D / num_heads wide and has weights of its own: split the width first.
scaled by the width of all heads: scale='sqrt D'
    The dot products are divided by the square root of D, the width of all heads together.
    > A head's dot product is a sum of D / H terms, its own width.
maps of queries, keys and values mixed up: maps='kqv' | 'qvk' | 'vkq' | 'qqq'
    Queries, keys and values do not come from the maps of their names.
    > Queries come from `q_proj`, keys from `k_proj`, values from `v_proj`.
no map behind the heads: mapped=False
    The heads' outputs are returned as they stand side by side.
    > One map is still to come: `o_proj` mixes what the heads have found.
"""),
    wrong={"parameters of other names or shapes": ("nn.Linear(dim, dim)", "nn.Linear(dim, dim, bias=False)")},
)

TRAIN = replace(
    SHOWN["train"],
    wrong={
        "answers without looking": ("range(40)", "range(0)"),
        "learned by heart": (
            "model = LookUp()",
            "model = nn.Sequential(nn.Embedding(9, 64), nn.Flatten(), nn.Linear(768, 8))",
        ),
        "only dictionaries of one length": (
            "self.keys(inputs[:, 1:, 0])",
            "self.keys(inputs[:, 1:, 0]) + self.values.weight[:5]",
        ),
        "rule not learned from the data": ("self.queries(inputs", "self.keys(inputs"),
        "stopped with an error": ("return model\n", "return model(inputs)\n"),
        "not learned by its parameters": (
            "return model\n",
            "asked = lambda x: (x[:, 1:, 0] == x[:, :1, 0])[..., None]\n"
            "    model.forward = lambda x: (asked(x) * F.one_hot(x[:, 1:, 1], 8)).sum(1).float()\n    return model\n",
        ),
    },
)

ASSIGNMENT = Assignment(
    "05",
    notebook="attention",
    title="Attention",
    tasks=(ADDITIVE, LOCAL, RATE, MANY_HEADS, TRAIN),
    seconds={"train": 15},  # for both trainings and all questions
)
