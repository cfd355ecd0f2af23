"""Lesson 13: the trained masked autoencoder of icons that the learner's own class opens."""

import torch
from torch import Tensor

from course_lib.classroom.opening import Shipped
from course_lib.data.checkpoints import load_trained
from course_lib.data.icons import icons
from course_lib.functional.images import standardise
from course_lib.models.mae import MAE

MOST_BLOCKS = 32  # of ViT-H/14, the largest of the paper
NAMES = {"encoder.patch_embed": "encoder.patch_embed.proj", "mask_token": "decoder.mask_token"}
NAMES |= {f"decoder_{part}": f"decoder.{part}" for part in ("embed", "pos_embed", "blocks", "norm", "pred")}
NAMES |= {
    f"{hers}.{block}.{part}": f"{ours}.{block}.ffn.{part}"
    for hers, ours in (("encoder.blocks", "encoder.blocks"), ("decoder_blocks", "decoder.blocks"))
    for block in range(MOST_BLOCKS)
    for part in ("up_proj", "down_proj")
}


def sizes(model: MAE) -> dict[str, int | float]:
    """The arguments of the learner's class."""
    config, encoder = model.config, model.config.encoder
    names = ("image_size", "patch_size", "in_channels", "dim", "depth", "num_heads")
    return {name: getattr(encoder, name) for name in names} | {
        "decoder_dim": config.decoder_dim,
        "decoder_depth": config.decoder_depth,
        "decoder_heads": config.decoder_num_heads,
        "ratio": config.mask_ratio,
    }


def some_images() -> tuple[Tensor, Tensor]:
    """Unseen drawings on white, standardised, and noise for their patches."""
    images = standardise(icons("test").take(torch.arange(16)).on(1.0))
    return images, torch.rand(16, 64, generator=torch.Generator().manual_seed(0))


MODELS = {
    "mae": Shipped(model=lambda: load_trained("mae_icons").model, sizes=sizes, inputs=some_images, names=NAMES),
}
