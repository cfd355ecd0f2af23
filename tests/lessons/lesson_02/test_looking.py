"""What lesson 02 measures is what it says."""

import torch

from course_lib.lessons.lesson_02 import learner, looking, recipes


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


def test_halfway_finds_the_digit_where_features_are_digits():
    labels = recipes.images("test").labels

    def perfect(pixels):
        return torch.nn.functional.one_hot(labels, 10).float() + 1e-3 * pixels.flatten(1)[:, :10]

    walk = looking.halfway(perfect, pairs=60)
    assert walk.same == 1 and 0.05 < walk.likely < 0.2
    assert looking.halfway(lambda pixels: torch.randn(len(pixels), 8), pairs=60).same < 0.4


def test_a_line_ends_at_its_ends():
    pixels = lambda p: p.flatten(1)  # noqa: E731
    start, end = looking.ends(pixels)
    stops = looking.along(pixels, start, end)
    assert (stops[0], stops[-1]) == (start, end) and recipes.images("test").labels[[start, end]].tolist() == [2, 2]


def test_alignment_and_uniformity_of_known_points():
    axes = torch.eye(2)
    sphere = recipes.on_the_sphere(axes, axes.flip(0))
    assert torch.allclose(torch.tensor(sphere), torch.tensor([2.0, -4.0, 0.0]))


def test_the_page_trains_on_the_learners_loss_and_asks_with_their_vote(monkeypatch):
    monkeypatch.setattr(learner, "SETTINGS", recipes.replace(learner.SETTINGS, steps=2, batch_size=4))
    monkeypatch.setattr(learner, "STEPS", 2)
    asked = []

    def loss(first, second, temperature):
        asked.append(temperature)
        return (first - second).square().mean()

    course = learner.learn(learner.fresh(), loss, lambda features, stored, labels, k: labels[:1].expand(len(features)))
    assert asked == [0.5, 0.5] and len(course["losses"]) == 2 and course["steps"] == [0, 2]
    assert 0.05 < course["votes"][0] == course["votes"][1] < 0.2
    weights = learner.with_weights(course).state_dict()
    assert all(torch.equal(value, course["weights"][name]) for name, value in weights.items())
