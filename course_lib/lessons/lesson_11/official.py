"""Lesson 11: ViT's official layout, written by the official library and opened in our implementation."""

import tempfile
from importlib.util import find_spec

import torch
from torch import nn

from course_lib.models.vit import ViT, ViTConfig
from course_lib.weights import from_pretrained, save_pretrained

SIZES = {"image_size": 32, "patch_size": 8, "in_channels": 3, "num_classes": 10}
SIZES |= {"dim": 48, "depth": 2, "num_heads": 3, "mlp_dim": 96}


def random_weights(**sizes: int) -> ViT:
    """A small ViT."""
    torch.manual_seed(0)
    model = ViT(ViTConfig(**SIZES | sizes)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    return model


def in_its_layout() -> ViT:
    """A small ViT for images of 224 x 224 pixels, written in the released layout and read back."""
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(random_weights(image_size=224, patch_size=16), folder)
        return from_pretrained(folder)


@torch.no_grad()
def opened_by_both() -> str:
    """What a small ViT of random weights computes here and, where it is installed, in the official library."""
    ours, image = random_weights(), torch.randn(4, 3, 32, 32)
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(ours, folder)
        apart = (from_pretrained(folder)(image) - ours(image)).abs().max()
        said = f"written in ViT's layout and opened again: the logits differ by less than 1e-6: {apart < 1e-6}"
        if find_spec("transformers") is None:
            return f"{said}\n(the library `transformers` is not installed here: with it this cell compares the two)"
        from transformers import ViTForImageClassification
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        official = ViTForImageClassification.from_pretrained(folder).eval()
    apart = (official(image).logits - ours(image)).abs().max()
    return f"{said}\nopened by the official library: the logits differ by less than 1e-4: {apart < 1e-4}"
