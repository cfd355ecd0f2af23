"""The forward pass with a cache that the page prints as text: with the learner's parts it gives the same logits."""

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
    page = "\n".join(cell.source for cell in nbformat.read(PAGE, as_version=4).cells)
    exec(re.search(r"```python\n(def forward\(self, tokens, cache\).*?)```", page, re.DOTALL)[1], names)

    class CachedBlock(names["Block"]):
        def forward(self, x, past):
            heads = [
                proj(self.norm1(x)).unflatten(-1, (self.attn.num_heads, -1)).transpose(1, 2)
                for proj in (self.attn.q_proj, self.attn.k_proj, self.attn.v_proj)
            ]
            attended = names["my_cached_step"](*heads, *past)
            x = x + self.attn.o_proj(attended.transpose(1, 2).flatten(2))
            return x + self.ffn(self.norm2(x)), [torch.cat(pair, dim=-2) for pair in zip(past, heads[1:], strict=True)]

    torch.manual_seed(0)
    model, tokens = (
        names["MyGPT"](vocab_size=50, context_length=32, dim=16, depth=2, num_heads=4),
        torch.randint(50, (3, 20)),
    )
    whole = model(tokens)
    for block in model.blocks:
        block.__class__ = CachedBlock
    cache = [(torch.zeros(3, 4, 0, 4), torch.zeros(3, 4, 0, 4)) for _ in model.blocks]
    parts = [names["forward"](model, part, cache) for part in tokens.split((7, 1, 4, 8), dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-5, rtol=1e-5)
