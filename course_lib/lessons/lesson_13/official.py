"""Lesson 13: ViTMAE's official layout, written by the official library and opened in our implementation."""

import tempfile
from importlib.util import find_spec

import torch

from course_lib.models.mae import MAE, MAEConfig
from course_lib.models.vit import ViTConfig
from course_lib.weights import from_pretrained, save_pretrained

ENCODER = {"image_size": 32, "patch_size": 8, "in_channels": 3, "num_classes": None}
ENCODER |= {"dim": 48, "depth": 2, "num_heads": 3, "mlp_dim": 96}
DECODER = {"decoder_dim": 32, "decoder_depth": 1, "decoder_num_heads": 2, "decoder_mlp_dim": 64}


@torch.no_grad()
def opened_by_both() -> str:
    """What a small MAE of random weights loses here and, where it is installed, in the official library."""
    torch.manual_seed(0)
    ours = MAE(MAEConfig(encoder=ViTConfig(**ENCODER), **DECODER)).eval()
    image, noise = torch.randn(4, 3, 32, 32), torch.rand(4, 16)
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(ours, folder)
        apart = (from_pretrained(folder).eval().loss(image, noise) - ours.loss(image, noise)).abs()
        said = f"written in ViTMAE's layout and opened again: the losses differ by less than 1e-6: {apart < 1e-6}"
        if find_spec("transformers") is None:
            return f"{said}\n(the library `transformers` is not installed here: with it this cell compares the two)"
        from transformers import ViTMAEForPreTraining
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        official = ViTMAEForPreTraining.from_pretrained(folder).eval()
    apart = (official(image, noise=noise).loss - ours.loss(image, noise)).abs()
    return f"{said}\nopened by the official library: the losses differ by less than 1e-4: {apart < 1e-4}"
