"""The page with a learner's answers: as a plain file, and in two kernels."""

from tests.lessons.answered import alone, kernels, unsaid

BLOCK = """
class Block(nn.Module):
    def __init__(self, dim, num_heads, mlp_dim):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(
            dim, num_heads, mlp_dim, 0.0, "gelu", batch_first=True, norm_first=True)

    def forward(self, x):
        return self.layer(x)
"""
DRIVER = """
random_mask, visible, restore_order = my_random_mask, my_visible, my_restore_order
hidden_loss, pretrain_step, patchify = my_hidden_loss, my_pretrain_step, my_patchify

def random_images(size):
    colour = torch.randn(size, 3, 1, 1)                     # of all pixels of an image
    return (colour + 0.1 * torch.randn(size, 3, 16, 16)).contiguous()

torch.manual_seed(0)
model = MAE(16, 4, 3, 32, 2, 2, 16, 1, 2, 0.75)
losses = []

class screen:
    stopped = False
    def update(done, steps, loss): losses.append(loss)

train(model, 200, 3e-3, masked_step, screen)
print(sum(losses[:10]) / 10, sum(losses[-10:]) / 10)
"""


def test_a_plain_file_of_the_solutions_and_the_page_s_loop_learns_without_the_course(tmp_path):
    solutions = "patchify random_mask visible restore_order hidden_loss encoder mae pretrain_step"
    parts = {"others": ("11",), "solutions": solutions, "cells": "positions_2d train masked_step"}
    first, last = map(float, alone(tmp_path, "13", driver=BLOCK + DRIVER, lines=220, **parts))
    assert first > 0.8 and last < 0.3, (first, last)  # the noise of the images alone is 0.01


def test_her_mae_goes_on_in_a_new_kernel(tmp_path, monkeypatch):
    few = (("steps=600", "steps=3"), ("range(60)", "range(3)"), ("train(tuned, 300", "train(tuned, 3"))
    first, second = kernels(tmp_path, monkeypatch, "13", end="opened_by_both", shorter=few)
    assert not unsaid(first, "the page runs on your model", passes="MAE", opens="MAE")
    told = ("parameters: encoder 203,200, decoder 62,160", "their target is zero: True", "fine-tuned, your loop")
    assert not unsaid(second, *told, goes_on="MAE")
