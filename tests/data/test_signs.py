import torch

from course_lib.data.signs import SIDE, Script


def seeded(number):
    return torch.Generator().manual_seed(number)


def test_a_picture_holds_its_sign_whole_somewhere():
    script = Script(5, seeded(0))
    kinds = torch.arange(5).repeat(20)
    pixels = script.pictures(kinds, seeded(1))
    found = torch.nn.functional.conv2d(pixels[:, None], script.signs[:, None]).flatten(2).amax(dim=2)
    ink = script.signs.sum(dim=(1, 2))
    assert pixels.shape == (100, SIDE, SIDE)
    assert (found[torch.arange(100), kinds] > 0.5 * ink[kinds]).all()
    corners = pixels.flatten(1).argmax(dim=1).unique()
    assert len(corners) > 30  # it lies in many places
