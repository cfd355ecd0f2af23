"""Lesson 12: the trained Swin that the learner's own class opens."""

from torch import Tensor

from course_lib.classroom.opening import Shipped
from course_lib.data.checkpoints import load_trained
from course_lib.data.digits import CleanDigits
from course_lib.functional.images import standardise
from course_lib.models.swin import Swin

MOST_STAGES, MOST_BLOCKS = 4, 18  # of the released sizes
PARTS = ("q_proj", "k_proj", "v_proj", "o_proj", "bias_table")
NAMES = {"patch_embed": "patch_embed.proj"}
for block in (f"stages.{stage}.{number}" for stage in range(MOST_STAGES) for number in range(MOST_BLOCKS)):
    NAMES |= {f"{block}.ffn.0": f"{block}.ffn.up_proj", f"{block}.ffn.2": f"{block}.ffn.down_proj"}
    # hers attends in windows, ours to whole feature maps: only what is inside can be compared
    NAMES |= {f"{block}.attn": f"{block}.attn.windows"} | {
        f"{block}.attn.{part}": f"{block}.attn.{part}" for part in PARTS
    }


def sizes(model: Swin) -> dict[str, object]:
    """The arguments of the learner's class."""
    config = model.config
    return {
        "in_channels": config.in_channels,
        "num_classes": config.num_classes,
        "patch_size": config.patch_size,
        "dim": config.dim,
        "depths": config.depths,
        "num_heads": config.num_heads,
        "size": config.window_size,
        "grid": None if config.grid is None else config.grid[0],
    }


def some_digits() -> tuple[Tensor]:
    """Test digits that no network has seen."""
    return (standardise(CleanDigits(split="test", size=32).batch(16, 0).pixels),)


MODELS = {
    "swin": Shipped(model=lambda: load_trained("swin").model, sizes=sizes, inputs=some_digits, names=NAMES),
}
