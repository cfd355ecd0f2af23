"""Lesson 01: labels of new things, batches of icons, and what the page is told of a network."""

import json
from dataclasses import replace

import torch

from course_lib.data.icons import DESIGNERS
from course_lib.lessons.lesson_01 import learner, measuring
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
