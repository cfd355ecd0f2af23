import math

import pytest
import torch

from course_lib.functional.images import readable_transposed_convolution, standardise
from course_lib.lessons.lesson_14 import learner, recipes, results
from course_lib.models.unet import UNet, UNetConfig


@pytest.fixture
def model():
    torch.manual_seed(0)
    return UNet(UNetConfig(num_classes=4, widths=(4, 6, 8))).eval()


@pytest.mark.parametrize("size", [(32, 32), (20, 28), (12, 4)])
def test_a_u_net_on_stamps_in_pieces_says_what_it_says_on_its_own(model, size):
    image, calls = torch.randn(2, 1, *size), []
    alone = model(image)

    def stamps(image, kernel, stride):
        calls.append(image.shape[-2:])
        return readable_transposed_convolution(image, kernel, stride=stride)

    torch.testing.assert_close(learner.with_learner_parts(model, stamps)(image), alone, rtol=1e-4, atol=1e-5)
    assert calls == [(learner.PIECE, learner.PIECE)] * 2  # few pixels at a time: quick for a learner's loop, too


def test_a_map_of_a_picture_that_is_its_own_neighbour_changes_nothing_and_another_does(model):
    same = recipes.scenes("test").batch(1, seed=0).pixels.expand(3, -1, -1, -1)
    other = recipes.scenes("test").batch(3, seed=0).pixels
    for level in range(3):
        alone = model(standardise(same)).argmax(dim=1)
        assert torch.equal(results.swapped(model, same, level), alone)
        assert not torch.equal(results.swapped(model, other, level), model(standardise(other)).argmax(dim=1))


def test_entropy_is_that_of_every_pixel():
    logits = torch.zeros(1, 8, 1, 2)
    logits[0, 3, 0, 1] = 1000.0
    torch.testing.assert_close(results.entropy(logits), torch.tensor([[[math.log(8), 0.0]]]))


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    generator = torch.Generator().manual_seed(0)
    scores, positive = torch.rand(4, 30, generator=generator), torch.rand(4, 30, generator=generator) < 0.3
    pairs = scores[positive][:, None] > scores[~positive]
    assert results.area(scores, positive) == pytest.approx(pairs.double().mean().item())
    assert results.area(positive.double(), positive) == 1


def test_digits_in_crowded_pictures_have_one_size_however_many_there_are():
    for crowd in results.CROWDS:
        boxes = results.crowded(crowd, count=20).boxes
        sides = (boxes[..., 2:] - boxes[..., :2]).amax(dim=2).double()
        assert boxes.shape[1] == crowd and 14 < sides.mean() < 22
