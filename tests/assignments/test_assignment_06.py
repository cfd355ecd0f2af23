"""Assignment 06: its references are what the library does."""

import itertools
import re
from functools import partial

import pytest
import torch
from torch import nn

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.layers.cache import KVCache
from course_lib.layers.transformer import DecoderBlock, FeedForward, MultiHeadAttention, TransformerBlock
from course_lib.lessons.lesson_06.assignment import read
from course_lib.tasks import Draw

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "06")
LOADED = load(FILES)
TABLES = {table.name: table for table in LOADED.assignment.tasks}


@pytest.mark.parametrize(
    ("name", "block", "attentions"), [("EncoderBlock", TransformerBlock, 1), ("DecoderBlock", DecoderBlock, 2)]
)
def test_the_blocks_are_those_of_the_library(name, block, attentions):
    table = TABLES[name]
    given = table.draw(table.cases[-1], Draw(3))
    dim, heads, mlp_dim = given.build
    attend = [MultiHeadAttention(dim, heads) for _ in range(attentions)]
    ours = block(*attend, FeedForward(dim, mlp_dim), partial(nn.LayerNorm, dim), pre_norm=False)
    ours.load_state_dict({re.sub("^(up|down)", r"ffn.\1", name): value for name, value in given.parameters.items()})
    with torch.no_grad():
        if name == "EncoderBlock":
            x, mask = given.args
            output = ours(x, mask=mask)
            torch.testing.assert_close(table.right(given), output)
            return
        x, context, pieces = given.args
        cache = KVCache(sum(pieces))
        cache.context = ours.cross_attn.keys_values(context)
        steps = torch.cat([ours(part, None, cache=cache) for part in x.split(pieces, dim=1)], dim=1)
        torch.testing.assert_close(ours(x, context), steps)
        torch.testing.assert_close(table.right(given)[0], steps)
        assert torch.equal(read(lambda part, context, cache=None: (part, (part, part)), *given.args)[0], x)


def test_a_beam_that_is_wide_enough_finds_the_best_of_all_sequences():
    log_probs, start, end = (2 * Draw(0)(4, 4)).log_softmax(dim=-1), 0, 1
    for penalty in (0.0, 0.7, 1.5):
        words, score = TABLES["beam_search"].reference(log_probs, start, end, 1000, penalty, 4)
        scores = {}
        for n in (1, 2, 3, 4):
            for chosen in itertools.product(range(4), repeat=n):
                if end not in chosen[:-1] and (n == 4 or chosen[-1] == end):
                    pairs = itertools.pairwise((start, *chosen))
                    scores[chosen] = sum(log_probs[pair].item() for pair in pairs) / n**penalty
        assert tuple(words) == max(scores, key=scores.get) and score == pytest.approx(max(scores.values()))
