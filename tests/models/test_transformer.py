import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.models.marian import Marian, MarianConfig
from course_lib.models.transformer import Transformer, TransformerConfig

SIZES = {"vocab_size": (11, 13), "dim": 8, "context_length": 12}
TRANSFORMER = {"depth": 3, "num_heads": 4, "mlp_dim": 12}
MARIAN = {"depth": (2, 3), "num_heads": (2, 4), "mlp_dim": (12, 10)}


def make(build=Transformer, **options):
    """A tiny model in double precision, two sources of unequal length, and targets of five tokens."""
    torch.manual_seed(0)
    config, sizes = (MarianConfig, MARIAN) if build is Marian else (TransformerConfig, TRANSFORMER)
    model = build(config(**SIZES | sizes | options)).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    source = torch.randint(11, (2, 6))
    valid = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    return model, source, valid, torch.randint(13, (2, 5))


def same(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-10)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize(
    "options",
    [
        {"num_heads": 2},
        {"num_heads": 2, "pre_norm": True},
        {"build": Marian, "num_heads": (2, 2), "mlp_dim": (12, 12)},
        {"build": Marian, "num_heads": (2, 2), "mlp_dim": (12, 12), "scale_embedding": False},
    ],
)
def test_it_computes_what_torch_s_own_transformer_computes(options):
    model, source, valid, target = make(**options)
    marian, pre_norm = isinstance(model, Marian), options.get("pre_norm", False)
    sizes, settings = (len(model.encoder), len(model.decoder), 12), {"activation": F.silu if marian else F.relu}
    peer = nn.Transformer(8, 2, *sizes, dropout=0.0, batch_first=True, norm_first=pre_norm, **settings).double()
    with torch.no_grad():
        layers = (*peer.encoder.layers, *peer.decoder.layers)
        for ours, theirs in zip((*model.encoder, *model.decoder), layers, strict=True):
            crosses = [(ours.cross_attn, theirs.multihead_attn)] if hasattr(ours, "cross_attn") else []
            for attn, other in [(ours.attn, theirs.self_attn), *crosses]:
                for kind in ("weight", "bias"):
                    parts = [getattr(getattr(attn, name), kind) for name in ("q_proj", "k_proj", "v_proj")]
                    getattr(other, f"in_proj_{kind}").copy_(torch.cat(parts))
                other.out_proj.load_state_dict(attn.o_proj.state_dict())
            theirs.linear1.load_state_dict(ours.ffn.up_proj.state_dict())
            theirs.linear2.load_state_dict(ours.ffn.down_proj.state_dict())
            for name in [name for name, _ in theirs.named_children() if name.startswith("norm")]:
                getattr(theirs, name).load_state_dict(getattr(ours, name).state_dict())
    for ours, theirs in ((model.encoder_norm, peer.encoder), (model.decoder_norm, peer.decoder)):
        assert isinstance(ours, nn.LayerNorm) == pre_norm
        theirs.norm = ours
    peer.train()  # without dropout: evaluation mode would take a fused path that skips rows of padding
    angles = torch.arange(6)[:, None].double() / 10_000 ** (torch.arange(0, 8, 2).double() / 8)
    sines, cosines = angles.sin().float(), angles.cos().float()
    places = torch.cat([sines, cosines], 1) if marian else torch.stack([sines, cosines], 2).flatten(1)
    scale = 1 if options.get("scale_embedding") is False else math.sqrt(8)
    embed = lambda tokens, table: table(tokens) * scale + places[: tokens.shape[1]].double()  # noqa: E731
    features = peer(
        embed(source, model.source_embed),
        embed(target, model.target_embed),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(5).double(),
        src_key_padding_mask=torch.where(valid, 0.0, -torch.inf).double(),
        memory_key_padding_mask=torch.where(valid, 0.0, -torch.inf).double(),
    )
    same(model(source, target, source_valid=valid), model.head(features))


def test_positions_are_sinusoids_or_learned_tables_one_for_each_side():
    fixed, learned = (make(positions=kind)[0] for kind in ("sinusoidal", "learned"))
    tables = {name for name, _ in learned.named_parameters()} - {name for name, _ in fixed.named_parameters()}
    assert tables == {"source_pos.table", "target_pos.table"}
    words = torch.randint(11, (2, 6))
    same(learned.embed(words), learned.source_embed(words) * math.sqrt(8) + learned.source_pos.table[:6])


@pytest.mark.parametrize("build", [Transformer, Marian])
def test_one_number_of_tokens_shares_one_table_for_source_target_and_logits(build):
    model = make(build, vocab_size=13)[0]
    assert model.source_embed.weight is model.target_embed.weight is model.head.weight
    model = make(build)[0]
    assert model.source_embed.weight.shape == (11, 8) and model.head.weight is model.target_embed.weight
    model = make(build, head="linear")[0]
    assert model.head.weight is not model.target_embed.weight


def test_embeddings_enter_with_standard_deviation_one_and_no_token_is_favoured():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocab_size=400, dim=64, depth=1, num_heads=2, mlp_dim=64))
    entering = model.source_embed(torch.arange(400)[None]) * model.scale
    assert abs(entering.std().item() - 1) < 0.02
    assert (model.head.bias == 0).all()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (0.1, 0.0, 0.0)),
        ({"build": Marian}, (0.1, 0.0, 0.0)),
        ({"build": Marian, "attention_dropout": 0.2, "inner_dropout": 0.3}, (0.1, 0.2, 0.3)),
    ],
)
def test_dropout_reaches_embeddings_and_sublayers_and_if_asked_weights_and_inner_units(options, expected):
    model = make(**options, dropout=0.1)[0]
    assert model.dropout.p == 0.1
    for block in (*model.encoder, *model.decoder):
        assert (block.dropout.p, block.attn.dropout, block.ffn.dropout.p) == expected
    assert {block.cross_attn.dropout for block in model.decoder} == {expected[1]}
