"""The functions with a cache that the page defines: on the learner's parts they give the logits of the whole text."""

import math

import nbformat
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.lessons.lesson_08.tasks import TASKS
from tests.lessons.lesson_08.test_two_sittings import PAGE


def test_parts_of_a_text_give_the_logits_of_the_whole():
    names = {"torch": torch, "nn": nn, "F": F, "math": math}
    for task in ("attention", "block", "gpt", "cached_step"):
        exec(TASKS[task].solution, names)
    names["step"] = names["my_cached_step"]
    (cell,) = (c.source for c in nbformat.read(PAGE, as_version=4).cells if "def cached_block(" in c.source)
    exec(cell[cell.index("def cached_block") :], names)

    torch.manual_seed(0)
    model = names["MyGPT"](vocab_size=50, context_length=32, dim=16, depth=2, num_heads=4)
    tokens = torch.randint(50, (3, 20))
    cache = [(torch.zeros(3, 4, 0, 4), torch.zeros(3, 4, 0, 4)) for _ in model.blocks]
    parts = [names["cached_logits"](model, part, cache) for part in tokens.split((7, 1, 4, 8), dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), model(tokens), atol=1e-5, rtol=1e-5)
