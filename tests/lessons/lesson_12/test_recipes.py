from dataclasses import replace

import torch

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_12 import recipes as task


def test_the_variants_differ_in_their_shifts_alone():
    shifted, unshifted = (task.build(replace(task.COMPARED, shifted=flag)) for flag in (True, False))
    shifts = [max(block.attn.shift for stage in model.stages for block in stage) for model in (shifted, unshifted)]
    assert shifts[0] > 0 == shifts[1]
    torch.testing.assert_close(dict(shifted.state_dict()), dict(unshifted.state_dict()), rtol=0, atol=0)


def test_between_the_variants_windows_only_shifts_lead_from_one_to_the_next():
    model = task.build(replace(task.COMPARED, shifted=False)).eval()
    side = task.COMPARED.window_size * task.COMPARED.patch_size
    image = torch.rand(1, 1, task.COMPARED.size, task.COMPARED.size, requires_grad=True)
    model.feature_maps(image)[-1][0, :, 0, 0].square().sum().backward()
    assert side < task.COMPARED.size / 2 and len(model.merges) == 0 and model.pos_embed is None
    assert image.grad[..., :side, :side].any()
    assert not image.grad[..., side:].any() and not image.grad[..., side:, :].any()


def test_the_shipped_model_reads_digits_that_nothing_was_chosen_by():
    trained = load_trained("swin")
    images = task.CleanDigits(split="test", size=trained.extra["recipe"]["size"]).batch(500, seed=1)
    assert task.accuracy(trained.model, images.pixels, images.labels) >= 0.95
    assert all(seed["test"]["accuracy"] >= 0.95 for seed in trained.card["seeds"])


def test_shifts_paid_with_every_seed_and_both_variants_had_learned():
    for seed in load_trained("shifted_windows").card["seeds"]:
        shifted, unshifted = (seed["test"][f"accuracy, {name}"] for name in ("shifted", "unshifted"))
        assert shifted > unshifted + 0.05 and unshifted > 0.5  # chance is 0.1
