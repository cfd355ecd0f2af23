import json

import pytest
import torch
from transformers import ViTMAEConfig, ViTMAEForPreTraining, ViTMAEModel
from transformers.utils import logging

from course_lib.models.mae import MAE, MAEConfig, MAEEncoder
from course_lib.models.vit import ViTConfig
from course_lib.weights import from_pretrained, save_pretrained

logging.set_verbosity_error()
logging.disable_progress_bar()

TINY = {
    "image_size": 12,
    "patch_size": 4,
    "num_channels": 3,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "decoder_hidden_size": 8,
    "decoder_num_hidden_layers": 2,
    "decoder_num_attention_heads": 2,
    "decoder_intermediate_size": 14,
    "norm_pix_loss": True,
    "mask_ratio": 0.6,
}
CONFIGS = {
    "normalised pixels": {},
    "plain pixels": {"norm_pix_loss": False, "mask_ratio": 0.75},
    "grey, odd patches, grid of 5": {"num_channels": 1, "patch_size": 3, "image_size": 15, "mask_ratio": 0.5},
    "grid of 7, most is hidden": {"image_size": 14, "patch_size": 2, "mask_ratio": 0.9},
    "one head, one block": {"num_attention_heads": 1, "num_hidden_layers": 1, "decoder_num_hidden_layers": 1},
    "five channels, four blocks, large epsilon": {"num_channels": 5, "num_hidden_layers": 4, "layer_norm_eps": 1e-2},
    "decoder wider than encoder, two patches a side": {"decoder_hidden_size": 24, "image_size": 8, "mask_ratio": 0.3},
}
each_config = pytest.mark.parametrize("settings", CONFIGS.values(), ids=CONFIGS)
OURS = {ViTMAEModel: MAEEncoder, ViTMAEForPreTraining: MAE}
each_class = pytest.mark.parametrize("official", OURS)


def official_model(kind=ViTMAEForPreTraining, **settings):
    """A tiny model with large random weights, also in norms, biases and positions."""
    torch.manual_seed(1)
    model = kind(ViTMAEConfig(**TINY | settings)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return model


def opened(official, folder):
    official.save_pretrained(folder)
    return from_pretrained(folder)


def image_and_noise(config):
    generator = torch.Generator().manual_seed(2)
    image = torch.randn(2, config.num_channels, config.image_size, config.image_size, generator=generator)
    noise = torch.rand(2, (config.image_size // config.patch_size) ** 2, generator=generator)
    return image.requires_grad_(), noise


def gradients(outputs, model, image):
    """Of a fixed sum of all outputs, with respect to the pixels and the matrix of the patch embedding."""
    generator = torch.Generator().manual_seed(3)
    total = sum((each * torch.randn(each.shape, generator=generator)).sum() for each in outputs)
    matrix = next(parameter for parameter in model.parameters() if parameter.ndim == 4)
    return torch.autograd.grad(total, [image, matrix])


def assert_same(official, ours):
    """Everything that both return, and the gradients, to 1e-5."""
    image, noise = image_and_noise(official.config)
    theirs = official(image, noise=noise)
    if isinstance(ours, MAE):
        output = ours(image, noise)
        expected, given = [theirs.loss, theirs.logits], [ours.loss(image, noise), output.patches]
        mask, masked = theirs.mask, output.masked
    else:
        output = ours.see(image, noise)
        expected, given = [theirs.last_hidden_state], [output.features]
        mask, masked = theirs.mask, output.mask.masked
        assert torch.equal(theirs.ids_restore, output.mask.restore)
    assert torch.equal(mask.bool(), masked)
    pairs = zip(
        [*given, *gradients(given, ours, image)], [*expected, *gradients(expected, official, image)], strict=True
    )
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


@each_class
@each_config
def test_with_the_same_noise_an_official_checkpoint_gives_the_same_outputs_and_gradients(official, settings, tmp_path):
    theirs = official_model(official, **settings)
    ours = opened(theirs, tmp_path)
    assert type(ours) is OURS[official] and not ours.training
    assert_same(theirs, ours)


@each_class
@each_config
def test_what_we_write_is_opened_by_the_official_class_without_a_missing_key(official, settings, tmp_path):
    ours = opened(official_model(official, **settings), tmp_path / "theirs")
    save_pretrained(ours, tmp_path / "ours")
    again, report = official.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report.values())
    assert_same(again.eval(), ours)
    assert from_pretrained(tmp_path / "ours").config == ours.config


def test_without_masking_the_encoder_sees_what_the_official_one_sees(tmp_path):
    theirs = official_model(ViTMAEModel, mask_ratio=0.0)
    ours = opened(theirs, tmp_path)
    image, noise = image_and_noise(theirs.config)
    ordered = noise.sort(dim=1).values
    expected = theirs(image, noise=ordered).last_hidden_state
    torch.testing.assert_close(ours(image), expected, rtol=0, atol=1e-5)


def test_images_of_other_sizes_get_the_same_interpolated_positions(tmp_path):
    theirs = official_model(ViTMAEModel)
    ours = opened(theirs, tmp_path)
    image, noise = torch.randn(2, 3, 8, 20), torch.rand(2, 10)
    expected = theirs(image, noise=noise, interpolate_pos_encoding=True).last_hidden_state
    torch.testing.assert_close(ours.see(image, noise).features, expected, rtol=0, atol=1e-5)


def test_a_bare_model_finds_its_weights_beside_a_decoder(tmp_path):
    theirs = official_model()
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"architectures": ["ViTMAEModel"]}))
    assert_same(theirs.vit, from_pretrained(tmp_path))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden_act": "relu"}, r"hidden_act is 'relu', and we have only 'gelu'"),
        ({"qkv_bias": False}, r"qkv_bias is False, and we have only True"),
        ({"hidden_dropout_prob": 0.1}, r"hidden_dropout_prob is 0.1"),
        ({"attention_probs_dropout_prob": 0.1}, r"attention_probs_dropout_prob is 0.1"),
        ({"image_size": [12, 12]}, r"image_size must be a whole number"),
        ({"image_size": 10}, r"image_size=10 is no whole number of patches of 4"),
        ({"mask_ratio": 1.0}, r"mask_ratio is a share of the patches between 0 and 1, got 1.0"),
    ],
)
def test_settings_that_we_do_not_have_are_refused(settings, message, tmp_path):
    official_model().save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    with pytest.raises(ValueError, match=message):
        from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        *({"stem": "conv"}, {"pool": "mean"}, {"image_size": (8, 12)}, {"dropout": 0.1}),
        *({"activation": "relu"}, {"qkv_bias": False}),
    ],
)
def test_a_model_that_the_layout_cannot_hold_is_not_written(settings, tmp_path):
    sizes = {"image_size": 8, "patch_size": 4, "dim": 12, "depth": 1, "num_heads": 3, "mlp_dim": 8}
    encoder = ViTConfig(**sizes | {"num_classes": None} | settings)
    for model in (MAEEncoder(encoder), MAE(MAEConfig(encoder=encoder, decoder_dim=16, decoder_depth=1))):
        with pytest.raises(ValueError, match=r"the official layout (takes square images|has one activation)"):
            save_pretrained(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()
