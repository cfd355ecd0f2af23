from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.functional.images import Normalisation, standardise
from course_lib.training import vision
from course_lib.training.probes import features_of


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
    torch.testing.assert_close(vision.classification_loss(model, (pixels, labels)), nats.mean())


def test_predictions_are_made_in_parts_and_evaluation_mode_and_leave_the_mode():
    model, (pixels, _) = build().train(), batch_at(0)
    logits = vision.predictions(model, pixels, batch_size=3)
    assert model.training and not logits.requires_grad
    torch.testing.assert_close(logits, model.eval()(standardise(pixels)))


def test_accuracy_is_the_share_of_right_labels():
    pixels, labels = batch_at(0)
    answers = F.one_hot(torch.where(torch.arange(8) < 6, labels, 1 - labels), 2).float()

    class Answers(nn.Module):
        def forward(self, image):
            return answers

    assert vision.accuracy(Answers(), pixels, labels) == 0.75


def test_no_two_steps_and_no_two_seeds_draw_the_same_images():
    steps = (*range(3000), vision.STEPS_OF_A_SEED - 1)
    assert len({vision.seed_of_step(seed, step) for seed in range(4) for step in steps}) == 4 * len(steps)


def test_a_classifier_is_fitted_by_its_settings_and_keeps_the_highest_accuracy():
    @dataclass(frozen=True)
    class Settings:
        steps: int = 12
        learning_rate: float = 1e-2
        seed: int = 3

    values, weights, model = iter((0.2, 0.9, 0.3, 0.1)), [], build()

    def validate(model):
        weights.append(model[1].weight.clone())
        return next(values)

    trained = vision.fit_classifier(Settings(), model, batch_at, parts=4, validate=validate)
    assert trained.history.best_step == 6 and trained.history.validation_steps.tolist() == [3, 6, 9, 12]
    trained.history.load_best(model)
    assert torch.equal(model[1].weight, weights[1])


def spread_out(pixels):
    return (pixels - 0.1) / 0.3


def test_all_that_reads_pixels_takes_the_normalisation_of_the_model():
    model, (pixels, labels) = build().eval(), batch_at(0)
    model.normalisation = Normalisation(mean=(0.1,), std=(0.3,))
    expected = model(spread_out(pixels))
    torch.testing.assert_close(vision.predictions(model, pixels), expected)
    torch.testing.assert_close(features_of(model, pixels), expected)
    torch.testing.assert_close(vision.classification_loss(model, (pixels, labels)), F.cross_entropy(expected, labels))


@pytest.mark.parametrize(
    "read", [vision.predictions, features_of, lambda m, x: vision.classification_loss(m, (x, batch_at(0)[1]))]
)
def test_pixels_that_are_not_raw_and_models_that_do_not_say_what_they_expect_are_refused(read):
    model, (pixels, _) = build(), batch_at(0)
    for wrong, message in ((standardise(pixels), "give them as they are"), (255 * pixels, "divide by 255")):
        with pytest.raises(ValueError, match=rf"pixels must lie from 0 \(black\) to 1 \(white\), got .*{message}"):
            read(model, wrong)
    model.normalisation = None
    with pytest.raises(ValueError, match="Sequential does not say how.*model.normalisation = Normalisation"):
        read(model, pixels)
