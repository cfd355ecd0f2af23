"""Lesson 09: the published law that the learner's own class opens."""

import torch
from torch import Tensor, nn

from course_lib.classroom.opening import Shipped
from course_lib.lessons.lesson_09.learner import published
from course_lib.lessons.lesson_09.tasks import NAMES, TASKS

PARAMETERS, TOKENS = (70e9, 280e9, 175e9), (1.4e12, 300e9, 300e9)  # Chinchilla, Gopher, GPT-3


def chinchilla() -> nn.Module:
    """The law of Hoffmann et al. 2022, eq. (10)."""
    return TASKS["law"].module(*published())


def three_models() -> tuple[Tensor, Tensor]:
    """N and D of Chinchilla, Gopher and GPT-3."""
    return torch.tensor(PARAMETERS, dtype=torch.float64), torch.tensor(TOKENS, dtype=torch.float64)


MODELS = {"law": Shipped(model=chinchilla, sizes=lambda model: dict.fromkeys(NAMES, 0.5), inputs=three_models)}
