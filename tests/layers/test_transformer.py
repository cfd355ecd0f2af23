from functools import partial

import pytest
import torch
from torch import nn

from course_lib.functional.attention import causal_mask, relative_distance, valid_positions
from course_lib.functional.positions import relative_buckets, sinusoidal_positions
from course_lib.layers.cache import KVCache
from course_lib.layers.transformer import (
    ACTIVATIONS,
    DecoderBlock,
    FeedForward,
    LearnedPositions,
    MultiHeadAttention,
    RelativePositionBias,
    SinusoidalPositions,
    TransformerBlock,
)

DIM, T, T_K = 12, 6, 5


def encoder_block(seed=0, *, pre_norm=True, dropout=0.0):
    """A block with large random weights, in double precision and evaluation mode."""
    torch.manual_seed(seed)
    attn, ffn = MultiHeadAttention(DIM, 3), FeedForward(DIM, 20, activation="gelu")
    return filled(TransformerBlock(attn, ffn, partial(nn.LayerNorm, DIM), pre_norm=pre_norm, dropout=dropout))


def decoder_block(seed=0, *, pre_norm=True, dropout=0.0):
    torch.manual_seed(seed)
    attn, cross_attn = MultiHeadAttention(DIM, 3), MultiHeadAttention(DIM, 3, context_dim=8)
    norm = partial(nn.RMSNorm, DIM)
    return filled(DecoderBlock(attn, cross_attn, FeedForward(DIM, 20), norm, pre_norm=pre_norm, dropout=dropout))


def filled(module):
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.double().eval()


def inputs(seed=0):
    """Two sequences, two contexts of unequal length and which tokens of those are real."""
    generator = torch.Generator().manual_seed(seed)
    x, context = (torch.randn(2, *size, generator=generator).double() for size in ((T, DIM), (T_K, 8)))
    return x, context, valid_positions(torch.tensor([T_K, 3]), T_K)[:, None, None, :]


def close(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_feed_forward_network_follows_its_equation(activation, bias, gated):
    torch.manual_seed(0)
    ffn = filled(FeedForward(DIM, 20, activation=activation, gated=gated, bias=bias))
    x = torch.randn(2, 4, DIM).double()
    by_name = {
        "relu": lambda z: z.clamp(min=0),
        "gelu": lambda z: z * torch.special.ndtr(z),
        "gelu_tanh": lambda z: z * (1 + ((2 / torch.pi) ** 0.5 * (z + 0.044715 * z**3)).tanh()) / 2,
        "silu": lambda z: z / (1 + (-z).exp()),
    }
    linear = {name: lambda z, p=part: z @ p.weight.T + (p.bias if bias else 0) for name, part in ffn.named_children()}
    act, inner = by_name[activation], linear["up_proj"](x)
    inner = act(linear["gate_proj"](x)) * inner if gated else act(inner)
    close(ffn(x), linear["down_proj"](inner))
    assert sum(name.endswith("bias") for name, _ in ffn.named_parameters()) == bias * (2 + gated)


def test_inner_units_are_dropped_in_training():
    ffn = FeedForward(4, 1000, dropout=0.5)
    seen = []
    ffn.down_proj.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    ffn.up_proj.bias.data.fill_(100.0)
    ffn(torch.randn(1, 4))
    ffn.eval()(torch.randn(1, 4))
    assert 0.4 < (seen[0] == 0).float().mean() < 0.6 and (seen[1] > 0).all()


@pytest.mark.parametrize("pre_norm", [True, False], ids=["pre", "post"])
def test_a_decoder_block_adds_its_sublayers_in_the_order_of_the_papers(pre_norm):
    block, (x, context, mask) = decoder_block(pre_norm=pre_norm), inputs()
    sublayers = (
        (block.norm1, lambda h: block.attn(h, causal=True)),
        (block.norm2, lambda h: block.cross_attn(h, context, mask=mask)),
        (block.norm3, block.ffn),
    )
    h = x
    for norm, sublayer in sublayers:
        h = h + sublayer(norm(h)) if pre_norm else norm(h + sublayer(h))
    close(block(x, context, context_mask=mask), h)


@pytest.mark.parametrize("pre_norm", [True, False], ids=["pre", "post"])
def test_an_encoder_block_agrees_with_pytorch_s(pre_norm):
    block = encoder_block(pre_norm=pre_norm)
    theirs = nn.TransformerEncoderLayer(
        DIM, 3, 20, dropout=0.0, activation="gelu", batch_first=True, norm_first=pre_norm, dtype=torch.float64
    )
    attn, ffn = block.attn, block.ffn
    projections = (attn.q_proj, attn.k_proj, attn.v_proj)
    weights = {
        "self_attn.in_proj_weight": torch.cat([proj.weight for proj in projections]),
        "self_attn.in_proj_bias": torch.cat([proj.bias for proj in projections]),
    }
    pairs = {"self_attn.out_proj": attn.o_proj, "linear1": ffn.up_proj, "linear2": ffn.down_proj}
    for name, module in (pairs | {"norm1": block.norm1, "norm2": block.norm2}).items():
        weights |= {f"{name}.weight": module.weight, f"{name}.bias": module.bias}
    theirs.load_state_dict(weights)
    x = inputs()[0].requires_grad_()
    ours, expected = block(x, causal=True), theirs(x, src_mask=~causal_mask(T), is_causal=True)
    close(ours, expected)
    close(*(torch.autograd.grad(output.sin().sum(), x)[0] for output in (ours, expected)))


@pytest.mark.parametrize("pre_norm", [True, False], ids=["pre", "post"])
@pytest.mark.parametrize("steps", [[6], [1] * 6, [3, 1, 2]], ids=str)
@torch.no_grad()
def test_with_a_cache_both_blocks_give_what_they_give_without(steps, pre_norm):
    x, context, mask = inputs()
    encoder, decoder = encoder_block(pre_norm=pre_norm), decoder_block(pre_norm=pre_norm)
    caches = KVCache(T), KVCache(T)
    caches[1].context, caches[1].context_mask = decoder.cross_attn.keys_values(context), mask
    found = [], []
    for new in x.split(steps, dim=1):
        found[0].append(encoder(new, causal=True, cache=caches[0]))
        found[1].append(decoder(new, None, cache=caches[1]))
    close(torch.cat(found[0], dim=1), encoder(x, causal=True))
    close(torch.cat(found[1], dim=1), decoder(x, context, context_mask=mask))


def test_masks_and_biases_reach_the_attention_that_they_are_meant_for():
    x, context, context_mask = inputs()
    encoder, decoder = encoder_block(), decoder_block()
    mask, bias = valid_positions(torch.tensor([4, 6]), T)[:, None, None, :], torch.randn(1, 3, T, T).double()
    seen = {}
    for name, attn in (("encoder", encoder.attn), ("self", decoder.attn), ("cross", decoder.cross_attn)):
        attn.register_forward_hook(
            lambda _, args, kwargs, out, name=name: seen.update({name: kwargs}), with_kwargs=True
        )
    encoder(x, mask=mask, score_bias=bias)
    decoder(x, context, context_mask=context_mask, mask=mask, score_bias=bias)
    for name in ("encoder", "self"):
        assert seen[name]["mask"] is mask and seen[name]["score_bias"] is bias
    assert seen["cross"]["mask"] is context_mask and seen["cross"].get("score_bias") is None
    assert not seen["encoder"]["causal"] and seen["self"]["causal"]


@pytest.mark.parametrize("pre_norm", [True, False], ids=["pre", "post"])
def test_each_sublayer_s_output_is_dropped_in_training(pre_norm):
    encoder, decoder = (make(pre_norm=pre_norm, dropout=0.5) for make in (encoder_block, decoder_block))
    x, context, _ = inputs()
    for block, sublayers, args in (
        (encoder, [encoder.attn, encoder.ffn], (x,)),
        (decoder, [decoder.attn, decoder.cross_attn, decoder.ffn], (x, context)),
    ):
        close(block(*args), block(*args))
        for name, _ in [*block.named_children()]:
            if name.startswith("norm"):
                setattr(block, name, nn.Identity())
        block.train()
        for chosen in sublayers:  # the one that adds ones; the others add nothing
            for sublayer in sublayers:
                sublayer.forward = lambda h, *_, one=float(sublayer is chosen), **__: torch.full_like(h, one)
            outputs = torch.stack([block(*args) - x for _ in range(50)])
            values, counts = outputs.round(decimals=6).unique(return_counts=True)
            assert values.tolist() == [0.0, 2.0] and 0.4 < counts[0] / counts.sum() < 0.6


LAYERS = [SinusoidalPositions, LearnedPositions]


def test_sinusoids_are_added_and_not_learned():
    layer, x = SinusoidalPositions(6, 10), torch.randn(2, 4, 6)
    torch.testing.assert_close(layer(x), x + sinusoidal_positions(4, 6))
    assert not list(layer.parameters()) and not layer.state_dict()


def test_learned_positions_are_added_and_learned():
    layer, x = LearnedPositions(6, 10), torch.randn(2, 4, 6)
    output = layer(x)
    torch.testing.assert_close(output, x + layer.table[:4])
    output.sum().backward()
    assert (layer.table.grad[:4] == 2).all() and (layer.table.grad[4:] == 0).all()


@pytest.mark.parametrize("kind", LAYERS)
def test_a_later_start_gives_the_later_codes(kind):
    layer, x = kind(6, 10), torch.randn(2, 7, 6)
    torch.testing.assert_close(layer(x[:, 4:], start=4), layer(x)[:, 4:])


@pytest.mark.parametrize("kind", LAYERS)
def test_each_row_can_have_positions_of_its_own(kind):
    layer, x = kind(6, 10), torch.randn(2, 3, 6)
    positions = torch.tensor([[0, 0, 1], [7, 8, 9]])
    expected = torch.stack([x[0] + layer.table[[0, 0, 1]], layer(x, start=7)[1]])
    torch.testing.assert_close(layer(x, positions=positions), expected)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("T_q", "T_k"), [(1, 1), (6, 6), (1, 9), (4, 9), (9, 4)])
def test_the_relative_bias_looks_up_every_pair_s_distance(T_q, T_k, bidirectional):
    torch.manual_seed(0)
    settings = {"num_buckets": 8, "max_distance": 5, "bidirectional": bidirectional}
    layer = RelativePositionBias(3, **settings)
    expected = layer.table[relative_buckets(relative_distance(T_q, T_k), **settings)].permute(2, 0, 1)[None]
    found = layer(T_q, T_k)
    assert torch.equal(found, expected)
    ours, wanted = (torch.autograd.grad(bias.sin().sum(), layer.table)[0] for bias in (found, expected))
    torch.testing.assert_close(ours, wanted)
