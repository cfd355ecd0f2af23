import pytest
import tokenizers
from hypothesis import given, settings
from tokenizers import models, pre_tokenizers, trainers

from course_lib.text import CharacterTokenizer, WordTokenizer
from tests.text.samples import any_text, language

TEXTS = language(0)
WORDS = WordTokenizer.train(TEXTS, 200)


def official(ours):
    model = models.WordLevel(vocab={word: i for i, word in enumerate(ours.vocabulary)}, unk_token="<unk>")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(list(ours.specials))
    return tokenizer


@pytest.mark.parametrize(("seed", "vocab_size", "min_frequency"), [(0, 50, 1), (1, 10_000, 1), (2, 10_000, 4)])
def test_words_are_chosen_as_by_the_official_library(seed, vocab_size, min_frequency):
    texts, specials = language(seed), ["<pad>", "<s>", "</s>", "<unk>"]
    tokenizer = tokenizers.Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(
        texts,
        trainers.WordLevelTrainer(
            vocab_size=vocab_size, min_frequency=min_frequency, special_tokens=specials, show_progress=False
        ),
    )
    ours = WordTokenizer.train(texts, vocab_size, min_frequency=min_frequency)
    assert {word: ours.token_to_id(word) for word in ours.vocabulary} == tokenizer.get_vocab()


@settings(deadline=None)
@given(any_text(TEXTS))
def test_words_of_any_text_are_the_official_ones(text):
    assert WORDS.encode(text) == official(WORDS).encode(text).ids


def test_lower_case_is_an_option():
    tokenizer = WordTokenizer.train(["The cat, the CAT"], lower=True)
    assert tokenizer.vocabulary[4:] == ("cat", "the", ",")
    assert tokenizer.tokens("THE Cat?") == ["the", "cat", "<unk>"]
    assert WordTokenizer.train(["The cat, the CAT"]).vocabulary[4:] == (",", "CAT", "The", "cat", "the")


def test_known_words_come_back_with_spaces_between_them():
    tokenizer = WordTokenizer.train(["Who's there? No one, no one!"])
    assert tokenizer.decode(tokenizer.encode("Who's there? ")) == "Who ' s there ?"
    assert tokenizer.decode([1, *tokenizer.encode("no one"), 2], strip_specials=True) == "no one"


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
