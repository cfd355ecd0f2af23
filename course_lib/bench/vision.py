"""How fast the vision half of the library is, beside Hugging Face's models and the plainest U-Net of torch.nn.

    course bench vision

All variants share weights, inputs, threads and process, and take turns. A ratio is our time divided by theirs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.bench import unet as bench_unet
from course_lib.bench.official import need_peers, ours_like
from course_lib.bench.race import race
from course_lib.bench.table import Row, Section, print_table, row

CLOSE = 1e-3  # two models with the same weights must agree this well on every output, or the race means nothing
MODEL, MEAN = 1.05, 0.95  # the largest ratio of a model that is aimed at, and their geometric mean
PASSES = {False: "forward", True: "there and back"}
ASYMMETRY = 2.5  # how many times faster MAE's encoder should be on a quarter of the patches
SECONDS = 12.0  # for a race


@dataclass(frozen=True, kw_only=True)
class Contest:
    """A model of ours against the official one, on B images of `size` pixels a side."""

    name: str
    kind: str  # of Hugging Face's classes: "ResNet"
    head: str = "ForImageClassification"
    settings: dict[str, Any] = field(default_factory=dict)  # of its config; none: the published size
    B: int
    size: int
    channels: int = 3


LESSON = {"num_channels": 1}
VIT_LESSON = LESSON | {"image_size": 32, "patch_size": 4, "hidden_size": 96, "intermediate_size": 384}
TINY = {"hidden_size": 192, "intermediate_size": 768, "num_attention_heads": 3}

CONTESTS = (
    Contest(
        name="ResNet, lesson size (32 px)",
        kind="ResNet",
        settings=LESSON
        | {"embedding_size": 32, "hidden_sizes": [32, 64, 128], "depths": [1, 1, 1], "layer_type": "basic"},
        B=64,
        size=32,
        channels=1,
    ),
    Contest(
        name="ViT, lesson size (32 px, patch 4, D 96, 6 layers)",
        kind="ViT",
        settings=VIT_LESSON | {"num_hidden_layers": 6, "num_attention_heads": 4},
        B=32,
        size=32,
        channels=1,
    ),
    Contest(
        name="Swin, lesson size (32 px, patch 2, D 32, 3 stages)",
        kind="Swin",
        settings=LESSON
        | {
            "image_size": 32,
            "patch_size": 2,
            "embed_dim": 32,
            "depths": [2, 2, 2],
            "num_heads": [2, 4, 8],
            "window_size": 4,
        },
        B=32,
        size=32,
        channels=1,
    ),
    Contest(
        name="MAE, lesson size (32 px, patch 4, D 96, 6 + 2)",
        kind="ViTMAE",
        head="ForPreTraining",
        settings=VIT_LESSON
        | {
            "num_hidden_layers": 6,
            "num_attention_heads": 4,
            "decoder_hidden_size": 64,
            "decoder_intermediate_size": 256,
            "decoder_num_hidden_layers": 2,
            "decoder_num_attention_heads": 4,
        },
        B=64,
        size=32,
        channels=1,
    ),
    Contest(
        name="ResNet-18, 224 px",
        kind="ResNet",
        settings={"layer_type": "basic", "depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512]},
        B=4,
        size=224,
    ),
    Contest(name="ResNet-50, 224 px", kind="ResNet", B=2, size=224),
    Contest(name="ViT-Tiny, 224 px", kind="ViT", settings=TINY, B=4, size=224),
    Contest(name="ViT-Base, 224 px", kind="ViT", B=1, size=224),
    Contest(name="Swin-T, 224 px", kind="Swin", B=2, size=224),
    Contest(name="MAE-Base, 224 px", kind="ViTMAE", head="ForPreTraining", B=2, size=224),
)


def official(contest: Contest) -> nn.Module:
    """Hugging Face's model, with random weights, in evaluation mode."""
    import transformers

    config = getattr(transformers, f"{contest.kind}Config")(**contest.settings)
    torch.manual_seed(0)
    return getattr(transformers, contest.kind + contest.head)(config).eval()


def pair(contest: Contest) -> tuple[nn.Module, nn.Module]:
    """Our model and the official one, with the same weights."""
    theirs = official(contest)
    return ours_like(theirs), theirs


def inputs(contest: Contest, patch_size: int) -> tuple[Tensor, Tensor]:
    """The images of a contest, and a random number for each of their patches, by which MAE hides some."""
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(contest.B, contest.channels, contest.size, contest.size, generator=generator)
    return images, torch.rand(contest.B, (contest.size // patch_size) ** 2, generator=generator)


def run(model: nn.Module, forward: Callable[[], Tensor], *, backward: bool) -> Tensor:
    """A pass forward, and with `backward` one back from the mean square; returns the outputs."""
    if not backward:
        with torch.no_grad():
            return forward()
    model.zero_grad()
    outputs = forward()
    outputs.square().mean().backward()
    return outputs.detach()


def runs(contest: Contest, *, backward: bool) -> dict[str, Callable[[], Tensor]]:
    """A pass of each model, which returns its outputs.

    Raises ValueError if the two do not compute the same.
    """
    ours, theirs = pair(contest)
    images, noise = inputs(contest, getattr(theirs.config, "patch_size", contest.size))
    if contest.kind == "ViTMAE":
        forwards = {"ours": lambda: ours(images, noise).patches, "theirs": lambda: theirs(images, noise=noise).logits}
    else:
        forwards = {"ours": lambda: ours(images), "theirs": lambda: theirs(images).logits}
    models = {"ours": ours, "theirs": theirs}
    variants = {name: partial(run, models[name], forwards[name], backward=backward) for name in models}
    difference = float((variants["ours"]() - variants["theirs"]()).abs().max())
    if difference > CLOSE:
        raise ValueError(f"{contest.name}: the two models differ by {difference:.2g} in an output, more than {CLOSE}")
    return variants


def model_rows() -> Iterator[Row]:
    """Passes forward, and forward and back, one model at a time: each is freed before the next is built."""
    for contest in CONTESTS:
        for backward, what in PASSES.items():
            yield row(
                f"{contest.name}, {what}",
                race(runs(contest, backward=backward), fewest=7, seconds=SECONDS),
                target=MODEL,
            )


def unet_rows() -> Iterator[Row]:
    """Our U-Net against the plainest one of torch.nn."""
    for name, config, B, size in bench_unet.CASES:
        for backward, what in PASSES.items():
            result = bench_unet.measure(config, B, size, backward=backward, seconds=SECONDS)
            yield row(f"{name}, {what}", result, target=MODEL)


def masking_rows() -> Iterator[Row]:
    """MAE's encoder on the visible quarter of the patches, against the same encoder on all of them."""
    for contest in CONTESTS:
        if contest.kind == "ViTMAE":
            for backward, what in PASSES.items():
                runs = encoder_runs(contest, backward=backward)
                result = race(runs, fewest=7, seconds=SECONDS)
                yield row(f"{contest.name}, {what}", result, target=1 / ASYMMETRY)


def encoder_runs(contest: Contest, *, backward: bool) -> dict[str, Callable[[], Tensor]]:
    """A pass of the encoder over the visible patches ("ours") and over all patches ("theirs")."""
    encoder = ours_like(official(contest)).encoder.train(backward)
    images, noise = inputs(contest, encoder.config.patch_size)
    forwards = {"ours": lambda: encoder.see(images, noise).features, "theirs": lambda: encoder.features(images)}
    return {name: partial(run, encoder, forward, backward=backward) for name, forward in forwards.items()}


SECTIONS = (
    Section(title="Models against Hugging Face's", rows=model_rows, mean=MEAN),
    Section(title="U-Net against the plainest one of torch.nn", rows=unet_rows),
    Section(title="MAE's encoder on visible patches (ours) against all patches (theirs)", rows=masking_rows),
)


def main() -> int:
    """Prints the table; returns 0 if every target was reached, otherwise 1."""
    need_peers()
    return print_table(SECTIONS)
