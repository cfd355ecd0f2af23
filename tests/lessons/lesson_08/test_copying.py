"""Which head copies the stem of an invented word: what is measured, on the shipped GPT."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.layers.recording import record_attention
from course_lib.lessons.lesson_08 import copying, definitions, induction
from course_lib.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def shipped():
    trained = load_trained("dictionary")
    return trained.model, Tokenizer.from_state_dict(trained.extra["tokenizer"])


@pytest.fixture(scope="module")
def words():
    return definitions.invented(20, definitions.headwords())


def test_attention_is_that_of_the_token_before_the_stem_to_the_headword(shipped, words):
    model, tokenizer = shipped
    text = f" the quality of being {words[0].stem}"
    found = copying.attention_to_headword(model, tokenizer, words[:1], [text])
    ids = tokenizer.encode(f"\n{words[0].prompt} the quality of being")
    with torch.no_grad(), record_attention(model) as record:
        model(torch.tensor([ids]))
    until = len(tokenizer.encode("\n" + words[0].word))
    assert tokenizer.decode(ids[1:until]) == words[0].word
    torch.testing.assert_close(found, record.maps()[0, :, :, -1, 1:until].sum(dim=-1))


def test_a_word_whose_stem_is_not_used_does_not_count(shipped, words):
    texts = [f" like a {words[0].stem}", " something else"]
    torch.testing.assert_close(
        copying.attention_to_headword(*shipped, words[:2], texts),
        copying.attention_to_headword(*shipped, words[:1], texts[:1]),
    )


def test_without_one_head_of_the_last_block_no_stem_is_copied(shipped, words):
    whole = definitions.copying(definitions.define(*shipped, [word.prompt for word in words]), words)["all"]
    without = copying.stems_without(*shipped, words, lambda head: induction.switched_off(shipped[0], 3, head))
    assert whole >= 0.2 and without[1] == 0 and sorted(without)[1] > whole / 2
