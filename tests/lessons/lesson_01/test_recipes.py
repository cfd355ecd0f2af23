from dataclasses import replace

import numpy as np
import pytest
import torch

from course_lib.data.icons import icons
from course_lib.lessons.lesson_01.recipes import depth, icon_names, resnet
from course_lib.lessons.lesson_01.recipes import transfer as task
from course_lib.lessons.lesson_01.tasks import TASKS
from course_lib.models.cnn import CNN
from course_lib.models.resnet import ResNet
from course_lib.training import vision
from course_lib.training.history import History
from course_lib.training.recipe import Trained

# ------------------------------------------------------------------ depth

TINY_DEPTH = depth.DepthSettings(num_layers=8, width=4, steps=20, batch_size=8)


@pytest.mark.parametrize("layers", (8, 20, 44))
def test_plain_and_residual_nets_differ_in_their_shortcuts_alone(layers):
    plain, residual = (depth.build(replace(depth.SETTINGS, kind=kind, num_layers=layers)) for kind in depth.KINDS)
    assert not plain.config.residual and residual.config.residual
    torch.testing.assert_close(dict(plain.state_dict()), dict(residual.state_dict()), rtol=0, atol=0)


def test_nets_are_what_their_names_say_and_else_differ_in_the_learning_rate_alone():
    for name, recipe in depth.NETS.items():
        kind, layers, *twice = name.split(", ")
        rate = {"learning_rate": recipe.learning_rate}
        expected = replace(depth.SETTINGS, kind=kind, num_layers=int(layers.split()[0]), **rate)
        assert recipe == (replace(expected, steps=2 * expected.steps) if twice else expected)


def test_digits_that_are_scored_as_training_digits_were_not_trained_on(monkeypatch):
    seen, digits = [], depth.digits
    monkeypatch.setattr(depth, "digits", lambda *args: seen.append(digits(*args)) or seen[-1])
    depth.train(replace(TINY_DEPTH, steps=3))
    scored = digits(TINY_DEPTH, "train", 100, depth.SEED_OF_SCORES)
    pixels = torch.cat([images.pixels for images in (*seen, scored)]).flatten(1)
    assert len(pixels) == 3 * 8 + 100 == len(pixels.unique(dim=0))


def test_the_test_also_scores_the_digits_that_were_learned_and_the_losses_of_the_last_tenths(monkeypatch):
    monkeypatch.setattr(depth, "right", lambda trained, split: {"train": 0.9, "validation": 0.8, "test": 0.7}[split])
    history = History.blank(20, [])
    history.losses[:] = np.arange(20)
    trained = Trained(settings=TINY_DEPTH, model=depth.build(TINY_DEPTH), history=history)
    assert depth.score(trained, "validation") == {"accuracy": 0.8}
    losses = {"training loss": 18.5, "training loss, a tenth of the steps before": 16.5}
    assert depth.score(trained, "test") == {"accuracy": 0.7, "accuracy on training digits": 0.9} | losses


# ------------------------------------------------------------------ names of icons, and scenes


def test_views_are_those_of_the_exercise():
    drawings = icons("test").take(torch.arange(12))
    given = (torch.rand(12) < 0.5, torch.randint(0, 9, (12, 2)), torch.rand(12, 3))
    rgba = torch.cat([drawings.pixels, drawings.alpha], dim=1)
    assert torch.allclose(icon_names.views(drawings, *given), TASKS["augment"].reference(rgba, *given), atol=1e-6)


def test_classes_are_the_things_of_the_training():
    for split in ("train", "validation", "test", "new designer"):
        drawings, labels = icon_names.with_classes(icons(split))
        assert torch.equal(icon_names.known_names()[labels], drawings.names)


def test_a_training_on_names_runs_and_is_scored():
    trained = icon_names.train(replace(icon_names.SETTINGS, steps=2, batch_size=4))
    names = {f"accuracy, {of}" for of in ("coloured ground", "new designer", "training drawings")}
    assert set(icon_names.score(trained, "test")) == {"accuracy"} | names


def test_both_networks_of_scenes_have_about_the_same_size():
    with torch.device("meta"):
        ours, plain = (resnet.build(resnet.SceneSettings(net=net)) for net in ("resnet", "cnn"))
    sizes = [sum(parameter.numel() for parameter in model.parameters()) for model in (ours, plain)]
    assert isinstance(ours, ResNet) and isinstance(plain, CNN) and sizes[1] == pytest.approx(sizes[0], rel=0.05)


# ------------------------------------------------------------------ transfer

TINY = task.SourceSettings(widths=(4, 6, 8), stem_channels=4, steps=3, batch_size=8)
QUICK = task.TargetSettings(learning_rate=1e-3, steps=2)
FEW = {"POOL": 60, "VALIDATION_SCENES": 40, "TEST_SCENES": 40}


@pytest.fixture(scope="module")
def source():
    """A network of few scenes, which stay few while it is used."""
    with pytest.MonkeyPatch.context() as patch:
        for name, count in FEW.items():
            patch.setattr(task, name, count)
        task.target_scenes.cache_clear()
        yield task.train_source(TINY)
    task.target_scenes.cache_clear()


@pytest.fixture
def begun(monkeypatch):
    """The networks as they are before each training on the target."""
    seen, fit = [], task.fit_classifier

    def spy(settings, model, *rest, **named):
        seen.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
        return fit(settings, model, *rest, **named)

    monkeypatch.setattr(task, "fit_classifier", spy)
    return seen


def test_source_and_target_share_no_digit(source):
    assert not set(task.SOURCE) & set(task.TARGET)
    assert set(task.target_scenes("train").labels.tolist()) == {0, 1, 2, 3}


def test_a_new_head_leaves_the_backbone_as_it_is(source):
    model = task.with_new_head(source, seed=5)
    assert model.head.weight.shape == (4, 8) and source.model.head.weight.shape == (6, 8)
    pixels = task.target_scenes("test").pixels[:7]
    torch.testing.assert_close(model.eval().features(pixels), source.model.features(pixels))


def test_rates_fall_from_the_head_to_the_stem_and_without_decay_all_parts_learn_at_one(source):
    model = source.model
    optimizer = task.rates_by_layer(model, replace(QUICK, learning_rate=8e-3, decay=0.5))
    rates = {id(p): (group["lr"], group["weight_decay"]) for group in optimizer.param_groups for p in group["params"]}
    parts = [model.head, model.stages[2], model.stages[1], model.stages[0], model.stem]
    for part, expected in zip(parts, (8e-3, 4e-3, 2e-3, 1e-3, 5e-4), strict=True):
        for p in part.parameters():
            assert rates[id(p)] == (expected, QUICK.weight_decay if p.ndim >= 2 else 0)
    assert len(rates) == len(list(model.parameters()))
    assert {group["lr"] for group in task.rates_by_layer(model, QUICK).param_groups} == {1e-3}


def test_only_the_drawn_labels_are_trained_on(source, monkeypatch):
    seen = []
    monkeypatch.setattr(
        vision, "classification_loss", lambda model, batch: seen.append(batch[0]) or model(batch[0]).sum() * 0
    )
    task.train_target(replace(QUICK, steps=6, batch_size=5), source, per_class=3, draw=1)
    pool = task.target_scenes("train")
    chosen = task.label_draw(pool.labels, 3, seed=1)
    assert torch.equal(torch.cat(seen).unique(dim=0), pool.pixels[chosen].unique(dim=0)) and len(chosen) == 12


def test_fine_tuning_begins_where_the_source_ended_and_scratch_does_not(source, begun):
    for settings in (QUICK, replace(QUICK, scratch=True)):
        task.train_target(settings, source, per_class=3, draw=0)
    stem = source.model.stem.conv.weight
    assert [torch.equal(network["stem.conv.weight"], stem) for network in begun] == [True, False]


def test_every_draw_and_every_source_gets_a_head_of_its_own(source, begun):
    for seed in (0, 1):
        for draw in (0, 1, task.DRAWS - 1):
            task.train_target(QUICK, replace(source, settings=replace(TINY, seed=seed)), per_class=2, draw=draw)
    assert len(torch.stack([network["head.weight"] for network in begun]).unique(dim=0)) == len(begun) == 6


def test_the_best_length_on_the_validation_scenes_is_kept(source, monkeypatch):
    values, weights, fit = iter([0.2, 0.9, 0.3, 0.1, 0.0]), [], task.fit_classifier
    monkeypatch.setattr(task, "accuracy", lambda *_: next(values))

    def spy(*args, validate, **others):
        keep = lambda model: weights.append(model.head.weight.clone()) or validate(model)  # noqa: E731
        return fit(*args, validate=keep, **others)

    monkeypatch.setattr(task, "fit_classifier", spy)
    trained = task.train_target(replace(QUICK, steps=5), source, per_class=3, draw=0)
    assert trained.history.best_step == 2 and torch.equal(trained.model.head.weight, weights[1])


def test_every_variant_is_scored_for_every_draw_with_the_same_labels(source, monkeypatch, tmp_path):
    variants = {"fine-tuned": {2: QUICK, 3: QUICK}, "scratch": {2: replace(QUICK, scratch=True)}}
    for name, value in {"PER_CLASS": (2, 3), "DRAWS": 2, "VARIANTS": variants}.items():
        monkeypatch.setattr(task, name, value)
    drawn, draw = [], task.label_draw
    monkeypatch.setattr(task, "label_draw", lambda *a, **named: drawn.append(draw(*a, **named)) or drawn[-1])
    trained = task.train(TINY, checkpoint=tmp_path)
    frozen = [labels.tolist() for labels in drawn[:4]]
    assert [len(labels) for labels in frozen] == [8, 8, 12, 12] and frozen[0] != frozen[1] and frozen[2] != frozen[3]
    assert [labels.tolist() for labels in drawn[4:]] == frozen + frozen[:2]
    tables = [task.score(trained, split) for split in ("validation", "test")]
    names = [
        f"{kind}, {labels} labels, {who}"
        for labels, whose in ((8, ("frozen", "fine-tuned", "scratch")), (12, ("frozen", "fine-tuned")))
        for who in whose
        for kind in ("accuracy", "spread over draws")
    ]
    assert list(tables[0]) == list(tables[1]) == [task.SOURCE_SCORE, *names]
    assert len(trained.extra["scores"]) == 10 and all(0 <= value <= 1 for each in tables for value in each.values())
    assert torch.equal(trained.model.stem.conv.weight, source.model.stem.conv.weight)


def test_the_table_holds_means_and_spreads():
    told = {"method": "frozen", "per_class": 3, "validation": 0.5}
    table = task.table([told | {"draw": draw, "test": value} for draw, value in enumerate((0.5, 0.7))], "test")
    assert table == pytest.approx({"accuracy, 12 labels, frozen": 0.6, "spread over draws, 12 labels, frozen": 0.1})
