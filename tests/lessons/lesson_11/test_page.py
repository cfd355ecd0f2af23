"""The page with a learner's answers: as a plain file, and in two kernels."""

from tests.lessons.answered import alone, kernels, unsaid

DRIVER = """
attention, tokens, mixup, standardise = my_attention, my_tokens, my_mixup, lambda images: images

class drawings:
    def __init__(self, categories):
        self.names = self.categories = categories
    def take(self, rows):
        return drawings(self.categories[rows])

class learner:
    def random_views(some):
        rows = torch.arange(8)[:, None]
        images = 0.3 * torch.randn(len(some.names), 3, 8, 8)
        for image, kind in zip(images, some.categories):
            image[0, 3:5] += (kind % 3 == 0)
            image[1, :, 3:5] += (kind % 3 == 1)
            image[2, 2:6, 2:6] += (kind % 3 == 2)
            image[:, 0] += (kind > 2)
        return images

known = drawings(torch.arange(600) % 6)
torch.manual_seed(0)
model = ViT(8, 4, 3, 6, 32, 2, 2, 64)
images, targets = random_batch(64)
print(F.cross_entropy(model(images), targets).item())
train(model, 150, warmup=10)
some = known.take(torch.arange(300))
print((model(learner.random_views(some)).argmax(dim=1) == some.categories).float().mean().item())
"""


def test_a_plain_file_of_the_solutions_and_the_page_s_loop_learns_without_the_course(tmp_path):
    solutions = "attention multi_head tokens block vit mixup"
    parts = {"others": ("05",), "solutions": solutions, "cells": "random_batch train"}
    first, right = map(float, alone(tmp_path, "11", driver=DRIVER, lines=190, **parts))
    assert abs(first - 1.7918) < 1e-3 and right > 0.9  # ln 6


def test_her_vit_goes_on_in_a_new_kernel(tmp_path, monkeypatch):
    few = (("steps=300", "steps=3"), ("range(40)", "range(3)"), ("warmup=50", "warmup=1"))
    few += (("(mine, some)", "(mine, some.take(torch.arange(9)))"), ("print(official.opened_by_both())", ""))
    left_out = ("learner.at_size", "by_data", "test_digits(1000)", "held_out(1000)", "released.vit_tiny")
    cut = {"end": "on_real_data", "left_out": left_out, "shorter": few}
    first, second = kernels(tmp_path, monkeypatch, "11", **cut)
    assert not unsaid(first, "equal: True", "the page runs on your model", passes="ViT", opens="ViT")
    assert not unsaid(second, "a Mixer on it agrees: True", goes_on="ViT")
