import unicodedata
from itertools import product

from hypothesis import given, settings
from tokenizers import normalizers, pre_tokenizers

from course_lib.text.splitting import BertSplitter, split_at_punctuation, split_at_space, split_like_gpt2
from tests.text.samples import (
    EXTRAS,
    RECLASSED,
    any_text,
    every_character,
    existed_in_2002,
    known_to_all,
    language,
)  # fmt: skip

TEXTS = any_text(language(0))


def pieces(pre_tokenizer, text):
    return [piece for piece, _ in pre_tokenizer.pre_tokenize_str(text)]


@settings(deadline=None)
@given(TEXTS)
def test_white_space_and_punctuation_are_cut_as_by_the_official_library(text):
    assert split_at_space(text) == pieces(pre_tokenizers.WhitespaceSplit(), text)
    assert split_at_punctuation(text) == pieces(pre_tokenizers.Whitespace(), text)


@settings(deadline=None)
@given(TEXTS)
def test_gpt2_words_are_the_official_ones_and_lose_nothing(text):
    words = split_like_gpt2(text)
    official = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    assert words == [text[begin:end] for _, (begin, end) in official]
    assert "".join(words) == text


def test_every_character_is_cut_for_gpt2_as_by_the_official_library():
    official = pre_tokenizers.ByteLevel(add_prefix_space=False)
    texts = (before + letter + "x" for before, letter in product("a1!", every_character()))
    assert not [text for text in texts if len(split_like_gpt2(text)) != len(official.pre_tokenize_str(text))]


def official_bert(options, text):
    normalizer = normalizers.BertNormalizer(
        clean_text=options.clean,
        handle_chinese_chars=options.space_chinese,
        lowercase=options.lower,
        strip_accents=options.strip_accents,
    )
    return pieces(pre_tokenizers.BertPreTokenizer(), normalizer.normalize_str(text))


def test_every_character_is_cut_for_bert_as_by_the_official_library_or_newer_than_its_tables():
    split, letters = BertSplitter(), every_character()
    others = {letter for letter in letters if split(f"a{letter}b") != official_bert(split, f"a{letter}b")}
    assert len(others) < len(letters) / 50
    assert {letter for letter in others if existed_in_2002(letter)} <= RECLASSED
    assert {unicodedata.category(letter) for letter in others} <= {"Mn", "Mc", "Cf", "Po", "Pd", "Ps", "Pe", "So"}
    assert not [letter for letter in others if 0x1F000 <= ord(letter) < 0x20000]  # emoji


@settings(deadline=None)
@given(TEXTS)
def test_every_combination_of_bert_options_is_the_official_one(text):
    text = known_to_all(text)
    for clean, chinese, lower, accents in product((True, False), repeat=4):
        split = BertSplitter(clean=clean, space_chinese=chinese, lower=lower, strip_accents=accents)
        assert split(text) == official_bert(split, text)


def test_awkward_pieces_are_cut_as_by_the_official_library():
    edges = "\U0002b81f\U0002b820\U0002b91f\U0002b920\U0002ceaf\U0002ceb0"  # of BERT's Chinese blocks
    for text in (*EXTRAS, *(f"a{piece} b" for piece in EXTRAS), *edges):
        assert BertSplitter()(text) == official_bert(BertSplitter(), text)
        assert split_at_space(text) == pieces(pre_tokenizers.WhitespaceSplit(), text)
        assert split_at_punctuation(text) == pieces(pre_tokenizers.Whitespace(), text)
        official = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
        assert split_like_gpt2(text) == [text[begin:end] for _, (begin, end) in official]


def test_bert_words_of_a_known_sentence():
    assert BertSplitter()("Ça va?\x00 Öl\u200b, 中文!") == ["ca", "va", "?", "ol", ",", "中", "文", "!"]
    cased = BertSplitter(lower=False, strip_accents=False, space_chinese=False)
    assert cased("Ça va 中文!") == ["Ça", "va", "中文", "!"]
