"""The Conformer's blocks beside Hugging Face's, with random weights."""

import pytest
import torch
from torch import nn
from transformers import Wav2Vec2ConformerConfig
from transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer import Wav2Vec2ConformerEncoder

from course_lib.weights.conformer import build, load_blocks

TINY = {
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "conv_depthwise_kernel_size": 5,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "position_embeddings_type": "relative",
    "hidden_act": "swish",
    "attn_implementation": "eager",
    "layerdrop": 0.0,
}


def pair(**settings):
    """An official encoder without its last norm, with large random weights and statistics, and ours with the same."""
    torch.manual_seed(1)
    config = Wav2Vec2ConformerConfig(**TINY | settings)
    official = Wav2Vec2ConformerEncoder(config).eval()
    for parameter in official.parameters():
        nn.init.normal_(parameter, std=0.2)
    for name, statistic in official.named_buffers():
        if "running" in name:
            statistic.uniform_(0.5, 2)
    official.layer_norm = nn.Identity()
    ours = build(config.to_dict()).eval()
    load_blocks(ours, official.state_dict())
    return official, ours


@pytest.mark.parametrize(
    "settings",
    [{}, {"num_attention_heads": 1, "conv_depthwise_kernel_size": 1}, {"hidden_size": 16, "num_attention_heads": 4}],
)
@pytest.mark.parametrize("length", [1, 2, 9])
def test_outputs_and_gradients_of_the_encoder_are_the_official_ones(settings, length):
    official, ours = pair(**settings)
    x = torch.randn(2, length, ours.config.dim, requires_grad=True)
    theirs, our = official(x).last_hidden_state, ours.encode(x)
    torch.testing.assert_close(our, theirs, rtol=1e-5, atol=1e-5)
    weights = torch.randn_like(our)
    found, expected = (torch.autograd.grad((each * weights).sum(), x)[0] for each in (our, theirs))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5 * expected.abs().max().item())


def test_a_block_alone_is_the_official_one_in_training_too():
    official, ours = pair(attention_dropout=0.0, activation_dropout=0.0, hidden_dropout=0.0, conformer_conv_dropout=0.0)
    x = torch.randn(3, 7, 12)
    positions = official.embed_positions(x)
    theirs = official.layers[1].train()(x, relative_position_embeddings=positions)
    our = ours.blocks[1].train()(x, positions[0])
    torch.testing.assert_close(our, theirs, rtol=1e-5, atol=1e-5)
    statistics = ours.blocks[1].conv.norm, official.layers[1].conv_module.batch_norm
    torch.testing.assert_close(*(each.running_var for each in statistics))


def test_tensors_too_few_or_many_and_other_positions_are_named():
    official, ours = pair()
    state = official.state_dict()
    bias = state.pop("layers.1.self_attn.pos_bias_u")
    with pytest.raises(ValueError, match=r"layers\.1\.self_attn\.pos_bias_u is missing"):
        load_blocks(ours, state)
    with pytest.raises(ValueError, match=r"layers\.9\.x is unknown"):
        load_blocks(ours, state | {"layers.1.self_attn.pos_bias_u": bias, "layers.9.x": bias})
    with pytest.raises(ValueError, match="position_embeddings_type is 'rotary'"):
        build(TINY | {"position_embeddings_type": "rotary"})
