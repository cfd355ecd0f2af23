"""Lesson 06: the released kin of the Transformer, Marian, opened in our implementation."""

import tempfile
from importlib.util import find_spec

import torch

from course_lib.models.marian import Marian, MarianConfig
from course_lib.weights import from_pretrained, save_pretrained

SIZES = {"vocab_size": 97, "dim": 32, "depth": (2, 2), "num_heads": (4, 4), "mlp_dim": (64, 64), "context_length": 64}


@torch.no_grad()
def opened_by_both() -> str:
    """What a small Marian of random weights computes here and, where it is installed, in the official library."""
    torch.manual_seed(0)
    ours = Marian(MarianConfig(**SIZES)).eval()
    for parameter in ours.parameters():
        parameter.normal_(std=0.2)
    source, target = torch.randint(1, 90, (2, 3, 9))
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(ours, folder)
        again = from_pretrained(folder)
        apart = (again(source, target) - ours(source, target)).abs().max()
        said = f"written in Marian's layout and opened again: the logits differ by less than 1e-6: {apart < 1e-6}"
        if find_spec("transformers") is None:
            return f"{said}\n(the library `transformers` is not installed here: with it this cell compares the two)"
        from transformers import MarianMTModel
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        official = MarianMTModel.from_pretrained(folder).eval()
    theirs = official(input_ids=source, decoder_input_ids=target).logits
    apart = (theirs - ours(source, target)).abs().max()
    return f"{said}\nopened by the official library: the logits differ by less than 1e-4: {apart < 1e-4}"
