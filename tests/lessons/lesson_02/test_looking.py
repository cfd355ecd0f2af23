"""What lesson 02 measures is what it says."""

import torch

from course_lib.lessons.lesson_02 import learner, looking, recipes
from course_lib.training.progress import Silent


def test_each_change_alone_changes_the_picture_and_no_other_does():
    pixels = looking.one_of_each().pixels
    assert torch.equal(looking.NOTHING(pixels, torch.Generator()), pixels)
    seen = [looking.changed_by(name, pixels) for name in (*recipes.CHANGES, "all")]
    assert all((one != pixels).flatten(1).any(dim=1).all() for one in seen)
    assert not any(torch.equal(a, b) for n, a in enumerate(seen) for b in seen[:n])


def test_one_of_each_is_ten_digits_in_order():
    assert looking.one_of_each().labels.tolist() == list(range(10))


def test_brightness_can_be_read_from_a_feature_that_is_brightness_and_from_no_other():
    bright = looking.kept(lambda pixels: pixels.amax(dim=(1, 2, 3))[:, None])
    blind = looking.kept(lambda pixels: torch.ones(len(pixels), 1) + 1e-9 * pixels[:, 0, 0, :1])
    assert bright["bright"] > 0.85 > 0.7 > blind["bright"] and blind["digit"] < 0.2


def test_alignment_and_uniformity_of_known_points():
    axes = torch.eye(2)
    sphere = recipes.on_the_sphere(axes, axes.flip(0))
    assert torch.allclose(torch.tensor(sphere), torch.tensor([2.0, -4.0, 0.0]))


def test_the_log_asks_the_neighbours_now_and_then_and_counts_each_step():
    log = learner.Log(learner.fresh(), lambda h, stored, labels, k: labels[:1].expand(len(h)), steps=22)
    for step in range(22):
        log(5 - step)
    assert log.steps == [0, 20, 22] and log.losses == [5.0 - step for step in range(22)]
    assert 0.05 < log.votes[0] == log.votes[2] < 0.2


def test_a_training_that_is_stopped_ends_after_its_step_with_the_length_as_planned_and_a_last_vote():
    display = Silent()
    log = learner.Log(learner.fresh(), lambda h, stored, labels, k: labels[:1].expand(len(h)), display, steps=9)
    batches, seen = learner.UntilStopped([torch.zeros(1)] * 9, display), []
    for batch in batches:
        seen.append(batch)
        display.stopped = len(seen) == 3
        log(1.0)
    assert len(batches) == 9 and len(seen) == 3 and log.steps == [0, 3] and len(log.votes) == 2


def test_batches_are_new_digits_with_new_noise_each_time():
    seen = []
    batches = learner.Batches(lambda x, noise: seen.append((x, noise)) or torch.cat([x, x]), steps=2, size=3)
    assert len(batches) == 2 and [each.shape for each in batches] == [(6, 1, 28, 28)] * 2
    (first, noise), (second, other) = seen
    assert noise.shape == (2, 7, 3) and not torch.equal(first, second) and not torch.equal(noise, other)
