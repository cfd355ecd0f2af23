import pytest
import torch
import torch.nn.functional as F

from course_lib.layers.patches import ConvStem
from course_lib.models.vit import ViT, ViTConfig

POOLS = pytest.mark.parametrize("pool", ["cls", "mlp", "mean"])


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


def test_without_a_class_token_the_mean_over_patches_stands_for_the_image():
    model, batch = make(pool="mean"), images(3, 2, 8, 12)
    x = model.patch_embed(batch) + model.pos_embed
    for block in model.blocks:
        x = block(x)
    torch.testing.assert_close(model(batch), model.head(model.norm(x).mean(dim=1)))
    assert isinstance(make(stem="conv", dim=24).patch_embed, ConvStem)


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


def test_encoding_takes_any_subset_of_the_patches():
    model, batch = make(), images(2, 2, 8, 12)
    patches = model.embed(batch)
    assert torch.equal(model.encode(patches), model.features(batch))
    assert model.encode(patches[:, [4, 1]]).shape == (2, 3, 12)
    torch.testing.assert_close(model.encode(patches[:, [1, 4]])[:, 0], model.encode(patches[:, [4, 1]])[:, 0])


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
