import ast
from pathlib import Path

import pytest
import torch

import course_lib.data
from course_lib.data.draws import Draws, generator, uniform_noise

FOLDER = Path(course_lib.data.__file__).parent
RANDOM_DRAWS = {"rand", "random_", "uniform_"}
# normal numbers and shuffles are computed in ways that differ between machines or with the size of the tensor
UNEVEN_DRAWS = {"randn", "randn_like", "normal", "normal_", "bernoulli", "bernoulli_", "multinomial", "randperm"}


def test_neighbouring_seeds_and_purposes_have_nothing_in_common():
    keys = [("scenes", 0), ("scenes", 1), ("scenes", 2**32), ("noise", 0)]
    rows = torch.stack([torch.rand(2000, generator=generator(*key)) for key in keys])
    assert (torch.corrcoef(rows) - torch.eye(4)).abs().max() < 0.1
    assert torch.equal(torch.rand(9, generator=generator("a", 1)), torch.rand(9, generator=generator("a", 1)))


def test_the_numbers_are_those_of_every_machine():
    drawn = torch.rand(4, generator=generator("scenes", 0))
    torch.testing.assert_close(drawn, torch.tensor([0.3767, 0.3940, 0.5031, 0.1711]), atol=5e-5, rtol=0)


def test_columns_are_handed_out_once_each_in_the_ranges_asked_for():
    rows = torch.rand(5000, 4, generator=generator("test", 0))
    draws = Draws(rows)
    uniform, whole, coin = draws.uniform(-2.0, 1.0), draws.whole(5), draws.coin()
    torch.testing.assert_close(uniform, rows[:, 0] * 3 - 2)
    assert uniform.min() >= -2 and uniform.max() < 1
    assert whole.bincount().tolist() == pytest.approx([1000] * 5, rel=0.15)
    assert coin.float().mean().item() == pytest.approx(0.5, abs=0.03)
    draws.uniform()
    with pytest.raises(StopIteration):
        draws.uniform()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 1000, 2**20 - 1, 10**9])
def test_a_whole_number_is_below_the_count_even_for_the_largest_draw(count):
    largest = torch.full((1, 1), 1 - 2**-24)
    assert count // 2 <= Draws(largest).whole(count).item() < count


@pytest.mark.parametrize("shape", [(40, 1, 32, 32), (40, 3, 9, 11)])
def test_noise_has_the_promised_spread_in_every_pixel_and_is_independent(shape):
    noise = uniform_noise(shape, 0.1, generator("noise", 0))
    assert noise.shape == shape and abs(noise.mean()) < 2e-3
    flat = noise.flatten(1)
    for byte in range(8):  # eight pixels share one drawn number
        assert flat[:, byte::8].std().item() == pytest.approx(0.1, rel=0.06)
    neighbours = torch.stack([flat[:, :-1].flatten(), flat[:, 1:].flatten()])
    assert abs(torch.corrcoef(neighbours)[0, 1]) < 0.03
    assert noise.abs().max() <= 0.1 * 3**0.5


def test_the_noise_of_an_image_does_not_depend_on_how_many_there_are():
    few, many = (uniform_noise((count, 1, 5, 5), 0.1, generator("noise", 0)) for count in (3, 30))
    assert torch.equal(few, many[:3])


@pytest.mark.parametrize("name", ["draws", "digits", "scenes", "crops", "augmentations"])
def test_images_are_made_of_even_draws_only(name):
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    called = {node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "attr")}
    assert not called & UNEVEN_DRAWS
    assert called & RANDOM_DRAWS
