import pytest
import torch
import torch.nn.functional as F

from course_lib.functional.attention_maps import attention_rollout
from course_lib.layers.recording import record_attention
from course_lib.models.vit import (
    ViT,
    ViTConfig,
    vit_base_patch16,
    vit_huge_patch14,
    vit_large_patch16,
    vit_small_patch16,
    vit_tiny_patch16,
)

POOLS = pytest.mark.parametrize("pool", ["cls", "mlp", "mean"])
STEMS = pytest.mark.parametrize("stem", ["patch", "conv"])
PRESETS = {  # build -> millions in the papers, as counted
    vit_tiny_patch16: (5.7, 5_717_416),
    vit_small_patch16: (22, 22_050_664),
    vit_base_patch16: (86, 86_567_656),
    vit_large_patch16: (307, 304_326_632),
    vit_huge_patch14: (632, 632_045_800),
}


def make(seed=0, std=0.3, **overrides):
    """A tiny model with large random weights, in double precision and evaluation mode."""
    sizes = {"image_size": (8, 12), "patch_size": 4, "in_channels": 2, "num_classes": 5}
    sizes |= {"dim": 12, "depth": 2, "num_heads": 3, "mlp_dim": 20}
    torch.manual_seed(seed)
    model = ViT(ViTConfig(**sizes | overrides)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=std)
    return model


def images(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_equations(model, image):
    """The logits of one image (2, 8, 12) by the paper's equations, patch by patch and head by head."""
    config, weight = model.config, dict(model.named_parameters())

    def norm(x, name):
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.pow(2).mean(-1, keepdim=True) + config.norm_eps).sqrt()
        return scaled * weight[f"{name}.weight"] + weight[f"{name}.bias"]

    def linear(x, name):
        return x @ weight[f"{name}.weight"].T + weight[f"{name}.bias"]

    def attend(x, name):
        q, k, v = (linear(x, f"{name}.{part}_proj").chunk(config.num_heads, dim=-1) for part in "qkv")
        scores = [a @ b.T / a.shape[-1] ** 0.5 for a, b in zip(q, k, strict=True)]
        heads = [s.exp() / s.exp().sum(-1, keepdim=True) @ c for s, c in zip(scores, v, strict=True)]
        return linear(torch.cat(heads, dim=-1), f"{name}.o_proj")

    def mlp(x, name):
        inner = linear(x, f"{name}.up_proj")
        return linear(inner * 0.5 * (1 + torch.erf(inner / 2**0.5)), f"{name}.down_proj")

    E = weight["patch_embed.proj.weight"].flatten(1).T
    pieces = [image[:, row : row + 4, column : column + 4].flatten() for row in (0, 4) for column in (0, 4, 8)]
    z = torch.stack([piece @ E + weight["patch_embed.proj.bias"] for piece in pieces])
    if config.pool != "mean":
        z = torch.cat([weight["cls_token"][0], z])
    z = z + weight["pos_embed"][0]  # eq. (1)
    for i in range(config.depth):
        z = z + attend(norm(z, f"blocks.{i}.norm1"), f"blocks.{i}.attn")  # eq. (2)
        z = z + mlp(norm(z, f"blocks.{i}.norm2"), f"blocks.{i}.ffn")  # eq. (3)
    z = norm(z, "norm")
    y = z.mean(0) if config.pool == "mean" else z[0]  # eq. (4)
    return linear(linear(y, "pooler").tanh() if config.pool == "mlp" else y, "head")


@pytest.mark.parametrize("build", PRESETS, ids=lambda build: build.__name__)
def test_presets_have_the_parameters_of_the_papers(build):
    millions, counted = PRESETS[build]
    with torch.device("meta"):
        found = sum(parameter.numel() for parameter in build().parameters())
    assert found == counted
    assert found / 1e6 == pytest.approx(millions, rel=0.012)


def test_presets_take_overrides():
    with torch.device("meta"):
        model = vit_huge_patch14(depth=1, num_classes=None, image_size=28)
    assert model.head is None and len(model.blocks) == 1 and model.pos_embed.shape == (1, 5, 1280)
    assert model.config.num_heads == 16


@POOLS
def test_logits_follow_the_equations(pool):
    model, batch = make(pool=pool), images(3, 2, 8, 12)
    expected = torch.stack([by_equations(model, image) for image in batch])
    torch.testing.assert_close(model(batch), expected)


@POOLS
@STEMS
def test_all_outputs_have_their_shapes_at_any_size(pool, stem):
    model, extra = make(pool=pool, stem=stem, dim=24), 0 if pool == "mean" else 1
    for height, width in ((8, 12), (12, 8), (8, 20)):
        batch, tokens = images(2, 2, height, width), height * width // 16 + extra
        with record_attention(model) as record:
            assert model(batch).shape == (2, 5)
        assert model.features(batch).shape == (2, tokens, 24)
        assert record.maps().shape == (2, 2, 3, tokens, tokens)
    headless = make(pool=pool, stem=stem, num_classes=None, dim=24)
    assert headless(batch).shape == (2, tokens, 24) and headless.pool(headless(batch)).shape == (2, 24)


@POOLS
def test_another_size_resizes_the_positions_of_the_patches_only(pool):
    model, batch = make(pool=pool), images(2, 2, 12, 8)
    height, width = 2, 3
    patches = model.pos_embed[:, -height * width :].transpose(1, 2).unflatten(2, (height, width))
    resized = F.interpolate(patches, (3, 2), mode="bicubic", align_corners=False).flatten(2).transpose(1, 2)
    other = make(pool=pool, image_size=(12, 8))
    other.load_state_dict(model.state_dict() | {"pos_embed": torch.cat([model.pos_embed[:, :-6], resized], dim=1)})
    torch.testing.assert_close(model(batch), other(batch))


def test_the_position_map_has_the_rows_and_columns_of_the_image():
    model = make()
    assert model.position_map().shape == (2, 3, 12)
    assert torch.equal(model.position_map()[1, 0], model.pos_embed[0, 1 + 3])


def test_without_positions_patches_are_a_set_and_with_them_a_picture():
    model, batch = make(), images(1, 2, 8, 12)
    shuffled = torch.cat([batch[..., 4:], batch[..., :4]], dim=-1)
    assert (model(batch) - model(shuffled)).abs().max() > 1e-3
    torch.nn.init.zeros_(model.pos_embed)
    torch.testing.assert_close(model(batch), model(shuffled))


def test_encoding_takes_any_subset_of_the_patches():
    model, batch = make(), images(2, 2, 8, 12)
    patches = model.embed(batch)
    assert torch.equal(model.encode(patches), model.features(batch))
    assert model.encode(patches[:, [4, 1]]).shape == (2, 3, 12)
    torch.testing.assert_close(model.encode(patches[:, [1, 4]])[:, 0], model.encode(patches[:, [4, 1]])[:, 0])


def test_attention_maps_are_those_that_make_the_features():
    model, batch = make(), images(2, 2, 8, 12)
    with record_attention(model) as record:
        model(batch)
    maps = record.maps()
    x = torch.cat([(model.cls_token + model.pos_embed[:, :1]).expand(2, 1, 12), model.embed(batch)], dim=1)
    for block, weights in zip(model.blocks, maps.unbind(1), strict=True):
        values = block.attn.v_proj(block.norm1(x)).unflatten(2, (3, 4)).transpose(1, 2)
        x = x + block.attn.o_proj((weights @ values).transpose(1, 2).flatten(2))
        x = x + block.ffn(block.norm2(x))
    torch.testing.assert_close(model.norm(x), model.features(batch))
    torch.testing.assert_close(attention_rollout(maps.transpose(0, 1)).sum(-1), torch.ones(2, 7).double())


def test_a_new_classifier_knows_nothing_and_a_new_class_token_is_zero():
    model = ViT(ViTConfig(image_size=8, patch_size=4, num_classes=3, dim=12, depth=1, num_heads=2, mlp_dim=8))
    assert (model(torch.randn(2, 3, 8, 8)) == 0).all() and (model.cls_token == 0).all()
    up = model.blocks[0].ffn.up_proj.weight
    assert up.abs().max() <= (6 / 20) ** 0.5 and up.std().item() == pytest.approx((2 / 20) ** 0.5, rel=0.2)


def test_dropout_acts_in_training_on_embeddings_and_both_sublayers():
    model, batch = make(dropout=0.5).train(), images(1, 2, 8, 12)
    parts = [part for part in model.modules() if isinstance(part, torch.nn.Dropout)]
    assert [part.p for part in parts] == [0.5] * 5  # two in each block, and the embeddings
    for part in parts:
        for other in parts:
            other.p = 0.5 if other is part else 0.0
        assert (model(batch) != model(batch)).any()
    model.eval()
    assert torch.equal(model(batch), model(batch))


@pytest.mark.parametrize("stem", ["patch", "conv"])
def test_a_batch_of_images_is_learnt_by_heart(stem):
    torch.manual_seed(0)
    sizes = {"image_size": 8, "patch_size": 4, "in_channels": 1, "num_classes": 4, "dim": 16, "depth": 2}
    model = ViT(ViTConfig(**sizes, num_heads=2, mlp_dim=32, pool="mean", stem=stem))
    batch, labels = images(16, 1, 8, 8).float(), torch.arange(16) % 4
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        loss = F.cross_entropy(model(batch), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pool": "max"}, r"pool must be one of cls, mlp, mean, got 'max'"),
        ({"stem": "resnet"}, r"stem must be one of patch, conv, got 'resnet'"),
        ({"image_size": 30}, r"image_size=30 is no whole number of patches of 4"),
        ({"image_size": (8, 13)}, r"image_size=\(8, 13\) is no whole number"),
        ({"image_size": 0}, r"image_size=0 is no whole number"),
        ({"num_heads": 5}, r"dim=12, num_heads=5"),
        ({"stem": "conv", "patch_size": 6, "image_size": 12}, r"patch_size=6"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        make(**settings)


def test_an_image_of_no_whole_number_of_patches_is_refused():
    with pytest.raises(ValueError, match=r"8 x 10 pixels is no whole number of patches of 4 x 4"):
        make()(images(1, 2, 8, 10))
    with pytest.raises(ValueError, match=r"2 channel\(s\) was expected, got 3"):
        make()(images(1, 3, 8, 12))
