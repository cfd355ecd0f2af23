import pytest
import torch

from course_lib.functional.positions import sinusoidal_positions_2d
from course_lib.layers.patches import patchify
from course_lib.models.mae import MAE, MAEConfig, encoder_of, mae_base, mae_huge, mae_large
from course_lib.models.vit import ViTConfig
from course_lib.weights import own

POOLS = pytest.mark.parametrize("pool", ["cls", "mean"])
NORMALISED = pytest.mark.parametrize("normalised", [True, False])
PRESETS = {mae_base: (111_907_840, 85_798_656), mae_large: (329_541_888, 303_301_632), mae_huge: (657_074_508, None)}


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


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_have_the_official_number_of_parameters(preset):
    with torch.device("meta"):
        model = preset()
    count, of_encoder = PRESETS[preset]
    assert sum(p.numel() for p in model.parameters()) == count
    assert of_encoder in (None, sum(p.numel() for p in model.encoder.parameters()))


def test_presets_take_overrides_of_both_configs():
    model = mae_huge(
        image_size=8, patch_size=4, dim=16, depth=1, num_heads=2, mlp_dim=8, decoder_depth=1, mask_ratio=0.5
    )
    assert model.config.encoder.grid == (2, 2) and len(model.decoder.blocks) == 1 and model.encoder.mask_ratio == 0.5


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
def test_what_is_hidden_does_not_reach_the_painting_and_what_is_visible_does(pool):
    model, (image, noise) = make(pool, mask_ratio=0.5), images_and_noise()
    painted, masked = model(image.requires_grad_(), noise)
    painted.square().sum().backward()
    reached = patchify(image.grad, 4).abs().sum(dim=-1) > 0
    assert torch.equal(reached, ~masked) and masked.sum() == 6


def test_the_order_of_visible_patches_does_not_matter():
    model, (image, _) = make(mask_ratio=0.5), images_and_noise()
    one, other = torch.tensor([[0.1, 0.9, 0.2, 0.8, 0.3, 0.7]] * 2), torch.tensor([[0.3, 0.7, 0.1, 0.9, 0.2, 0.8]] * 2)
    torch.testing.assert_close(model(image, one).patches, model(image, other).patches)


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
def test_the_loss_is_the_mean_error_of_hidden_patches_alone(normalised):
    model, (image, noise) = make(normalised=normalised, mask_ratio=0.5), images_and_noise()
    painted, masked = model(image, noise)
    errors = []
    for number, place in masked.nonzero().tolist():
        pixels = patchify(image, 4)[number, place]
        if normalised:
            variance = (pixels - pixels.mean()).square().sum() / (len(pixels) - 1)
            pixels = (pixels - pixels.mean()) / (variance + 1e-6).sqrt()
        errors.append((painted[number, place] - pixels).square().mean())
    torch.testing.assert_close(model.loss(image, noise), torch.stack(errors).mean())


@NORMALISED
def test_a_reconstruction_keeps_what_is_visible_and_paints_the_rest(normalised):
    model, (image, noise) = make(normalised=normalised, mask_ratio=0.5), images_and_noise()
    painted, masked = model(image, noise)
    before, after = patchify(image, 4), patchify(model.reconstruct(image, noise), 4)
    assert torch.equal(after[~masked], before[~masked])
    if normalised:
        painted = painted * (before.var(dim=-1, keepdim=True) + 1e-6).sqrt() + before.mean(dim=-1, keepdim=True)
    torch.testing.assert_close(after[masked], painted[masked])


@NORMALISED
def test_a_painter_without_error_gives_the_image_back(normalised, monkeypatch):
    model, (image, noise) = make(normalised=normalised), images_and_noise()
    monkeypatch.setattr(model.decoder, "forward", lambda visible, grid: model.target(image))
    assert model.loss(image, noise) == 0
    torch.testing.assert_close(model.reconstruct(image, noise), image)


def test_an_image_of_another_size_gets_interpolated_positions():
    model, (image, noise) = make(), images_and_noise(16, 24)
    painted, _ = model(image, noise)
    assert painted.shape == (2, 24, 32) and model.reconstruct(image, noise).shape == image.shape
    weights = model.state_dict()
    for name in ("encoder.pos_embed", "decoder.pos_embed"):
        picture = weights[name][:, 1:].unflatten(1, (2, 3)).permute(0, 3, 1, 2)
        smooth = torch.nn.functional.interpolate(picture, (4, 6), mode="bicubic").flatten(2).transpose(1, 2)
        weights[name] = torch.cat([weights[name][:, :1], smooth], dim=1)  # the class token's stays
    other = make(image_size=(16, 24))
    other.load_state_dict(weights)
    torch.testing.assert_close(other(image, noise).patches, painted)


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


def test_a_checkpoint_brings_the_model_back(tmp_path):
    model, (image, noise) = make("mean", mask_ratio=0.4), images_and_noise()
    own.save(model.float(), tmp_path / "mae.safetensors")
    again = own.load(tmp_path / "mae.safetensors")
    assert again.config == model.config
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in again.state_dict().items())
    found, expected = (each(image.float(), noise).patches for each in (again, model))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)  # the weights lie in memory in another order


@NORMALISED
def test_it_learns_one_batch_by_heart(normalised):
    torch.manual_seed(0)
    model, (image, noise) = MAE(config(normalised=normalised, mask_ratio=0.5)), images_and_noise()
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for _ in range(70):
        losses.append(model.loss(image.float(), noise))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.2 * losses[0]


def test_a_model_that_cannot_be_is_named():
    with pytest.raises(ValueError, match="has num_classes=None, got 7"):
        MAEConfig(encoder=ViTConfig(num_classes=7))
    for ratio in (0.0, 1.0, -0.1):
        with pytest.raises(ValueError, match=f"mask_ratio is a share .* got {ratio}"):
            config(mask_ratio=ratio)
    with pytest.raises(ValueError, match="noise has a number for each of 6 patches, got 5"):
        make()(images_and_noise()[0], torch.rand(2, 5))
    with pytest.raises(ValueError, match="pool='cls' reads a class token"):
        encoder_of(make("mean"), pool="cls")
