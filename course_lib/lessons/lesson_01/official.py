"""Lesson 01: ResNet's official layouts, opened in our implementation, and how large the published ones are."""

import tempfile
from importlib.util import find_spec

import torch

from course_lib.models import resnet
from course_lib.weights import from_pretrained, save_pretrained

SIZES = {"widths": (32, 64, 128, 256), "depths": (1, 1, 1, 1), "stem_channels": 8, "num_classes": 10}


def parameter_counts() -> dict[str, float]:
    """Millions of parameters of ResNet-18 to 152, counted on models without memory."""
    with torch.device("meta"):
        nets = {depth: getattr(resnet, f"resnet{depth}")() for depth in (18, 34, 50, 101, 152)}
    return {f"ResNet-{depth}": sum(p.numel() for p in net.parameters()) / 1e6 for depth, net in nets.items()}


@torch.no_grad()
def opened_by_both() -> str:
    """What a small ResNet of random weights computes here and, where it is installed, in the official library."""
    torch.manual_seed(0)
    ours, image = resnet.ResNet(resnet.ResNetConfig(**SIZES)).eval(), torch.randn(4, 3, 64, 64)
    logits, said = ours(image), []
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(ours, folder, layout="torchvision")
        apart = (from_pretrained(folder).eval()(image) - logits).abs().max()
        said.append(f"torchvision's, written and opened again: logits differ by less than 1e-6: {apart < 1e-6}")
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(ours, folder)
        apart = (from_pretrained(folder).eval()(image) - logits).abs().max()
        said.append(f"Hugging Face's, written and opened again: by less than 1e-6: {apart < 1e-6}")
        if find_spec("transformers") is None:
            said.append("(the library `transformers` is not installed here: with it this cell compares the two)")
            return "\n".join(said)
        from transformers import ResNetForImageClassification
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        official = ResNetForImageClassification.from_pretrained(folder).eval()
    apart = (official(image).logits - logits).abs().max()
    said.append(f"opened by the official library: by less than 1e-4: {apart < 1e-4}")
    return "\n".join(said)
