"""Lesson 14: a released backbone, Hugging Face's ResNet, opened in our implementation and put into a U-Net."""

import tempfile
from importlib.util import find_spec

import torch

from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.models.unet import unet_from_classifier
from course_lib.weights import from_pretrained, save_pretrained

SIZES = {"stem_channels": 8, "widths": (16, 24, 32, 48), "depths": (1, 1, 1, 1), "block": "basic", "num_classes": 5}


@torch.no_grad()
def opened_by_both() -> str:
    """What a small ResNet of random weights computes here and, where it is installed, in the official library."""
    torch.manual_seed(0)
    ours = ResNet(ResNetConfig(**SIZES)).eval()
    for parameter in ours.parameters():
        parameter.normal_(std=0.2)
    image = torch.randn(2, 3, 64, 96)
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(ours, folder)
        again = from_pretrained(folder).eval()
        model = unet_from_classifier(again, num_classes=11).eval()
        said = (
            f"written in the official layout and opened again: the logits are the same: "
            f"{torch.equal(again(image), ours(image))}\n"
            f"as the backbone of a U-Net, on images of 64 x 96: logits of {tuple(model(image).shape[1:])}"
        )
        if find_spec("transformers") is None:
            return f"{said}\n(the library `transformers` is not installed here: with it this cell compares the two)"
        from transformers import ResNetForImageClassification
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        official = ResNetForImageClassification.from_pretrained(folder).eval()
    apart = (official(image).logits - ours(image)).abs().max()
    return f"{said}\nopened by the official library: the logits differ by less than 1e-3: {apart < 1e-3}"
