import copy
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
    "first stage halves, grey": ({"layer_type": "basic", "downsample_in_first_stage": True, "num_channels": 1}, (65, 33)),
    "two stages, gelu": ({"layer_type": "bottleneck", "hidden_sizes": [8, 20], "depths": [1, 3], "hidden_act": "gelu"}, (31, 29)),
    "four stages, silu, one class": (
        {"layer_type": "basic", "hidden_sizes": [6, 6, 8, 10], "depths": [1] * 4, "hidden_act": "silu", "num_labels": 1},
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


def outputs_and_gradient(outputs, image):
    """The outputs, and the gradient of a fixed sum of them with respect to the image."""
    generator = torch.Generator().manual_seed(3)
    sum((each * torch.randn(each.shape, generator=generator)).sum() for each in outputs).backward()
    return [*(each.detach() for each in outputs), image.grad]


def assert_same(theirs, ours, size):
    generator = torch.Generator().manual_seed(2)
    image = torch.randn(3, theirs.config.num_channels, *size, generator=generator)
    one, other = (image.clone().requires_grad_() for _ in range(2))
    expected = outputs_and_gradient(run_official(theirs, one), one)
    given = outputs_and_gradient(run_ours(ours, other), other)
    for ours_, theirs_ in zip(given, expected, strict=True):
        torch.testing.assert_close(ours_, theirs_, rtol=0, atol=1e-5)


def remembered(model):
    """All running means, variances and counts, in the order in which both models have their norms."""
    return {name.rpartition(".")[-1] + str(tuple(b.shape)) + str(i): b for i, (name, b) in enumerate(model.named_buffers())}


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
