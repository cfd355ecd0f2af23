import json

import pytest
import torch
from transformers import ViTConfig, ViTForImageClassification, ViTForMaskedImageModeling, ViTModel
from transformers.utils import logging

from course_lib.layers.recording import record_attention
from course_lib.models import vit
from course_lib.weights import from_pretrained, save_pretrained

logging.set_verbosity_error()
logging.disable_progress_bar()

TINY = {
    "image_size": 8,
    "patch_size": 4,
    "num_channels": 3,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "attn_implementation": "eager",  # the only one that hands out its weights
}
CONFIGS = {
    "as published": {},
    "grey, odd sizes": {
        "num_channels": 1,
        "patch_size": 5,
        "image_size": 15,
        "hidden_size": 15,
        "intermediate_size": 7,
    },
    "wide image": {"image_size": (8, 20), "num_labels": 4},
    "tall image, large epsilon": {"image_size": (12, 4), "layer_norm_eps": 1e-2, "num_labels": 3},
    "one head, one block": {"num_attention_heads": 1, "num_hidden_layers": 1, "intermediate_size": 48},
    "one patch, four blocks": {"patch_size": 8, "num_hidden_layers": 4, "num_labels": 1},
    "five channels, dropout": {"num_channels": 5, "hidden_dropout_prob": 0.3},
    "relu": {"hidden_act": "relu"},
    "gelu_new, no biases of queries, keys, values": {"hidden_act": "gelu_new", "qkv_bias": False},
    "silu": {"hidden_act": "silu"},
}
each_config = pytest.mark.parametrize("settings", CONFIGS.values(), ids=CONFIGS)
each_class = pytest.mark.parametrize("official", [ViTModel, ViTForImageClassification])


def official_model(kind=ViTForImageClassification, **settings):
    """A tiny model with large random weights, also in norms and biases."""
    torch.manual_seed(1)
    model = kind(ViTConfig(**TINY | settings)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return model


def opened(official, folder):
    official.save_pretrained(folder)
    return from_pretrained(folder)


def picture(official, height=None, width=None):
    size = official.config.image_size
    size = (size, size) if isinstance(size, int) else tuple(size)
    shape = (2, official.config.num_channels, height or size[0], width or size[1])
    return torch.randn(shape, generator=torch.Generator().manual_seed(2)).requires_grad_()


def gradient(outputs, image):
    """Of a fixed sum of all outputs with respect to the pixels."""
    generator = torch.Generator().manual_seed(3)
    total = sum((each * torch.randn(each.shape, generator=generator)).sum() for each in outputs)
    return torch.autograd.grad(total, image)[0]


def assert_same(official, ours, image, **arguments):
    """Outputs, attention weights and the gradient of the pixels, to 1e-5."""
    theirs = official(image, output_attentions=True, **arguments)
    with record_attention(ours) as record:
        output = ours(image)
    if isinstance(official, ViTModel):
        expected = [t for t in (theirs.last_hidden_state, theirs.pooler_output) if t is not None]
        given = [output, ours.pool(output)][: len(expected)]
    else:
        expected, given = [theirs.logits], [output]
    pairs = [
        *zip(given, expected, strict=True),
        (gradient(given, image), gradient(expected, image)),
        (record.maps(), torch.stack(theirs.attentions, dim=1)),
    ]
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


@each_class
@each_config
def test_an_official_checkpoint_gives_the_same_outputs_attention_and_gradients(official, settings, tmp_path):
    theirs = official_model(official, **settings)
    ours = opened(theirs, tmp_path)
    assert type(ours) is vit.ViT and not ours.training
    assert_same(theirs, ours, picture(theirs))


@each_class
@each_config
def test_what_we_write_is_opened_by_the_official_class_without_a_missing_key(official, settings, tmp_path):
    ours = opened(official_model(official, **settings), tmp_path / "theirs")
    save_pretrained(ours, tmp_path / "ours")
    again, report = official.from_pretrained(tmp_path / "ours", output_loading_info=True, attn_implementation="eager")
    assert not any(report.values())
    assert_same(again.eval(), ours, picture(again))
    assert from_pretrained(tmp_path / "ours").config == ours.config


@each_class
@pytest.mark.parametrize(("height", "width"), [(12, 12), (4, 16), (20, 8), (8, 12)])
def test_images_of_other_sizes_get_the_same_interpolated_positions(official, height, width, tmp_path):
    theirs = official_model(official, image_size=12)
    ours = opened(theirs, tmp_path)
    assert_same(theirs, ours, picture(theirs, height, width), interpolate_pos_encoding=True)


def test_dropout_goes_with_the_checkpoint(tmp_path):
    ours = opened(official_model(hidden_dropout_prob=0.3), tmp_path)
    assert ours.config.dropout == 0.3 and ours.dropout.p == 0.3


def test_a_bare_model_without_its_pooler_is_opened_without_it(tmp_path):
    theirs = official_model(lambda config: ViTModel(config, add_pooling_layer=False))
    ours = opened(theirs, tmp_path / "theirs")
    assert ours.config.pool == "cls" and ours.pooler is None and ours.config.num_classes is None
    assert_same(theirs, ours, picture(theirs))
    save_pretrained(ours, tmp_path / "ours")
    again, report = ViTModel.from_pretrained(
        tmp_path / "ours", add_pooling_layer=False, output_loading_info=True, attn_implementation="eager"
    )
    assert not any(report.values())
    assert_same(again.eval(), ours, picture(again))


def test_the_classes_can_be_named(tmp_path):
    ours = opened(official_model(id2label={0: "cat", 1: "dog", 2: "bird"}), tmp_path)
    assert ours.config.num_classes == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden_act": "mish"}, r"hidden_act is 'mish', and we have only 'relu', 'gelu'"),
        ({"qkv_bias": 0}, r"qkv_bias is 0, and we have only True, False"),
        ({"attention_probs_dropout_prob": 0.1}, r"attention_probs_dropout_prob is 0.1"),
        ({"pooler_act": "relu"}, r"pooler_act is 'relu'"),
        ({"pooler_output_size": 7}, r"pooler_output_size is 7, and we have only 12"),
        ({"image_size": [8, 8, 8]}, r"image_size must be a number of pixels or two"),
        ({"image_size": [8, "8"]}, r"image_size must be a whole number"),
        ({"image_size": 10}, r"image_size=10 is no whole number of patches of 4"),
        ({"patch_size": [4, 4]}, r"patch_size must be a whole number"),
    ],
)
def test_settings_that_we_do_not_have_are_refused(settings, message, tmp_path):
    official_model(ViTModel).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    with pytest.raises(ValueError, match=message):
        from_pretrained(tmp_path)


def test_a_model_for_another_task_is_refused(tmp_path):
    official_model(ViTForMaskedImageModeling, encoder_stride=4).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"ViTForMaskedImageModeling.*those that we open are ViTModel, ViTForImage"):
        from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "settings", [{"stem": "conv"}, {"pool": "mean", "num_classes": None}, {"pool": "mlp", "num_classes": 3}]
)
def test_a_model_that_the_layout_cannot_hold_is_not_written(settings, tmp_path):
    sizes = {"image_size": 8, "patch_size": 4, "dim": 12, "depth": 1, "num_heads": 3, "mlp_dim": 8}
    with pytest.raises(ValueError, match=r"the official layout has no place for stem="):
        save_pretrained(vit.ViT(vit.ViTConfig(**sizes | settings)), tmp_path / "new")
    assert not (tmp_path / "new").exists()
