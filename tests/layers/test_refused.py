"""What the layers refuse by name. Outside of tests nobody checks annotated shapes: they have to speak up themselves."""

from functools import partial

import jaxtyping
import pytest
import torch

from course_lib.functional.local_attention import local_attention
from course_lib.layers.cache import KVCache
from course_lib.layers.convolution import BasicBlock, Bottleneck, ConvNorm, PaddedShortcut, channels_last
from course_lib.layers.patches import ConvStem, PatchEmbed, patchify, random_mask, unpatchify
from course_lib.layers.recurrent import GRU, LSTM, RNN, AdditiveAttention, LuongAttention
from course_lib.layers.segmentation import UpBlock, pad_to_multiple
from course_lib.layers.transformer import (
    FeedForward,
    LearnedPositions,
    MultiHeadAttention,
    RelativePositionBias,
    RotaryPositions,
    SinusoidalPositions,
    TokenEmbedding,
)
from course_lib.layers.windows import (
    DropPath,
    WindowAttention,
    relative_position_index,
    shifted_window_mask,
    window_merge,
    window_partition,
)


def zeros(*shape):
    return torch.zeros(*shape)


def trues(*shape):
    return torch.ones(*shape, dtype=torch.bool)


def turned(x, *context, **options):
    return MultiHeadAttention(8, 2, rotary=RotaryPositions(4, 12), **options)(x, *context)


def attended(mask):
    return AdditiveAttention(4, 4, 3)(zeros(2, 3, 4), zeros(2, 5, 4), mask=mask)


X = zeros(3, 4, 8)
BEYOND = torch.tensor([[0, 0, 1, 1], [7, 8, 9, 10]])
REFUSED = [
    (lambda: MultiHeadAttention(10, 3), "dim=10, num_heads=3"),
    (lambda: MultiHeadAttention(4, 0), "num_heads=0"),
    (lambda: MultiHeadAttention(4, 2, dropout=1.0), "1.0"),
    (lambda: MultiHeadAttention(8, 4, num_kv_heads=3), "num_heads must be a multiple of num_kv_heads, got 4 and 3"),
    (lambda: MultiHeadAttention(8, 4, num_kv_heads=0), "got 4 and 0"),
    (lambda: MultiHeadAttention(8, 2)(X, X, cache=KVCache(4)), "a cache is for self-attention"),
    (lambda: turned(X, X), "rotary positions are for self-attention"),
    (lambda: turned(zeros(1, 13, 8)), "positions 0 to 12 .* 0 to 11"),
    (lambda: RotaryPositions(3, 4), "dim even and at least 2, got length=4, dim=3"),
    (lambda: LuongAttention(4, 4, score="concat"), "'concat'"),
    (lambda: LuongAttention(4, 6, score="dot"), "4 and 6"),
    (lambda: attended(zeros(3, 5)), "torch.float32"),
    (lambda: attended(trues(2, 5)), r"\(2, 5\).*\(2, 3, 5\)"),
    (lambda: FeedForward(4, 8, activation="tanh"), "relu, gelu, gelu_tanh, silu, got 'tanh'"),
    (lambda: TokenEmbedding(9, 4)(torch.tensor([[1, 9]])), r"from 0 to 8 \(vocab_size - 1\), got 1 to 9: .*tokenizer"),
    (lambda: TokenEmbedding(9, 4)(torch.tensor([[-1, 3]])), "got -1 to 3"),
    (lambda: TokenEmbedding(9, 4)(torch.tensor([1, 2])), r"got shape \(2,\): one row is tokens\[None\]"),
    (lambda: RelativePositionBias(3, num_buckets=2), "num_buckets=2"),
    # recurrent layers
    (lambda: RNN(3, 0), "input_dim=3, hidden_dim=0"),
    (lambda: GRU(3, 4, num_layers=0), "num_layers=0"),
    (lambda: LSTM(3, 4, dropout=1.0), "dropout=1.0"),
    (lambda: RNN(3, 4, activation="gelu"), "tanh, relu, got 'gelu'"),
    (lambda: RNN(3, 4)(zeros(2, 5, 4)), r"\(batch, time, 3\) with at least one step, got shape \(2, 5, 4\)"),
    (lambda: RNN(3, 4)(zeros(2, 0, 3)), r"got shape \(2, 0, 3\)"),
    (lambda: RNN(3, 4)(zeros(2, 5, 3), valid=torch.ones(2, 5)), "boolean"),
    (lambda: RNN(3, 4)(zeros(2, 5, 3), valid=trues(2, 4)), r"shape \(2, 4\)"),
    (lambda: GRU(3, 4)(zeros(2, 5, 3), zeros(2, 4)), r"= \(1, 2, 4\), got \(2, 4\)"),
    (lambda: LSTM(3, 4)(zeros(2, 5, 3), zeros(1, 2, 4)), "must be 2 tensor"),
    # layers of images
    (lambda: ConvNorm(3, 4, activation="mish"), "activation must be one of relu.*'mish'"),
    (lambda: ConvNorm(3, 4, kernel_size=2), "kernel_size must be odd.*2"),
    (lambda: BasicBlock(3, 4, shortcut="zeros"), "shortcut must be.*'zeros'"),
    (lambda: Bottleneck(4, 10), "multiple of 4, got 10"),
    (lambda: PaddedShortcut(6, 4, stride=1), "4 of 6"),
    (lambda: channels_last(zeros(3, 6, 6)), r"got shape \(3, 6, 6\): one is image\[None\]"),
    (lambda: UpBlock(4, 4, skip_channels=0, up="nearest"), "'nearest'"),
    (lambda: pad_to_multiple(zeros(1, 1, 0, 3), 4), "0 x 3"),
    (lambda: ConvStem(1, 3, 8), "2, 4, 8 .* got patch_size=1, dim=8"),
    (lambda: ConvStem(6, 3, 8), "2, 4, 8 .* got patch_size=6, dim=8"),
    (lambda: ConvStem(8, 3, 6), "2, 4, 8 .* got patch_size=8, dim=6"),
    (lambda: random_mask(zeros(2, 9), 0.95), "ratio of 0.95 leaves 0 of 9 patches .* from 0 to below 0.888"),
    (lambda: random_mask(zeros(2, 9), 1.0), "ratio of 1 leaves 0 of 9 patches"),
    (lambda: random_mask(zeros(2, 9), -0.5), "ratio of -0.5 leaves 13 of 9 patches"),
    (lambda: random_mask(zeros(2, 10), 0.9), "0 of 10 patches .* below 0.9$"),  # 10 (1 - 0.9) rounds below 1
    (lambda: unpatchify(zeros(1, 5, 12), 2, 4, 6), "has 6 patches .* 4 numbers each, got 5 patches with 12"),
    (lambda: unpatchify(zeros(1, 6, 11), 2, 4, 6), "has 6 patches .* 4 numbers each, got 6 patches with 11"),
    (lambda: WindowAttention(6, 4, 3), "dim=6, num_heads=4"),
    (lambda: WindowAttention(6, 0, 3), "dim=6, num_heads=0"),
    (lambda: WindowAttention(6, 2, 3, shift=3), "below window_size=3, got 3"),
    (lambda: WindowAttention(6, 2, 3, shift=-1), "below window_size=3, got -1"),
    (lambda: shifted_window_mask(6, 6, 3, -1), "shifted by 0 to 2 places, got -1"),
    (lambda: shifted_window_mask(6, 6, 3, 3), "shifted by 0 to 2 places, got 3"),
    (lambda: relative_position_index(0, 3), "windows of 1 to 3, got one of 0"),
    (lambda: relative_position_index(4, 3), "windows of 1 to 3, got one of 4"),
    (lambda: DropPath(-0.1), "from 0 up to, but not including, 1; got -0.1"),
    (lambda: DropPath(1.0), "from 0 up to, but not including, 1; got 1.0"),
]
for kind in (SinusoidalPositions, LearnedPositions):
    REFUSED += [
        (lambda kind=kind: kind(6, 10)(zeros(1, 4, 6), start=7), "positions 7 to 10 .* 0 to 9"),
        (lambda kind=kind: kind(6, 10)(zeros(1, 4, 6), start=-1), "positions -1 to 2"),
        (lambda kind=kind: kind(6, 10)(zeros(2, 4, 6), positions=BEYOND), "positions 0 to 10 .* 0 to 9"),
    ]
for attend in (None, partial(local_attention, window=1)):
    layer = MultiHeadAttention(8, 2) if attend is None else MultiHeadAttention(8, 2, attend=attend)
    REFUSED += [
        (lambda layer=layer: layer(X, mask=zeros(4, 4)), "torch.float32"),
        (lambda layer=layer: layer(X, mask=trues(3, 1, 1, 5)), r"\(3, 1, 1, 5\).*\(3, 2, 4, 4\)"),
        (lambda layer=layer: layer(X, score_bias=zeros(5, 4)), r"\(5, 4\).*\(3, 2, 4, 4\)"),
    ]
for embed in (PatchEmbed(4, 3, 8), ConvStem(4, 3, 8)):
    REFUSED += [
        (lambda embed=embed: embed(zeros(1, 3, 8, 10)), "8 x 10 pixels is no whole number of patches of 4 x 4"),
        (lambda embed=embed: embed(zeros(2, 1, 8, 8)), r"image of 3 channel\(s\) .* got 1: shape \(2, 1, 8, 8\)"),
        (lambda embed=embed: embed(zeros(3, 8, 8)), r"got shape \(3, 8, 8\): one is image\[None\]"),
    ]
for height, width, size in ((6, 7, 2), (5, 8, 4), (0, 4, 2), (4, 4, 0)):
    words = f"{height} x {width} .* {size} x {size}"
    REFUSED += [
        (lambda h=height, w=width, size=size: patchify(zeros(1, 1, h, w), size), words),
        (lambda h=height, w=width, size=size: unpatchify(zeros(1, 1, 4), size, h, w), words),
    ]
for height, width, size in ((6, 7, 2), (5, 8, 4), (4, 4, 0)):
    words = f"{height} x {width} .* {size} x {size}"
    REFUSED.append((lambda h=height, w=width, size=size: window_partition(zeros(1, h, w, 1), size), words))
for count, area, height, width in ((6, 4, 4, 4), (4, 5, 4, 5), (3, 4, 4, 3), (4, 4, 1, 16)):
    words = f"{count} windows of {area} places do not make a map of {height} x {width}"
    windows = zeros(1, count, area, 1)
    REFUSED.append((lambda windows=windows, h=height, w=width: window_merge(windows, h, w), words))


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_cannot_be_is_refused_by_name(call, words, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=words):
        call()
