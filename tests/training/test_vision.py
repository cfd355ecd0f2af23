import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.functional.images import standardise
from course_lib.training.loop import FitConfig, fit
from course_lib.training.vision import (
    STEPS_OF_A_SEED,
    accuracy,
    classification_loss,
    fit_classifier,
    predictions,
    seed_of_step,
)


def batch_at(step):
    """Eight images that are bright on one side, and which."""
    generator = torch.Generator().manual_seed(step)
    labels = torch.randint(2, (8,), generator=generator)
    pixels = torch.rand(8, 1, 4, 4, generator=generator) / 2
    pixels[..., :2] += 0.4 * labels[:, None, None, None]
    return pixels, labels


def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 6), nn.Dropout(0.5), nn.Linear(6, 2))


def test_the_loss_is_the_cross_entropy_of_standardised_pixels():
    model, (pixels, labels) = build().eval(), batch_at(0)
    nats = -model(standardise(pixels)).log_softmax(dim=1)[range(8), labels]
    torch.testing.assert_close(classification_loss(model, (pixels, labels)), nats.mean())


def test_predictions_are_made_in_parts_and_evaluation_mode_and_leave_the_mode():
    model, (pixels, _) = build().train(), batch_at(0)
    logits = predictions(model, pixels, batch_size=3)
    assert model.training and not logits.requires_grad
    torch.testing.assert_close(logits, model.eval()(standardise(pixels)))


def test_accuracy_is_the_share_of_right_labels():
    pixels, labels = batch_at(0)
    answers = F.one_hot(torch.where(torch.arange(8) < 6, labels, 1 - labels), 2).float()

    class Answers(nn.Module):
        def forward(self, image):
            return answers

    assert accuracy(Answers(), pixels, labels) == 0.75


def test_no_two_steps_and_no_two_seeds_draw_the_same_images():
    steps = (*range(3000), STEPS_OF_A_SEED - 1)
    assert len({seed_of_step(seed, step) for seed in range(4) for step in steps}) == 4 * len(steps)


def test_a_classifier_is_fitted_in_parts(tmp_path):
    settings = {"learning_rate": 1e-2, "warmup": 2, "weight_decay": 0.1, "ema": 0.9, "seed": 3}
    held_out = batch_at(10**6)
    score = lambda model: accuracy(model, *held_out)  # noqa: E731
    ours, theirs = build(), build()
    history = fit_classifier(
        ours, batch_at, steps=12, parts=4, validate=score, checkpoint=tmp_path / "ours", **settings
    )
    config = FitConfig(steps=12, evaluate_every=3, **settings)
    expected = fit(theirs, batch_at, classification_loss, config=config, validate=score, mode="max")
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))
    np.testing.assert_array_equal(history.losses, expected.losses)
    np.testing.assert_array_equal(history.validation_steps, [3, 6, 9, 12])
    assert (history.best_step, history.best_value) == (expected.best_step, expected.best_value)


def test_a_classifier_that_is_interrupted_goes_on_from_its_last_part(tmp_path):
    def interrupted(step):
        if step == 7:
            raise KeyboardInterrupt
        return batch_at(step)

    seen = []
    settings = {"steps": 9, "parts": 3, "learning_rate": 1e-2, "checkpoint": tmp_path / "run"}
    with pytest.raises(KeyboardInterrupt):
        fit_classifier(build(), interrupted, **settings)
    fit_classifier(build(), lambda step: (seen.append(step), batch_at(step))[1], **settings)
    assert seen == [6, 7, 8]
