import inspect
from functools import partial
from itertools import islice

import pytest
import torch
import torch.nn.functional as F
from scipy.stats import chisquare

from course_lib.generation import argmax, greedy, log_probs, random_choice, sample, stream
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.transformer import Transformer, TransformerConfig
from tests.generation.toys import STATES, Toy

PROMPT = torch.tensor([[1, 2, 0], [3, 3, 1], [0, 1, 2], [2, 2, 2]])


def tiny_gpt(**overrides):
    torch.manual_seed(0)
    sizes = {"vocab_size": 11, "context_length": 20, "dim": 16, "depth": 2, "num_heads": 2, "dropout": 0.0}
    model = GPT(GPTConfig(**sizes | overrides)).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.6)
    return model


def written_by_hand(model, prompt, count):
    tokens = prompt
    for _ in range(count):
        tokens = torch.cat([tokens, model(tokens)[:, -1:].argmax(-1)], dim=1)
    return tokens[:, prompt.shape[1] :]


def test_greedy_takes_the_likeliest_token_at_every_step():
    model = tiny_gpt()
    prompt = torch.randint(0, 11, (3, 4))
    tokens = greedy(model, prompt, max_new_tokens=12)
    assert (tokens == written_by_hand(model, prompt, 12)).all()
    assert len(tokens.unique()) > 3


def test_rows_end_at_their_end_token_and_are_padded():
    toy, end_id = Toy(vocab_size=5, seed=43), 4
    free = greedy(toy, PROMPT, max_new_tokens=12)
    ended = greedy(toy, PROMPT, max_new_tokens=12, end_id=end_id, pad_id=9)
    lengths = [row.index(end_id) + 1 for row in free.tolist()]
    assert ended.shape[1] == max(lengths) < 12 and len(set(lengths)) == 4
    for row, whole, length in zip(ended.tolist(), free.tolist(), lengths, strict=True):
        assert row == whole[:length] + [9] * (max(lengths) - length)


def test_each_token_is_read_once_and_the_last_not_at_all():
    toy = Toy()
    greedy(toy, PROMPT, max_new_tokens=5)
    assert toy.calls == [(4, 3)] + [(4, 1)] * 4 and toy.room == 8


def test_a_stream_gives_what_greedy_gives():
    steps = list(stream(Toy(), PROMPT, max_new_tokens=6))
    assert (torch.stack(steps, dim=1) == greedy(Toy(), PROMPT, max_new_tokens=6)).all()
    one = list(stream(Toy(), PROMPT[:1], max_new_tokens=6))
    assert torch.equal(torch.stack(one, dim=1), torch.stack(steps, dim=1)[:1])


def test_a_stream_computes_no_token_before_it_is_asked_for():
    toy = Toy()
    tokens = stream(toy, PROMPT, max_new_tokens=1000)
    assert toy.calls == []
    for count, _ in enumerate(islice(tokens, 4), start=1):
        assert len(toy.calls) == count
    tokens.close()
    assert len(toy.calls) == 4 and list(tokens) == []


def test_a_stream_leaves_its_reader_the_gradients():
    for _ in stream(tiny_gpt(), PROMPT, max_new_tokens=2):
        assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    tokens = stream(tiny_gpt(), PROMPT, max_new_tokens=2)
    next(tokens)
    assert not torch.is_inference_mode_enabled()


def streamed(model, prompt, *, max_new_tokens):
    return torch.stack(list(stream(model, prompt, max_new_tokens=max_new_tokens)), dim=1)


@pytest.mark.parametrize("write", [greedy, sample, streamed])
def test_what_was_written_can_be_trained_on(write):
    model = tiny_gpt()
    model(write(model, PROMPT, max_new_tokens=5)).logsumexp(-1).sum().backward()
    assert model.token_embed.weight.grad.abs().sum() > 0


def test_any_choice_may_be_made():
    unlikeliest = torch.stack(list(stream(Toy(), PROMPT, max_new_tokens=5, choose=lambda x: x.argmin(-1))), dim=1)
    negative = Toy(table=-Toy().table)
    assert (unlikeliest == greedy(negative, PROMPT, max_new_tokens=5)).all()


def test_samples_follow_the_filtered_distribution():
    toy, prompt = Toy(vocab_size=3), torch.tensor([[1]]).expand(30_000, -1)
    settings = {"temperature": 1.7, "top_k": 2}
    tokens = sample(toy, prompt, max_new_tokens=3, generator=torch.Generator().manual_seed(0), **settings)
    warped = (toy.table / 1.7).masked_fill(toy.table == toy.table.min(-1, keepdim=True).values, float("-inf"))
    warped_toy = Toy(table=warped)
    counts = torch.bincount(tokens @ torch.tensor([9, 3, 1]), minlength=27)
    expected = torch.zeros(27, dtype=torch.double)
    for score, (a, b, c) in warped_toy.all_sequences([1], max_new_tokens=3, length_penalty=0.0, end_id=None):
        expected[9 * a + 3 * b + c] = 30_000 * torch.tensor(score).exp()
    possible = expected > 0
    assert possible.sum() == 8 and counts[~possible].sum() == 0
    assert chisquare(counts[possible].double(), expected[possible], sum_check=False).pvalue > 0.01


def test_top_p_reaches_the_draw():
    model = Toy(table=torch.tensor([[0.5, 0.3, 0.2]]).log().expand(STATES, -1))
    draws = sample(model, torch.ones(500, 1, dtype=torch.long), max_new_tokens=4, top_p=0.6)
    assert draws.unique().tolist() == [0, 1]


def test_a_seed_repeats_a_sample():
    first, again, other = (
        sample(Toy(), PROMPT, max_new_tokens=20, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert (first == again).all() and (first != other).any()


def test_one_likeliest_token_is_greedy():
    tokens = sample(Toy(), PROMPT, max_new_tokens=8, top_k=1)
    assert (tokens == greedy(Toy(), PROMPT, max_new_tokens=8)).all()
    drawn = random_choice(top_p=1e-9)(Toy().table)
    assert (drawn == argmax(Toy().table)).all()


def test_log_probs_and_their_gradients_are_those_of_one_pass_over_the_whole_text():
    model = tiny_gpt()
    prompt, tokens = torch.randint(0, 11, (3, 4)), torch.randint(0, 11, (3, 6))
    logits = model(torch.cat([prompt, tokens], dim=1))
    expected = -F.cross_entropy(logits[:, 3:-1].transpose(1, 2), tokens, reduction="none")
    found = log_probs(model, prompt, tokens)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    same_gradients(model, found, expected, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        assert not log_probs(model, prompt, tokens).requires_grad


def same_gradients(model, *found, **tolerance):
    ours, theirs = (torch.autograd.grad(each.sum(), list(model.parameters())) for each in found)
    torch.testing.assert_close(ours, theirs, **tolerance)


def test_log_probs_of_padded_prompts_are_those_of_each_alone_and_so_are_their_gradients():
    model, tokens = tiny_gpt(), torch.randint(0, 11, (3, 6))
    prompts = [torch.randint(0, 11, (1, length)) for length in (1, 5, 3)]
    padded = torch.cat([F.pad(prompt, (5 - prompt.shape[1], 0)) for prompt in prompts])
    valid = torch.tensor([[place >= 5 - prompt.shape[1] for place in range(5)] for prompt in prompts])
    together = log_probs(model, padded, tokens, valid=valid)
    alone = torch.cat([log_probs(model, *pair) for pair in zip(prompts, tokens.split(1), strict=True)])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)
    same_gradients(model, together, alone, rtol=1e-3, atol=1e-4)


def test_log_probs_of_an_encoder_decoder_train_both_halves():
    torch.manual_seed(0)
    model = Transformer(
        TransformerConfig(vocab_size=11, dim=16, num_heads=2, mlp_dim=16, depth=1, head="linear")
    ).eval()
    source, start, tokens = torch.randint(0, 11, (3, 5)), torch.ones(3, 1, dtype=torch.long), PROMPT[:3]
    found = log_probs(partial(model, source), start, tokens)
    logits = model(source, torch.cat([start, tokens[:, :-1]], dim=1))
    torch.testing.assert_close(found, logits.log_softmax(-1).gather(2, tokens[:, :, None])[:, :, 0])
    found.sum().backward()
    for half in (model.encoder, model.decoder):
        assert all(parameter.grad is not None for parameter in half.parameters())


def test_a_model_without_logits_of_next_tokens_has_no_log_probs():
    encoder_decoder = Transformer(TransformerConfig(vocab_size=11, dim=16, num_heads=2, mlp_dim=16, depth=1))
    unchecked = inspect.unwrap(log_probs)  # the types that tests check would speak first
    for model in (encoder_decoder, encoder_decoder.given(PROMPT), tiny_gpt(head=None), torch.nn.Linear(2, 2)):
        with pytest.raises(ValueError, match=f"{type(model).__name__} gives no logits .*partial\\(model, source\\)"):
            unchecked(model, PROMPT, PROMPT)


def test_a_vocabulary_of_one_token_leaves_no_choice():
    only = Toy(table=torch.zeros(STATES, 1))
    for write in (greedy, sample):
        assert write(only, torch.zeros(2, 1, dtype=torch.long), max_new_tokens=3).tolist() == [[0, 0, 0]] * 2


@pytest.mark.parametrize("write", [greedy, sample, stream])
def test_bad_requests_are_named_before_anything_is_written(write):
    toy = Toy()
    with pytest.raises(ValueError, match="max_new_tokens must be 1 or more, got 0"):
        write(toy, PROMPT, max_new_tokens=0)
    with pytest.raises(ValueError, match=r"one or more tokens, got shape \(2, 0\)"):
        write(toy, torch.zeros(2, 0, dtype=torch.long), max_new_tokens=3)
    for row in ([True, True, False], [True, False, True], [False, False, False]):
        valid = torch.tensor([[True] * 3, [False, True, True], row, [True] * 3])
        with pytest.raises(ValueError, match=r"in rows \[2\]"):
            write(toy, PROMPT, max_new_tokens=3, valid=valid)
    assert toy.calls == []


def test_more_tokens_than_the_model_can_read_are_refused():
    model = tiny_gpt()
    assert greedy(model, PROMPT, max_new_tokens=18).shape == (4, 18)
    with pytest.raises(ValueError, match="at most 20 tokens, room for 22"):
        greedy(model, PROMPT, max_new_tokens=19)


@pytest.mark.parametrize("name", ["temperature", "top_k", "top_p"])
def test_bad_filters_are_named(name):
    with pytest.raises(ValueError, match=name):
        sample(Toy(), PROMPT, max_new_tokens=3, **{name: 0})


def test_log_probs_of_an_id_that_is_no_token_are_refused():
    for wrong in (-1, 11):
        tokens = torch.tensor([[1, 2, wrong]]).expand(4, -1)
        with pytest.raises(ValueError, match=rf"ids must be from 0 to 10.*got .*{wrong}"):
            log_probs(tiny_gpt(), PROMPT, tokens)
