"""Lesson 01: what the page measures and looks at, and what one plays with."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.data.icons import DESIGNERS
from course_lib.data.scenes import DigitScenes
from course_lib.functional.visualisation import Field
from course_lib.lessons.lesson_01 import learner, looking, measuring, playground
from course_lib.lessons.lesson_01.recipes import icon_names


def test_no_family_has_drawn_labelled_and_tested_icons_and_each_thing_is_labelled():
    families = [designer.family for designer in DESIGNERS.values()]
    for per_name in measuring.PER_NAME:
        for draw in range(3):
            task = learner.few_labels(per_name, draw)
            given, asked = ({families[i] for i in some.designers.tolist()} for some in (task.given, task.asked))
            assert not given & asked and len(asked) == 1
            counts = task.labels.bincount()
            assert len(counts) == 50 and 1 <= counts.min() and counts.max() == per_name


def test_the_file_is_of_these_settings():
    stored = measuring.measured()
    assert stored["settings"] == json.loads(json.dumps(measuring.settings()))
    ways = {f"{count} a thing, {way}" for count in measuring.PER_NAME for way in measuring.WAYS}
    for of in ("accuracy (%)", "features moved"):
        assert {key: len(values) for key, values in stored["few_labels"][of].items()} == dict.fromkeys(ways, 6)
    for name, _, _, counts in measuring.DEPTHS:
        assert [len(row) for row in stored["depths"][name]] == [len(counts)] * len(measuring.SEEDS)


def test_things_to_tune_on_are_none_of_those_that_are_scored():
    tuning, scoring = measuring.halves()
    assert not torch.isin(tuning, scoring).any() and len(tuning) == len(scoring) == 50


def test_batches_have_the_labels_of_their_drawings():
    drawings, labels = learner.known("test")
    few = drawings.take(torch.arange(3))
    for images, right in learner.batches(few, labels[:3], 2, None, size=8):
        assert images.shape == (3, 3, 32, 32)
        for image, label in zip(images, right, strict=True):
            same = [torch.allclose(image, (one - 0.5) / 0.25, atol=1e-5) for one in few.on(1.0)]
            assert same[labels[:3].tolist().index(int(label))]


def test_a_frozen_copy_keeps_the_first_parts_and_their_statistics():
    few = torch.arange(6)
    base = icon_names.build(icon_names.SETTINGS, 6)
    made = measuring.cut(base, 2, 6, 0, frozen=True)
    measuring.trained_on(icon_names.known_names()[few], made, 0, 2)
    for name, value in base.state_dict().items():
        same = torch.equal(value, made.state_dict()[name])
        assert same == name.startswith(("stem.", "stages.0.")) or name.endswith("num_batches_tracked")


def test_each_way_learns_from_few_labels():
    torch.manual_seed(0)
    source = measuring.learners_own(icon_names.build(icon_names.SETTINGS, 647))
    task = learner.few_labels(1)
    for way in measuring.WAYS.values():
        short = replace(way, steps=2)
        model = measuring.learned(source, short, task, way.rates[0], 0, 1.0)
        assert model(torch.zeros(1, 3, 32, 32)).shape == (1, 50) and not model.training


@pytest.fixture(scope="module")
def model():
    return load_trained("transfer").model


def test_the_fields_are_those_that_a_gradient_measures(model):
    fields = looking.fields_of(model)
    assert fields == [Field(3, 1), Field(9, 2), Field(21, 4), Field(45, 8)]
    image = torch.randn(1, 1, 96, 96, requires_grad=True)
    for maps, field in zip([model.stem(image), *model.feature_maps(image)], fields, strict=True):
        middle = maps.shape[-1] // 2
        (gradient,) = torch.autograd.grad(maps[0, :, middle, middle].square().sum(), image, retain_graph=True)
        reached = gradient[0, 0].nonzero()
        assert (reached.amax(0) - reached.amin(0) + 1).max() <= field.size
        assert (reached.amin(0) >= middle * field.stride - field.size // 2).all()


def test_a_digit_brighter_than_its_ground_is_called_so():
    scenes = DigitScenes(split="test", clutter=0.0, noise=0.0).batch(20, 0)
    inverted = scenes._replace(pixels=1 - scenes.pixels)
    assert torch.equal(looking.ink_is_brighter(scenes), ~looking.ink_is_brighter(inverted))


def test_exciting_patches_come_for_each_depth(model):
    scenes = DigitScenes(split="test").batch(30, 0)
    found = looking.exciting(model, scenes.pixels, channels=2, count=3)
    assert [part[0].pictures[0].shape[-1] for part in found] == [3, 9, 21, 32]
    assert all(len(channel.pictures) == 3 for part in found for channel in part)


def test_a_score_is_the_logit_of_its_class(model):
    images = torch.randn(2, 1, 32, 32)
    with torch.no_grad():
        logits = model.eval()(images)
    score = looking.scoring(model, [5, 1])
    assert torch.equal(score(images), torch.stack([logits[0, 5], logits[1, 1]]))


@pytest.fixture(scope="module")
def stages():
    return playground.stages(load_trained("resnet").model)


def drawings():
    blank = np.zeros((playground.PAD, playground.PAD), np.uint8)
    hook, box = blank.copy(), blank.copy()
    hook[10:14, 10:46] = hook[10:46, 42:46] = 255
    box[10:46, 10:46] = 255
    checks = (np.indices(blank.shape).sum(0) // 6 % 2 * 255).astype(np.uint8)
    return [*playground.examples().values(), hook, box, checks]


def test_each_goal_can_be_reached_and_none_by_an_empty_pad_which_gets_an_answer(stages):
    states = [stages.state(pad=drawing) for drawing in drawings()]
    assert [any(goal.reached(state) for state in states) for goal in stages.goals] == [True, True, True]
    empty = stages.state(pad=0 * drawings()[0])
    assert not any(goal.reached(empty) for goal in stages.goals)
    assert "A probe at each depth reads" in stages.frame(empty).alt


def test_six_digits_are_known_and_a_seven_gets_another_name():
    six = playground.six(load_trained("transfer").model)
    said = {name: six.frame(six.state(pad=drawing)).alt for name, drawing in playground.examples().items()}
    assert "says 0" in said["a zero"] and all("knows 0 to 5" in words for words in said.values())
