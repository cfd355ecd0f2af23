"""Lesson 11: what a trained ViT attends to, and its accuracy when patches are dropped or put in another order."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.data.digits import LabelledImages
from course_lib.data.scenes import DigitScenes
from course_lib.functional.attention_maps import attention_rollout
from course_lib.functional.images import standardise
from course_lib.layers.patches import take_patches
from course_lib.layers.recording import record_attention
from course_lib.models.vit import ViT

DROPPED = (0, 2, 4, 6, 8, 10, 12, 14)  # of 16 patches


def held_out(count: int, clutter: float = 0.3) -> LabelledImages:
    """Digits on textures that no network has seen."""
    return DigitScenes(split="test", clutter=clutter).batch(count, 5).classification()


@torch.no_grad()
def attention_maps(model: ViT, pixels: Float[Tensor, "B 1 S S"]) -> Float[Tensor, "B L H T T"]:
    """The weights of all heads, by picture and block; pixels from 0 to 1."""
    with record_attention(model.eval()) as record:
        model(standardise(pixels))
    return record.maps()


def rollout(model: ViT, pixels: Float[Tensor, "B 1 S S"]) -> Float[Tensor, "B N"]:
    """How much of each patch has reached the class token at the end."""
    return attention_rollout(attention_maps(model, pixels))[:, 0, model.num_extra :]


@torch.no_grad()
def classes(model: ViT, pixels: Float[Tensor, "B 1 S S"], kept: Int[Tensor, "B K"]) -> Float[Tensor, "B classes"]:
    """Probabilities of the classes where only these patches are read; each keeps its position."""
    tokens = take_patches(model.eval().embed(standardise(pixels)), kept)
    return model.head(model.pool(model.encode(tokens))).softmax(dim=-1)


def right_without(
    model: ViT, pictures: LabelledImages, order: Float[Tensor, "B N"], dropped: Sequence[int] = DROPPED
) -> list[float]:
    """The accuracy when so many patches are dropped, those of the smallest `order` first."""
    last_first = order.argsort(dim=1, descending=True)
    return [
        (classes(model, pictures.pixels, last_first[:, : order.shape[1] - count]).argmax(dim=-1) == pictures.labels)
        .float()
        .mean()
        .item()
        for count in dropped
    ]


def orders(model: ViT, pictures: LabelledImages) -> dict[str, Float[Tensor, "B N"]]:
    """In which order to drop patches: by its own rollout, by the mean of all, by chance."""
    found = rollout(model, pictures.pixels)
    return {
        "smallest rollout first": found,
        "the mean rollout's smallest first": found.mean(dim=0).expand_as(found),
        "at random": torch.rand(found.shape, generator=torch.Generator().manual_seed(0)),
        "largest rollout first": -found,
    }


def shuffles(count: int, patches: int) -> Int[Tensor, "B N"]:
    """For each picture an order of its own."""
    return torch.rand(count, patches, generator=torch.Generator().manual_seed(0)).argsort(dim=1)


@torch.no_grad()
def right_shuffled(model: ViT, pictures: LabelledImages) -> dict[str, float]:
    """The accuracy: as it is, patches in a new order with and without their positions, and no positions."""
    cut, positions = model.eval().patch_embed(standardise(pictures.pixels)), model.pos_embed[:, model.num_extra :]
    places = shuffles(*cut.shape[:2])
    tokens = {
        "as it is": cut + positions,
        "shuffled, each with its position": take_patches(cut + positions, places),
        "shuffled, positions stay": take_patches(cut, places) + positions,
        "no positions": cut,
    }
    return {
        name: (model.head(model.pool(model.encode(x))).argmax(dim=-1) == pictures.labels).float().mean().item()
        for name, x in tokens.items()
    }
