"""The model with a cache that the page prints as text: with the learner's parts it gives the same logits."""

import math
import re

import nbformat
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.lessons.lesson_08.tasks import TASKS
from tests.lessons.lesson_08.test_two_sittings import PAGE


def test_the_listing_gives_the_logits_of_the_whole_text_in_parts():
    names = {"torch": torch, "nn": nn, "F": F, "math": math}
    for task in ("attention", "block", "gpt", "cached_step"):
        exec(TASKS[task].solution, names)
    names["cached_step"] = names["my_cached_step"]
    page = "\n".join(cell.source for cell in nbformat.read(PAGE, as_version=4).cells)
    exec(re.search(r"```python\n(class CachedBlock.*?)```", page, re.DOTALL)[1], names)

    torch.manual_seed(0)
    model = names["MyGPT"](vocab_size=50, context_length=32, dim=16, depth=2, num_heads=4)
    tokens = torch.randint(50, (3, 20))
    whole = model(tokens)
    model.__class__ = names["CachedGPT"]
    for block in model.blocks:
        block.__class__ = names["CachedBlock"]
    cache = [(torch.zeros(3, 4, 0, 4), torch.zeros(3, 4, 0, 4)) for _ in model.blocks]
    parts = [model(part, cache) for part in tokens.split((7, 1, 4, 8), dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-5, rtol=1e-5)
