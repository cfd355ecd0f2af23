"""Lesson 12: Swin's official layout, opened by our implementation and by the official library."""

import tempfile
from importlib.util import find_spec

import torch

from course_lib.models.swin import Swin, SwinConfig
from course_lib.weights import from_pretrained, save_pretrained

SIZES = {"image_size": 32, "patch_size": 4, "num_classes": 10, "dim": 16, "depths": (2, 2), "num_heads": (2, 4)}


@torch.no_grad()
def opened_by_both() -> str:
    """What a small Swin of random weights computes here and, where it is installed, in the official library."""
    torch.manual_seed(0)
    ours, image = Swin(SwinConfig(**SIZES, window_size=4)).eval(), torch.randn(4, 3, 32, 32)
    for parameter in ours.parameters():
        parameter.normal_(std=0.2)
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(ours, folder)
        apart = (from_pretrained(folder)(image) - ours(image)).abs().max()
        said = f"written in Swin's layout and opened again: the logits differ by less than 1e-6: {apart < 1e-6}"
        if find_spec("transformers") is None:
            return f"{said}\n(the library `transformers` is not installed here: with it this cell compares the two)"
        from transformers import SwinForImageClassification
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        official = SwinForImageClassification.from_pretrained(folder).eval()
    apart = (official(image).logits - ours(image)).abs().max()
    return f"{said}\nopened by the official library: the logits differ by less than 1e-4: {apart < 1e-4}"
