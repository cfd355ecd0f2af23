"""What a learner writes runs inside the library's models, and gives what these give by themselves."""

import pytest
import torch

from course_lib.functional import sampling
from course_lib.functional.metrics import bits_per_byte
from course_lib.functional.metrics import perplexity as of_nats
from course_lib.generation.stepwise import greedy
from course_lib.layers.transformer import TransformerBlock
from course_lib.lessons.lesson_08.tasks import TASKS, for_pairs
from course_lib.models.gpt import gpt_lesson
from course_lib.training.language_models import next_token_loss
from course_lib.training.seeding import seeded

shifted_loss, causal_block, top_p, cached_step, perplexity = (task.reference for task in TASKS.values())


@pytest.fixture
def model():
    with seeded(1):
        return gpt_lesson(30, dim=16, depth=2, num_heads=2, dropout=0.0).eval()


TOKENS = torch.arange(3 * 20).view(3, 20) * 7 % 30


def test_the_shifted_loss_is_the_one_that_models_are_trained_with(model):
    torch.testing.assert_close(shifted_loss(model(TOKENS), TOKENS), next_token_loss(model, TOKENS))


def test_a_block_made_of_its_own_sublayers_is_the_block_of_gpt(model):
    x = model.embed(TOKENS)
    for block in model.blocks:
        assert isinstance(block, TransformerBlock)
        ours = causal_block(x, block.norm1, for_pairs(block.attn), block.norm2, block.ffn)
        torch.testing.assert_close(ours, block(x, causal=True))


def test_the_nucleus_is_that_of_the_library():
    logits = torch.randn(4, 50, generator=torch.Generator().manual_seed(0)) * 3
    torch.testing.assert_close(top_p(logits, 0.7), sampling.top_p(logits, 0.7))


def test_a_model_writes_the_same_text_when_each_step_reads_its_cache_by_hand(model):
    wanted = greedy(model, TOKENS, max_new_tokens=8)

    def attend(q, k, v, **_):
        n = q.shape[-2]
        return cached_step(q, k[..., -n:, :], v[..., -n:, :], k[..., :-n, :], v[..., :-n, :])

    for block in model.blocks:
        block.attn.attend = attend
    assert torch.equal(greedy(model, TOKENS, max_new_tokens=8), wanted)


def test_perplexity_and_bits_are_those_of_the_library():
    nats = torch.rand(40, generator=torch.Generator().manual_seed(0))
    both = perplexity(nats, 90)
    total = nats.sum().item()
    torch.testing.assert_close(both, torch.tensor([of_nats(total, 40), bits_per_byte(total, 90)]))
