"""Lesson 07, BERT: the tables of its exercises; each formula has a knob for every mistake that learners make."""

import torch
from torch import Tensor

from course_lib.tasks import Case, Draw, Finding, Task, gradients, mistakes

# mask_words -------------------------------------------------------------------------------------------------


def mask_words(
    tokens: Tensor,
    noise: Tensor,
    maskable: Tensor,
    mask_id: int,
    word_ids: tuple[int, int],
    *,
    chosen: str = "maskable",
    borders: tuple[float, float] = (0.8, 0.9),
    dice: str = "three",
    words: str = "first + n",
    scored: str = "chosen",
) -> tuple[Tensor, Tensor]:
    """15 % of the maskable tokens: of those 80 % hidden, 10 % replaced, 10 % left as they are."""
    choice, fate, word = noise
    fate = choice / 0.15 if dice == "one" else fate
    rare = choice < 0.15
    masked = {"maskable": rare & maskable, "all": rare, "others": ~rare & maskable, "every": maskable}[chosen]
    first, end = word_ids
    drawn = {"first + n": first + (word * (end - first)).long(), "rounded": first + (word * (end - first)).round()}
    drawn |= {"from 0": (word * end).long(), "n": (word * (end - first)).long()}
    drawn = drawn[words].long()
    kept = tokens
    if borders[0] > borders[1]:  # which of the two stays as it is
        drawn, kept, borders = kept, drawn, borders[::-1]
    changed = torch.where(fate < borders[0], mask_id, torch.where(fate < borders[1], drawn, kept))
    given = torch.where(masked, changed, tokens)
    return given, {"chosen": masked, "gaps": given == mask_id, "changed": given != tokens}[scored]


def sentences_and_noise(draw: Draw) -> tuple[Tensor, Tensor, Tensor, int, tuple[int, int]]:
    """Sentences in which about half of the words are chosen, and each fate comes as often as the others."""
    B, T = draw.sizes(2, 9, 16)
    first, size = draw.sizes(2, 20, 60)
    uniform = torch.rand(5, B, T, generator=draw.generator)
    fate = torch.stack([0.8 * uniform[1], 0.8 + 0.1 * uniform[1], 0.9 + 0.1 * uniform[1]])
    fate = fate.gather(0, (3 * uniform[2]).long()[None])[0].clamp(0.001, 0.999)
    word = ((uniform[3] * size).long() + torch.where(uniform[4] < 0.5, 0.25, 0.75)) / size
    tokens = draw.integers(first, first + size, B, T)
    signs = draw.integers(0, 4, B, T) == 0
    tokens = torch.where(signs, draw.integers(0, 5, B, T), tokens)
    return tokens, torch.stack([0.3 * uniform[0], fate, word]), ~signs, first // 2, (first, first + size)


MASK_WORDS = Task(
    name="mask_words",
    title="Hide 15 % of the words",
    asks="tokens, noise, maskable, mask_id, word_ids",
    reference=mask_words,
    cases=(Case("of the chosen words 80 % are hidden, 10 % replaced, 10 % left", sentences_and_noise),),
    mistakes=mistakes(r"""
signs are hidden, too: chosen='all'
    Tokens that are not maskable are changed or scored: [CLS], [SEP] or padding.
    > `&` joins two conditions: a small number in the first layer, and maskable.
the other words are chosen: chosen='others'
    Those 85 % are chosen that should be left alone.
    > A number from 0 to 1 lies below 0.15 in 15 % of all cases: `<`.
every word is chosen: chosen='every'
    All words are hidden or scored, in place of 15 % of them.
    > `noise[0] < 0.15` says which.
every chosen word becomes [MASK]: borders=(1.0, 1.0)
    No chosen word is replaced by another, and none is left as it is.
    > The second layer of the noise decides: below 0.8, from 0.8 to 0.9, or above.
no chosen word stays as it is: borders=(0.8, 1.0)
    What is not hidden is always replaced by a random word.
    > Only the numbers from 0.8 up to 0.9 stand for a random word; above 0.9 the word stays.
no chosen word is replaced: borders=(0.8, 0.8)
    What is not hidden is always left as it is.
    > From 0.8 up to 0.9 a random word takes its place.
replaced and left in the other order: borders=(0.9, 0.8)
    Words are left as they are from 0.8 to 0.9, and replaced above.
    > It would be as good, but not the same noise: from 0.8 up to 0.9 they are replaced.
one layer of noise decides twice: dice='one'
    The layer that chooses the words also decides what becomes of them.
    > Each decision has a layer of its own: `noise[0]` which, `noise[1]` what, `noise[2]` the random words.
random words from the wrong range: words='from 0' | 'n' | 'rounded'
    The random words do not run from `first` up to, but not including, `end`.
    > `first + (noise[2] * (end - first)).long()`; `.long()` cuts off what is behind the point.
only words that look different are scored: scored='gaps' | 'changed'
    Chosen words that were replaced or left as they are do not count as masked.
    > The model is asked about all chosen words: return the choice itself, made before anything was changed.
"""),
    minutes=8,
    text="Make gaps as BERT does (Devlin et al. 2019, section 3.1). `tokens` are ids, `(B, T)`; `noise`, `(3, B, T)`, "
    "holds uniform random numbers from 0 to 1. A token is **chosen** if its number in `noise[0]` lies below 0.15 and "
    "it is `maskable` (boolean; signs and padding are not). What becomes of a chosen token is decided by `noise[1]`: "
    "below 0.8 it turns into `mask_id`; from 0.8 up to 0.9 into the random word `first + n`, with `first, end = "
    "word_ids` and `n` the whole part of `noise[2] * (end - first)`; above, it stays. Return two tensors, `given, "
    "masked`: the new ids, and `True` at all chosen tokens.",
    hints=(
        "Begin with the choice: two conditions for each token, joined by `&`. Everything after that acts on chosen "
        "tokens alone.",
        "`torch.where(condition, a, b)` takes `a` where the condition holds and `b` elsewhere; `a` may be one number.",
        "Write what a token would become: `torch.where(noise[1] < 0.8, mask_id, torch.where(noise[1] < 0.9, words, "
        "tokens))`. Then take that where a token is chosen, and the token itself elsewhere.",
    ),
    solution="""
def my_mask_words(tokens, noise, maskable, mask_id, word_ids):
    masked = (noise[0] < 0.15) & maskable
    first, end = word_ids
    words = first + (noise[2] * (end - first)).long()
    other = torch.where(noise[1] < 0.9, words, tokens)
    changed = torch.where(noise[1] < 0.8, mask_id, other)
    return torch.where(masked, changed, tokens), masked
""",
)

# hidden_loss ------------------------------------------------------------------------------------------------


def hidden_loss(
    logits: Tensor,
    tokens: Tensor,
    masked: Tensor,
    *,
    scored: str = "hidden",
    share: str = "hidden words",
    logs: str = "log softmax",
    axis: int = -1,
) -> Tensor:
    """The mean of -log p(word) over the hidden words."""
    p = logits.softmax(axis)
    log_p = {"log softmax": logits.log_softmax(axis), "log of softmax": p.log(), "twice": p.log_softmax(axis)}
    log_p |= {"plus": -log_p["log softmax"], "bits": log_p["log softmax"] / 0.6931472, "none": logits, "no log": p}
    each = -log_p[logs].gather(-1, tokens[..., None])[..., 0]
    counted = {"hidden": masked, "all": masked | ~masked, "seen": ~masked}[scored]
    kept = each.where(counted, 0.0)
    if share == "rows":
        return (kept.sum(-1) / counted.sum(-1).clamp(min=1)).mean()
    return kept.sum() / {"hidden words": counted.sum(), "all words": masked.numel(), "none": 1}[share]


def guesses(draw: Draw, *, large: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, the true words, and which of them are hidden: in one row all but one, in the others about half."""
    B, T, V = draw.sizes(3, 3, 9)
    masked = draw.mask(B, T)
    masked[0, :-1] = True
    return large * draw(B, T, V), draw.integers(0, V, B, T), masked


HIDDEN_LOSS = Task(
    name="hidden_loss",
    title="A loss that counts hidden words only",
    asks="logits, tokens, masked",
    reference=hidden_loss,
    cases=(
        Case("the mean surprise over the hidden words", guesses),
        Case(
            "scores of some hundreds do no harm",
            lambda draw: guesses(draw, large=200.0),
            otherwise=Finding(
                "large scores break the loss",
                "With small scores the loss is right, with scores of some hundreds it is not.",
                "The share of a word can be too small for a number of 32 bits: `log_softmax`, or a loss of torch's.",
            ),
        ),
    ),
    mistakes=mistakes(r"""
seen words are scored, too: scored='all'
    Every word counts, also those that stand in the input.
    > A word that the model can see teaches it to copy: pick the hidden ones, `logits[masked]`, `tokens[masked]`.
the seen words are scored: scored='seen'
    Exactly the words that are not hidden count.
    > `masked` is True at the words that are asked for.
divided by the number of all words: share='all words'
    The sum runs over the hidden words, but is divided by the number of all words.
    > Setting the loss of the others to zero leaves them in the mean: pick the hidden words before taking it.
summed in place of averaged: share='none'
    The losses of the hidden words are added up.
    > The mean does not grow with the number of hidden words.
mean of the sentences' means: share='rows'
    Each sentence counts the same, however many of its words are hidden.
    > Each hidden word counts the same: one mean over all of them.
softmax taken twice: logs='twice'
    The scores go through a softmax before the cross-entropy, which has its own.
    > `cross_entropy` wants the scores as they are.
no softmax: logs='none'
    The score of the right word is used as it is.
    > Scores become shares of all words first.
no logarithm: logs='no log'
    The shares of the right words are averaged, not their logarithms.
    > The surprise about a word is -log p.
wrong sign: logs='plus'
    The loss is negative.
    > A share lies below 1, so its logarithm is negative: take the minus.
bits in place of nats: logs='bits'
    The logarithm has base 2.
    > Use the natural one, `torch.log`.
logarithm of a share that is 0: logs='log of softmax'
    Large scores give infinity: a share is so small that it is rounded to 0.
    > `log_softmax` takes both steps at once, and so does `cross_entropy`.
softmax over the wrong axis: axis=-2 | 0
    The shares of all words of the vocabulary do not sum to one.
    > At each place of the sentence there is one row of scores: `dim=-1`.
"""),
    also=(gradients,),
    minutes=4,
    text="How surprised is the model by the words that it could not see? `logits`, `(B, T, V)`, are its scores for "
    "every word of the vocabulary at each place, `tokens`, `(B, T)`, the words that truly stand there, and `masked`, "
    "`(B, T)`, is `True` where the word was hidden. Return the mean of $-\\log p(\\text{word})$ over the hidden "
    "words, one number. torch's own losses are allowed.",
    hints=(
        "What is asked about the words that the model could read? Nothing: they should not be in the mean at all.",
        "A boolean tensor in brackets picks: `tokens[masked]` has one number for each hidden word.",
        "`logits[masked]` has shape `(N, V)`, `tokens[masked]` has shape `(N,)`: just what "
        "`nn.functional.cross_entropy` takes.",
    ),
    solution="""
def my_hidden_loss(logits, tokens, masked):
    return nn.functional.cross_entropy(logits[masked], tokens[masked])
""",
)

# longest_match ----------------------------------------------------------------------------------------------


def longest_match(
    word: str,
    vocabulary: set[str],
    *,
    search: str = "longest",
    sign: str = "inside",
    lost: str = "whole",
) -> list[str]:
    """The longest piece at the front, then the longest of the rest."""
    pieces, done = [], 0
    while done < len(word):
        ends = range(len(word), done + (search == "no letters"), -1)
        for end in sorted(ends) if search == "shortest" else ends:
            letters, inside = word[done:end], "##" if done or sign == "everywhere" else ""
            if ("" if sign in ("never", "added") else inside) + letters in vocabulary:
                pieces.append(("" if sign in ("never", "left out") else inside) + letters)
                done = end
                break
        else:
            if lost == "whole":
                return ["[UNK]"]
            pieces += [] if lost in ("skipped", "dropped") else ["[UNK]"]
            done = done + 1 if lost in ("letter", "skipped") else len(word)
    return pieces


def with_shorter_pieces(word: str, vocabulary: set[str], done: int = 0) -> list[str]:
    """Pieces for the whole rest, however they must be chosen; none if there are none."""
    for end in range(len(word), done, -1):
        piece = "##" * (done > 0) + word[done:end]
        rest = with_shorter_pieces(word, vocabulary, end) if piece in vocabulary else []
        if piece in vocabulary and (rest or end == len(word)):
            return [piece, *rest]
    return []


def from_the_end(word: str, vocabulary: set[str], *, search: str = "longest", **others: str) -> list[str]:
    """The same, or with the longest piece at the end first, or with shorter pieces where the rest has none."""
    if search == "goes back":
        return with_shorter_pieces(word, vocabulary) or ["[UNK]"]
    if search != "from the end":
        return longest_match(word, vocabulary, search=search, **others)
    pieces = []
    while word:
        ends = ("##" * (start > 0) + word[start:] for start in range(len(word)))
        if (found := next((piece for piece in ends if piece in vocabulary), None)) is None:
            return ["[UNK]"]
        pieces, word = [found, *pieces], word[: -len(found.removeprefix("##"))]
    return pieces


def word_and_pieces(draw: Draw, *, known: str = "letters") -> tuple[str, set[str]]:
    """A word, and pieces that fit at some of its places, single letters among them; or a word with a strange letter."""
    length = draw.integers(7, 12, 1).item()
    word = "".join("abc"[i] for i in draw.integers(0, 3, length).tolist())
    spans = [word[i:j] for i in range(length) for j in range(i + 2, min(i + 5, length))]
    kept = (torch.rand(2, len(spans), generator=draw.generator) < 0.5).tolist()
    vocabulary = {"[UNK]", *"abc", "##a", "##b", "##c"}
    for inside, row in zip(("", "##"), kept, strict=True):
        vocabulary |= {inside + span for span, keep in zip(spans, row, strict=True) if keep}
    if known == "whole":
        vocabulary.add(word)
    if known == "strange":
        place = draw.integers(2, length, 1).item()
        word = f"{word[:place]}z{word[place:]}"
    return word, vocabulary


def dead_end(draw: Draw) -> tuple[str, set[str]]:
    """A word whose longest first piece leaves a rest without a piece, and whose shorter one would not."""
    word = "".join("abcdefgh"[i] for i in torch.randperm(8, generator=draw.generator).tolist())
    k = draw.integers(3, 6, 1).item()
    return word, {
        "[UNK]",
        word[:k],
        word[: k - 1],
        f"##{word[k - 1 :]}",
        f"##{word[k - 1 : k + 1]}",
        f"##{word[k - 2 :]}",
    }


LONGEST_MATCH = Task(
    name="longest_match",
    title="WordPiece: the longest piece that fits",
    asks="word, vocabulary",
    reference=from_the_end,
    cases=(
        Case("the longest piece, then the longest of the rest", word_and_pieces),
        Case("a word of the vocabulary stays whole", lambda draw: word_and_pieces(draw, known="whole")),
        Case("a rest that has no piece", lambda draw: word_and_pieces(draw, known="strange")),
        Case("what is cut off stays cut off", dead_end),
    ),
    mistakes=mistakes(r"""
shortest piece first: search='shortest'
    The shortest piece that fits is taken.
    > Try the ends from the last letter backwards: `range(len(word), done, -1)`.
cut from the end: search='from the end'
    The longest piece at the end of the word is taken first.
    > WordPiece reads from the front: find the piece with which the word begins, then go on behind it.
single letters never tried: search='no letters'
    A piece of one letter is not found.
    > `range(a, b, -1)` stops before `b`: the last end to be tried is one behind the start.
goes back to shorter pieces: search='goes back'
    Where the rest has no piece, a shorter piece was taken before it.
    > WordPiece never goes back: each time the longest piece, and if the rest has none, the word is unknown.
no ## inside of a word: sign='never'
    Pieces inside of a word are looked up and returned without ##.
    > `ing` begins a word and `##ing` goes on with one: two pieces. Put ## before every piece but the first.
## not looked up: sign='added'
    The pieces are looked up without ##, which is put before them only in the result.
    > The vocabulary knows `##ing` and `ing` as two pieces; look up the one that you return.
## not returned: sign='left out'
    The pieces are looked up with ##, but returned without.
    > Append to the result the very piece that you have looked up.
## before the first piece, too: sign='everywhere'
    The first piece is looked up with ##, as if it stood inside of the word.
    > Only what is not the beginning of the word has ##.
known pieces kept beside an unknown rest: lost='rest'
    For a word with a strange letter the result holds pieces and [UNK].
    > If any rest has no piece, the whole word is unknown: return `["[UNK]"]`.
an [UNK] for a letter: lost='letter'
    A strange letter alone becomes [UNK], and the rest is cut on.
    > The whole word is unknown then: return `["[UNK]"]`.
strange letters left out: lost='skipped' | 'dropped'
    A strange letter, or what begins with it, is not in the result at all.
    > Then another word would be read. Return `["[UNK]"]` in place of the whole word.
"""),
    minutes=8,
    text="Cut one word as WordPiece does: take the **longest** piece of the vocabulary with which the word begins, "
    "then the longest with which the rest begins, until nothing is left. Pieces inside of a word are written with "
    "`##` in front, in the vocabulary and in the result. If some rest has no piece at all, the whole word is unknown, "
    "even where a shorter piece before it would have helped. "
    "`vocabulary` is a set of texts; return a list: `playing` becomes `['play', '##ing']`, an unknown word "
    "`['[UNK]']`.",
    hints=(
        "Keep a number `done`: how many letters have been cut off. While letters are left, one more piece has to be "
        "found, and it begins there.",
        "Try the ends from the last letter backwards: the first piece `word[done:end]` that the vocabulary holds is "
        "the longest one. What stands in front of it, if `done` is not 0?",
        "A `for` loop may have an `else`: it runs if the loop was never left by `break`. That is the place to return "
        "`['[UNK]']`.",
    ),
    solution="""
def my_longest_match(word, vocabulary):
    pieces, done = [], 0
    while done < len(word):
        for end in range(len(word), done, -1):
            piece = ("##" if done else "") + word[done:end]
            if piece in vocabulary:
                pieces.append(piece)
                done = end
                break
        else:
            return ["[UNK]"]
    return pieces
""",
)

# pack_pair --------------------------------------------------------------------------------------------------


def pack_pair(
    first: list[int],
    second: list[int],
    start: int,
    end: int,
    max_length: int,
    *,
    cut: str = "longer",
    side: str = "end",
    equal: str = "second",
    signs: str = "three",
    border: str = "behind",
) -> tuple[list[int], list[int]]:
    """[CLS] first [SEP] second [SEP], with the number of the text that each token belongs to."""
    texts, room = [list(first), list(second)], max_length - (0 if cut == "no room for signs" else 3)
    while cut not in ("packed", "never") and sum(map(len, texts)) > room and any(texts):
        longer = len(texts[1]) > len(texts[0]) or (len(texts[0]) == len(texts[1]) and equal == "second")
        longer = {"second": bool(texts[1]), "first": not texts[0]}.get(cut, longer)
        if cut == "halves":
            texts = [text[: room // 2] for text in texts]
        else:
            texts[longer].pop(0 if side == "front" else -1)
    a, b = texts
    between = {"three": [end], "again": [end, start], "one": [end], "none": []}[signs]
    last = [end] if signs != "one" else []
    ids = [start, *a, *between, *b, *last]
    ones = len(b) + len(last) + {"behind": 0, "before": len(between), "other": 0, "none": -len(b) - len(last)}[border]
    ones += signs == "again"
    segments = [0] * (len(ids) - ones) + [1] * ones
    if border == "other":
        segments = [1 - segment for segment in segments]
    return (ids[:max_length], segments[:max_length]) if cut == "packed" else (ids, segments)


def two_texts(draw: Draw, *, lengths: str = "any") -> tuple[list[int], list[int], int, int, int]:
    """Two texts, the signs, and a length into which they fit; or with too long ones, of different or equal lengths."""
    short, long = draw.integers(3, 8, 1).item(), draw.integers(12, 16, 1).item()
    if draw.integers(0, 2, 1).item():
        short, long = long, short
    if lengths == "equal":
        long = short
    first, second = (draw.integers(10, 100, size).tolist() for size in (short, long))
    most = {"any": short + long + 3, "too long": 14, "equal": 2 * short}[lengths]
    return first, second, *draw.sizes(2, 1, 9), most + draw.integers(0, 2, 1).item() * (lengths != "equal")


PACK_PAIR = Task(
    name="pack_pair",
    title="Two texts in one row",
    asks="first, second, start, end, max_length",
    reference=pack_pair,
    cases=(
        Case("[CLS] first [SEP] second [SEP], with segments", two_texts),
        Case("the longer text loses its last tokens", lambda draw: two_texts(draw, lengths="too long")),
        Case("two texts of the same length", lambda draw: two_texts(draw, lengths="equal")),
    ),
    mistakes=mistakes(r"""
no [SEP] at the end: signs='one'
    The row ends with the second text.
    > Each text is followed by `end`, the second one, too.
no [SEP] between the texts: signs='none'
    Nothing stands between the two texts.
    > Each text is followed by `end`.
two [CLS]: signs='again'
    The second text has a `start` of its own.
    > There is one [CLS], in front of everything.
[SEP] in the wrong segment: border='before'
    The sign between the texts counts to the second one.
    > It closes the first text: segment 0.
all tokens in one segment: border='none'
    Every token has segment 0.
    > The second text and the sign behind it have segment 1.
segments swapped: border='other'
    The first text has segment 1.
    > It has segment 0, with [CLS] and its [SEP].
row cut off at the end: cut='packed'
    The row is packed first and then cut, so that signs and the second text are lost.
    > Shorten the texts before you pack them.
texts that are too long stay so: cut='never'
    The row has more than `max_length` tokens.
    > While they do not fit, one text loses its last token, the longer one.
no room left for the signs: cut='no room for signs'
    With its three signs the row is longer than `max_length`.
    > The texts together may have `max_length - 3` tokens.
only one text is shortened: cut='second' | 'first'
    Always the same text loses tokens, whether or not it is the longer one.
    > Compare the lengths before each token that is taken away.
both texts get half of the room: cut='halves'
    Each text is cut to half of the room, also where the other needs less.
    > Take one token at a time from the text that is longer at that moment.
texts lose their first tokens: side='front'
    Tokens are taken away at the front.
    > `.pop()` takes the last one.
of two equal texts the first is shortened: equal='first'
    Where both are of the same length, the first one loses a token.
    > The second one does: `if len(first) > len(second)` the first, otherwise the second.
"""),
    minutes=6,
    text="Pack two lists of ids into one row: `start` (the id of [CLS]), the first text, `end` ([SEP]), the second "
    "text, `end`. Return two lists, `ids, segments`; a token's segment is 0 up to and including the first [SEP], and "
    "1 behind it. The row may have at most `max_length` tokens: as long as it has more, the text that is longer at "
    "that moment loses its last token; of two texts of the same length it is the second. Leave the lists that you "
    "were given unchanged.",
    hints=(
        "Two jobs, one after the other: make the texts short enough, then put the row together.",
        "How much room do the signs need? While the two texts have more tokens than what is left, take one away.",
        "Copy the lists first, `first, second = list(first), list(second)`; then `.pop()` shortens the copy. `[0] * "
        "n` is a list of n zeros.",
    ),
    solution="""
def my_pack_pair(first, second, start, end, max_length):
    first, second = list(first), list(second)
    while len(first) + len(second) > max_length - 3:
        if len(first) > len(second):
            first.pop()
        else:
            second.pop()
    ids = [start, *first, end, *second, end]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    return ids, segments
""",
)

# mean_pooling -----------------------------------------------------------------------------------------------


def mean_pooling(
    features: Tensor,
    valid: Tensor,
    *,
    read: str = "mean",
    counted: str = "real",
    empty: str = "zeros",
    hides: str = "fills",
) -> Tensor:
    """The mean over the real tokens."""
    kept = {"real": valid, "padding": ~valid, "all": valid | ~valid, "zeroed": valid, "longest": valid}[counted]
    kept = kept[..., None]
    if read == "first":
        return features[:, 0]
    if read == "max":
        return features.masked_fill(~kept, -torch.inf if empty == "nan" else -1e9).amax(1)
    count = {"zeroed": features.shape[1], "longest": kept.sum(1).amax()}.get(counted, kept.sum(1))
    if read == "sum":
        count = 1
    elif empty == "zeros" and isinstance(count, Tensor):
        count = count.clamp(min=1)
    return (features * kept if hides == "times" else features.where(kept, 0.0)).sum(1) / count


def padded(draw: Draw, *, empty: bool = False, wild: bool = False) -> tuple[Tensor, Tensor]:
    """Features of sentences of several lengths, in the padding numbers or infinity; one may have no token."""
    B, T, D = draw.sizes(3, 3, 9)
    lengths = draw.integers(1, T, B)
    lengths[-1] = 0 if empty else 1
    features, valid = draw(B, T, D) + 2, torch.arange(T) < lengths[:, None]
    return features.masked_fill(~valid[..., None], torch.inf) if wild else features, valid


MEAN_POOLING = Task(
    name="mean_pooling",
    title="One vector for a sentence",
    asks="features, valid",
    reference=mean_pooling,
    cases=(
        Case("the mean over the real tokens", padded),
        Case("a row without tokens gets zeros", lambda draw: padded(draw, empty=True)),
        Case("infinity in the padding does no harm", lambda draw: padded(draw, wild=True)),
    ),
    mistakes=mistakes(r"""
padding multiplied by zero: hides='times'
    The padding was multiplied by 0, and 0 times infinity, or NaN, is NaN.
    > Fill it with zeros: `features.masked_fill(~valid[:, :, None], 0.0)`.
padding is in the mean: counted='all'
    The mean runs over the padding, too: a sentence's vector depends on the others in its batch.
    > Only the tokens at which `valid` is True count.
divided by the length of the row: counted='zeroed'
    The padding adds nothing to the sum, but is counted in the division.
    > Divide by the number of real tokens of each row: `valid.sum(dim=1, keepdim=True)`.
divided by the longest sentence: counted='longest'
    Every row is divided by the same number.
    > Each sentence has its own number of real tokens.
the padding is averaged: counted='padding'
    Exactly the tokens that are not real count.
    > `valid` is True at real tokens; `masked_fill` fills where its mask is True, so give it `~valid`.
summed in place of averaged: read='sum'
    Long sentences get long vectors.
    > Divide by the number of real tokens.
only the first token is read: read='first'
    The result is the vector of [CLS].
    > That is what BERT's own classifiers read; here it is the mean over all real tokens.
largest in place of mean: read='max'
    The result holds the largest number of each feature.
    > Mean: the sum, divided by how many there are.
NaN for a row without tokens: empty='nan'
    A row in which nothing is real gives NaN.
    > 0 / 0: let the number of tokens be at least 1, `.clamp(min=1)`.
"""),
    also=(gradients,),
    minutes=5,
    stretch=True,
    text="Turn the vectors of a sentence's tokens into one: their mean. `features` has shape `(B, T, D)`; sentences "
    "of different lengths were filled up with padding, and `valid`, `(B, T)`, is `True` at real tokens. Whatever "
    "stands in the padding, NaN or infinity included, must not count. The result has shape `(B, D)`; a row without any "
    "real token gets zeros.",
    hints=(
        "A mean is a sum divided by a number. For both, ask which tokens belong to it.",
        "`valid[:, :, None]` has shape `(B, T, 1)` and fits the features: set what is not real to zero, then sum over "
        "`dim=1`.",
        "`valid.sum(dim=1, keepdim=True)` has shape `(B, 1)`. What should it be for a row without tokens, so that the "
        "division gives 0?",
    ),
    solution="""
def my_mean_pooling(features, valid):
    real = valid[:, :, None]
    total = features.masked_fill(~real, 0.0).sum(dim=1)
    count = valid.sum(dim=1, keepdim=True)
    return total / count.clamp(min=1)
""",
)

TASKS = {task.name: task for task in (MASK_WORDS, HIDDEN_LOSS, LONGEST_MATCH, PACK_PAIR, MEAN_POOLING)}
