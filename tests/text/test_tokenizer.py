import copy
import json
import pickle

import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.text import (
    BertSplitter,
    ByteLevelBPE,
    CharacterTokenizer,
    SubwordBPE,
    Tokenizer,
    WordPiece,
    WordTokenizer,
    pad_batch,
)
from course_lib.text.tokenizer import WordCache
from tests.text.samples import any_text, language

TEXTS = language(0)
TOKENIZERS = (
    CharacterTokenizer.train(TEXTS),
    WordTokenizer.train(TEXTS, 200, lower=True),
    SubwordBPE.train(TEXTS, 400, cut_punctuation=True),
    ByteLevelBPE.train(TEXTS, 400),
    WordPiece.train(TEXTS, 400, splitter=BertSplitter(lower=False, strip_accents=False)),
)
each = pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda tokenizer: type(tokenizer).__name__)


@pytest.fixture
def unchecked_types(monkeypatch):
    """Outside of tests nobody checks the annotations: the function itself has to speak up."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@each
def test_a_saved_tokenizer_is_the_same_when_loaded_by_its_own_class_or_by_the_common_one(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    for opener in (type(tokenizer), Tokenizer):
        opened = opener.load(path)
        assert opened == tokenizer and hash(opened) == hash(tokenizer)
        for text in TEXTS:
            assert opened.encode(text) == tokenizer.encode(text)
    assert json.loads(path.read_text("utf-8")) == tokenizer.state_dict()


@each
def test_a_copy_and_a_pickle_are_the_same(tokenizer):
    tokenizer.encode(TEXTS[0])
    for twin in (copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))):
        assert twin == tokenizer and twin.encode(TEXTS[1]) == tokenizer.encode(TEXTS[1])


@each
def test_tokenizers_differ_by_their_vocabulary_options_and_kind(tokenizer):
    others = [other for other in TOKENIZERS if other != tokenizer]
    assert len(others) == len(TOKENIZERS) - 1
    state = tokenizer.state_dict()
    state["vocabulary"] = [*state["vocabulary"], "aaaaaaaaaaa"]
    assert Tokenizer.from_state_dict(state) != tokenizer
    assert WordTokenizer.from_state_dict({**TOKENIZERS[1].state_dict(), "lower": False}) != TOKENIZERS[1]


@each
@settings(deadline=None)
@given(text=any_text(TEXTS))
def test_tokens_ids_and_their_table_agree(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.tokens(text) == [tokenizer.id_to_token(i) for i in ids]
    assert ids == [tokenizer.token_to_id(token) for token in tokenizer.tokens(text)]
    assert tokenizer.encode(text) == ids  # also from the cache of words
    assert tokenizer.decode(torch.tensor(ids, dtype=torch.long)) == tokenizer.decode(ids)


@each
@settings(deadline=None)
@given(first=any_text(TEXTS), second=any_text(TEXTS))
def test_a_special_token_in_the_text_cuts_it_in_two(tokenizer, first, second):
    for sign in tokenizer.specials:
        whole = tokenizer.encode(first + sign + second)
        if not (sign in first or sign in second):
            assert whole == [*tokenizer.encode(first), tokenizer.token_to_id(sign), *tokenizer.encode(second)]
    written = tokenizer.encode("".join(tokenizer.specials), specials=False)
    assert not set(written) & {tokenizer.token_to_id(sign) for sign in tokenizer.specials} - {tokenizer.unknown_id}


def test_the_longest_of_two_special_tokens_is_read():
    tokenizer = CharacterTokenizer(["<", "<a", "<a>", "a", ">"], specials=["<a", "<a>"])
    assert tokenizer.encode("<a><a<") == [2, 1, 0]


@each
def test_ids_outside_the_vocabulary_are_refused(tokenizer):
    size = len(tokenizer)
    with pytest.raises(ValueError, match=rf"from 0 to {size - 1}, got \[{size}, -1\]"):
        tokenizer.decode([5, size, -1])
    with pytest.raises(ValueError, match=rf"got \[{size}\]"):
        tokenizer.id_to_token(size)
    with pytest.raises(ValueError, match="no token 'no such token'"):
        tokenizer.token_to_id("no such token")
    assert tokenizer.vocabulary[5] in tokenizer and "no such token" not in tokenizer


@each
@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((None, "str, got NoneType"), (b"abc", "str, got bytes"), (["a", "b"], "str, got list"), (5, "str, got int")),
        *(("abc\ud800d", "lone surrogate.*position 3"), ("abc\udfffd", "lone surrogate.*position 3")),
    ],
)
def test_what_is_no_text_and_half_a_surrogate_pair_are_refused(tokenizer, text, words, unchecked_types):
    with pytest.raises(ValueError, match=words):
        tokenizer.encode(text)
    with pytest.raises(ValueError, match=words):
        type(tokenizer).train([text], 400)


NO_IDS = [[[1, 2], [3, 4]], torch.tensor([[1, 2]]), torch.tensor(1), torch.tensor([1.0]), np.ones((2, 2), int), [1.5]]


@each
@pytest.mark.parametrize("ids", [*NO_IDS, "1", None], ids=repr)
def test_a_batch_of_ids_and_what_is_no_id_are_refused(tokenizer, ids, unchecked_types):
    wanted = "ids must be a list of whole numbers or a 1-D tensor"
    with pytest.raises(ValueError, match=f"(?s){wanted}, got .*: take a batch row by row"):
        tokenizer.decode(ids)


@each
def test_ids_may_be_of_numpy_and_torch(tokenizer, unchecked_types):
    expected = tokenizer.decode([5, 6, 5])
    for ids in (np.array([5, 6, 5]), (np.int64(5), torch.tensor(6), 5), torch.tensor([5, 6, 5], dtype=torch.int32)):
        assert tokenizer.decode(ids) == expected


@each
def test_one_text_or_one_special_token_in_place_of_a_list_is_refused(tokenizer):
    with pytest.raises(ValueError, match="several texts, not the one text 'abc'"):
        type(tokenizer).train("abc", 400)
    with pytest.raises(ValueError, match=r"Tokens come as a list, got the text '<s>': write \['<s>'\]"):
        type(tokenizer).train(["abc"], 400, specials="<s>")
    with pytest.raises(ValueError, match=r"write \['<s>'\]"):
        type(tokenizer).from_state_dict({**tokenizer.state_dict(), "specials": "<s>"})


@given(st.lists(st.lists(st.integers(4, 9), max_size=6), min_size=1, max_size=5))
def test_padding_keeps_every_sequence_and_marks_nothing_else_valid(sequences):
    ids, valid = pad_batch(sequences, pad_id=1)
    assert ids.shape == valid.shape == (len(sequences), max(map(len, sequences)))
    assert [row[keep].tolist() for row, keep in zip(ids, valid, strict=True)] == sequences
    assert (ids[~valid] == 1).all()
    assert all(keep.tolist() == sorted(keep.tolist(), reverse=True) for keep in valid)


def test_an_empty_batch_is_refused():
    with pytest.raises(ValueError, match="at least one sequence"):
        pad_batch([])


@each
def test_a_batch_is_padded_and_cut(tokenizer):
    texts = ["abc de 12", "", "ab"]
    ids, valid = tokenizer.encode_batch(texts)
    assert [row[keep].tolist() for row, keep in zip(ids, valid, strict=True)] == list(map(tokenizer.encode, texts))
    assert (ids[~valid] == (tokenizer.pad_id or 0)).all()
    ids, valid = tokenizer.encode_batch(texts, max_length=3, start=True, end=True)
    assert ids.shape == (3, 3)
    for text, row, keep in zip(texts, ids, valid, strict=True):
        assert row[keep].tolist() == [tokenizer.start_id, *tokenizer.encode(text)[:1], tokenizer.end_id]
    assert tokenizer.encode("ab", start=True, end=True) == ids[2].tolist() or len(tokenizer.encode("ab")) > 1


def test_unusable_batches_are_refused():
    tokenizer = TOKENIZERS[0]
    with pytest.raises(ValueError, match="list of texts, not the one text 'abc'"):
        tokenizer.encode_batch("abc")
    with pytest.raises(ValueError, match="max_length 2 has no room for a token beside 2 signs"):
        tokenizer.encode_batch(["abc"], max_length=2, start=True, end=True)
    bare = CharacterTokenizer.train(["abc"], specials=())
    with pytest.raises(ValueError, match="no start or no end sign"):
        bare.encode("abc", start=True)
    with pytest.raises(ValueError, match="no start or no end sign"):
        bare.encode_batch(["abc"], end=True)


def test_the_usual_special_tokens_have_their_roles():
    names = ("pad_id", "start_id", "end_id", "unknown_id", "mask_id")
    roles = {type(each).__name__: tuple(getattr(each, name) for name in names) for each in TOKENIZERS}
    assert roles["CharacterTokenizer"] == roles["SubwordBPE"] == (0, 1, 2, 3, None)
    assert roles["ByteLevelBPE"] == (None, 0, 0, None, None)
    assert roles["WordPiece"] == (0, 2, 3, 1, 4)


def changed(state, **changes):
    return json.dumps({**state, **changes})


STATE = TOKENIZERS[2].state_dict()
DAMAGED = {
    "half of it": (json.dumps(STATE)[:500], "is damaged"),
    "no utf-8": ("\udcff", "is damaged"),
    "deep": ("[" * 100_000, "is damaged"),
    "a list": ("[]", "state of a tokenizer None; SubwordBPE opens SubwordBPE"),
    "nothing": ("", "is damaged"),
    "another kind": (changed(STATE, tokenizer="Wrong"), "tokenizer 'Wrong'; SubwordBPE opens SubwordBPE"),
    "a kind that is no name": (changed(STATE, tokenizer=["SubwordBPE"]), r"tokenizer \['SubwordBPE'\]"),
    "no merges": (json.dumps({k: v for k, v in STATE.items() if k != "merges"}), "not complete.*merges"),
    "a stranger": (changed(STATE, extra=1), "not complete or holds something else.*extra"),
    "a number": (changed(STATE, vocabulary=5), "not complete or holds something else"),
    "numbers": (changed(STATE, vocabulary=[1, 2, 3], specials=[], merges=[]), "non-empty texts|something else"),
    "an empty token": (changed(STATE, vocabulary=[*STATE["vocabulary"], ""]), "non-empty"),
    "twice": (changed(STATE, vocabulary=[*STATE["vocabulary"], "a"]), "'a'.*more often"),
    "special twice": (changed(STATE, specials=["<unk>", "<unk>"]), "'<unk>'.*more often"),
    "special missing": (changed(STATE, specials=["[UNK]"]), "not in the vocabulary"),
    "strange merge": (changed(STATE, merges=[["a", "nothing"]]), "'nothing'"),
    "a merge of three": (changed(STATE, merges=[["a", "b", "c"]]), "not a pair"),
    "merges of numbers": (changed(STATE, merges=[[1, 2]]), "not a pair|something else"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_refused_by_its_name(damage, tmp_path):
    text, message = DAMAGED[damage]
    path = tmp_path / "broken.json"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ValueError, match=rf"broken\.json cannot be read as a tokenizer.*{message}"):
        SubwordBPE.load(path)


def test_a_file_that_is_not_there_says_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        Tokenizer.load(tmp_path / "none.json")


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "bb", "ccc", "dddd", "eeeee"]), max_size=20))
def test_the_cache_of_words_stays_small_and_tells_the_truth(words):
    asked = []
    cache = WordCache(lambda word: asked.append(word) or [len(word)], capacity=2, longest=4)
    assert [cache[word] for word in words] == [[len(word)] for word in words]
    assert len(cache) <= 2 and "eeeee" not in cache
    assert all(asked.count(word) == 1 for word in cache)
