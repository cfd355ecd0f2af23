"""Lesson 08: invented words and who copies their stem, heads that look up what came before, what the page prints."""

from collections import Counter

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course_lib.data.checkpoints import load_trained
from course_lib.data.prose import dictionary_splits
from course_lib.generation import argmax, greedy, random_choice
from course_lib.layers.recording import record_attention
from course_lib.lessons.lesson_08 import copying, definitions, induction, learner
from course_lib.lessons.lesson_08.induction import Repeats
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.kneser_ney import KneserNey, KneserNeyConfig
from course_lib.text.bpe import ByteLevelBPE
from course_lib.text.tokenizer import Tokenizer

LINES = ["florpness (noun): the quality of being florp", "dog (noun): an animal", "run (verb): move fast"]
LINES += ["cat (noun): another animal", "go (verb): move away"]
TEXT = "\n" + "\n".join(40 * LINES) + "\n"


@pytest.fixture(scope="module")
def tokenizer():
    return ByteLevelBPE.train(["\n".join(LINES)], vocab_size=300, specials=())


@pytest.fixture(scope="module")
def gpt(tokenizer):
    torch.manual_seed(0)
    return GPT(GPTConfig(vocab_size=len(tokenizer), context_length=64, dim=16, depth=1, num_heads=2)).eval()


@pytest.fixture(scope="module")
def counted(tokenizer):
    """A function from an order to a table of counts."""

    def table(order):
        return KneserNey(KneserNeyConfig(vocab_size=len(tokenizer), order=order)).fit(tokenizer.encode(TEXT))

    return table


# ------------------------------------------------------------------ definitions


def test_invented_words_are_new_and_all_affixes_come_equally_often():
    words = definitions.invented(200, known := definitions.headwords())
    assert len(known) > 60_000 and len({word.word for word in words}) == 200
    assert not {word.word for word in words} & known
    assert Counter(word.affix for word in words) == dict.fromkeys(definitions.AFFIXES, 40)
    assert words == definitions.invented(200, known) and words != definitions.invented(200, known, seed=1)


@pytest.mark.parametrize(
    ("definition", "copies"),
    [("the quality of being florp", True), ("Florped again", True), ("of a flor", False), ("deflorp", False)],
)
def test_a_definition_copies_the_stem_if_a_word_begins_with_it(definition, copies):
    word = definitions.invented(1, ())[0]._replace(stem="florp", affix="-ness")
    assert definitions.copies_stem(definition, word) == copies
    assert definitions.copying([definition], [word]) == {"-ness": float(copies), "all": float(copies)}


def test_a_model_defines_prompts_of_different_lengths_as_it_does_one_by_one_up_to_the_end_of_the_line(
    gpt, counted, tokenizer
):
    prompts = ["dog (noun):", "florpness (noun):", "run (verb):"]
    assert definitions.define(counted(9), tokenizer, prompts[::2]) == [" an animal", " move fast"]
    together = definitions.define(gpt, tokenizer, prompts, longest=12)
    assert together == [definitions.define(gpt, tokenizer, [prompt], longest=12)[0] for prompt in prompts]
    assert all("\n" not in text for text in together)


def test_headwords_are_exchanged_within_their_part_of_speech():
    before, after = (
        [definitions.ENTRY.fullmatch(line) for line in lines] for lines in (LINES, definitions.exchanged(LINES))
    )
    for old, new in zip(before, after, strict=True):
        assert (old["part"], old["definition"]) == (new["part"], new["definition"])
        assert old["headword"] != new["headword"]
    assert sorted(entry["headword"] for entry in after) == ["cat", "dog", "florpness", "go", "run"]


def test_the_nats_of_a_definition_are_those_of_its_tokens_alone(gpt, counted, tokenizer):
    entry = LINES[1]
    count = len(tokenizer.encode(" an animal\n"))
    for model in (gpt, counted(9)):
        rows = definitions.definition_nats(model, tokenizer, [entry, LINES[0]], longest=8)
        assert rows.shape == (2, 8)
        assert np.isfinite(rows[0]).sum() == min(count, 8) and (rows[np.isfinite(rows)] > 0).all()
    ids = torch.tensor(tokenizer.encode("\n" + entry + "\n"))
    with torch.no_grad():
        whole = F.cross_entropy(gpt(ids[None, :-1])[0], ids[1:], reduction="none")
    alone = definitions.definition_nats(gpt, tokenizer, [entry], longest=8)[0][:count]
    assert np.allclose(alone, whole[-count:], atol=1e-5)


def test_entries_are_spread_over_the_test_split():
    entries, text = definitions.held_out_entries(50), dictionary_splits().text("test")
    places = [text.index(entry) for entry in entries]
    assert len(set(entries)) == 50 and places == sorted(places) and places[-1] > 0.9 * len(text)


def test_a_headword_saves_a_table_nothing_once_it_has_left_the_window(counted, tokenizer):
    nouns = [line for line in LINES if "(noun)" in line]
    short, long = (definitions.saved_by_headword(counted(order), tokenizer, nouns) for order in (2, 12))
    assert np.nanmax(np.abs(short)) == 0 and np.nanmax(long) > 1


def test_the_fraction_of_copied_stems_is_that_of_the_definitions(gpt, tokenizer, monkeypatch):
    words = definitions.invented(10, definitions.headwords())
    said = [f" something {word.stem}" if number < 3 else " nothing" for number, word in enumerate(words)]
    monkeypatch.setattr(definitions, "define", lambda model, tokenizer, prompts: said)
    assert definitions.stems_copied(gpt, tokenizer, 10) == pytest.approx(0.3)


# ------------------------------------------------------------------ copying


@pytest.fixture(scope="module")
def shipped():
    trained = load_trained("dictionary")
    return trained.model, Tokenizer.from_state_dict(trained.extra["tokenizer"])


@pytest.fixture(scope="module")
def words():
    return definitions.invented(20, definitions.headwords())


def test_attention_to_the_headword_is_that_of_the_token_before_a_stem_that_is_used(shipped, words):
    model, tokenizer = shipped
    text = f" the quality of being {words[0].stem}"
    found = copying.attention_to_headword(model, tokenizer, words[:1], [text])
    ids = tokenizer.encode(f"\n{words[0].prompt} the quality of being")
    with torch.no_grad(), record_attention(model) as record:
        model(torch.tensor([ids]))
    until = len(tokenizer.encode("\n" + words[0].word))
    assert tokenizer.decode(ids[1:until]) == words[0].word
    torch.testing.assert_close(found, record.maps()[0, :, :, -1, 1:until].sum(dim=-1))
    both = copying.attention_to_headword(*shipped, words[:2], [text, " something else"])
    torch.testing.assert_close(both, found)


def test_without_one_head_of_the_last_block_no_stem_is_copied(shipped, words):
    said = definitions.define(*shipped, [word.prompt for word in words])
    whole = definitions.copying(said, words)["all"]
    without = copying.stems_without(*shipped, words, lambda head: induction.switched_off(shipped[0], 3, head))
    assert whole >= 0.2 and without[1] == 0 and sorted(without)[1] > whole / 2


# ------------------------------------------------------------------ induction

THREE_TWICE = Repeats(torch.tensor([[3, 1, 2, 3, 1, 2]]), torch.tensor([3]))


def test_rows_hold_different_symbols_that_begin_again_after_a_period_of_their_own():
    rows = induction.repeats(200, 5)
    for tokens, period in zip(rows.tokens.tolist(), rows.period.tolist(), strict=True):
        assert len(set(tokens[:period])) == period
        assert all(tokens[i] == tokens[i - period] for i in range(period, induction.LENGTH))
    assert set(rows.period.tolist()) == set(range(induction.SHORTEST, induction.LONGEST + 1))
    assert THREE_TWICE.known().tolist() == [[False, False, False, True, True]]  # from the second time on


class Copies(torch.nn.Module):
    """Names the symbol that stood 15 places before the next."""

    def forward(self, tokens):
        return F.one_hot(tokens.roll(14, dims=1), 64).float()


def test_one_who_copies_is_right_the_second_time_alone():
    rows = induction.repeats(50, 1)
    rows = Repeats(rows.tokens[rows.period == 15], rows.period[rows.period == 15])
    assert induction.accuracy(Copies(), rows) == 1 and induction.accuracy(Copies(), rows, second=False) < 0.2


def test_weights_on_previous_and_on_following_symbols_are_measured():
    back, copy = torch.diag(torch.ones(4), -1), torch.zeros(5, 5)
    copy[3, 1], copy[4, 2] = 1, 0.5
    weights = torch.stack([back, copy])[None, :, None]  # (B, L, H, T, T)
    assert induction.at_previous(weights, THREE_TWICE)[:, 0].tolist() == [1, 0]
    assert induction.at_followers(weights, THREE_TWICE)[:, 0].tolist() == [0, 0.75]


def test_a_head_that_is_switched_off_hands_on_nothing_and_comes_back():
    model, rows = induction.build(induction.VARIANTS["two layers"]), induction.repeats(3, 0)
    before = model(rows.tokens)
    with induction.switched_off(model, 0), induction.switched_off(model, 1):
        alone = model(rows.tokens)
    torch.testing.assert_close(alone, model.head(model.norm(model.embed(rows.tokens))))
    assert torch.equal(model(rows.tokens), before)


@pytest.mark.parametrize("head", [0, 1])
def test_only_the_head_that_is_named_is_switched_off(head):
    model = induction.build(induction.InductionSettings(depth=1, num_heads=2, head_dim=4))
    seen = []
    model.layers[0].o_proj.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with induction.switched_off(model, 0, head):
        model(induction.repeats(2, 0).tokens)
    halves = seen[0].unflatten(-1, (2, 4)).abs().amax(dim=(0, 1, 3))
    assert halves[head] == 0 and halves[1 - head] > 0


def test_the_figure_of_the_training_does_not_tell_the_result_that_is_bet_on():
    model = induction.build(induction.InductionSettings(head_dim=4))
    texts = [panel.get_title("left") for panel in induction.example(model).axes]
    assert texts == ["attention of layer 1", "attention of layer 2"]


# ------------------------------------------------------------------ what the page prints

BYTES = ByteLevelBPE.train(["aaaa bbbb"], vocab_size=256, specials=())
TOKENS = torch.randint(256, (3, 12), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def wild():
    torch.manual_seed(0)
    gpt = GPT(GPTConfig(vocab_size=256, context_length=40, dim=16, depth=2, num_heads=2, dropout=0.0, head="linear"))
    for parameter in gpt.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return gpt.eval()


def dice():
    return random_choice(generator=torch.Generator().manual_seed(0))


def test_repeated_runs_are_counted_and_greedy_repeats_itself_more_than_dice_do(wild):
    rows = torch.tensor([[1, 2, 3, 1, 2, 3, 1, 2], [1, 2, 3, 4, 5, 6, 7, 8]])
    assert learner.share_repeated(rows, length=3) == pytest.approx((3 / 6 + 0) / 2)
    shares = [learner.repeated(wild, TOKENS, choose, count=25) for choose in (argmax, dice())]
    assert shares[0] > shares[1]


def test_a_text_is_printed_as_it_was_written_and_a_long_one_in_lines_of_a_slide(wild, capsys):
    text = learner.write(wild, BYTES, "a b", count=20, choose=dice())
    assert capsys.readouterr().out == f"a b{text}\n"
    gpt = GPT(GPTConfig(vocab_size=256, context_length=100, dim=8, depth=1, num_heads=1))
    letters = iter(" over and over" * 6)
    text = learner.write(gpt, BYTES, "a", count=80, choose=lambda _: torch.tensor(BYTES.encode(next(letters))))
    first, second = capsys.readouterr().out.splitlines()
    assert 65 <= len(first) < 72 and f"{first} {second.removeprefix('    ')}" == f"a{text}"


def test_an_example_of_a_training_is_the_same_each_time_even_of_a_model_that_knows_nothing(wild):
    shows = learner.writing(BYTES, ["<a", "b"], count=5)
    assert shows(wild) == shows(wild) and shows(wild).startswith("<p><b>&lt;a</b>")


def test_entries_are_shown_in_tokens_up_to_their_end(capsys):
    tokenizer = ByteLevelBPE.train(["aaaa bbbb"] * 9, vocab_size=260, specials=())
    learner.show_entries(tokenizer, {"a:": torch.tensor(tokenizer.encode("\na: bbbb <b>\naaaa"))})
    rest = [tokenizer.decode([i]) for i in tokenizer.encode("\na: bbbb <b>")[len(tokenizer.encode("\na:")) :]]
    assert "aaaa" not in (shown := capsys.readouterr().out)
    assert shown == f"a: {'|'.join(rest)}\n" and len(rest) < len(" bbbb <b>")


def test_a_definition_is_the_greedy_one(wild, capsys):
    learner.define(wild, BYTES, ["a b"], count=5)
    ids = greedy(wild, torch.tensor([BYTES.encode("\na b")]), max_new_tokens=5)[0].tolist()
    assert 10 not in ids  # no line feed ends it
    assert capsys.readouterr().out == f"a b {'|'.join(BYTES.decode([i]) for i in ids)}\n"


def test_a_token_is_escaped_and_counted(monkeypatch):
    seen = {}
    monkeypatch.setattr(learner, "present", lambda plain, page: seen.update(plain=plain, page=page))
    learner.show_tokens({"<x>": ["<b>", "\n"]})
    assert seen["plain"] == "<x> <b>|⏎ 2 tokens"
    assert "<b>" not in seen["page"] and "&lt;b&gt;" in seen["page"] and "&lt;x&gt;" in seen["page"]


def test_a_passage_read_twice_is_scored_both_times(wild):
    twice = torch.cat([TOKENS, TOKENS], dim=1)
    logs = wild(twice).log_softmax(-1)[:, :-1].gather(2, twice[:, 1:, None])[..., 0]
    expected = [-logs[:, :11].mean().item(), -logs[:, 12:].mean().item()]
    assert learner.nats_by_time(wild, TOKENS) == pytest.approx(expected, rel=1e-5)


def test_a_cache_saves_operations_more_so_behind_a_longer_text_and_costs_memory_for_each_token():
    operations, kept = learner.price_of_a_token([4, 32])
    saved = [without / cached for without, cached in zip(operations["without"], operations["with"], strict=True)]
    assert 1 < saved[0] < saved[1]
    assert kept == [count * 2 * 4 * 256 for count in (4, 32)]  # keys and values, layers, numbers in each
    assert learner.price_of_a_token([4, 32]) == (operations, kept)  # counted, not timed
