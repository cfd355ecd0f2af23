"""The picture that runs through the lessons on vision: patches in 11, windows in 12, a ruin in 13, a map in 14."""

from course_lib.data.scenes import DigitScenes, Scenes

NAME = "a three on a Greek coin"


def the_picture() -> Scenes:
    """One scene of 32 x 32 grey pixels from the test split, with its class, mask and box; no model has seen it."""
    source = DigitScenes(split="test", contrast=0.45, rotation=10, scale=(0.75, 0.9))
    return Scenes(*(part[40:41] for part in source.batch(41, seed=11)))
