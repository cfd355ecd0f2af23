"""Assignment 07, BERT: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_07.assignment import ASSIGNMENT as SHOWN
from course_lib.lessons.lesson_07.assignment import guess
from course_lib.tasks import Case, Draw, mistakes


def pieces(draw: Draw, *, signs: bool = True, lengths: tuple[int, ...] = ()) -> tuple[Tensor, int]:
    """For some rows the number of the word that each piece belongs to, -1 at signs and padding; and the most words."""
    B, most = draw.sizes(2, 4, 9) if not lengths else (draw.sizes(1, 4, 9)[0], len(lengths))
    rows = []
    for _ in range(B):
        count = draw.integers(most - 2, most + 1, 1).item()
        sizes = lengths or [*draw.integers(1, 5, count - 1).tolist(), 1]
        row = [number for number, size in enumerate(sizes) for _ in range(size)]
        rows.append([-1, *row, -1] if signs else row)
    longest = max(map(len, rows)) + signs
    return torch.tensor([row + [-1] * (longest - len(row)) for row in rows]), most


# 1 ----------------------------------------------------------------------------------------------------------


def whole_words(
    words: Tensor,
    noise: Tensor,
    rate: float,
    *,
    of: str = "pieces",
    too_long: str = "next",
    order: str = "small",
    least: int = 1,
    part: str = "whole",
) -> Tensor:
    """Words are hidden whole, by their noise, as many as fit into `rate` of all pieces."""
    hidden = torch.zeros_like(words, dtype=torch.bool)
    for row, numbers, found in zip(words, noise, hidden, strict=True):
        count = int(row.max()) + 1
        total = {"words": count, "places": len(row)}.get(of, int((row >= 0).sum()))
        left = max(least, round(rate * total))
        for number in numbers[:count].argsort(descending=order == "large"):
            its = row == number
            size = 1 if of in ("words", "words for pieces") else int(its.sum())
            if size > left and too_long != "over":
                if too_long == "stop":
                    break
                continue
            if part == "first":
                its = its & (its.cumsum(0) == 1)
            found |= its
            left -= size
            if left <= 0:
                break
    return hidden if part != "others" else ~hidden & (words >= 0)


def words_to_hide(draw: Draw, *, short: bool = False) -> tuple[Tensor, Tensor, float]:
    """Rows of words, a number for each word, and a rate at which no count ends in a half."""
    words, most = pieces(draw, lengths=(1, 2, 1) if short else ())
    rate = ((0.05, 0.07, 0.11) if short else (0.43, 0.57, 0.61))[draw.integers(0, 3, 1).item()]
    return words, torch.rand(len(words), most, generator=draw.generator), rate


WHOLE_WORDS = replace(
    SHOWN["whole_words"],
    reference=whole_words,
    cases=(
        Case("words are hidden whole, as many as fit", words_to_hide, points=12),
        Case("a short sentence has a gap, too", lambda draw: words_to_hide(draw, short=True), 3, ("least",)),
    ),
    mistakes=mistakes(r"""
only the first piece is hidden: part='first'
    Of a hidden word the other pieces can be seen.
    > All pieces with the number of the word: `words[b] == number`.
the hidden words are seen: part='others'
    Exactly the pieces that should be hidden are not.
    > Return True where a piece is hidden.
stopped at the first word that is too long: too_long='stop'
    Behind a word that does not fit no other is tried.
    > Leave it out and go on with the next one: `continue`, not `break`.
more is hidden than allowed: too_long='over'
    The last word is hidden though it does not fit any more.
    > Count the pieces of a word before you hide it.
words counted in place of pieces: of='words' | 'words for pieces'
    Every hidden word takes one from the budget, however many pieces it has.
    > The budget is a number of pieces, and a word takes as many of it as it has.
signs and padding counted: of='places'
    The budget is a share of the whole row.
    > Only pieces of words count, those with a number of 0 or more.
the other end of the noise: order='large'
    Words with a large number are hidden first.
    > From the smallest to the largest: `argsort()`.
nothing hidden in a short sentence: least=0
    Where the share is rounded to 0, nothing is hidden.
    > At least one: `max(1, ...)`.
"""),
    wrong={
        "stopped at the first word that is too long": ("continue", "break"),
        "more is hidden than allowed": ("if its.sum() > budget", "if budget <= 0"),
        "nothing hidden in a short sentence": ("max(1, ", "max(0, "),
    },
)

# 2 ----------------------------------------------------------------------------------------------------------


def align(
    tags: Tensor, words: Tensor, *, where: str = "first", empty: int | str = -100, source: str = "word"
) -> Tensor:
    """The tag of each word at its first piece, -100 everywhere else."""
    before, behind = (torch.roll(words, turn, dims=1) for turn in (1, -1))
    before[:, 0], behind[:, -1] = -2, -2
    piece = words >= 0
    chosen = {"first": words != before, "last": words != behind, "every": piece}[where] & piece
    last = tags.shape[1] - 1
    numbers = {"word": words.clamp(min=0), "next": (words + 1).clamp(max=last), "number": words.clamp(min=0)}
    numbers |= {"place": torch.arange(words.shape[1]).clamp(max=last).expand_as(words)}
    found = words if source == "number" else tags.gather(1, numbers[source])
    if empty == "last tag":
        return torch.where(chosen, found, torch.where(piece, -100, tags[:, -1:]))
    return torch.where(chosen, found, empty)


def tags_and_pieces(draw: Draw, *, signs: bool = True) -> tuple[Tensor, Tensor]:
    """Tags of words, and the word of each piece, between signs or from the first place on."""
    words, most = pieces(draw, signs=signs)
    return draw.integers(20, 50, len(words), most), words


ALIGN = replace(
    SHOWN["align_labels"],
    reference=align,
    cases=(
        Case("a tag at the first piece of each word, -100 elsewhere", tags_and_pieces, points=9),
        Case("pieces that no sign stands before", lambda draw: tags_and_pieces(draw, signs=False), points=3),
    ),
    mistakes=mistakes(r"""
every piece has the tag: where='every'
    All pieces of a word have its tag.
    > A word would then count as often as it has pieces: only its first one has the tag.
tag at the last piece: where='last'
    The last piece of a word has its tag.
    > Compare with the piece before it, not with the one behind it.
another number than -100: empty=0 | -1
    Pieces without a label have another number than -100.
    > 0 is a tag like any other. -100 is the number that the loss leaves out.
signs have a tag: empty='last tag'
    Signs and padding have the tag of the last word.
    > Their number -1 picks the last one: set them to -100.
tags laid side by side: source='place'
    Piece number t has tag number t.
    > `words` says which word a piece belongs to: `tags.gather(1, ...)` takes the tag with that number.
tags moved by one word: source='next'
    Each word has the tag of the next one.
    > Words are numbered from 0.
numbers of words in place of tags: source='number'
    The label is the number of the word.
    > It says which tag to take from `tags`.
"""),
    wrong={
        "every piece has the tag": ("first & (words >= 0)", "words >= 0"),
        "another number than -100": ("-100", "0"),
    },
)

# 3 ----------------------------------------------------------------------------------------------------------


def likelihood(
    E: Tensor,
    tokens: Tensor,
    scored: Tensor,
    mask_id: int,
    *,
    gap: str = "one",
    counted: str = "scored",
    end: str = "sum",
    logs: str = "log softmax",
    target: str = "true",
) -> Tensor:
    """The sum of log p(word | all others) over the scored places."""
    places, found = torch.arange(tokens.shape[1]), []
    for i in places.tolist():
        gaps = {"one": places == i, "none": places < 0, "later": places >= i, "earlier": places <= i}
        gaps |= {"all": (places >= 0) & scored}
        logits = guess(tokens.masked_fill(gaps[gap], mask_id), E)[:, i]
        p = logits.softmax(-1)
        log_p = {"log softmax": logits.log_softmax(-1), "log of softmax": p.log(), "none": logits, "no log": p}
        log_p |= {"bits": log_p["log softmax"] / 0.6931471805599453, "twice": p.log_softmax(-1)}
        asked = tokens[:, i] if target == "true" else torch.full_like(tokens[:, i], mask_id)
        found.append(log_p[logs].gather(-1, asked[:, None])[:, 0])
    counts = {"scored": scored, "all": scored | ~scored, "others": ~scored}[counted]
    total = torch.stack(found, dim=1).where(counts, 0.0).sum(dim=1)
    mean = total / counts.sum(dim=1).clamp(min=1)
    return {"sum": total, "mean": mean, "minus": -total, "perplexity": (-mean).exp()}[end]


def sentences(draw: Draw, *, signs: bool = False, large: float = 0.5) -> tuple[Tensor, Tensor, Tensor, int]:
    """Vectors of words, sentences, which places count (all, or not the first and the last), and the gap's number."""
    B, T, V, D = draw.sizes(4, 4, 9)
    scored = torch.ones(B, T, dtype=torch.bool)
    if signs:
        scored[:, [0, -1]] = False
    gap = draw.integers(0, V, 1).item()
    tokens = draw.integers(0, V - 1, B, T)
    return large * draw(V, D), tokens + (tokens >= gap), scored, gap


LIKELIHOOD = replace(
    SHOWN["pseudo_log_likelihood"],
    reference=likelihood,
    cases=(
        Case("each word is guessed from all others", sentences, points=12),
        Case("only scored places count", lambda draw: sentences(draw, signs=True), 4, ("counted",)),
        Case("large scores do no harm", lambda draw: sentences(draw, large=5.0), 2, ("logs",)),
    ),
    mistakes=mistakes(r"""
the model sees the word: gap='none'
    No gap is made: the model reads the word that it is asked for.
    > Put `mask_id` into a copy of the sentence, at the place that is asked for.
all words hidden at once: gap='all'
    The model has to guess every word while it sees none.
    > One gap at a time: a sentence of T words is read T times.
hidden words stay hidden: gap='earlier'
    When a word is guessed, those before it are hidden, too.
    > Begin with a fresh copy for each gap: `tokens.clone()`.
what comes later is hidden: gap='later'
    A word is guessed from what stands before it alone.
    > That is how GPT is asked. BERT sees both sides.
signs are scored, too: counted='all'
    Places at which `scored` is False count.
    > Add up only what stands at scored places.
the other places are scored: counted='others'
    Exactly the places at which `scored` is False count.
    > True means that the place counts.
mean in place of the sum: end='mean'
    The result is the mean over the words.
    > It is a sum.
wrong sign: end='minus'
    The result is positive.
    > The logarithm of a share is negative, and so is their sum.
perplexity in place of the likelihood: end='perplexity'
    The result is the exponential of the mean surprise.
    > Only the sum is asked for.
scores not made into shares: logs='none'
    The score of a word is used as it is.
    > Take `torch.log_softmax` over all words first.
no logarithm: logs='no log'
    The shares are added up themselves.
    > Add up their logarithms.
softmax taken twice: logs='twice'
    The shares go through a second softmax.
    > `log_softmax` takes the scores as they are.
bits in place of nats: logs='bits'
    The logarithm has base 2.
    > Use the natural one.
logarithm of a share that is 0: logs='log of softmax'
    Large scores give minus infinity: a share is so small that it is rounded to 0.
    > `torch.log_softmax` takes both steps at once.
asked for the gap's own number: target='gap'
    The model is asked how likely the gap's sign is, not the word.
    > Pick the number of the word from the sentence as it was, before the gap was made.
"""),
    wrong={
        "the model sees the word": ("gaps[:, i] = mask_id", "pass"),
        "hidden words stay hidden": ("gaps = tokens.clone()", "gaps = gaps if i else tokens.clone()"),
        "signs are scored, too": ("torch.where(scored[:, i], found, 0.0)", "found"),
    },
)

# 4 ----------------------------------------------------------------------------------------------------------


def ranks(values: Tensor, ties: str) -> Tensor:
    """Each number's place in the order, along the last axis; equal numbers share the mean of their places."""
    if ties == "values":
        return values
    if ties == "argsort":
        return values.argsort(stable=True).double()
    mine, others = values[..., :, None], values[..., None, :]
    below, equal = (others < mine).sum(-1), (others == mine).sum(-1)
    if ties == "dense":
        return torch.stack([row.unique(return_inverse=True)[1] for row in values.view(-1, values.shape[-1])])
    if ties == "in turn":
        return values.argsort(stable=True).argsort()
    return below + {"mean": equal / 2, "least": 0 * equal, "most": equal}[ties]


def correlation(
    predicted: Tensor,
    true: Tensor,
    *,
    ties: str = "mean",
    way: str = "both",
    centred: bool = True,
    blind: str = "zero",
    end: str = "r",
) -> Tensor:
    """Pearson's correlation of the ranks, of each row with the truth."""
    x, y = (ranks(values.double(), ties).double().view(values.shape) for values in (predicted, true))
    if way == "squares":
        n = y.shape[-1]
        return (1 - 6 * ((x - y) ** 2).sum(-1) / (n * (n**2 - 1))).float()
    if centred:
        x, y = x - x.mean(-1, keepdim=True), y - y.mean(-1, keepdim=True)
    size = {"both": x.norm(dim=-1) * y.norm(dim=-1), "mean": y.shape[-1], "x": x.norm(dim=-1) ** 2}
    size |= {"n and n - 1": size["both"] * y.shape[-1] / (y.shape[-1] - 1)}
    r = (x * y).sum(-1) / size[way]
    r = r if blind == "nan" else r.nan_to_num(0.0, 0.0, 0.0)
    return {"r": r, "square": r**2, "abs": r.abs(), "minus": -r}[end].float()


def ratings(draw: Draw, *, kind: str = "all different") -> tuple[Tensor, Tensor]:
    """What some systems predict, and the truth: all different, in steps, labels of two classes, or one is blind."""
    B, N = (*draw.sizes(1, 4, 9), *draw.sizes(1, 10, 15))
    true = draw(N)
    predicted = 0.7 * true + draw(B, N)
    if kind == "all different" or kind == "a blind one":
        predicted[0] = 3.0 if kind == "a blind one" else predicted[0]
        return predicted, true
    if kind == "steps":
        return predicted.round() ** 3, true.round() ** 3
    predicted, true = (predicted > 0).float(), (true > 0).float()
    for labels in (predicted, true):
        labels[..., 0], labels[..., -1] = 0.0, 1.0
    return predicted, true


SPEARMAN = replace(
    SHOWN["spearman"],
    reference=correlation,
    cases=(
        Case("the correlation of the ranks", ratings, points=7),
        Case("equal numbers share their ranks", lambda draw: ratings(draw, kind="steps"), 5, ("ties", "way")),
        Case("two labels: Matthews's correlation", lambda draw: ratings(draw, kind="labels"), 4, ("ties", "way")),
        Case("who cannot tell anything apart gets 0", lambda draw: ratings(draw, kind="a blind one"), 2, ("blind",)),
    ),
    mistakes=mistakes(r"""
no ranks: ties='values'
    The correlation is that of the numbers themselves.
    > That is Pearson's. Spearman replaces each number by its place in the order first.
argsort is not yet the rank: ties='argsort'
    The places of the sorted numbers are used as ranks.
    > `argsort` says which number comes first; the rank says at which place a number comes.
equal numbers have different ranks: ties='in turn'
    Of equal numbers the one that stands in front has the smaller rank.
    > They share the mean of their places: count how many are smaller, and half of those that are equal.
equal numbers share another rank than the mean: ties='least' | 'most' | 'dense'
    Equal numbers have the same rank, but it is not the mean of their places.
    > Two numbers at places 2 and 3 have rank 2.5.
sum of squares in place of the correlation: way='squares'
    The result is right only where no two numbers are equal.
    > 1 - 6 sum d² / (n (n² - 1)) is a short cut for ranks without ties. Take Pearson's correlation of the ranks.
not divided by both spreads: way='mean' | 'x'
    The sum of products is divided by something else than the root of both sums of squares.
    > Both spreads belong below the line.
n and n - 1 mixed: way='n and n - 1'
    A perfect order does not give 1: one part is divided by n, the other by n - 1.
    > `std` divides by n - 1 unless told otherwise. With sums no division is needed at all.
mean not subtracted: centred=False
    The ranks enter as they are.
    > Subtract from the ranks their mean, in each row.
NaN where all predictions are equal: blind='nan'
    A system that predicts the same everywhere gets NaN.
    > 0 / 0: give it a 0.
sign or square: end='square' | 'abs' | 'minus'
    The sign of the correlation is lost or wrong.
    > A reversed order has the correlation -1.
"""),
    wrong={
        "argsort is not yet the rank": ("below + equal / 2", "values.argsort(dim=-1).double()"),
        "equal numbers share another rank than the mean": ("below + equal / 2", "below.double()"),
        "NaN where all predictions are equal": (".nan_to_num(0.0)", ""),
    },
)

# 5 ----------------------------------------------------------------------------------------------------------

TRAIN = replace(
    SHOWN["train"],
    wrong={
        "hardly better than guessing": ("range(80)", "range(0)"),
        "only tagged words are known": (
            "scores, right = model.words(model.around(texts)), texts",
            "scores, right = model(tokens), tags",
        ),
        "one tag for a word, wherever it stands": ("[around, own]", "[0 * around, own]"),
        "only sentences of one length": ("return self.tags(", "return torch.zeros(8, 1) + self.tags("),
        "stopped with an error": ("return model\n", "return model(tokens)\n"),
        "not learned by its parameters": (
            "return model\n",
            "table = torch.zeros(60, 4).index_put((tokens, tags), torch.ones(()), accumulate=True)\n"
            "    model.forward = lambda tokens: table[tokens]\n    return model\n",
        ),
    },
)

ASSIGNMENT = Assignment(
    "07",
    notebook="bert",
    title="BERT",
    tasks=(WHOLE_WORDS, ALIGN, LIKELIHOOD, SPEARMAN, TRAIN),
    seconds={"train": 45},  # for the training and all questions
)
