import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.models.segnet import SegNet, SegNetConfig, segnet

TINY = SegNetConfig(in_channels=2, num_classes=3, widths=(4, 6), depths=(1, 2))


def test_its_decoder_mirrors_the_convolutions_of_vgg_16():
    with torch.device("meta"):
        model = segnet()
    convolutions = [[m for m in part.modules() if isinstance(m, nn.Conv2d)] for part in (model.encoder, model.decoder)]
    down, up = ([(m.in_channels, m.out_channels) for m in part] for part in convolutions)
    assert len(down) == 13 and up[:-1] == [(b, a) for a, b in reversed(down[1:])] and up[-1] == (64, 64)


def test_the_decoder_unpools_to_the_remembered_positions():
    torch.manual_seed(0)
    model, image = SegNet(TINY).eval(), torch.randn(2, 2, 13, 9)
    fine = model.encoder[0](image)
    pooled, where = F.max_pool2d(fine, 2, return_indices=True)
    coarse = model.encoder[1](pooled)
    smallest, coarse_where = F.max_pool2d(coarse, 2, return_indices=True)
    x = model.decoder[0](F.max_unpool2d(smallest, coarse_where, 2, output_size=coarse.shape[-2:]))
    x = model.decoder[1](F.max_unpool2d(x, where, 2, output_size=fine.shape[-2:]))
    torch.testing.assert_close(model(image), model.head(x), rtol=0, atol=1e-6)


@pytest.mark.parametrize("size", [(8, 8), (4, 4), (13, 7), (5, 22)])
def test_every_pixel_of_any_image_gets_its_logits(size):
    assert SegNet(TINY)(torch.randn(2, 2, *size)).shape == (2, 3, *size)
