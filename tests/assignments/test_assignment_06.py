"""Assignment 06: its references are what the library does."""

import itertools
from dataclasses import replace

import pytest
import torch
from torch import nn

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.layers.transformer import MultiHeadAttention
from course_lib.lessons.lesson_06.assignment import read
from course_lib.tasks import Draw

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "06")
LOADED = load(FILES)
TABLES = {table.name: table for table in LOADED.assignment.tasks}


def test_the_gradient_of_a_norm_is_that_of_autograd():
    x, gain, dy = (part.double() for part in TABLES["norm_gradient"].cases[0].inputs(Draw(3)))
    y = nn.functional.layer_norm(x.requires_grad_(), gain.shape, gain)
    (expected,) = torch.autograd.grad((y * dy).sum(), x)
    torch.testing.assert_close(TABLES["norm_gradient"].reference(x.detach(), gain, dy), expected)


def test_attention_with_a_cache_is_that_of_the_library():
    table = TABLES["CachedAttention"]
    given = table.draw(table.cases[-1], Draw(3))
    ours, (x, pieces) = MultiHeadAttention(*given.build), given.args
    ours.load_state_dict(given.parameters)
    with torch.no_grad():
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        torch.testing.assert_close(table.right(given)[0], ours(x, mask=causal[None, None]))
    assert torch.equal(read(lambda part, cache=None: (part, (part, part)), x, pieces)[0], x)


def test_a_layer_of_equal_experts_is_one_expert_times_its_gate():
    table = TABLES["SwitchMLP"]
    given = table.draw(table.cases[-1], Draw(3))
    (x,) = given.args
    parameters = {name.replace("experts.1", "experts.0"): value for name, value in given.parameters.items()}
    parameters |= {name: parameters[name.replace("experts.1", "experts.0")] for name in given.parameters}
    y = table.right(replace(given, parameters=parameters))
    logits = x @ parameters["router.weight"].T + parameters["router.bias"]
    gate = logits.softmax(dim=-1).amax(dim=-1, keepdim=True)
    up, down = (
        [parameters[f"experts.0.{name}.{part}"] for part in ("weight", "bias")] for name in ("up_proj", "down_proj")
    )
    expected = gate * nn.functional.linear(nn.functional.linear(x, *up).relu(), *down)
    torch.testing.assert_close(y, expected)


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


def test_the_gradients_of_attention_are_those_of_autograd():
    *parts, do = (part.double() for part in TABLES["attention_gradient"].cases[0].inputs(Draw(3)))
    y = nn.functional.scaled_dot_product_attention(*(part.requires_grad_() for part in parts))
    expected = torch.stack(torch.autograd.grad((y * do).sum(), parts))
    found = TABLES["attention_gradient"].reference(*(part.detach() for part in parts), do)
    torch.testing.assert_close(found, expected)


def test_attention_with_a_state_weights_values_by_products_of_features():
    table = TABLES["LinearAttention"]
    given = table.draw(table.cases[-1], Draw(3))
    x, _ = given.args
    q, k, v = (
        nn.functional.linear(x, *(given.parameters[f"{name}_proj.{part}"] for part in ("weight", "bias")))
        .unflatten(2, (given.build[1], -1))
        .transpose(1, 2)
        for name in "qkv"
    )
    weights = ((nn.functional.elu(q) + 1) @ (nn.functional.elu(k) + 1).transpose(-2, -1)).tril()
    heads = (weights / weights.sum(dim=-1, keepdim=True) @ v).transpose(1, 2).flatten(2)
    expected = nn.functional.linear(heads, *(given.parameters[f"o_proj.{part}"] for part in ("weight", "bias")))
    torch.testing.assert_close(table.right(given)[0], expected)


def test_experts_that_take_all_positions_are_averaged_by_their_gates():
    table = TABLES["ExpertChoiceMLP"]
    given = table.draw(table.cases[-1], Draw(3))
    (x,), of = given.args, given.parameters
    gates = (x @ of["router.weight"].T + of["router.bias"]).softmax(dim=-1)
    expected = 0.0
    for expert, gate in enumerate(gates.unbind(dim=-1)):
        up, down = (
            [of[f"experts.{expert}.{name}.{part}"] for part in ("weight", "bias")] for name in ("up_proj", "down_proj")
        )
        expected += gate[..., None] * nn.functional.linear(nn.functional.linear(x, *up).relu(), *down)
    torch.testing.assert_close(table.right(given), expected)


def test_one_group_without_a_penalty_is_a_beam_search_by_totals():
    log_probs = (2 * Draw(0)(5, 5)).log_softmax(dim=-1)
    for beams in (1, 2, 4):
        (words,) = TABLES["diverse_beam_search"].reference(log_probs, 0, 1, 1, beams, 0.7, 5)
        assert words == TABLES["beam_search"].reference(log_probs, 0, 1, beams, 0.0, 5)[0]


def test_a_strong_penalty_gives_each_group_another_first_word():
    log_probs = Draw(0)(9, 9).log_softmax(dim=-1)
    found = TABLES["diverse_beam_search"].reference(log_probs, 0, 1, 4, 1, 100.0, 6)
    assert len({words[0] for words in found}) == len(found) == 4
