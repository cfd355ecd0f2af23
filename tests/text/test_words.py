import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.text import CharacterTokenizer, Tokenizer, WordTokenizer
from course_lib.text.tokenizer import SPECIALS
from tests.text.samples import any_text, language

TEXTS = language(0)


def test_lower_case_is_an_option():
    tokenizer = WordTokenizer.train(["The cat, the CAT"], lower=True)
    assert tokenizer.vocabulary[4:] == ("cat", "the", ",")
    assert tokenizer.tokens("THE Cat?") == ["the", "cat", "<unk>"]
    assert WordTokenizer.train(["The cat, the CAT"]).vocabulary[4:] == (",", "CAT", "The", "cat", "the")


def test_known_words_come_back_with_spaces_between_them():
    tokenizer = WordTokenizer.train(["Who's there? No one, no one!"])
    assert tokenizer.decode(tokenizer.encode("Who's there? ")) == "Who ' s there ?"
    assert tokenizer.decode([1, *tokenizer.encode("no one"), 2], strip_specials=True) == "no one"


LEXICON = ("cat", "eats", "l'", "aujourd'hui", ",")
SPACED = WordTokenizer([*SPECIALS, *LEXICON], cut_punctuation=False)


@given(st.lists(st.sampled_from(LEXICON), max_size=8))
def test_a_sentence_of_words_comes_back_from_its_ids(words):
    ids = SPACED.encode(" ".join(words), start=True, end=True)
    assert SPACED.sentence(ids + [SPACED.pad_id] * 3) == words
    assert SPACED.decode(ids).split(" ") == ["<s>", *words, "</s>"]


def test_specials_come_first_and_words_follow_in_the_given_order():
    assert (SPACED.pad_id, SPACED.start_id, SPACED.end_id, SPACED.unknown_id) == (0, 1, 2, 3)
    assert SPACED.encode(" ".join(LEXICON)) == [4, 5, 6, 7, 8]
    assert len(SPACED) == 9 and "cat" in SPACED and "dog" not in SPACED


def test_a_sentence_ends_before_its_end_sign_and_keeps_unknown_words():
    assert SPACED.encode("dog cat bird") == [3, 4, 3]
    assert SPACED.sentence(torch.tensor([1, 3, 4, 2, 6, 6])) == ["<unk>", "cat"]
    assert SPACED.sentence([1, 4, 0, 3]) == ["cat", "<unk>"] and SPACED.sentence([2, 4]) == []
    with pytest.raises(ValueError, match=r"0 to 8, got \[9, -1\]"):
        SPACED.sentence([4, 9, -1])


def test_words_between_spaces_are_counted_stored_and_told_from_others():
    texts = ["b' a", "a b' c", "<s> a"]
    assert WordTokenizer.train(texts, min_frequency=2, cut_punctuation=False).vocabulary[4:] == ("a", "b'")
    tokenizer = WordTokenizer.train(texts, cut_punctuation=False)
    assert tokenizer.vocabulary == (*SPECIALS, "a", "b'", "c")
    copy = Tokenizer.from_state_dict(tokenizer.state_dict())
    assert copy == tokenizer and copy.encode("b' b") == [5, 3]
    other = WordTokenizer(tokenizer.vocabulary)
    assert other != tokenizer and other.encode("b'") == [3, 3]
    older = {name: value for name, value in other.state_dict().items() if name != "cut_punctuation"}
    assert Tokenizer.from_state_dict(older) == other


def test_special_tokens_in_the_training_text_are_no_words():
    for kind, words in ((WordTokenizer, ("a", "b")), (CharacterTokenizer, (" ", "a", "b"))):
        assert kind.train(["a<s>b", "a </s>"]).vocabulary == (*SPECIALS, *words)


@pytest.mark.parametrize("word", ["a b", " a", "a\u3000", "\n"])
def test_a_word_with_white_space_is_refused(word):
    with pytest.raises(ValueError, match="free of white space, got"):
        WordTokenizer([*SPECIALS, "a", word])


def test_words_need_an_unknown_token_and_room():
    with pytest.raises(ValueError, match="unknown words: add <unk>"):
        WordTokenizer(["<pad>", "a"], specials=["<pad>"])
    with pytest.raises(ValueError, match="vocabulary of 4 has no room beside its 4 special tokens"):
        WordTokenizer.train(["a b"], 4)


@settings(deadline=None)
@given(any_text(TEXTS))
def test_characters_of_any_text_are_its_characters(text):
    tokenizer = CharacterTokenizer.train([text], specials=())
    assert tokenizer.tokens(text) == list(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert list(tokenizer.vocabulary) == sorted(set(text))


def test_characters_outside_the_vocabulary_are_unknown_or_refused():
    tokenizer = CharacterTokenizer.train(["abba c"])
    assert tokenizer.vocabulary[4:] == (" ", "a", "b", "c")
    assert tokenizer.tokens("cab z") == ["c", "a", "b", " ", "<unk>"]
    bare = CharacterTokenizer.train(["abba c"], specials=())
    with pytest.raises(ValueError, match="'z' is not in the vocabulary of 4"):
        bare.encode("cab z")


def test_a_small_vocabulary_keeps_the_most_frequent_characters():
    assert CharacterTokenizer.train(["zzzyyxxw"], 7).vocabulary[4:] == ("x", "y", "z")
    assert CharacterTokenizer.train(["zzzyyxw"], 4, specials=()).vocabulary == ("w", "x", "y", "z")
    with pytest.raises(ValueError, match="vocabulary of 3 leaves out some of the 4 characters"):
        CharacterTokenizer.train(["zzzyyxw"], 3, specials=())
    with pytest.raises(ValueError, match="vocabulary of 4 has no room"):
        CharacterTokenizer.train(["zzzyyxw"], 4)
