import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.models.transformer import Transformer, TransformerConfig, transformer_base, transformer_big

SIZES = {"vocab_size": (11, 13), "dim": 8, "depth": (2, 3), "num_heads": (2, 4), "mlp_dim": (12, 10), "max_length": 12}
KINDS = [
    {},
    {"pre_norm": True, "activation": "gelu"},
    {"positions": "learned", "vocab_size": 13},
    {"positions": "sinusoidal_halves", "activation": "silu", "head": "linear", "scale_embedding": False},
]


def make(**options):
    """A tiny model in double precision, two sources of unequal length, and targets of five tokens."""
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(**SIZES | options)).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    source = torch.randint(11, (2, 6))
    valid = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    return model, source, valid, torch.randint(13, (2, 5))


def same(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("options", KINDS)
def test_padding_of_the_source_changes_nothing(options):
    model, source, valid, target = make(**options)
    together = model(source, target, source_valid=valid)[1:]
    same(together, model(source[1:, :4], target[1:]))


@pytest.mark.parametrize("options", KINDS)
def test_future_target_tokens_do_not_leak_and_every_source_token_counts(options):
    model, source, _, target = make(**options)
    embedded = {}
    for name in ("source_pos", "target_pos"):
        hook = lambda _, args, name=name: (embedded.setdefault(name, args[0].detach().requires_grad_()), *args[1:])  # noqa: E731
        getattr(model, name).register_forward_pre_hook(hook)
    model(source, target)[:, 2].square().sum().backward()
    gradient = embedded["target_pos"].grad
    assert (gradient[:, 3:] == 0).all() and (gradient[:, :3] != 0).all()
    assert (embedded["source_pos"].grad != 0).all()


@pytest.mark.parametrize("options", KINDS)
def test_writing_token_by_token_gives_the_logits_of_teacher_forcing(options):
    model, source, valid, target = make(**options)
    writer = model.given(source, valid)
    cache, logits = writer.new_cache(5), []
    with torch.no_grad():
        logits.append(writer.next_logits(target[:, :2], cache))
        logits += [writer.next_logits(target[:, [i]], cache) for i in range(2, 5)]
        expected = model(source, target, source_valid=valid)[:, 1:]
    assert cache.length == 5
    same(torch.stack(logits, dim=1), expected)


def test_rows_can_be_chosen_and_repeated_while_writing():
    model, source, valid, target = make()
    writer = model.given(source, valid)
    cache, rows = writer.new_cache(5), torch.tensor([1, 1, 0])
    with torch.no_grad():
        writer.next_logits(target[:, :3], cache)
        cache.select(rows)
        logits = writer.next_logits(target[rows, 3:4], cache)
        same(logits, model(source, target[:, :4], source_valid=valid)[rows, -1])


def test_prompts_padded_at_the_left_are_continued_as_if_alone():
    model, source, valid, target = make()
    writer = model.given(source, valid)
    cache = writer.new_cache(6)
    prompt = torch.stack([target[0, :4], torch.cat([torch.zeros(2, dtype=torch.long), target[1, :2]])])
    real = torch.tensor([[True] * 4, [False] * 2 + [True] * 2])
    with torch.no_grad():
        first = writer.next_logits(prompt, cache, valid=real)
        second = writer.next_logits(torch.stack([target[0, 4:5], target[1, 2:3]]), cache)
        alone = model(source[1:, :4], target[1:, :3])
    same(torch.stack([first[1], second[1]]), alone[0, 1:])


@pytest.mark.parametrize("options", KINDS[:2])
def test_the_maps_of_align_are_the_weights_behind_forward(options):
    model, source, valid, target = make(**options)
    seen = []
    for block in model.decoder:
        block.cross_attn.register_forward_hook(
            lambda attn, args, kwargs, _: seen.append(attn.weights(args[0], args[1], mask=kwargs["mask"])),
            with_kwargs=True,
        )
    model(source, target, source_valid=valid)
    maps = model.align(source, target, source_valid=valid)
    assert maps.shape == (3, 2, 4, 5, 6)
    same(maps, torch.stack(seen[:3]))
    same(maps.sum(dim=-1), torch.ones(3, 2, 4, 5).double())
    assert (maps[:, 1, :, :, 4:] == 0).all()


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("pre_norm", [False, True])
def test_it_computes_what_torch_s_own_transformer_computes(pre_norm):
    options = {"depth": (2, 3), "num_heads": 2, "mlp_dim": 12, "pre_norm": pre_norm}
    model, source, valid, target = make(**options)
    peer = nn.Transformer(8, 2, 2, 3, 12, dropout=0.0, batch_first=True, norm_first=pre_norm).double()
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
        theirs.norm = ours
    peer.train()  # without dropout: evaluation mode would take a fused path that skips rows of padding
    embed = lambda tokens, table, pos: pos(table(tokens) * math.sqrt(8))  # noqa: E731
    features = peer(
        embed(source, model.source_embed, model.source_pos),
        embed(target, model.target_embed, model.target_pos),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(5).double(),
        src_key_padding_mask=torch.where(valid, 0.0, -torch.inf).double(),
        memory_key_padding_mask=torch.where(valid, 0.0, -torch.inf).double(),
    )
    same(model(source, target, source_valid=valid), model.head(features))


def test_one_number_of_tokens_shares_one_table_for_source_target_and_logits():
    model = make(vocab_size=13)[0]
    assert model.source_embed.weight is model.target_embed.weight is model.head.weight
    model = make()[0]
    assert model.source_embed.weight.shape == (11, 8) and model.head.weight is model.target_embed.weight
    assert make(head="linear")[0].head.weight is not make(head="linear")[0].target_embed.weight


def test_embeddings_enter_with_standard_deviation_one_and_no_token_is_favoured():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocab_size=400, dim=64, depth=1, num_heads=2, mlp_dim=64))
    entering = model.source_embed(torch.arange(400)) * model.scale
    assert abs(entering.std().item() - 1) < 0.02
    assert (model.head.bias == 0).all()


def test_without_a_head_it_makes_features():
    model, source, valid, target = make(head=None)
    features = model(source, target, source_valid=valid)
    assert features.shape == (2, 5, 8) and model.head is None
    with pytest.raises(ValueError, match="head=None"):
        model.given(source, valid)


def test_dropout_reaches_embeddings_sublayers_weights_and_inner_units():
    model = make(dropout=(0.1, 0.2, 0.3))[0]
    assert model.dropout.p == 0.1
    for block in (*model.encoder, *model.decoder):
        assert (block.dropout.p, block.attn.dropout, block.ffn.dropout.p) == (0.1, 0.2, 0.3)
    block = make(dropout=0.1)[0].decoder[0]
    assert (block.dropout.p, block.cross_attn.dropout, block.ffn.dropout.p) == (0.1, 0.0, 0.0)


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def test_base_and_big_have_the_sizes_of_table_3():
    """Weights and biases with the one shared table of 37,000 rows; the paper says 65 M and 213 M."""
    with torch.device("meta"):
        base, big = count(transformer_base()), count(transformer_big())
    for total, dim, inner in ((base, 512, 2048), (big, 1024, 4096)):
        attention, ffn = 4 * (dim**2 + dim), 2 * dim * inner + inner + dim
        blocks = 6 * (attention + ffn + 2 * 2 * dim) + 6 * (2 * attention + ffn + 3 * 2 * dim)
        assert total == 37_000 * (dim + 1) + blocks
    assert base == pytest.approx(65e6, rel=0.03) and big == pytest.approx(213e6, rel=0.01)


def test_two_more_layers_cost_what_table_3_says():
    with torch.device("meta"):
        sizes = [count(transformer_base(depth=depth)) for depth in (2, 4, 6, 8)]
    for ours, theirs in zip(sizes, (36, 50, 65, 80), strict=True):
        assert ours - sizes[0] == pytest.approx((theirs - 36) * 1e6, abs=1e6)


def test_settings_read_from_json_are_the_settings_written():
    config = TransformerConfig(vocab_size=[11, 13], depth=[1, 2], dropout=[0.1, 0.0, 0.0])
    assert config == TransformerConfig(vocab_size=(11, 13), depth=(1, 2), dropout=(0.1, 0.0, 0.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positions": "rotary"}, "positions must be one of .*'rotary'"),
        ({"head": "none"}, "head must be one of .*'none'"),
        ({"depth": (2, 0)}, r"depth must be 1 or more, got \(2, 0\)"),
        ({"num_heads": 3}, "dim=8, num_heads=3"),
    ],
)
def test_settings_that_make_no_sense_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_too_long_a_target_is_refused():
    model, source, _, _ = make()
    with pytest.raises(ValueError, match="positions 0 to 12 were asked for"):
        model(source, torch.zeros(2, 13, dtype=torch.long))


@pytest.mark.parametrize("pre_norm", [False, True])
def test_a_batch_can_be_learned_by_heart(pre_norm):
    torch.manual_seed(0)
    sizes = {"vocab_size": 20, "dim": 32, "depth": 1, "num_heads": 2, "mlp_dim": 64, "dropout": 0.0}
    model = Transformer(TransformerConfig(**sizes, pre_norm=pre_norm))
    source = torch.randint(3, 20, (8, 6))
    target = torch.cat([torch.ones(8, 1, dtype=torch.long), source.flip(1)], dim=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(60):
        loss = F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (model(source, target[:, :-1]).argmax(dim=-1) == target[:, 1:]).all()
