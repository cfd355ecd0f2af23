import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import SwinConfig, SwinForImageClassification, SwinForMaskedImageModeling, SwinModel
from transformers.utils import logging

from course_lib.models import swin
from course_lib.weights import from_pretrained, save_pretrained

logging.set_verbosity_error()
logging.disable_progress_bar()

TINY = {
    "image_size": 16,
    "patch_size": 2,
    "num_channels": 3,
    "embed_dim": 6,
    "depths": [2, 2],
    "num_heads": [2, 3],
    "window_size": 3,
    "mlp_ratio": 2.0,
    "drop_path_rate": 0.0,
}
CASES = {  # what differs from TINY, and the image's height and width
    "as published, shifted": ({"window_size": 4}, (16, 16)),
    "padded maps": ({}, (16, 16)),
    "odd sizes, padded to whole patches": ({"patch_size": 3}, (31, 38)),
    "tall, an odd map merged": ({}, (30, 14)),
    "wide, a window as high as the map": ({"window_size": 4}, (16, 40)),
    "three stages, three blocks": ({"depths": [3, 1, 2], "num_heads": [1, 2, 6], "window_size": 2}, (18, 26)),
    "absolute positions": ({"use_absolute_embeddings": True}, (16, 16)),
    "no biases of queries, keys, values": ({"qkv_bias": False, "window_size": 4}, (20, 16)),
    "grey, one stage, even window": ({"num_channels": 1, "depths": [4], "num_heads": [3], "window_size": 6}, (28, 30)),
    "wide MLP, many classes": ({"mlp_ratio": 3.5, "num_labels": 7}, (14, 14)),
}
each_case = pytest.mark.parametrize(("settings", "size"), CASES.values(), ids=CASES)


def official_model(kind=SwinForImageClassification, **settings):
    """A tiny model with large random weights, also in norms, biases and tables."""
    torch.manual_seed(1)
    model = kind(SwinConfig(**TINY | settings))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return model.eval()


def opened(official, folder):
    official.save_pretrained(folder)
    return from_pretrained(folder)


def assert_same(official, ours, size):
    """Outputs, the maps of all stages and the gradient of the pixels, to 1e-5."""
    generator = torch.Generator().manual_seed(2)
    image = torch.randn(2, official.config.num_channels, *size, generator=generator).requires_grad_()
    theirs = official(image, output_hidden_states=True, output_hidden_states_before_downsampling=True)
    maps = theirs.reshaped_hidden_states[1:]  # the first is what the patches are embedded as
    if isinstance(official, SwinModel):
        tokens = ours(image)
        pairs = [(tokens, theirs.last_hidden_state), (tokens.mean(dim=1), theirs.pooler_output)]
    else:
        pairs = [(ours(image), theirs.logits)]
    pairs += zip(ours.feature_maps(image), maps, strict=True)
    weights = [torch.randn(one.shape, generator=generator) for one, _ in pairs]
    gradients = [
        torch.autograd.grad(sum((each * w).sum() for each, w in zip(side, weights, strict=True)), image)[0]
        for side in zip(*pairs, strict=True)
    ]
    for one, other in [*pairs, gradients]:
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


@each_case
def test_an_official_checkpoint_gives_the_same_outputs_maps_and_gradients(settings, size, tmp_path):
    theirs = official_model(**settings)
    ours = opened(theirs, tmp_path)
    assert type(ours) is swin.Swin and not ours.training
    assert_same(theirs, ours, size)
    assert_same(theirs.train(), ours.train(), size)


@pytest.mark.parametrize(
    ("official", "case"), [*((SwinModel, case) for case in CASES), (SwinForImageClassification, "padded maps")]
)
def test_what_we_write_is_opened_by_the_official_class_without_a_missing_key(official, case, tmp_path):
    settings, size = CASES[case]
    ours = opened(official_model(official, **settings), tmp_path / "theirs")
    save_pretrained(ours, tmp_path / "ours")
    theirs, report = official.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report.values()), report
    assert_same(theirs.eval(), ours, size)
    again = from_pretrained(tmp_path / "ours")
    assert again.config == ours.config
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in ours.state_dict().items())


@pytest.mark.parametrize("size", [(24, 24), (8, 20), (16, 12)])
def test_images_of_other_sizes_get_the_same_interpolated_positions(size, tmp_path):
    theirs = official_model(use_absolute_embeddings=True, window_size=2)
    ours = opened(theirs, tmp_path)
    image = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(2))
    expected = theirs(image, interpolate_pos_encoding=True).logits
    torch.testing.assert_close(ours(image), expected, rtol=0, atol=1e-5)


def test_a_map_smaller_than_the_window_which_the_official_class_cannot_take_is_taken(tmp_path):
    theirs = official_model(window_size=7)
    ours = opened(theirs, tmp_path)
    image = torch.randn(1, 3, 16, 16)  # maps of 8 x 8, then 4 x 4
    with pytest.raises(RuntimeError):
        theirs(image)
    assert ours(image).isfinite().all()


def rewrite(folder, change):
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path)


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_older_files_hold_index_tables_and_those_are_checked(tmp_path):
    theirs = official_model()
    tables = {
        f"swin.{name}.relative_position_index".replace("relative_position_bias", "self"): (
            module.relative_position_index.clone().view(9, 9)
        )
        for name, module in theirs.swin.named_modules()
        if hasattr(module, "relative_position_index")
    }
    assert len(tables) == 4
    theirs.save_pretrained(tmp_path)
    rewrite(tmp_path, lambda tensors: tensors | tables)
    image = torch.randn(1, 3, 16, 16)
    torch.testing.assert_close(from_pretrained(tmp_path)(image), theirs(image).logits, rtol=0, atol=1e-5)
    save_pretrained(from_pretrained(tmp_path), tmp_path / "ours")
    written = load_file(tmp_path / "ours" / "model.safetensors")
    assert all(torch.equal(written[name], table) for name, table in tables.items())
    rewrite(tmp_path, lambda tensors: tensors | {name: table.T.contiguous() for name, table in tables.items()})
    with pytest.raises(ValueError, match="relative_position_index is not the fixed table"):
        from_pretrained(tmp_path)


def test_the_newest_names_of_the_projections_are_opened_too(tmp_path):
    theirs = official_model()
    theirs.save_pretrained(tmp_path)
    rewrite(tmp_path, lambda tensors: {name: tensor.clone() for name, tensor in theirs.state_dict().items()})
    image = torch.randn(1, 3, 16, 16)
    torch.testing.assert_close(from_pretrained(tmp_path)(image), theirs(image).logits, rtol=0, atol=1e-5)


def test_a_backbone_trained_on_hidden_patches_is_opened(tmp_path):
    theirs = official_model(SwinForMaskedImageModeling, encoder_stride=4)
    theirs.save_pretrained(tmp_path)
    rewrite(tmp_path, lambda tensors: {name: t for name, t in tensors.items() if not name.startswith("decoder")})
    change_config(tmp_path, architectures=["SwinModel"])
    image = torch.randn(1, 3, 16, 16)
    expected = theirs.swin(image).last_hidden_state
    torch.testing.assert_close(from_pretrained(tmp_path).features(image), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_act": "relu"}, "hidden_act is 'relu'"),
        ({"layer_norm_eps": 1e-6}, "layer_norm_eps is 1e-06"),
        ({"hidden_dropout_prob": 0.1}, "hidden_dropout_prob is 0.1"),
        ({"attention_probs_dropout_prob": 0.1}, "attention_probs_dropout_prob is 0.1"),
        ({"num_heads": [4, 4]}, "dim=6, num_heads=4"),
        ({"depths": [2, 2, 2]}, r"depths=\(2, 2, 2\)"),
        ({"depths": 4}, "depths must be a list"),
        ({"depths": [2, -1]}, r"depths\[1\] must be a whole number"),
        ({"image_size": [16, 16, 16], "use_absolute_embeddings": True}, "image_size must be"),
        ({"use_absolute_embeddings": True}, "position_embeddings .* is missing"),
        ({"window_size": 4}, r"bias_table must have the shape \(49, 2\)"),
        ({"architectures": ["SwinForMaskedImageModeling"]}, "SwinForMaskedImageModeling"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_that_we_do_not_have_are_refused_by_name(changes, message, tmp_path):
    official_model().save_pretrained(tmp_path)
    change_config(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        from_pretrained(tmp_path)


def test_height_and_width_of_the_positions_go_with_the_checkpoint(tmp_path):
    theirs = official_model(use_absolute_embeddings=True, image_size=[12, 20])
    ours = opened(theirs, tmp_path)
    assert ours.config.image_size == (12, 20)
    assert_same(theirs, ours, (12, 20))
    save_pretrained(ours, tmp_path / "ours")
    assert from_pretrained(tmp_path / "ours").config == ours.config


def test_unshifted_windows_have_no_place_in_the_layout(tmp_path):
    sizes = {"dim": 4, "depths": (1,), "num_heads": (1,), "window_size": 2}
    with pytest.raises(ValueError, match="shifted=False"):
        save_pretrained(swin.Swin(swin.SwinConfig(**sizes, shifted=False)), tmp_path)
    assert not list(tmp_path.iterdir())
