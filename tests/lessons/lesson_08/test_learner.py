import pytest
import torch

from course_lib.generation import argmax, greedy, random_choice
from course_lib.lessons.lesson_08 import learner
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.text.bpe import ByteLevelBPE


def model():
    torch.manual_seed(0)
    gpt = GPT(GPTConfig(vocab_size=256, context_length=40, dim=16, depth=2, num_heads=2, dropout=0.0, head="linear"))
    for parameter in gpt.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return gpt.eval()


TOKENS = torch.randint(256, (3, 12), generator=torch.Generator().manual_seed(1))


def test_repeated_runs_are_counted():
    rows = torch.tensor([[1, 2, 3, 1, 2, 3, 1, 2], [1, 2, 3, 4, 5, 6, 7, 8]])
    assert learner.share_repeated(rows, length=3) == pytest.approx((3 / 6 + 0) / 2)


def test_a_text_is_printed_as_it_was_written(capsys):
    tokenizer = ByteLevelBPE.train(["aaaa bbbb é"], vocab_size=256, specials=())
    dice = torch.Generator().manual_seed(0)
    text = learner.write(model(), tokenizer, "a b", count=20, choose=random_choice(generator=dice))
    assert capsys.readouterr().out == f"a b{text}\n"


def test_a_long_text_is_printed_in_lines_of_a_slide(capsys):
    tokenizer = ByteLevelBPE.train(["a "], vocab_size=256, specials=())
    gpt = GPT(GPTConfig(vocab_size=256, context_length=100, dim=8, depth=1, num_heads=1))
    letters = iter(" over and over" * 6)
    text = learner.write(gpt, tokenizer, "a", count=80, choose=lambda _: torch.tensor(tokenizer.encode(next(letters))))
    first, second = capsys.readouterr().out.splitlines()
    assert 65 <= len(first) < 72 and f"{first} {second.removeprefix('    ')}" == f"a{text}"


def test_an_example_of_a_training_is_the_same_each_time_even_of_a_model_that_knows_nothing():
    tokenizer = ByteLevelBPE.train(["aaaa bbbb"], vocab_size=256, specials=())
    shows = learner.writing(tokenizer, ["<a", "b"], count=5)
    assert shows(model()) == shows(model()) and shows(model()).startswith("<p><b>&lt;a</b>")


def test_entries_are_shown_in_tokens_up_to_their_end(capsys):
    tokenizer = ByteLevelBPE.train(["aaaa bbbb"] * 9, vocab_size=260, specials=())
    learner.show_entries(tokenizer, {"a:": torch.tensor(tokenizer.encode("\na: bbbb <b>\naaaa"))})
    rest = [tokenizer.decode([i]) for i in tokenizer.encode("\na: bbbb <b>")[len(tokenizer.encode("\na:")) :]]
    assert "aaaa" not in (shown := capsys.readouterr().out)
    assert shown == f"a: {'|'.join(rest)}\n" and len(rest) < len(" bbbb <b>")


def test_a_definition_is_the_greedy_one(capsys):
    tokenizer = ByteLevelBPE.train(["aaaa bbbb"], vocab_size=256, specials=())
    learner.define(model(), tokenizer, ["a b"], count=5)
    ids = greedy(model(), torch.tensor([tokenizer.encode("\na b")]), max_new_tokens=5)[0].tolist()
    assert 10 not in ids  # no line feed ends it
    assert capsys.readouterr().out == f"a b {'|'.join(tokenizer.decode([i]) for i in ids)}\n"


def test_a_token_is_escaped_and_counted(capsys, monkeypatch):
    seen = {}
    monkeypatch.setattr(learner, "present", lambda plain, page: seen.update(plain=plain, page=page))
    learner.show_tokens({"<x>": ["<b>", "\n"]})
    assert seen["plain"] == "<x> <b>|⏎ 2 tokens"
    assert "<b>" not in seen["page"] and "&lt;b&gt;" in seen["page"] and "&lt;x&gt;" in seen["page"]


def test_a_passage_read_twice_is_scored_both_times():
    first, second = learner.nats_by_time(model(), TOKENS)
    twice = torch.cat([TOKENS, TOKENS], dim=1)
    logs = model()(twice).log_softmax(-1)[:, :-1].gather(2, twice[:, 1:, None])[..., 0]
    assert first == pytest.approx(-logs[:, :11].mean().item(), rel=1e-5)
    assert second == pytest.approx(-logs[:, 12:].mean().item(), rel=1e-5)


def test_a_cache_saves_operations_more_so_behind_a_longer_text_and_costs_memory_for_each_token():
    operations, kept = learner.price_of_a_token([4, 32])
    saved = [without / cached for without, cached in zip(operations["without"], operations["with"], strict=True)]
    assert 1 < saved[0] < saved[1]
    assert kept == [count * 2 * 4 * 256 for count in (4, 32)]  # keys and values, layers, numbers in each
    assert learner.price_of_a_token([4, 32]) == (operations, kept)  # counted, not timed


def test_greedy_repeats_itself_more_than_dice_do():
    dice = random_choice(generator=torch.Generator().manual_seed(0))
    probs = [learner.repeated(model(), TOKENS, choose, count=25) for choose in (argmax, dice)]
    assert probs[0] > probs[1]
