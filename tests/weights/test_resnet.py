import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import ResNetConfig as OfficialConfig
from transformers import ResNetForImageClassification, ResNetModel
from transformers.utils import logging

from course_lib.models.resnet import resnet8
from course_lib.weights import from_pretrained, save_pretrained

logging.set_verbosity_error()
logging.disable_progress_bar()

TINY = {"embedding_size": 6, "hidden_sizes": [8, 12, 16], "depths": [2, 1, 2], "num_channels": 3, "num_labels": 5}
CONFIGS = {  # settings, and the size of the images
    "basic": ({"layer_type": "basic"}, (33, 47)),
    "bottleneck": ({"layer_type": "bottleneck"}, (40, 32)),
    "stride on the first 1 x 1": ({"layer_type": "bottleneck", "downsample_in_bottleneck": True}, (37, 45)),
    "first stage halves, grey": (
        {"layer_type": "basic", "downsample_in_first_stage": True, "num_channels": 1},
        (65, 33),
    ),
    "two stages, gelu": (
        {"layer_type": "bottleneck", "hidden_sizes": [8, 20], "depths": [1, 3], "hidden_act": "gelu"},
        (31, 29),
    ),
    "four stages, silu, one class": (
        {
            "layer_type": "basic",
            "hidden_sizes": [6, 6, 8, 10],
            "depths": [1] * 4,
            "hidden_act": "silu",
            "num_labels": 1,
        },
        (64, 81),
    ),
    "everything early, a channel more": (
        {
            "layer_type": "bottleneck",
            "downsample_in_first_stage": True,
            "downsample_in_bottleneck": True,
            "num_channels": 4,
            "hidden_act": "gelu_new",
        },
        (51, 66),
    ),
}
each_config = pytest.mark.parametrize("settings, size", CONFIGS.values(), ids=CONFIGS)
each_head = pytest.mark.parametrize("official", [ResNetModel, ResNetForImageClassification], ids=lambda k: k.__name__)


def official_model(kind=ResNetForImageClassification, **settings):
    """A tiny model with large random weights, also in norms and what they remember."""
    torch.manual_seed(1)
    model = kind(OfficialConfig(**TINY | settings)).eval()
    randomise(model)
    return model


def randomise(model):
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            nn.init.normal_(parameter, std=0.2)
        if isinstance(module, nn.BatchNorm2d):
            module.weight.data += 0.5
            module.running_mean.normal_(std=0.2)
            module.running_var.uniform_(1, 4)
            module.num_batches_tracked.fill_(7)


def picture(model, size, seed=2):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, model.config.num_channels, *size, generator=generator)


def run_official(model, image):
    """Logits or features, and what each stage returned."""
    output = model(image, output_hidden_states=True)
    last = output.logits if hasattr(output, "logits") else output.pooler_output.flatten(1)
    return [last, *output.hidden_states[1:]]


def run_ours(model, image):
    maps = []
    hooks = [stage.register_forward_hook(lambda *args: maps.append(args[-1])) for stage in model.stages]
    outputs = [model(image), *maps]
    for hook in hooks:
        hook.remove()
    return outputs


def outputs_and_gradient(outputs, image, training):
    """The outputs, and the gradient, of about one in size, of a fixed sum of them with respect to the image."""
    generator = torch.Generator().manual_seed(3)
    total = sum((each * torch.randn(each.shape, generator=generator)).sum() for each in outputs)
    (0.1 * total if training else total).backward()
    return [*(each.detach() for each in outputs), image.grad]


def assert_same(theirs, ours, size):
    generator = torch.Generator().manual_seed(2)
    image = torch.randn(3, theirs.config.num_channels, *size, generator=generator)
    one, other = (image.clone().requires_grad_() for _ in range(2))
    expected = outputs_and_gradient(run_official(theirs, one), one, theirs.training)
    given = outputs_and_gradient(run_ours(ours, other), other, ours.training)
    for ours_, theirs_ in zip(given, expected, strict=True):
        torch.testing.assert_close(ours_, theirs_, rtol=0, atol=1e-5)


@each_head
@each_config
def test_an_official_checkpoint_gives_the_same_outputs_and_gradients(official, settings, size, tmp_path):
    theirs = official_model(official, **settings)
    theirs.save_pretrained(tmp_path)
    ours = from_pretrained(tmp_path)
    assert not ours.training
    assert_same(theirs, ours, size)


@each_config
def test_training_gives_the_same_outputs_gradients_and_statistics(settings, size, tmp_path):
    theirs = official_model(**settings)
    theirs.save_pretrained(tmp_path / "before")
    ours = from_pretrained(tmp_path / "before")
    assert_same(theirs.train(), ours.train(), size)
    theirs.save_pretrained(tmp_path / "after")
    after = from_pretrained(tmp_path / "after").state_dict()
    for name, tensor in ours.state_dict().items():
        torch.testing.assert_close(tensor, after[name], rtol=0, atol=1e-5)
    assert ours.stem.norm.num_batches_tracked == 8


@each_head
@each_config
def test_what_we_write_is_opened_by_the_official_class_without_a_missing_key(official, settings, size, tmp_path):
    official_model(official, **settings).save_pretrained(tmp_path / "theirs")
    ours = from_pretrained(tmp_path / "theirs")
    save_pretrained(ours, tmp_path / "ours")
    theirs, report = official.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report.values()), report
    assert_same(theirs.eval(), ours, size)
    again = from_pretrained(tmp_path / "ours")
    assert again.config == ours.config
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in ours.state_dict().items())


def test_convolutions_keep_the_order_in_memory_that_suits_them(tmp_path):
    official_model().save_pretrained(tmp_path)
    weight = from_pretrained(tmp_path).stem.conv.weight
    assert weight.is_contiguous(memory_format=torch.channels_last) and not weight.is_contiguous()


def test_files_from_before_batches_were_counted_are_opened(tmp_path):
    theirs = official_model()
    theirs.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({n: t for n, t in tensors.items() if "num_batches" not in n}, tmp_path / "model.safetensors")
    ours = from_pretrained(tmp_path)
    assert ours.stem.norm.num_batches_tracked == 0 and ours.stem.norm.num_batches_tracked.dtype == torch.int64
    assert_same(theirs, ours, (32, 32))


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"layer_type": "wide"}, "layer_type is 'wide'"),
        ({"hidden_act": "mish"}, "hidden_act is 'mish'"),
        ({"hidden_sizes": [8, 12]}, "widths \\(8, 12\\) and depths \\(2, 1, 2\\)"),
        ({"hidden_sizes": 8}, "hidden_sizes must be a list"),
        ({"depths": [2, 1, 0]}, r"depths\[2\] must be a whole number from 1"),
        ({"depths": [2, 1, 3]}, r"stages.2.layers.2.layer.0.convolution.weight \(4, 16, 1, 1\) is missing"),
        ({"hidden_sizes": [8, 12, 18]}, "multiple of 4, got 18"),
        ({"embedding_size": 7}, r"must have the shape \(7, 3, 7, 7\) by config.json's embedding_size=7"),
        ({"architectures": ["ResNetBackbone"]}, "ResNetBackbone"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_that_we_do_not_have_are_refused_by_name(changes, message, tmp_path):
    official_model().save_pretrained(tmp_path)
    change_config(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        from_pretrained(tmp_path)


@pytest.mark.parametrize("changes", [{"stem": "small"}, {"shortcut": "padding"}, {"residual": False}], ids=str)
def test_models_that_are_no_official_ones_are_not_written(changes, tmp_path):
    official = {"stem": "imagenet", "shortcut": "projection"}
    with pytest.raises(ValueError, match="own"):
        save_pretrained(resnet8(**official | changes), tmp_path / "new")
    assert not (tmp_path / "new").exists()
