import pytest
import torch
from torch import nn

from course_lib.models.marian import Marian, MarianConfig
from course_lib.weights import own

SIZES = {"vocab_size": (11, 13), "dim": 8, "context_length": 12}
PAIRS = {"depth": (1, 2), "num_heads": (2, 4), "mlp_dim": (12, 10)}


def make(**options):
    """A tiny model in double precision. What it computes, test_transformer.py tests beside the Transformer."""
    torch.manual_seed(0)
    model = Marian(MarianConfig(**SIZES | PAIRS | options)).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


def test_a_pair_says_the_sizes_of_the_encoder_and_of_the_decoder():
    model = make()
    for blocks, depth, num_heads, mlp_dim in ((model.encoder, 1, 2, 12), (model.decoder, 2, 4, 10)):
        assert len(blocks) == depth
        assert all(block.attn.num_heads == num_heads for block in blocks)
        assert all(block.ffn.up_proj.out_features == mlp_dim for block in blocks)
    assert all(block.cross_attn.num_heads == 4 for block in model.decoder)


def test_a_model_of_opus_mt_has_the_parameters_of_the_released_ones():
    """Helsinki-NLP/opus-mt-en-de: 58,101 tokens; without the rows of its table of positions, which are not learned."""
    with torch.device("meta"):
        model = Marian(MarianConfig(vocab_size=58_101))
    attention, ffn, norm = 4 * (512**2 + 512), 2 * 512 * 2048 + 2048 + 512, 2 * 512
    blocks = 6 * (attention + ffn + 2 * norm) + 6 * (2 * attention + ffn + 3 * norm)
    assert sum(parameter.numel() for parameter in model.parameters()) == 58_101 * (512 + 1) + blocks


@pytest.mark.parametrize("scaled", [True, False])
def test_words_are_scaled_and_get_all_sines_before_all_cosines(scaled):
    model, tokens = make(scale_embedding=scaled), torch.arange(10)[None]
    angles = torch.arange(10)[:, None].double() / 10_000 ** (torch.arange(0, 8, 2).double() / 8)
    positions = torch.cat([angles.sin(), angles.cos()], dim=1).float().double()
    for entering, table in ((model.embed, model.source_embed), (model.embed_target, model.target_embed)):
        expected = table.weight[:10] * (8**0.5 if scaled else 1) + positions
        torch.testing.assert_close(entering(tokens)[0], expected, rtol=0, atol=1e-10)


def test_dropout_reaches_embeddings_sublayers_weights_and_inner_units():
    model = make(dropout=0.1, attention_dropout=0.2, inner_dropout=0.3)
    assert model.dropout.p == 0.1
    for block in (*model.encoder, *model.decoder):
        assert (block.dropout.p, block.attn.dropout, block.ffn.dropout.p) == (0.1, 0.2, 0.3)
    assert {block.cross_attn.dropout for block in model.decoder} == {0.2}
    block = make(dropout=0.1).decoder[0]
    assert (block.dropout.p, block.cross_attn.dropout, block.ffn.dropout.p) == (0.1, 0.0, 0.0)


def test_one_number_of_tokens_shares_one_table_for_source_target_and_logits():
    model = make(vocab_size=13)
    assert model.source_embed.weight is model.target_embed.weight is model.head.weight
    model = make()
    assert model.source_embed.weight.shape == (11, 8) and model.head.weight is model.target_embed.weight
    model = make(head="linear")
    assert model.head.weight is not model.target_embed.weight
    assert make(head=None).head is None


def test_a_saved_model_comes_back_with_its_settings(tmp_path):
    model, source, target = make(head="linear").float(), torch.arange(6)[None], torch.arange(5)[None]
    own.save(model, tmp_path / "marian.safetensors")
    again = own.load(tmp_path / "marian.safetensors")
    assert again.config == model.config and again.config.depth == (1, 2)
    assert torch.equal(again(source, target), model(source, target))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": "none"}, "head must be one of .*'none'"),
        ({"depth": (2, 0)}, r"depth must be 1 or more, got \(2, 0\)"),
        ({"context_length": 0}, "context_length must be 1 or more, got 0"),
        ({"num_heads": (2, 3)}, "dim=8, num_heads=3"),
        ({"activation": "swish"}, "activation must be one of .*'swish'"),
    ],
)
def test_settings_that_make_no_sense_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_too_long_a_target_is_refused():
    with pytest.raises(ValueError, match="positions 0 to 12 were asked for"):
        make()(torch.zeros(1, 6, dtype=torch.long), torch.zeros(1, 13, dtype=torch.long))
