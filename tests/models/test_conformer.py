import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.functional.ctc import ctc_loss, greedy_decode
from course_lib.functional.positions import sinusoidal_positions
from course_lib.layers.relative_attention import RelativeAttention, relative_sinusoids
from course_lib.models.conformer import (
    Conformer,
    ConformerConfig,
    ConvModule,
    SpeechTransformer,
    conformer_large,
    conformer_medium,
    conformer_small,
)

TINY = {"frame_dim": 6, "num_classes": 4, "dim": 8, "depth": 2, "num_heads": 2, "mlp_dim": 12, "kernel_size": 3}
both = pytest.mark.parametrize("kind", [Conformer, SpeechTransformer])


def tiny(kind=Conformer, **settings):
    """A model with large random weights and statistics."""
    torch.manual_seed(0)
    model = kind(ConformerConfig(**TINY | {"dropout": 0.0} | settings)).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    for name, statistic in model.named_buffers():
        if "running" in name:
            statistic.uniform_(0.5, 2)
    return model


def frames(batch=2, length=13, dim=6):
    return torch.randn(batch, length, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(length))


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


@both
@pytest.mark.parametrize(("halvings", "length", "expected"), [(1, 13, 7), (2, 13, 4), (2, 12, 3), (3, 1, 1)])
def test_each_halving_rounds_up(kind, halvings, length, expected):
    model, valid = tiny(kind, num_halvings=halvings), torch.ones(2, length, dtype=torch.bool)
    assert model(frames(length=length)).shape == (2, expected, 4)
    assert model.shorter(valid).shape == (2, expected)
    assert tiny(kind, num_classes=None)(frames()).shape == (2, 4, 8)


@both
@pytest.mark.parametrize("length", [5, 6, 7, 8, 9])
def test_padding_changes_nothing_whatever_it_holds(kind, length):
    model, x = tiny(kind), frames()
    valid = torch.arange(13) < torch.tensor([[13], [length]])
    short = model.shorter(valid)[1]
    alone = model(x[1:, :length])
    for noise in (0.0, 9.0):
        x[1, length:] = noise
        torch.testing.assert_close(model(x, valid)[1:, short], alone, rtol=0, atol=1e-12)
    assert short.sum() == alone.shape[1]


def test_relative_scores_are_those_of_transformer_xls_formula_pair_by_pair():
    torch.manual_seed(0)
    attn = RelativeAttention(8, 2).double()
    for parameter in attn.parameters():
        nn.init.normal_(parameter, std=0.5)
    x, length = frames(1, 5, 8), 5
    codes = relative_sinusoids(length, 8).double()
    expected = torch.zeros(1, 5, 8).double()
    q, k, v = (each(x[0]).reshape(5, 2, 4) for each in (attn.q_proj, attn.k_proj, attn.v_proj))
    for head in range(2):
        u, w = attn.content_bias[head, 0], attn.position_bias[head, 0]
        for i in range(length):
            scores = []
            for j in range(length):
                r = attn.pos_proj(codes[length - 1 - (i - j)]).reshape(2, 4)[head]
                scores.append(((q[i, head] + u) @ k[j, head] + (q[i, head] + w) @ r) / math.sqrt(4))
            expected[0, i, 4 * head : 4 * head + 4] = torch.stack(scores).softmax(0) @ v[:, head]
    torch.testing.assert_close(attn(x, codes), attn.o_proj(expected), rtol=0, atol=1e-12)


def test_the_codes_run_from_the_farthest_past_to_the_farthest_future():
    codes, past = relative_sinusoids(4, 6), sinusoidal_positions(4, 6)
    assert codes.shape == (7, 6)
    for row, distance in enumerate(range(3, -4, -1)):
        expected = past[abs(distance)].clone()
        expected[0::2] *= 1 if distance >= 0 else -1  # sines are odd
        torch.testing.assert_close(codes[row], expected)


def test_attention_by_distance_moves_with_its_input():
    """Content and distance alone: what stands later by three frames is attended to in the same way."""
    torch.manual_seed(0)
    attn, x = RelativeAttention(8, 2).double(), frames(1, 5, 8)
    later = torch.cat([frames(1, 3, 8), x], dim=1)
    seen = torch.arange(8) >= 3
    found = attn(later, relative_sinusoids(8, 8).double(), mask=seen[None, None, None])
    torch.testing.assert_close(found[:, 3:], attn(x, relative_sinusoids(5, 8).double()), rtol=0, atol=1e-12)


def test_the_convolution_module_is_the_papers_with_convolutions_throughout():
    torch.manual_seed(0)
    module, x = ConvModule(4, 3).double().eval(), frames(2, 6, 4)
    module.norm.running_var.uniform_(0.5, 2)
    y = F.glu(F.conv1d(x.mT, module.in_proj.weight[..., None]), dim=1)
    y = module.norm(F.conv1d(y, module.depthwise.weight, padding=1, groups=4))
    expected = F.conv1d(y * y.sigmoid(), module.out_proj.weight[..., None]).mT
    torch.testing.assert_close(module(x), expected)


@pytest.mark.parametrize("kernel_size", [1, 3, 5])
def test_the_convolution_sees_half_a_kernel_to_each_side(kernel_size):
    module, x = ConvModule(4, kernel_size).double().eval(), frames(1, 11, 4).requires_grad_()
    module(x)[0, 5].sum().backward()
    assert x.grad[0].any(dim=1).nonzero()[:, 0].tolist() == [*range(5 - kernel_size // 2, 6 + kernel_size // 2)]


def test_a_block_is_equation_one():
    block = tiny().blocks[0]
    x, codes = frames(2, 5, 8), relative_sinusoids(5, 8).double()
    first = x + block.ffn1(block.norm1(x)) / 2
    second = first + block.attn(block.norm2(first), codes)
    third = second + block.conv(block.norm3(second))
    expected = block.norm5(third + block.ffn2(block.norm4(third)) / 2)
    torch.testing.assert_close(block(x, codes), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("build", "encoder", "lstm", "table"),
    [
        (conformer_small, 8.7, 320, None),  # the rest of its small decoder is a tenth of the whole
        (conformer_medium, 27.3, 640, 30.7),
        (conformer_large, 115.1, 640, 118.8),
    ],
)
def test_presets_have_the_papers_size_with_the_lstm_of_its_decoder(build, encoder, lstm, table):
    with torch.device("meta"):
        millions = parameters(build()) / 1e6
        decoder = sum(p.numel() for name, p in nn.LSTM(lstm, lstm).named_parameters() if "weight" in name) / 1e6
    assert millions == pytest.approx(encoder, abs=0.05)
    assert table is None or millions + decoder == pytest.approx(table, rel=0.005)


@both
@pytest.mark.parametrize("length", [8, 30])
def test_gradients_reach_every_parameter_and_dropout_is_off_in_evaluation(kind, length):
    model = tiny(kind, dropout=0.5)
    assert torch.equal(model(frames(length=length)), model(frames(length=length)))
    model.train()(frames(length=length)).square().mean().backward()
    assert all(parameter.grad.any() for parameter in model.parameters())


@pytest.mark.parametrize(("kind", "steps"), [(Conformer, 120), (SpeechTransformer, 240)])
def test_sequences_of_marks_without_their_places_are_learned_by_ctc(kind, steps):
    """Three marks in noise, each of a length of its own: greedy decoding spells held-out rows."""
    torch.manual_seed(0)
    model = kind(ConformerConfig(**TINY | {"dim": 16, "depth": 1, "num_halvings": 1, "mlp_dim": 32, "dropout": 0.0}))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def batch(seed, rows=16, labels=3):
        g = torch.Generator().manual_seed(seed)
        targets = torch.randint(1, 4, (rows, labels), generator=g)
        place = torch.stack([torch.zeros(rows, labels).long(), targets], dim=2).flatten(1)  # a gap, a mark, ...
        lengths = torch.randint(2, 6, place.shape, generator=g)
        x = torch.zeros(rows, 32, 6)
        for row in range(rows):
            symbols = place[row].repeat_interleave(lengths[row])
            x[row, : len(symbols)] = F.one_hot(symbols, 6).float()
        return x + 0.3 * torch.randn(x.shape, generator=g), targets

    sixteen, three = torch.full((16,), 16), torch.full((16,), 3)
    for step in range(steps):
        x, targets = batch(step)
        loss = ctc_loss(model(x).log_softmax(-1), targets, sixteen, three).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x, targets = batch(10_000)
    with torch.no_grad():
        read = greedy_decode(model.eval()(x).log_softmax(-1), sixteen)
    assert sum(found == spoken for found, spoken in zip(read, targets.tolist(), strict=True)) >= 14


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"kernel_size": 4}, "middle, got 4"), ({"depth": 0}, "depth must be 1 or more, got 0"), ({"dim": 9}, "dim=9")],
)
def test_sizes_that_do_not_fit_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        Conformer(ConformerConfig(**TINY | settings))
