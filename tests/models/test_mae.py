import pytest
import torch

from course_lib.functional.positions import sinusoidal_positions_2d
from course_lib.layers.patches import patchify
from course_lib.models.mae import MAE, MAEConfig, encoder_of
from course_lib.models.vit import ViTConfig

POOLS = pytest.mark.parametrize("pool", ["cls", "mean"])
NORMALISED = pytest.mark.parametrize("normalised", [True, False])


def config(pool="cls", normalised=True, mask_ratio=0.7, **overrides):
    sizes = {"image_size": (8, 12), "patch_size": 4, "in_channels": 2, "num_classes": None}
    sizes |= {"dim": 12, "depth": 2, "num_heads": 3, "mlp_dim": 20, "pool": pool}
    decoder = {"decoder_dim": 8, "decoder_depth": 2, "decoder_num_heads": 2, "decoder_mlp_dim": 10}
    return MAEConfig(encoder=ViTConfig(**sizes | overrides), **decoder, mask_ratio=mask_ratio, normalised=normalised)


def make(*arguments, **overrides):
    """A tiny model with large random weights (but for its positions), in double precision and evaluation mode."""
    torch.manual_seed(0)
    model = MAE(config(*arguments, **overrides)).double().eval()
    for parameter in model.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def images_and_noise(height=8, width=12):
    generator = torch.Generator().manual_seed(1)
    image = torch.randn(2, 2, height, width, generator=generator, dtype=torch.float64)
    return image, torch.rand(2, height * width // 16, generator=generator)


@POOLS
def test_each_image_is_painted_as_its_patches_say_one_by_one(pool):
    """The twin: each patch is put to its place by hand, and class tokens go along."""
    model, (image, noise) = make(pool), images_and_noise()
    encoder, decoder, extra = model.encoder, model.decoder, int(pool == "cls")
    painted, masked = model(image, noise)
    for number in range(2):
        order = sorted(range(6), key=lambda place: noise[number, place])
        visible = order[:1]  # int(6 * 0.3)
        tokens = encoder.patch_embed(image[number, None])[0] + encoder.pos_embed[0, extra:]
        first = [encoder.cls_token[0, 0]] if extra else []
        x = torch.stack([*first, *(tokens[place] for place in visible)])[None]
        for block in encoder.blocks:
            x = block(x)
        known = decoder.embed(encoder.norm(x))[0]
        row = [known[0]] * extra + [decoder.mask_token[0, 0]] * 6
        for place, token in zip(visible, known[extra:], strict=True):
            row[extra + place] = token
        x = torch.stack(row)[None] + decoder.pos_embed
        for block in decoder.blocks:
            x = block(x)
        torch.testing.assert_close(painted[number], decoder.pred(decoder.norm(x))[0, extra:])
        assert masked[number].tolist() == [place not in visible for place in range(6)]


@POOLS
def test_positions_are_sinusoids_that_training_leaves_alone(pool):
    model, (image, noise) = make(pool), images_and_noise()
    extra = int(pool == "cls")
    for part, dim in ((model.encoder, 12), (model.decoder, 8)):
        table = part.pos_embed[0]
        torch.testing.assert_close(table[extra:], sinusoidal_positions_2d(2, 3, dim).double())
        assert (table[:extra] == 0).all() and not part.pos_embed.requires_grad
    model.loss(image, noise).backward()
    assert all((p.grad is not None) == p.requires_grad for p in model.parameters())


@NORMALISED
def test_a_reconstruction_keeps_what_is_visible_and_paints_the_rest(normalised):
    model, (image, noise) = make(normalised=normalised, mask_ratio=0.5), images_and_noise()
    painted, masked = model(image, noise)
    before, after = patchify(image, 4), patchify(model.reconstruct(image, noise), 4)
    assert torch.equal(after[~masked], before[~masked])
    if normalised:
        painted = painted * (before.var(dim=-1, keepdim=True) + 1e-6).sqrt() + before.mean(dim=-1, keepdim=True)
    torch.testing.assert_close(after[masked], painted[masked])


@POOLS
def test_the_encoder_as_a_vit_has_the_same_features_and_weights_of_its_own(pool):
    model, (image, _) = make(pool), images_and_noise()
    vit = encoder_of(model, num_classes=5).double()
    torch.testing.assert_close(vit.features(image), model.features(image), rtol=0, atol=1e-6)  # weights of 32 bits
    assert vit(image).shape == (2, 5) and vit.config.pool == pool and vit.pos_embed.requires_grad
    before = model.features(image)
    with torch.no_grad():
        for parameter in vit.parameters():
            parameter.zero_()
    assert torch.equal(model.features(image), before)


def test_a_mean_of_patches_leaves_the_class_token_out():
    model, (image, _) = make(), images_and_noise()
    vit = encoder_of(model, pool="mean").double()
    x = model.encoder.embed(image)
    for block in model.encoder.blocks:
        x = block(x)
    expected = model.encoder.norm(x)
    torch.testing.assert_close(vit(image), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(vit.pool(vit(image)), expected.mean(dim=1), rtol=0, atol=1e-6)
