"""Feature visualisation: fields, patches, maximisation, occlusion, each against what is known by hand."""

import torch
from torch import nn

from course_lib.functional import visualisation as v


def test_receptive_fields_are_those_that_a_gradient_measures():
    layers = [(3, 1), (3, 2), (3, 1), (5, 2)]
    net = nn.Sequential(*(nn.Conv2d(1, 1, k, stride=s, padding=k // 2) for k, s in layers))
    for parameter in net.parameters():
        nn.init.constant_(parameter, 0.5)
    for depth, field in enumerate(v.receptive_fields(layers), start=1):
        image = torch.zeros(1, 1, 65, 65, requires_grad=True)
        out = net[:depth](image)
        place = out.shape[-1] // 2
        out[0, 0, place, place].backward()
        reached = image.grad[0, 0].nonzero()
        assert (reached.amax(0) - reached.amin(0) + 1).tolist() == [field.size, field.size]
        assert reached.float().mean(0).tolist() == [place * field.stride] * 2


def test_a_patch_is_centred_on_its_place_and_empty_beyond_the_border():
    image = torch.arange(36.0).view(1, 6, 6)
    assert torch.equal(v.cut_out(image, 1, 2, v.Field(3, 2))[0], image[0, 1:4, 3:6])
    assert v.cut_out(image, 0, 0, v.Field(3, 2))[0].isnan().sum() == 5
    assert torch.equal(v.cut_out(image, 1, 1, v.Field(9, 2)), image)


def test_the_most_exciting_patches_come_best_first_and_one_from_each_image():
    images, maps = torch.arange(4 * 36.0).view(4, 1, 6, 6), torch.zeros(4, 3, 3)
    maps[2, 1, 2], maps[2, 0, 0], maps[0, 2, 1] = 9.0, 8.0, 5.0
    found = v.most_exciting(maps, images, v.Field(3, 2), count=2)
    assert found.images == [2, 0]
    assert torch.equal(found.pictures[0], v.cut_out(images[2], 1, 2, v.Field(3, 2)))


def test_total_variation_and_blur_by_hand():
    image = torch.tensor([[[[0.0, 1.0], [0.0, 3.0]]]])
    assert v.total_variation(image).tolist() == [1 + 3 + 0 + 2]
    flat = torch.full((1, 2, 5, 5), 0.7)
    assert torch.allclose(v.blurred(flat, 0.6), flat)
    point = torch.zeros(1, 1, 9, 9)
    point[..., 4, 4] = 1
    assert torch.allclose(v.blurred(point, 0.6).sum(), torch.tensor(1.0))
    assert v.blurred(point, 0) is point


def test_maximising_finds_the_picture_that_a_linear_score_asks_for():
    wanted = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    found = v.maximise(lambda image: (image[:, 0] * wanted).sum((1, 2)), (1, 1, 2, 2), regularisers=v.NOTHING)
    assert torch.allclose(found[0, 0], 2 * wanted)
    smooth = v.maximise(
        lambda image: (image[:, 0] * wanted).sum((1, 2)),
        (1, 1, 2, 2),
        regularisers=v.Regularisers(variation=10, roll=0),
    )
    assert v.total_variation(smooth) < v.total_variation(found) / 4


def test_occlusion_is_high_where_the_score_looks():
    image = torch.ones(1, 1, 6, 6)
    found = v.occlusion_map(lambda image: image[:, 0, 4, 1], image, size=3, stride=1)
    assert found.shape == (4, 4)
    assert found.nonzero().tolist() == [[2, 0], [2, 1], [3, 0], [3, 1]]
