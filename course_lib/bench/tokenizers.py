"""How fast our byte-pair encoding is beside the `tokenizers` library's, and beside the naive trainer of the paper.

One megabyte of English with code in it (the docstrings of PyTorch and NumPy), one thread, one process; the variants
take turns. Both libraries end with the same vocabulary and the same ids, or the race is off.
"""

import bisect
import itertools
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator

from course_lib.bench.race import race
from course_lib.bench.table import Row, row
from course_lib.text import ByteLevelBPE
from course_lib.text.merges import Corpus, learn_merges, learn_merges_naive
from course_lib.text.splitting import split_at_space
from course_lib.text.tokenizer import count_words

BYTES = 1_000_000
VOCAB_SIZE = 8000
NAIVE_MERGES = 200  # the naive trainer takes minutes for a whole vocabulary, and falls further behind with each merge


def docstrings(size: int = BYTES) -> list[str]:
    """Docstrings of the loaded modules of PyTorch and NumPy, each once, in a random order: `size` bytes or a few more.

    Raises ValueError if there are not so many.
    """
    found: dict[str, None] = {}
    modules = sorted(name for name in sys.modules if name.split(".")[0] in ("torch", "numpy"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some old names warn when they are touched
        for thing in (thing for name in modules for thing in list(vars(sys.modules[name]).values())):
            for each in (thing, *(vars(thing).values() if isinstance(thing, type) else ())):
                text = getattr(each, "__doc__", None) if callable(each) else None
                if isinstance(text, str):
                    found[text] = None
    texts = sorted(found)
    random.Random(0).shuffle(texts)
    lengths = list(itertools.accumulate(len(text.encode()) for text in texts))
    if lengths[-1] < size:
        raise ValueError(f"The loaded modules have {lengths[-1]} bytes of docstrings, {size} were wanted.")
    return texts[: bisect.bisect_left(lengths, size) + 1]


def official_trainer(texts: list[str]) -> Callable[[], object]:
    """Trains GPT-2's kind of tokenizer with the `tokenizers` library."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    def train() -> Tokenizer:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=VOCAB_SIZE,
            min_frequency=2,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return tokenizer

    return train


def measure(*, size: int = BYTES, seconds: float = 10.0) -> Iterator[Row]:
    """The lines of the table, one after the other: training, encoding, decoding, and the naive trainer.

    Each race with the library ends after about `seconds`. Raises RuntimeError if a result of ours is not the other's.
    """
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread each
    texts = docstrings(size)
    train_ours, train_theirs = lambda: ByteLevelBPE.train(texts, VOCAB_SIZE), official_trainer(texts)
    ours, theirs = train_ours(), train_theirs()
    agree(ours.vocabulary == tuple(sorted(theirs.get_vocab(), key=theirs.get_vocab().get)), "vocabularies")
    ids = [ours.encode(text) for text in texts]
    agree(ids == [encoding.ids for encoding in theirs.encode_batch_fast(texts)], "ids")

    def compare(what: str, run: Callable[[], object], peer: Callable[[], object]) -> Row:
        return row(what, race({"ours": run, "theirs": peer}, fewest=5, warm_up=1, seconds=seconds), target=None)

    def encode_afresh() -> None:
        ours._words.clear()
        for text in texts:
            ours.encode(text)

    def encode_afresh_officially() -> None:
        theirs.model._clear_cache()
        theirs.encode_batch_fast(texts)

    yield compare(f"byte-level BPE, training {VOCAB_SIZE:,} tokens", train_ours, train_theirs)
    yield compare("encoding, no word seen before", encode_afresh, encode_afresh_officially)
    yield compare(
        "encoding, words remembered",
        lambda: [ours.encode(text) for text in texts],
        lambda: theirs.encode_batch_fast(texts),
    )
    yield compare(
        "decoding",
        lambda: [ours.decode(each) for each in ids],
        lambda: theirs.decode_batch(ids, skip_special_tokens=False),
    )


def measure_naive(*, size: int = BYTES, merges: int = NAIVE_MERGES, rounds: int = 3) -> Row:
    """Our trainer beside the one that counts all pairs anew for every merge: counting words, and the first merges.

    Raises RuntimeError if they do not find the same.
    """
    texts, found = docstrings(size), {}

    def trainer(learn: Callable) -> Callable[[], None]:
        def train() -> None:
            corpus = Corpus.from_counts(count_words(texts, split_at_space), suffix="</w>")
            found[learn] = learn(corpus, len(corpus.tokens) + merges)

        return train

    runs = {"ours": trainer(learn_merges), "theirs": trainer(learn_merges_naive)}
    times = race(runs, fewest=rounds, most=rounds, warm_up=0)
    agree(found[learn_merges] == found[learn_merges_naive], "merges")
    return row(f"subword BPE, {merges} merges, against the naive trainer", times, target=1 / 20)


def agree(same: bool, what: str) -> None:
    """Raises RuntimeError if two variants do not."""
    if not same:
        raise RuntimeError(f"The {what} of the variants are not the same: the race would mean nothing.")
