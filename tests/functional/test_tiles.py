import pytest
import torch
import torch.nn.functional as F

from course_lib.functional.tiles import in_tiles, starts


@pytest.mark.parametrize(("height", "width"), [(32, 32), (33, 70), (96, 96), (7, 100), (5, 6)])
@pytest.mark.parametrize("overlap", [0, 3, 8, 31])
def test_what_looks_at_one_pixel_only_does_not_see_the_tiles(height, width, overlap):
    image = torch.rand(2, 3, height, width, dtype=torch.float64)
    together = in_tiles(lambda part: torch.cat([2 * part, part**2], dim=1), image, tile=32, overlap=overlap)
    torch.testing.assert_close(together, torch.cat([2 * image, image**2], dim=1))


def test_every_tile_is_whole_and_neighbours_share_the_overlap():
    seen = []

    def spy(part):
        seen.append(tuple(part.shape[-2:]))
        return part

    in_tiles(spy, torch.rand(1, 1, 80, 50), tile=32, overlap=8)
    assert seen == [(32, 32)] * len(starts(80, 32, 8)) * len(starts(50, 32, 8))
    assert starts(80, 32, 8) == [0, 24, 48] and starts(81, 32, 8) == [0, 24, 48, 49] and starts(20, 32, 8) == [0]


def test_a_blur_is_wrong_along_the_seams_alone_and_less_where_tiles_overlap():
    def blur(part):
        return F.avg_pool2d(part, 5, stride=1, padding=2)

    image = torch.rand(1, 1, 96, 96)
    whole = blur(image)
    wrong = {overlap: (in_tiles(blur, image, tile=32, overlap=overlap) - whole).abs()[0, 0] for overlap in (0, 8, 16)}
    near = (torch.arange(96)[:, None] % 32 - 15.5).abs().clamp(min=13.6) > 13.6
    near = near | near.T
    assert wrong[0][~near].max() < 1e-6 < 0.05 < wrong[0][near].mean()
    assert wrong[0].mean() > 2 * wrong[8].mean() > 0
