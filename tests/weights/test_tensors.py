from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from course_lib.weights.tensors import filled, skeleton


class Tables(nn.Module):
    """A weight, and a table that the model computes."""

    def __init__(self, size=3, numbers=4):
        super().__init__()
        self.weight = nn.Linear(size, size, bias=False).weight
        self.scale = nn.Parameter(torch.randn(1) * 2, requires_grad=False)
        self.register_buffer("numbers", torch.arange(numbers), persistent=False)


def test_an_outline_has_shapes_and_no_memory():
    outline = skeleton(lambda: Tables(10**7), 2)
    assert outline.weight.shape == (10**7, 10**7)
    assert outline.weight.is_meta and outline.scale.is_meta and outline.numbers.is_meta


@pytest.mark.parametrize(("layers", "fits"), [(220, True), (221, False)])
def test_an_outline_of_far_more_weights_than_there_are_tensors_is_given_up(layers, fits):
    def build():
        for _ in range(layers):
            nn.Linear(2, 2, bias=False)
        if not fits:
            pytest.fail("it went on")

    if fits:
        with pytest.raises(AttributeError):  # it is built, and is no model
            skeleton(build, 2)
    else:
        with pytest.raises(ValueError, match="a model of more than 220 parts, for 2 tensors"):
            skeleton(build, 2)


def test_an_outline_with_huge_tables_is_given_up():
    with pytest.raises(ValueError, match="tables of 7 GiB"):
        skeleton(lambda: Tables(numbers=10**9), 2)


def test_a_filled_model_has_the_tensors_that_were_given_and_the_tables_that_it_computes():
    weight, scale, before = torch.ones(3, 3), torch.full((1,), 5.0), torch.get_rng_state()
    model = filled(Tables, {"weight": weight, "scale": scale})
    assert model.weight.data_ptr() == weight.data_ptr() and model.scale.data_ptr() == scale.data_ptr()
    assert model.weight.requires_grad and not model.scale.requires_grad and not model.training
    assert torch.equal(model.numbers, torch.arange(4)) and torch.equal(torch.get_rng_state(), before)


def test_what_other_threads_build_meanwhile_is_left_alone():
    elsewhere = []

    def build():
        with ThreadPoolExecutor(1) as pool:
            elsewhere.append(pool.submit(nn.Linear, 300, 300).result())
        return Tables()

    skeleton(build, 2)
    filled(build, {"weight": torch.ones(3, 3), "scale": torch.ones(1)})
    assert len(elsewhere) == 2
    for layer in elsewhere:
        assert not layer.weight.is_meta and 0.03 < layer.weight.std() < 0.04  # 1 / sqrt(3 * 300)
