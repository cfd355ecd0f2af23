import torch

from course_lib.lessons.lesson_12 import learner
from course_lib.lessons.lesson_12.tasks import TASKS


def test_each_step_has_digits_of_its_own_and_they_are_standardised():
    (images, labels), (again, _), (others, _) = (learner.batch(4, step) for step in (0, 0, 1))
    assert images.shape == (4, 1, 32, 32) and len(labels) == 4
    assert torch.equal(images, again) and not torch.equal(images, others)
    assert images.min() == -2  # black: (0 - 0.5) / 0.25


def test_the_test_batch_is_the_test_digits_standardised():
    digits, (images, labels) = learner.test_digits(5), learner.test_batch(5)
    torch.testing.assert_close(images, (digits.pixels - 0.5) / 0.25)
    assert torch.equal(labels, digits.labels)


def test_an_untrained_network_of_hers_can_be_watched():
    model = TASKS["swin"].module(1, 10, 4, 8, (2, 2), (1, 2), 4)
    figure = learner.showing(learner.test_digits(20))(model)
    assert len(figure.axes) == 6
