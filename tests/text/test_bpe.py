import json

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers

from course_lib.text import ByteLevelBPE, SubwordBPE, WordPiece
from course_lib.text.bpe import byte_letters
from tests.text.samples import any_text, language

TEXTS = language(0)
SUBWORDS = SubwordBPE.train(TEXTS, 500)
BYTES = ByteLevelBPE.train(TEXTS, 700, specials=["<|endoftext|>", "<pad>"])


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), any_text(TEXTS)), st.booleans())
def test_byte_level_tokens_give_any_text_back(text, specials):
    assert BYTES.decode(BYTES.encode(text, specials=specials)) == text


@settings(deadline=None)
@given(st.lists(st.integers(0, len(BYTES) - 1), max_size=20))
def test_the_text_of_any_ids_is_that_of_their_bytes(ids):
    assert BYTES.decode(ids).encode() == b"".join(map(BYTES.id_to_bytes, ids)).decode(errors="replace").encode()


def test_known_subwords_come_back():
    known = " ".join(word for text in TEXTS[:3] for word in text.split())
    assert SUBWORDS.decode(SUBWORDS.encode(known)) == known


def test_the_letters_of_the_bytes_are_the_official_ones():
    assert sorted(byte_letters()) == sorted(pre_tokenizers.ByteLevel.alphabet())
    assert byte_letters()[ord("A")] == "A" and byte_letters()[ord(" ")] == "Ġ" and byte_letters()[0] == "Ā"
    for byte in range(128):
        (piece, _), *_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(chr(byte))
        assert piece == byte_letters()[byte]


def test_special_tokens_in_a_text_are_signs_or_text_as_asked():
    assert BYTES.encode("<|endoftext|>") == [BYTES.end_id] == [0]
    assert BYTES.pad_id == 1 and BYTES.start_id == 0
    assert len(BYTES.encode("<|endoftext|>", specials=False)) > 1
    assert BYTES.decode([0, *BYTES.encode("a"), 1], strip_specials=True) == "a"


def test_special_tokens_in_the_training_text_are_not_merged_but_cut_it():
    texts = ["the end<|end|>then", "end<|end|>"] * 5
    cut = ["the end", "then", "end"] * 5
    for train in (ByteLevelBPE.train, SubwordBPE.train, WordPiece.train):
        size, specials = (300, ["<|end|>"]) if train == ByteLevelBPE.train else (30, ["[UNK]", "<|end|>"])
        tokenizer = train(texts, size, specials=specials)
        assert tokenizer == train(cut, size, specials=specials)
        assert [token for token in tokenizer.vocabulary if "|" in token and len(token) > 1] == ["<|end|>"]
        assert tokenizer.tokens("end<|end|>the") == [*tokenizer.tokens("end"), "<|end|>", *tokenizer.tokens("the")]


def test_a_special_token_of_any_letters_comes_back():
    tokenizer = ByteLevelBPE.train(["a"], 257, specials=["<der schöne 終>"])
    ids = tokenizer.encode("ö<der schöne 終>終")
    assert ids.count(0) == 1 and tokenizer.decode(ids) == "ö<der schöne 終>終"
    assert tokenizer.id_to_bytes(0) == "<der schöne 終>".encode()


def test_an_unknown_letter_without_an_unknown_token_is_refused_by_name():
    tokenizer = SubwordBPE.train(["low low lower"], 20, specials=())
    assert tokenizer.decode(tokenizer.encode("low lower")) == "low lower"
    with pytest.raises(ValueError, match="'x' of 'loxw'.*<unk>"):
        tokenizer.encode("low loxw")
    with pytest.raises(ValueError, match="'o</w>' of 'lo'"):
        tokenizer.encode("lo")


def test_a_vocabulary_smaller_than_the_letters_is_refused():
    with pytest.raises(ValueError, match="vocabulary of 10 tokens is too small.*already 257"):
        ByteLevelBPE.train(["a"], 10)
    with pytest.raises(ValueError, match="vocabulary of 6 tokens is too small.*already 7"):
        SubwordBPE.train(["ab"], 6)
    assert len(SubwordBPE.train(["abab b"], 6, limit_alphabet=1)) == 6


def test_the_files_of_gpt2_are_written_for_the_official_library_and_read_back(tmp_path):
    tokenizer = ByteLevelBPE(BYTES.vocabulary[1:] + ("<|endoftext|>",), BYTES.merges)
    tokenizer.save_files(tmp_path)
    assert ByteLevelBPE.from_files(tmp_path) == tokenizer
    theirs = models.BPE.from_file(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    theirs = tokenizers.Tokenizer(theirs)
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for text in TEXTS:
        assert tokenizer.encode(text) == theirs.encode(text).ids
    assert tokenizer.end_id == len(tokenizer) - 1
    ids = json.loads((tmp_path / "vocab.json").read_text("utf-8"))
    assert [tokenizer.token_to_id(token) for token in ids] == list(ids.values())
    lines = (tmp_path / "merges.txt").read_text("utf-8").splitlines()
    assert lines[0] == "#version: 0.2" and lines[1] == " ".join(BYTES.merges[0])


DAMAGE = {
    "not json": ("vocab.json", lambda text: text[:-5], "vocab.json is damaged"),
    "no utf-8": ("vocab.json", lambda text: "\udcff" + text, "vocab.json is damaged"),
    "a list": ("vocab.json", lambda text: "[1, 2]", "vocab.json must map tokens"),
    "an id twice": ("vocab.json", lambda text: text.replace(": 2,", ": 3,"), "vocab.json must map tokens"),
    "text for ids": ("vocab.json", lambda text: text.replace(": 2,", ': "2",'), "vocab.json must map tokens"),
    "three pieces": ("merges.txt", lambda text: text + "a b c\n", "merges.txt.*'a b c'"),
    "one piece": ("merges.txt", lambda text: text + "ab\n", "merges.txt.*'ab'"),
    "unknown pieces": ("merges.txt", lambda text: text + "zzz zzz\n", "'zzz'"),
    "bytes": ("merges.txt", lambda text: "\udcff", "merges.txt is damaged"),
    "a byte is lost": ("vocab.json", lambda text: text.replace('"!"', '"!!!"'), "all 256 bytes, 1 are missing: ..!"),
    "no bytes": ("vocab.json", lambda text: text.replace('"<|endoftext|>"', '"中"'), "special tokens"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_of_gpt2_are_refused(damage, tmp_path):
    ByteLevelBPE.train(TEXTS, 300).save_files(tmp_path)
    name, change, message = DAMAGE[damage]
    path = tmp_path / name
    path.write_text(change(path.read_text("utf-8")), encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ValueError, match=message):
        ByteLevelBPE.from_files(tmp_path)


def test_a_token_that_is_no_bytes_is_refused():
    with pytest.raises(ValueError, match="'中'.*stands for no byte"):
        ByteLevelBPE([*BYTES.vocabulary, "中"], BYTES.merges)
