import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.text import Vocabulary, pad_batch

WORDS = ("cat", "eats", "the", "fish")


@given(st.lists(st.sampled_from(WORDS), max_size=8))
def test_decode_undoes_encode(tokens):
    vocabulary = Vocabulary(WORDS)
    ids = vocabulary.encode(tokens, start=True, end=True)
    assert vocabulary.decode(ids + [vocabulary.pad_id] * 3) == tokens
    assert vocabulary.decode(ids, strip_specials=False) == ["<s>", *tokens, "</s>"]


def test_specials_come_first_and_words_follow_in_order():
    vocabulary = Vocabulary(WORDS)
    assert (vocabulary.pad_id, vocabulary.start_id, vocabulary.end_id, vocabulary.unknown_id) == (0, 1, 2, 3)
    assert vocabulary.encode(WORDS) == [4, 5, 6, 7]
    assert len(vocabulary) == 8 and "cat" in vocabulary and "dog" not in vocabulary


def test_unknown_words_are_named_once_in_order_and_share_an_id():
    vocabulary = Vocabulary(WORDS)
    sentence = "the dog eats the bird the dog".split()
    assert vocabulary.unknown(sentence) == ["dog", "bird"]
    assert vocabulary.encode(["dog", "cat", "bird"]) == [3, 4, 3]
    assert vocabulary.decode([3, 4]) == ["<unk>", "cat"]


def test_decoding_stops_at_the_end_sign():
    vocabulary = Vocabulary(WORDS)
    assert vocabulary.decode(torch.tensor([1, 4, 5, 2, 6, 6])) == ["cat", "eats"]


def test_rare_words_are_left_out_and_the_rest_is_sorted():
    sentences = [["b", "a"], ["a", "b", "c"], ["<s>", "a"]]
    assert Vocabulary.from_sentences(sentences, min_count=2).words[4:] == ("a", "b")
    assert Vocabulary.from_sentences(sentences).words[4:] == ("a", "b", "c")


def test_equality_and_storage_as_json():
    vocabulary = Vocabulary(WORDS, specials=("[PAD]", "[CLS]", "[SEP]", "[UNK]"))
    copy = Vocabulary.from_state_dict(json.loads(json.dumps(vocabulary.state_dict())))
    assert copy == vocabulary and hash(copy) == hash(vocabulary)
    assert copy.encode(["[UNK]", "fish"]) == [3, 7]
    assert vocabulary != Vocabulary(WORDS) and vocabulary != Vocabulary(WORDS[::-1], vocabulary.specials)


@pytest.mark.parametrize(
    ("words", "specials", "message"),
    [
        (["a", "b", "a"], ("<pad>", "<s>", "</s>", "<unk>"), "'a'"),
        (["<s>"], ("<pad>", "<s>", "</s>", "<unk>"), "'<s>'"),
        (["a b"], ("<pad>", "<s>", "</s>", "<unk>"), "'a b'"),
        ([""], ("<pad>", "<s>", "</s>", "<unk>"), "''"),
        (["a"], ("<pad>",), "4 specials"),
    ],
)
def test_unusable_words_are_refused_by_name(words, specials, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(words, specials)


def test_an_unsplit_sentence_and_a_foreign_id_are_refused():
    vocabulary = Vocabulary(WORDS)
    with pytest.raises(ValueError, match="'the cat'.*split it first"):
        vocabulary.encode("the cat")
    with pytest.raises(ValueError, match=r"0 to 7, got \[8, -1\]"):
        vocabulary.decode([4, 8, -1])


@given(st.lists(st.lists(st.integers(4, 9), max_size=6), min_size=1, max_size=5))
def test_padding_keeps_every_sequence_and_marks_nothing_else_valid(sequences):
    ids, valid = pad_batch(sequences, pad_id=1)
    assert ids.shape == valid.shape == (len(sequences), max(map(len, sequences)))
    assert [row[keep].tolist() for row, keep in zip(ids, valid, strict=True)] == sequences
    assert (ids[~valid] == 1).all()
    assert all(keep.tolist() == sorted(keep.tolist(), reverse=True) for keep in valid)


def test_the_vocabulary_pads_with_its_own_sign():
    ids, valid = Vocabulary(WORDS).pad_batch([[4, 5], [6]])
    assert ids.tolist() == [[4, 5], [6, 0]] and valid.tolist() == [[True, True], [True, False]]


def test_an_empty_batch_is_refused():
    with pytest.raises(ValueError, match="at least one sequence"):
        pad_batch([])
