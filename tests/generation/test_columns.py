import pytest
import torch

from course_lib.generation import store_by_columns
from course_lib.models.gpt import GPT, GPTConfig


@pytest.fixture
def model():
    torch.manual_seed(0)
    return GPT(GPTConfig(vocab_size=11, context_length=20, dim=16, depth=2, num_heads=2)).eval()


def test_columns_lie_together_and_the_values_stay(model):
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert store_by_columns(model) is model
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert model.blocks[0].attn.q_proj.weight.stride() == (1, 16)


def test_tied_weights_stay_tied(model):
    store_by_columns(model)
    assert model.head.weight is model.token_embed.weight
