"""What a generator's images looked like when they were made: other machines may differ by rounding, not by more."""

import torch
import torch.nn.functional as F

ROUNDING = 3e-4


def fingerprint(pixels):
    """The mean of each quarter of each image, as one list."""
    return F.adaptive_avg_pool2d(pixels, 2).flatten()


def assert_fingerprint(pixels, expected):
    torch.testing.assert_close(fingerprint(pixels), torch.tensor(expected), atol=ROUNDING, rtol=0)


def assert_same_images_on_every_call(source, differs_from):
    """The images of a seed are the same on each call, in a longer batch too, and others for other seeds and sources."""
    first, again, longer = source.batch(9, 3), source.batch(9, 3), source.batch(700, 3)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert all(torch.equal(a, b[:9]) for a, b in zip(first, longer, strict=True))
    assert len(longer.pixels) == len(longer.labels) == 700
    for other in (source.batch(9, 4), differs_from.batch(9, 3)):
        assert all((a != b).any() for a, b in zip(first.pixels, other.pixels, strict=True))
