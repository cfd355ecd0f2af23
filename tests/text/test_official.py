"""Our tokenizers beside the official library: ids of any text, text of any ids, and what training makes."""

import json
from collections import Counter
from itertools import product

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, trainers

from course_lib.text import BertSplitter, ByteLevelBPE, SubwordBPE, WordPiece, WordTokenizer
from course_lib.text.merges import Corpus
from course_lib.text.splitting import split_at_space
from tests.text.samples import any_text, known_to_all, language

TEXTS = language(0)
SUBWORDS = SubwordBPE.train(TEXTS, 500)
BYTES = ByteLevelBPE.train(TEXTS, 700, specials=["<|endoftext|>", "<pad>"])
PIECES = WordPiece.train(TEXTS, 500)


def official(ours):
    """The official tokenizer with our vocabulary, merges, options and special tokens."""
    vocab = {token: i for i, token in enumerate(ours.vocabulary)}
    normalizer, decoder = None, None
    if isinstance(ours, WordTokenizer):
        model, cut = models.WordLevel(vocab=vocab, unk_token="<unk>"), pre_tokenizers.Whitespace()
    elif isinstance(ours, SubwordBPE):
        model = models.BPE(vocab=vocab, merges=list(ours.merges), unk_token="<unk>", end_of_word_suffix="</w>")
        cut = pre_tokenizers.Whitespace() if ours.cut_punctuation else pre_tokenizers.WhitespaceSplit()
        decoder = decoders.BPEDecoder()
    elif isinstance(ours, ByteLevelBPE):
        model, decoder = models.BPE(vocab=vocab, merges=list(ours.merges)), decoders.ByteLevel()
        cut = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        model = models.WordPiece(vocab=vocab, unk_token="[UNK]", max_input_chars_per_word=ours.max_letters)
        cut, decoder, options = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece(cleanup=False), ours.splitter
        normalizer = normalizers.BertNormalizer(
            options.clean, options.space_chinese, options.strip_accents, options.lower
        )
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer, tokenizer.normalizer, tokenizer.decoder = cut, normalizer, decoder
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in ours.specials])
    return tokenizer


APART = SubwordBPE(SUBWORDS.vocabulary, SUBWORDS.merges, cut_punctuation=True)
KINDS = {"words": WordTokenizer.train(TEXTS, 200), "subwords": SUBWORDS, "punctuation apart": APART, "bytes": BYTES}
PAIRS = {name: (ours, official(ours)) for name, ours in (KINDS | {"pieces": PIECES}).items()}


@pytest.mark.parametrize("kind", PAIRS)
@settings(max_examples=300, deadline=None)
@given(text=any_text(TEXTS))
def test_any_text_has_the_official_ids_and_tokens(kind, text):
    ours, theirs = PAIRS[kind]
    text = known_to_all(text) if kind == "pieces" else text
    encoded = theirs.encode(text)
    assert ours.encode(text) == encoded.ids
    assert ours.tokens(text) == encoded.tokens


@settings(max_examples=20, deadline=None)
@given(any_text(TEXTS).map(known_to_all))
def test_pieces_are_the_official_ones_with_every_option_and_word_length(text):
    for lower, accents, max_letters in product((True, False), (True, False), (3, 100)):
        splitter = BertSplitter(lower=lower, strip_accents=accents)
        ours = WordPiece(PIECES.vocabulary, splitter=splitter, max_letters=max_letters)
        assert ours.encode(text) == official(ours).encode(text).ids


@pytest.mark.parametrize(("kind", "first"), [("subwords", 4), ("bytes", 0), ("pieces", 0)])
@settings(deadline=None)
@given(data=st.data())
def test_any_ids_decode_as_by_the_official_library(kind, first, data):
    ours, theirs = PAIRS[kind]
    ids = data.draw(st.lists(st.integers(first, len(ours) - 1), max_size=20))
    assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)
    assert ours.decode(ids, strip_specials=True) == theirs.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("kind", ["subwords", "bytes"])
def test_a_long_word_has_the_official_tokens(kind):
    ours, theirs = PAIRS[kind]
    text = "".join(language(1)).replace(" ", "")
    assert len(text) > 5000 and ours.encode(text) == theirs.encode(text).ids


def trained(model, pre_tokenizer, texts, trainer):
    """The vocabulary of an official tokenizer in the order of its ids, and its merges."""
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(texts, trainer)
    ids, merges = tokenizer.get_vocab(), json.loads(tokenizer.to_str())["model"].get("merges", ())
    return tuple(sorted(ids, key=ids.get)), tuple(map(tuple, merges))


# At these limits no two letters are equally frequent: such a tie the official library leaves to its hash table.
@pytest.mark.parametrize(
    ("seed", "min_frequency", "limit_alphabet", "room"),
    [(0, 1, None, 400), (1, 2, None, 150), (2, 3, None, 10_000), (3, 1, 42, 200), (4, 5, 23, 60), (5, 2, None, 0)],
)
@pytest.mark.parametrize("kind", [SubwordBPE, WordPiece])
def test_subwords_and_pieces_are_trained_as_by_the_official_library(kind, seed, min_frequency, limit_alphabet, room):
    subwords, texts = kind is SubwordBPE, language(seed)
    unknown, marks = ("<unk>", {"suffix": "</w>"}) if subwords else ("[UNK]", {"prefix": "##"})
    words = [" ".join((split_at_space if subwords else BertSplitter())(text)) for text in texts]
    counts = Counter(" ".join(words).split())
    letters = Corpus.from_counts(counts, specials=[unknown], limit_alphabet=limit_alphabet, **marks).tokens
    size = len(letters) + room
    ours = kind.train(texts, size, specials=[unknown], min_frequency=min_frequency, limit_alphabet=limit_alphabet)
    options = {"vocab_size": size, "min_frequency": min_frequency, "special_tokens": list(letters)}
    options |= {"show_progress": False} | ({} if limit_alphabet is None else {"limit_alphabet": limit_alphabet})
    if subwords:
        model = models.BPE(unk_token=unknown, end_of_word_suffix="</w>")
        trainer = trainers.BpeTrainer(**options, end_of_word_suffix="</w>")
    else:
        model, trainer = models.WordPiece(unk_token=unknown), trainers.WordPieceTrainer(**options)
    vocabulary, merges = trained(model, pre_tokenizers.WhitespaceSplit(), words, trainer)
    assert ours.vocabulary == vocabulary
    assert not subwords or ours.merges == merges
    assert len(ours) == size or min_frequency > 1 or room > 300


@pytest.mark.parametrize(("seed", "min_frequency", "room"), [(0, 1, 500), (1, 2, 100), (2, 3, 10_000), (3, 2, 0)])
def test_byte_level_merges_are_trained_as_by_the_official_library(seed, min_frequency, room):
    texts, specials = language(seed), ["<|endoftext|>", "<pad>"]
    ours = ByteLevelBPE.train(texts, 258 + room, specials=specials, min_frequency=min_frequency)
    options = {"min_frequency": min_frequency, "special_tokens": specials, "show_progress": False}
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(**options, vocab_size=258 + room, initial_alphabet=letters)
    theirs = trained(models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=False), texts, trainer)
    assert (ours.vocabulary, ours.merges) == theirs


@pytest.mark.parametrize(("seed", "vocab_size", "min_frequency"), [(0, 50, 1), (1, 10_000, 1), (2, 10_000, 4)])
def test_words_are_chosen_as_by_the_official_library(seed, vocab_size, min_frequency):
    texts, specials = language(seed), ["<pad>", "<s>", "</s>", "<unk>"]
    options = {"vocab_size": vocab_size, "min_frequency": min_frequency}
    trainer = trainers.WordLevelTrainer(**options, special_tokens=specials, show_progress=False)
    vocabulary, _ = trained(models.WordLevel(unk_token="<unk>"), pre_tokenizers.Whitespace(), texts, trainer)
    assert WordTokenizer.train(texts, vocab_size, min_frequency=min_frequency).vocabulary == vocabulary
