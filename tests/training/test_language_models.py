import math
from dataclasses import replace

import pytest
import torch

from course_lib.data.prose import ProseSplits, dictionary_splits, prose_splits
from course_lib.functional.metrics import bits_per_byte
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.recurrent import CharacterLM, RecurrentConfig
from course_lib.training import language_models as lm
from course_lib.training.history import History
from course_lib.training.recipe import Trained, plain

TINY = lm.LanguageSettings(model="gpt", dim=8, depth=1, context_length=16, batch_size=4, steps=8, learning_rate=1e-2)


def test_the_tokens_are_the_text_of_the_split():
    prose = lm.tokenized_prose()
    text = prose_splits().text("test")
    assert prose.tokenizer.decode(prose.ids["test"]) == "\n" + text
    assert prose.num_bytes["test"] == len(text.encode()) == len(prose.ids["test"]) - 1


def test_the_dictionary_is_a_text_in_its_own_tokens(monkeypatch):
    splits = ProseSplits(**{name: dictionary_splits().test[:200] for name in ("train", "validation", "test")})
    monkeypatch.setattr(lm, "dictionary_splits", lambda: splits)
    lm.tokenized_dictionary.cache_clear()
    dictionary = lm.tokenized("dictionary", 300)
    assert len(dictionary.tokenizer) == 300
    assert dictionary.tokenizer.decode(dictionary.ids["test"]) == "\n" + splits.text("test")
    settings = lm.DictionarySettings(**plain(TINY) | {"vocab_size": 300, "steps": 2})
    trained = lm.train_in_half(settings)
    assert all(torch.equal(weight, weight.half().float()) for weight in trained.model.parameters())
    assert 1 < lm.score_language_model(trained, "test")["bits per byte"] < 8
    assert lm.score_n_gram(2, "test", vocab_size=300, corpus="dictionary") < 3
    lm.tokenized_dictionary.cache_clear(), lm.fitted_n_gram.cache_clear()


def language_models():
    torch.manual_seed(0)
    gpt = GPT(GPTConfig(vocab_size=7, context_length=8, dim=8, depth=1, num_heads=2))
    torch.nn.init.normal_(gpt.token_embed.weight)
    return {"gpt": gpt.eval(), "lstm": CharacterLM(RecurrentConfig(vocab_size=7, hidden_dim=6)).eval()}


def test_gpt_is_scored_on_each_token_once_with_half_a_window_of_context():
    model, ids = language_models()["gpt"], torch.randint(7, (31,), generator=torch.Generator().manual_seed(1))
    scored = lm.token_nats(model, ids)
    expected = []
    for target in range(1, len(ids)):
        # windows begin at 0, 4, 8, ...; the last one ends with the text; the earliest that holds the target scores it
        starts = [*range(0, len(ids) - 8, 4)]
        starts += [len(ids) - 9] if starts[-1] != len(ids) - 9 else []
        start = next(start for start in starts if target <= start + 8)
        logits = model(ids[None, start:target])[0, -1]
        expected.append(-logits.log_softmax(dim=-1)[ids[target]])
    torch.testing.assert_close(scored, torch.stack(expected))


def test_a_recurrent_model_carries_its_state_through_the_text(monkeypatch):
    monkeypatch.setattr(lm, "STREAMS", 3)
    model, ids = language_models()["lstm"], torch.randint(7, (30,), generator=torch.Generator().manual_seed(1))
    scored = lm.recurrent_nats(model, ids, part=4)
    expected = []
    for begin in (0, 10, 20):  # three streams: 10, 10 and 9 tokens
        row = ids[begin : begin + 11]
        log_probs = model(row[None, :-1])[0].log_softmax(dim=-1)
        expected.append(-log_probs.gather(1, row[1:, None])[:, 0])
    torch.testing.assert_close(scored, torch.cat(expected))


@pytest.mark.parametrize("name", ["gpt", "lstm"])
@pytest.mark.parametrize("length", [2, 5, 9, 16, 17, 18, 33])
def test_every_token_but_the_first_is_scored(name, length):
    ids = torch.zeros(length, dtype=torch.long)
    assert len(lm.token_nats(language_models()[name], ids)) == length - 1


@pytest.mark.parametrize("model", ["rnn", "lstm", "gru", "gpt"])
def test_a_few_steps_lower_the_loss_below_that_of_a_guess(model):
    trained = lm.train_language_model(replace(TINY, model=model, dim=16, steps=60, batch_size=8))
    assert trained.history.losses[0] == pytest.approx(math.log(77), rel=0.05)
    validation = lm.nats_per_token(trained.model, lm.tokenized_prose().ids["validation"][:2000])
    assert validation < 3.4  # letters by their frequency alone: 3.1


def test_bits_per_byte_do_not_depend_on_the_tokens(monkeypatch):
    prose = lm.tokenized_prose(300)
    ids = prose.ids["test"][:400]
    short = replace(prose, ids={"test": ids}, num_bytes={"test": len(prose.tokenizer.decode(ids[1:]))})
    monkeypatch.setattr(lm, "tokenized_prose", lambda vocab_size: short)
    settings = replace(TINY, vocab_size=300)
    model = lm.build_language_model(settings).eval()
    torch.nn.init.zeros_(model.token_embed.weight)  # every token equally likely
    expected = bits_per_byte(399 * math.log(300), short.num_bytes["test"])
    trained = Trained(settings=settings, model=model, history=History.blank(1, []))
    assert lm.score_language_model(trained, "test") == {"bits per byte": pytest.approx(expected, rel=1e-5)}


def test_the_loss_is_that_of_the_next_token():
    model, window = language_models()["gpt"], torch.randint(7, (2, 9), generator=torch.Generator().manual_seed(2))
    expected = torch.stack([lm.token_nats(model, row) for row in window]).mean()
    torch.testing.assert_close(lm.next_token_loss(model, window).detach(), expected)


def test_longer_n_grams_know_more(monkeypatch):
    prose = lm.tokenized_prose()
    short = replace(prose, ids=prose.ids | {"train": prose.ids["train"][:200_000]})
    monkeypatch.setattr(lm, "tokenized_prose", lambda _: short)
    lm.fitted_n_gram.cache_clear()
    scores = [lm.score_n_gram(order, "test") for order in (1, 2, 4)]
    lm.fitted_n_gram.cache_clear()
    assert 4.0 < scores[0] < 4.6 and scores[0] > scores[1] + 0.5 > scores[2] + 1.0


def test_features_are_not_taken_for_logits():
    config = GPTConfig(vocab_size=7, context_length=8, dim=8, depth=1, num_heads=1, head=None)
    with pytest.raises(ValueError, match="GPT has head=None"):
        lm.next_token_loss(GPT(config), torch.zeros(2, 5, dtype=torch.long))
