"""Invented words, who copies their stem, and what a headword tells about its definition."""

import numpy as np
import pytest
import torch

from course_lib.data.prose import dictionary_splits
from course_lib.lessons.lesson_08 import definitions
from course_lib.lessons.lesson_08.definitions import (
    AFFIXES,
    ENTRY,
    copies_stem,
    copying,
    define,
    definition_nats,
    exchanged,
    headwords,
    held_out_entries,
    invented,
    saved_by_headword,
    stems_copied,
)
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.kneser_ney import KneserNey, KneserNeyConfig
from course_lib.text.bpe import ByteLevelBPE

LINES = [
    "florpness (noun): the quality of being florp",
    "dog (noun): an animal",
    "run (verb): move fast",
    "cat (noun): another animal",
    "go (verb): move away",
]


@pytest.fixture(scope="module")
def tokenizer():
    return ByteLevelBPE.train(["\n".join(LINES)], vocab_size=300, specials=())


@pytest.fixture(scope="module")
def gpt(tokenizer):
    torch.manual_seed(0)
    return GPT(GPTConfig(vocab_size=len(tokenizer), context_length=64, dim=16, depth=1, num_heads=2)).eval()


@pytest.fixture(scope="module")
def counted(tokenizer):
    config = KneserNeyConfig(vocab_size=len(tokenizer), order=9)
    return KneserNey(config).fit(tokenizer.encode("\n" + "\n".join(40 * LINES) + "\n"))


def test_each_entry_has_a_headword_a_part_of_speech_and_a_definition():
    assert len(headwords()) > 60_000


def test_invented_words_are_new_and_all_affixes_come_equally_often():
    words = invented(200, known := headwords())
    assert len({word.word for word in words}) == 200 and not {word.word for word in words} & known
    assert {affix: sum(word.affix == affix for word in words) for affix in AFFIXES} == dict.fromkeys(AFFIXES, 40)
    assert words == invented(200, known) and words != invented(200, known, seed=1)


@pytest.mark.parametrize(
    ("definition", "copies"),
    [("the quality of being florp", True), ("Florped again", True), ("of a flor", False), ("deflorp", False)],
)
def test_a_definition_copies_the_stem_if_a_word_begins_with_it(definition, copies):
    word = invented(1, ())[0]._replace(stem="florp", affix="-ness")
    assert copies_stem(definition, word) == copies
    assert copying([definition], [word]) == {"-ness": float(copies), "all": float(copies)}


def test_a_table_of_counts_defines_what_it_has_read_and_stops_at_the_end_of_the_line(counted, tokenizer):
    assert define(counted, tokenizer, ["dog (noun):", "run (verb):"]) == [" an animal", " move fast"]


def test_a_model_defines_prompts_of_different_lengths_as_it_does_one_by_one(gpt, tokenizer):
    prompts = ["dog (noun):", "florpness (noun):", "run (verb):"]
    together = define(gpt, tokenizer, prompts, longest=12)
    assert together == [define(gpt, tokenizer, [prompt], longest=12)[0] for prompt in prompts]
    assert all("\n" not in text for text in together)


def test_headwords_are_exchanged_within_their_part_of_speech():
    other = exchanged(LINES)
    for old, new in zip(LINES, other, strict=True):
        before, after = ENTRY.fullmatch(old), ENTRY.fullmatch(new)
        assert (before["part"], before["definition"]) == (after["part"], after["definition"])
        assert before["headword"] != after["headword"]
    assert sorted(ENTRY.fullmatch(line)["headword"] for line in other) == ["cat", "dog", "florpness", "go", "run"]


def test_the_nats_of_a_definition_are_those_of_its_tokens_alone(gpt, counted, tokenizer):
    entry = LINES[1]
    count = len(tokenizer.encode(" an animal\n"))
    for model in (gpt, counted):
        rows = definition_nats(model, tokenizer, [entry, LINES[0]], longest=8)
        assert rows.shape == (2, 8)
        assert np.isfinite(rows[0]).sum() == min(count, 8) and (rows[np.isfinite(rows)] > 0).all()
    ids = torch.tensor(tokenizer.encode("\n" + entry + "\n"))
    with torch.no_grad():
        whole = torch.nn.functional.cross_entropy(gpt(ids[None, :-1])[0], ids[1:], reduction="none")
    assert np.allclose(definition_nats(gpt, tokenizer, [entry], longest=8)[0][:count], whole[-count:], atol=1e-5)


def test_entries_are_spread_over_the_test_split():
    entries, text = held_out_entries(50), dictionary_splits().text("test")
    places = [text.index(entry) for entry in entries]
    assert len(set(entries)) == 50 and places == sorted(places) and places[-1] > 0.9 * len(text)


def test_a_headword_saves_a_table_nothing_once_it_has_left_the_window(tokenizer):
    text = tokenizer.encode("\n" + "\n".join(40 * LINES) + "\n")
    short = KneserNey(KneserNeyConfig(vocab_size=len(tokenizer), order=2)).fit(text)
    long = KneserNey(KneserNeyConfig(vocab_size=len(tokenizer), order=12)).fit(text)
    nouns = [line for line in LINES if "(noun)" in line]
    assert np.nanmax(np.abs(saved_by_headword(short, tokenizer, nouns))) == 0
    assert np.nanmax(saved_by_headword(long, tokenizer, nouns)) > 1


def test_the_fraction_of_copied_stems_is_that_of_the_definitions(gpt, tokenizer, monkeypatch):
    words = invented(10, headwords())
    said = [f" something {word.stem}" if number < 3 else " nothing" for number, word in enumerate(words)]
    monkeypatch.setattr(definitions, "define", lambda model, tokenizer, prompts: said)
    assert stems_copied(gpt, tokenizer, 10) == pytest.approx(0.3)
