"""Assignment 08, GPT: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_08.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, mistakes


def odds(
    logits: Tensor,
    written: Tensor,
    penalty: float,
    min_p: float,
    *,
    push: str = "down",
    whose: str = "each row's",
    latest: int = 0,
    cut: str = "of the largest",
    ends: str = "shares",
    axis: int = -1,
    stable: bool = True,
) -> Tensor:
    """softmax of the penalised logits, without what is less likely than `min_p` times the likeliest."""
    B, V = logits.shape
    times = F.one_hot(written[:, -latest:], V).sum(1)
    times = times.sum(0).expand(B, V) if whose == "all rows" else times
    force = penalty ** (times if whose == "each time" else (times > 0).int()).to(logits.dtype)
    pushed = {
        "down": torch.where(logits > 0, logits / force, logits * force),
        "divided": logits / force,
        "up": torch.where(logits > 0, logits * force, logits / force),
        "subtracted": logits - penalty * (times > 0),
        "never": logits,
        "afterwards": logits,
    }[push]
    raw = pushed.exp()
    p = pushed.softmax(axis) if stable else raw / raw.sum(axis, keepdim=True)
    p = p / force if push == "afterwards" else p
    first = logits.softmax(axis)
    kept = {
        "of the largest": p >= min_p * p.amax(-1, keepdim=True),
        "strictly": p > min_p * p.amax(-1, keepdim=True),
        "absolute": p >= min_p,
        "of the largest of all": p >= min_p * p.max(),
        "before": first >= min_p * first.amax(-1, keepdim=True),
        "logits": pushed >= min_p * pushed.amax(-1, keepdim=True),
        "never": p >= 0,
    }[cut]
    left = p.masked_fill(~kept, 0.0)
    return left / left.sum(-1, keepdim=True) if ends == "shares" else left


def choices(
    draw: Draw, *, size: float = 2.0, penalty: float | None = None, min_p: float | None = None, longer: int = 0
) -> tuple:
    """Logits of a vocabulary, tokens of which some were written twice, a penalty and a share of the largest."""
    B, T, V = draw.sizes(3, 2, 6)
    T, V = T + longer, V + 8 + 2 * longer
    written = torch.cat([draw.integers(0, V, B, T + 2)] + [draw.integers(0, V, B, 1)] * 2, dim=1)
    noise = torch.rand(2, generator=draw.generator).tolist()
    penalty = 1.2 + noise[0] if penalty is None else penalty
    return size * draw(B, V), written, penalty, 0.05 + 0.25 * noise[1] if min_p is None else min_p


def likeliest_alone(draw: Draw) -> tuple:
    """The same with a `min_p` of 1; in the first row one token is certain."""
    logits, *others, _ = choices(draw)
    logits[0, draw.integers(0, logits.shape[1], 1)] += 60.0
    return logits, *others, 1.0


SAMPLING = replace(
    SHOWN["sampling_odds"],
    reference=odds,
    cases=(
        Case("what was written is less likely, and what is too unlikely is left out", choices, 8),
        Case("a penalty alone", lambda draw: choices(draw, min_p=0.0), 2, ("push", "whose")),
        Case(
            "a penalty for all that was written, however long ago",
            lambda draw: choices(draw, min_p=0.0, longer=90 + draw.integers(0, 30, 1).item()),
            2,
            ("push", "latest"),
        ),
        Case("a filter alone", lambda draw: choices(draw, penalty=1.0), 2, ("cut", "ends")),
        Case("with a min_p of 1 the likeliest alone", likeliest_alone, 1, ("cut",)),
        Case("large logits do no harm", lambda draw: choices(draw, size=1e3), 2, ("stable",), tolerance=1e-2),
    ),
    mistakes=mistakes(r"""
negative logits divided: push='divided'
    A token with a negative logit that was written before has become likelier.
    > Dividing -2 by 1.2 brings it nearer to 0, which is more. Negative logits are multiplied.
penalty the wrong way round: push='up'
    What was written before has become likelier.
    > Positive logits are divided by the penalty, negative ones multiplied.
penalty subtracted: push='subtracted'
    The penalty was subtracted from the logits.
    > It is a factor: with a penalty of 1 nothing changes.
penalty ignored: push='never'
    The result is the same with and without a penalty.
    > `written` holds the tokens that the penalty is for, in each row its own.
probabilities penalised: push='afterwards'
    Probabilities were divided by the penalty, not logits.
    > First the penalty on the logits, then the softmax.
penalty for each time: whose='each time'
    A token that was written twice is penalised twice.
    > Once or ten times: the penalty is the same. A mask of what was written says it.
only the latest tokens penalised: latest=16 | 32 | 64
    What was written long ago is not penalised.
    > All tokens in the row of `written` count, the first as much as the last.
rows share their texts: whose='all rows'
    What one row has written is penalised in the others, too.
    > Each row of `written` belongs to the row of `logits` with the same number.
threshold without the largest: cut='absolute'
    Tokens less likely than min_p itself are left out.
    > The threshold is min_p *times the largest probability* of the row: where the model is unsure, it is lower.
one threshold for all rows: cut='of the largest of all'
    The largest probability of the whole tensor decides for all rows.
    > `amax(dim=-1, keepdim=True)`: each row has a largest of its own.
the likeliest left out: cut='strictly'
    A token exactly at the threshold is left out: with a min_p of 1 nothing is left, and 0/0 is NaN.
    > It stays if its probability is *at least* `min_p` times the largest: leave out what is smaller, `<`.
filter before the penalty: cut='before'
    What is left out was decided by the logits as they came.
    > First the penalty, then the probabilities, then the filter.
filter on logits: cut='logits'
    Logits were compared with a share of the largest logit.
    > min_p is a share of a *probability*: take the softmax first.
filter ignored: cut='never'
    Unlikely tokens keep their probability.
    > Below min_p times the largest probability of its row, a token gets 0.
does not sum to one: ends='left'
    What is left does not sum to one.
    > Divide by the sum of what is left in each row.
softmax over the wrong axis: axis=0
    The softmax runs over the rows.
    > Each row is a distribution over the vocabulary: `dim=-1`.
large logits break the softmax: stable=False
    With small logits the result is right, with large ones it is not.
    > The exponential of 1000 is infinite: call `torch.softmax`, which subtracts each row's largest before.
"""),
    wrong={
        "negative logits divided": ("torch.where(logits > 0, logits / penalty, logits * penalty)", "logits / penalty"),
        "does not sum to one": ("return left / left.sum(dim=-1, keepdim=True)", "return left"),
        "the likeliest left out": ("p < min_p", "p <= min_p"),
        "only the latest tokens penalised": ("F.one_hot(written,", "F.one_hot(written[:, -64:],"),
    },
)


def encode(
    text: str, merges: list, *, unit: str = "bytes", turn: str = "first learned", side: str = "left", new: int = 256
) -> list[int]:
    """The bytes of a text, joined by the merge that was learned first among those that fit, again and again."""
    tokens = list(text.encode()) if unit == "bytes" else [ord(letter) for letter in text]
    number = {tuple(pair): n for n, pair in enumerate(merges)}
    for n, pair in enumerate(merges if turn == "each once" else ()):
        tokens = _joined(tokens, pair, 256 + n, "once")
    while turn != "each once" and (there := [pair for pair in zip(tokens, tokens[1:], strict=False) if pair in number]):
        if turn in ("leftmost", "commonest"):
            pair = there[0] if turn == "leftmost" else max(there, key=there.count)
        else:
            pair = (max if turn == "last learned" else min)(there, key=number.get)
        tokens = _joined(tokens, pair, new + number[pair], side)
        if turn == "one round":
            break
    return tokens


def _joined(tokens: list[int], pair: tuple, token: int, side: str) -> list[int]:
    if side == "right":
        return _joined(tokens[::-1], pair[::-1], token, "left")[::-1]
    joined, done = [], False
    for each in tokens:
        if joined and (joined[-1], each) == pair and not (done and side == "once"):
            joined[-1], done = token, True
        else:
            joined.append(each)
    return joined


def text_and_merges(draw: Draw, letters: str = "aabnéü ") -> tuple[str, list]:
    """A text, and the merges that a text like it has taught: of the commonest pairs, some bytes of one letter."""

    def text(size: int) -> str:
        return "".join(letters[place] for place in draw.integers(0, len(letters), size).tolist())

    tokens, merges = list(text(200).encode()), []
    for _ in range(draw.integers(12, 17, 1).item()):
        pairs = list(zip(tokens, tokens[1:], strict=False))
        merges.append(max(pairs, key=pairs.count))
        tokens = _joined(tokens, merges[-1], 255 + len(merges), "left")
    return text(draw.integers(60, 120, 1).item()), merges


ENCODE = replace(
    SHOWN["encode"],
    reference=encode,
    cases=(
        Case("bytes are joined, the merge learned first before all others", text_and_merges, 10),
        Case("any letters, of two bytes and more", lambda draw: text_and_merges(draw, "aéü→λ "), 4, ("unit", "turn")),
        Case("a run of one letter", lambda draw: text_and_merges(draw, "aaaaab"), 2, ("side", "turn", "new")),
        Case("without merges the bytes themselves", lambda draw: (text_and_merges(draw)[0], []), 2, ("unit",)),
    ),
    mistakes=mistakes(r"""
letters in place of bytes: unit='letters'
    The text was cut into letters, by their numbers in Unicode.
    > `text.encode("utf-8")` gives bytes, and `list` of that their numbers: é is two of them.
last merge first: turn='last learned'
    Where several merges fit, the one learned last was taken.
    > The merges stand in the order in which they were learned: the earliest that fits comes first.
leftmost pair first: turn='leftmost'
    Where several merges fit, the one furthest to the left was taken.
    > Look at all pairs of neighbours, and take the one whose merge stands first in the list, wherever it is.
commonest pair first: turn='commonest'
    The commonest pair of this text was joined first.
    > Counting belongs to learning merges. Encoding follows the list, whatever is common here.
stopped after one merge: turn='one round'
    Only one merge was used.
    > Go on until no pair of neighbours is in the list.
only the first place joined: turn='each once'
    Each merge was used in one place only.
    > Join the pair wherever it stands in the text.
joined from the right: side='right'
    In a run such as aaa the last two were joined, not the first two.
    > Go through the tokens from the left; a token that was joined is used up.
numbers of merges from 0: new=0
    A joined pair got the number of its merge, which is that of a byte, too.
    > Merge n makes token 256 + n.
"""),
    wrong={
        "letters in place of bytes": ('list(text.encode("utf-8"))', "[ord(letter) for letter in text]"),
        "last merge first": ("min(pairs, key=number.get)", "max(pairs, key=number.get)"),
        "numbers of merges from 0": ("256 + number[pair]", "number[pair]"),
    },
)


def bits_per_byte(
    nats: Tensor, starts: list, text: str, *, counted: str = "first", unit: str = "bits", per: str = "byte"
) -> float:
    """Each token by the first window that has it, in bits, over the bytes of the text."""
    first, last, tokens = [], {}, 0
    for start, row in zip(starts, nats.tolist(), strict=True):
        first += row[tokens - start :]
        last |= {start + place: loss for place, loss in enumerate(row)}
        tokens = start + len(row)
    half, step = nats.shape[1] // 2, (starts[1:] or [0])[0]
    losses = {
        "first": first,
        "last": list(last.values()),
        "all": nats.flatten().tolist(),
        "halves": nats[0].tolist() + nats[1:, half:].flatten().tolist(),
        "even steps": nats[0].tolist() + nats[1:, -step:].flatten().tolist(),
        "no beginning": first[nats.shape[1] :],
    }[counted]
    size = {"byte": len(text.encode()), "letter": len(text), "token": max(1, len(losses))}[per]
    total = sum(losses) / (math.log(2) if unit == "bits" else 1.0)
    return total / size


def scored_windows(draw: Draw, *, step: str = "drawn", count: int = 5) -> tuple[Tensor, list, str]:
    """Losses in windows, the last of which ends with the text; where each begins; and a text."""
    L = draw.integers(7, 11, 1).item()
    stride = L if step == "none shared" else draw.integers(2, L // 2, 1).item()
    starts = [stride * number for number in range(count)]
    starts += [starts[-1] + draw.integers(1, stride, 1).item()] if step == "drawn" else []
    letters = "".join("aeé ü→n"[place] for place in draw.integers(0, 7, 30 + 2 * L).tolist())
    return draw(len(starts), L).abs(), starts, letters


BITS = replace(
    SHOWN["bits_per_byte"],
    reference=bits_per_byte,
    cases=(
        Case("each token counts once, with as much before it as any window has", scored_windows, 9),
        Case("windows that share nothing", lambda draw: scored_windows(draw, step="none shared"), 3, ("unit", "per")),
        Case("a single window", lambda draw: scored_windows(draw, step="even", count=1), 2, ("unit", "per")),
    ),
    mistakes=mistakes(r"""
tokens counted in every window: counted='all'
    A token that stands in several windows counts several times.
    > Remember how many tokens are scored already, and take from each window only what lies behind them.
taken from the last window: counted='last'
    Tokens are scored by the last window that has them, where least of the text stands before them.
    > The first window that has a token has seen the most before it.
as much from each window: counted='halves' | 'even steps'
    From each window but the first the same number of tokens was taken, however far it has moved.
    > How much is new in a window depends on where it begins: see `starts`.
beginning left out: counted='no beginning'
    The tokens of the first window are missing.
    > Nothing is scored yet when the first window comes: all of it is new.
nats per byte: unit='nats'
    The result is in nats.
    > One bit is ln 2 nats: divide by `math.log(2)`.
letters in place of bytes: per='letter'
    The bits were divided by the number of letters.
    > `len(text.encode("utf-8"))`: é is two bytes.
bits per token: per='token'
    The bits were divided by the number of tokens.
    > Bytes do not depend on the tokenizer, tokens do: divide by the bytes of the text.
"""),
    wrong={"tokens counted in every window": ("row[scored - start:]", "row")},
)


def induction(
    weights: Tensor,
    tokens: Tensor,
    *,
    place: str = "behind",
    which: str = "all",
    over: str = "repeats",
    reach: str = "past",
    none: str = "zeros",
    turned: bool = False,
) -> Tensor:
    """The weight on what followed earlier occurrences of the same token, where there are any."""
    weights = weights.mT if turned else weights
    T = tokens.shape[1]
    square = torch.ones(T, T, dtype=torch.bool)
    same = tokens[:, :, None] == tokens[:, None, :]
    earlier = same & square.tril(-1)
    sources = same & ~torch.eye(T, dtype=torch.bool) if reach == "all" else earlier
    if which != "all":
        order = torch.arange(T) if which == "latest" else -torch.arange(T)
        best = torch.where(sources, order, -T).amax(-1, keepdim=True)
        sources = sources & (order == best)
    moved = {"behind": 1, "itself": 0, "before": -1}[place]
    hits = sources.roll(moved, -1)
    hits = hits & (torch.arange(T) >= moved if moved > 0 else torch.arange(T) < T + moved)
    hits = hits & square.tril() if reach == "past" else hits
    again = earlier.any(-1)
    mass = (weights * hits[:, None]).sum(-1).masked_fill(~again[:, None], 0.0).sum(-1)
    count = torch.full_like(mass, T) if over == "all" else again.sum(-1)[:, None].expand_as(mass)
    if over == "pairs":
        count = hits.sum((-1, -2))[:, None].expand_as(mass)
    return mass / (count if none == "nan" else count.clamp(min=1))


def maps_and_tokens(draw: Draw, *, plain: bool = False) -> tuple[Tensor, Tensor]:
    """Maps of attention that look ahead, too, and tokens with repeats; if so wanted none in the first row."""
    B, H, T = draw.sizes(3, 2, 5)
    T += 6
    tokens = draw.integers(0, 5, B, T)
    tokens[0] = torch.arange(T) + 9 if plain else tokens[0]
    tokens[-1, 3:5] = tokens[-1, 2]  # at once once more
    return (2 * draw(B, H, T, T)).softmax(-1), tokens


INDUCTION = replace(
    SHOWN["induction_score"],
    reference=induction,
    cases=(
        Case("the weight on what followed the same token before, where it stood before", maps_and_tokens, 12),
        Case("a text in which nothing comes twice gets zeros", lambda draw: maps_and_tokens(draw, plain=True), 4),
    ),
    mistakes=mistakes(r"""
the same token in place of the next: place='itself'
    The score is the weight on earlier occurrences of the same token.
    > An induction head looks one place further: at what *followed* them.
the token before in place of the next: place='before'
    The score is the weight on what stood before the earlier occurrences.
    > What comes next is asked for: the place behind the occurrence.
only the latest occurrence: which='latest'
    Only the latest earlier occurrence counts.
    > The weights behind all earlier occurrences are added up.
only the first occurrence: which='first'
    Only the first occurrence counts.
    > The weights behind all earlier occurrences are added up.
mean over all places: over='all'
    Places whose token comes for the first time count in the mean.
    > There is nothing to be found there: divide by the number of places whose token stood before.
mean over pairs: over='pairs'
    The sum was divided by the number of earlier occurrences.
    > Each place counts once in the mean, however often its token stood before.
later occurrences count: reach='all'
    Weight on what follows *later* occurrences counts, too.
    > Only places up to i itself count, whatever the map says of the others.
NaN where nothing comes twice: none='nan'
    A text without repeats gets NaN.
    > 0/0: divide by at least 1, `clamp(min=1)`.
rows and columns exchanged: turned=True
    The weights were read from the columns of the map.
    > Row i holds the weights of token i: `weights[b, h, i, j]` is how much i looks at j.
"""),
    wrong={
        "the same token in place of the next": ("hits[:, :, 1:] = earlier[:, :, :-1]", "hits[:] = earlier"),
        "NaN where nothing comes twice": (".clamp(min=1)", ""),
    },
)

TABLE = """    places, counts = 9 ** torch.arange(4), torch.full((9**4, 9), 0.01)
    counts.index_put_(((text.unfold(0, 4, 1)[:-1] * places).sum(1), text[4:]), torch.ones(()), accumulate=True)
    model.forward = lambda tokens: counts.log()[(F.pad(tokens, (3, 0)).unfold(1, 4, 1) * places).sum(2)]
    return model
    optimizer ="""
TRAIN = replace(
    SHOWN["train"],
    wrong={
        "not learned by its parameters": ("    optimizer =", TABLE),
        "looks at the future": ("x = block(x, src_mask=hidden)", "x = block(x)"),
        "not learned": ("range(250)", "range(1)"),
        "guesses what it has just read": ("window[:, 1:].flatten()", "window[:, :-1].flatten()"),
        "probabilities in place of scores": (
            "return self.head(self.norm(x))",
            "return torch.softmax(self.head(self.norm(x)), dim=-1)",
        ),
        "learned by heart": ("torch.randint(len(text) - 32, (32, 1))", "torch.randint(900, (32, 1))"),
        "only texts of one length": ("self.places(torch.arange(T))", "self.places.weight"),
        "stopped with an error": ("torch.manual_seed(0)", "torch.manual_seed(text)"),
    },
)

ASSIGNMENT = Assignment(
    "08",
    notebook="gpt",
    title="GPT",
    tasks=(SAMPLING, ENCODE, BITS, INDUCTION, TRAIN),
    seconds={"train": 90},  # for the training, and all questions
)
