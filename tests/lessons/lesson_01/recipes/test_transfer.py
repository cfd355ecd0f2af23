from dataclasses import replace

import pytest
import torch

from course_lib.lessons.lesson_01.recipes import transfer as task
from course_lib.training import vision

TINY = task.SourceSettings(widths=(4, 6, 8), stem_channels=4, steps=3, batch_size=8)
QUICK = task.TargetSettings(learning_rate=1e-3, steps=2)


@pytest.fixture(scope="module", autouse=True)
def few_scenes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "POOL", 60)
        patch.setattr(task, "VALIDATION_SCENES", 40)
        patch.setattr(task, "TEST_SCENES", 40)
        task.target_scenes.cache_clear()
        yield
    task.target_scenes.cache_clear()


@pytest.fixture(scope="module")
def source():
    return task.train_source(TINY)


def test_source_and_target_share_no_digit():
    assert not set(task.SOURCE) & set(task.TARGET)
    assert set(task.target_scenes("train").labels.tolist()) == {0, 1, 2, 3}


def test_a_new_head_leaves_the_backbone_as_it_is(source):
    model = task.with_new_head(source, seed=5)
    assert model.head.weight.shape == (4, 8) and source.model.head.weight.shape == (6, 8)
    pixels = task.target_scenes("test").pixels[:7]
    model.eval()
    torch.testing.assert_close(model.features(pixels), source.model.features(pixels))
    assert not torch.equal(model.head.weight, task.with_new_head(source, seed=6).head.weight)


def test_rates_fall_from_the_head_to_the_stem(source):
    model = source.model
    optimizer = task.rates_by_layer(model, replace(QUICK, learning_rate=8e-3, decay=0.5))
    rate = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    decay = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    parts = [model.head, model.stages[2], model.stages[1], model.stages[0], model.stem]
    for part, expected in zip(parts, (8e-3, 4e-3, 2e-3, 1e-3, 5e-4), strict=True):
        assert {rate[id(p)] for p in part.parameters()} == {expected}
        assert all((decay[id(p)] > 0) == (p.ndim >= 2) for p in part.parameters())
    assert len(rate) == len(list(model.parameters()))


def test_without_decay_all_parts_learn_at_the_same_rate(source):
    assert {group["lr"] for group in task.rates_by_layer(source.model, QUICK).param_groups} == {1e-3}


def test_only_the_drawn_labels_are_trained_on(source, monkeypatch):
    seen = []
    monkeypatch.setattr(
        vision, "classification_loss", lambda model, batch: (seen.append(batch[0]), model(batch[0]).sum() * 0)[1]
    )
    task.train_target(replace(QUICK, steps=6, batch_size=5), source, per_class=3, draw=1)
    shown = torch.cat(seen).unique(dim=0)
    pool = task.target_scenes("train")
    chosen = task.label_draw(pool.labels, 3, seed=1)
    assert torch.equal(shown, pool.pixels[chosen].unique(dim=0)) and len(chosen) == 12


def test_fine_tuning_begins_where_the_source_ended_and_scratch_does_not(source, monkeypatch):
    begun = []
    fit = task.fit_classifier
    monkeypatch.setattr(
        task,
        "fit_classifier",
        lambda s, model, *a, **o: (begun.append(model.stem.conv.weight.clone()), fit(s, model, *a, **o))[1],
    )
    task.train_target(QUICK, source, per_class=3, draw=0)
    task.train_target(replace(QUICK, scratch=True), source, per_class=3, draw=0)
    stem = source.model.stem.conv.weight
    assert torch.equal(begun[0], stem) and not torch.equal(begun[1], stem)


def test_every_draw_and_every_source_gets_a_head_of_its_own(source, monkeypatch):
    begun = []
    fit = task.fit_classifier
    monkeypatch.setattr(
        task,
        "fit_classifier",
        lambda s, model, *a, **o: (begun.append(model.head.weight.clone()), fit(s, model, *a, **o))[1],
    )
    for seed in (0, 1):
        for draw in (0, 1, task.DRAWS - 1):
            task.train_target(QUICK, replace(source, settings=replace(TINY, seed=seed)), per_class=2, draw=draw)
    assert len(torch.stack(begun).unique(dim=0)) == len(begun) == 6


def test_all_variants_get_the_same_draws_of_labels(source, monkeypatch):
    drawn = []
    draw = task.label_draw
    monkeypatch.setattr(task, "label_draw", lambda *a, **s: (drawn.append(draw(*a, **s)), drawn[-1])[1])
    monkeypatch.setattr(task, "PER_CLASS", (2, 3))
    monkeypatch.setattr(task, "DRAWS", 2)
    monkeypatch.setattr(task, "VARIANTS", {"fine-tuned": {2: QUICK, 3: QUICK}})
    list(task.frozen_scores(source))
    list(task.trained_scores(source))
    frozen, trained = drawn[:4], drawn[4:]
    assert all(torch.equal(a, b) for a, b in zip(frozen, trained, strict=True))
    assert [len(chosen) for chosen in frozen] == [8, 8, 12, 12]
    assert not torch.equal(frozen[0], frozen[1]) and not torch.equal(frozen[2], frozen[3])


def test_the_best_length_on_the_validation_scenes_is_kept(source, monkeypatch):
    values = iter([0.2, 0.9, 0.3, 0.1, 0.0])
    monkeypatch.setattr(task, "accuracy", lambda *_: next(values))
    weights, fit = [], task.fit_classifier

    def spy(*args, validate, **others):
        keep = lambda model: (weights.append(model.head.weight.clone()), validate(model))[1]  # noqa: E731
        return fit(*args, validate=keep, **others)

    monkeypatch.setattr(task, "fit_classifier", spy)
    trained = task.train_target(replace(QUICK, steps=5), source, per_class=3, draw=0)
    assert trained.history.best_step == 2 and torch.equal(trained.model.head.weight, weights[1])


def test_every_variant_is_scored_for_every_draw(source, monkeypatch, tmp_path):
    monkeypatch.setattr(task, "PER_CLASS", (2, 3))
    monkeypatch.setattr(task, "DRAWS", 2)
    variants = {"fine-tuned": {2: QUICK, 3: QUICK}, "scratch": {2: replace(QUICK, scratch=True)}}
    monkeypatch.setattr(task, "VARIANTS", variants)
    trained = task.train(TINY, checkpoint=tmp_path)
    tables = [task.score(trained, split) for split in ("validation", "test")]
    names = [
        f"{kind}, {labels} labels, {who}"
        for labels, whose in ((8, ("frozen", "fine-tuned", "scratch")), (12, ("frozen", "fine-tuned")))
        for who in whose
        for kind in ("accuracy", "spread over draws")
    ]
    assert list(tables[0]) == list(tables[1]) == [task.SOURCE_SCORE, *names]
    assert len(trained.extra["scores"]) == 10
    assert all(0 <= value <= 1 for each in tables for value in each.values())
    assert torch.equal(trained.model.stem.conv.weight, source.model.stem.conv.weight)


def test_the_table_holds_means_and_spreads():
    scores = [
        {"method": "frozen", "per_class": 3, "draw": draw, "validation": 0.5, "test": value}
        for draw, value in enumerate((0.5, 0.7))
    ]
    table = task.table(scores, "test")
    assert table == pytest.approx({"accuracy, 12 labels, frozen": 0.6, "spread over draws, 12 labels, frozen": 0.1})
