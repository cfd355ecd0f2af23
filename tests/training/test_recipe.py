from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from course_lib.training.loop import FitConfig, fit
from course_lib.training.recipe import Recipe, Trained, common, each, fit_by, mean_and_spread, plain
from course_lib.training.seeding import seeded


@dataclass(frozen=True, kw_only=True)
class LineSettings:
    slope: float = 2.0
    steps: int = 40
    learning_rate: float = 0.1
    seed: int = 0


def batch_at(step):
    return torch.randn(8, 1, generator=torch.Generator().manual_seed(step))


def build(seed=0):
    with seeded(seed):
        return nn.Linear(1, 1)


def train(settings, *, checkpoint=None):
    def loss(model, x):
        return (model(x) - settings.slope * x).square().mean()

    return fit_by(
        settings, build(settings.seed), batch_at, loss, checkpoint=checkpoint, extra={"slope": settings.slope}
    )


def score(trained, split):
    return {"slope": trained.model.weight.item(), "images": float(len(split))}


LINES = {"flat, a little": LineSettings(slope=0.5), "steep": LineSettings()}
FACTS = {"title": "Lines", "lesson": "03", "data": "Numbers.", "minutes": 1, "train": train, "scores": each(score)}
RECIPE = Recipe(**FACTS, variants=LINES, ships="steep", chosen_by="slope, steep", mode="max", timed=("steep",))


def test_all_variants_are_trained_with_the_seed_and_scored_by_their_names(tmp_path):
    outcome = RECIPE.run(5, tmp_path)
    assert outcome.shipped.settings == LineSettings(seed=5) and outcome.shipped.extra == {"slope": 2.0}
    names = ["slope, flat, a little", "images, flat, a little", "slope, steep", "images, steep"]
    assert list(outcome.validation) == names and list(outcome.test) == [*names, "CPU seconds, steep"]
    assert outcome.validation["images, steep"] == len("validation") and outcome.test["images, steep"] == len("test")
    assert outcome.test["slope, steep"] == outcome.shipped.model.weight.item() == pytest.approx(2, abs=0.3)
    assert outcome.test["slope, flat, a little"] == pytest.approx(0.5, abs=0.3)
    assert outcome.test["CPU seconds, steep"] == outcome.shipped.history.cpu_seconds[-1]
    expected = train(LineSettings(seed=5)).model
    assert torch.equal(outcome.shipped.model.weight, expected.weight)


def test_every_variant_goes_on_in_a_folder_of_its_own(tmp_path):
    first, again = RECIPE.run(5, tmp_path), RECIPE.run(5, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flat-a-little", "steep"]
    assert again.test == first.test  # CPU seconds, too: nothing was trained


def test_a_nameless_variant_s_scores_keep_their_names(tmp_path):
    recipe = replace(RECIPE, variants={"": LineSettings()}, ships="", timed=(), chosen_by="slope")
    assert list(recipe.run(0, tmp_path).test) == ["slope", "images"]
    turned = each(score, "{name}: {score}")({"steep": train(LineSettings(steps=1))}, "test")
    assert list(turned) == ["steep: slope", "steep: images"]


@pytest.mark.parametrize(("mode", "best"), [("max", 1), ("min", 2)])
def test_the_best_seed_is_the_one_with_the_best_score_on_validation(mode, best):
    values = (0.5, 0.9, 0.1)
    results = [{"seed": i, "validation": {"slope, steep": value}} for i, value in enumerate(values)]
    assert replace(RECIPE, mode=mode).best(results)["seed"] == best


def test_the_card_lists_the_settings_of_all_variants_without_the_seed():
    steep = {"slope": 2.0, "steps": 40, "learning_rate": 0.1}
    assert RECIPE.facts()["settings"] == {"flat, a little": steep | {"slope": 0.5}, "steep": steep}
    assert replace(RECIPE, variants={"": LineSettings()}, ships="").facts()["settings"] == steep
    assert replace(RECIPE, settings={"steps": 1}).facts()["settings"] == {"steps": 1}
    assert plain(LineSettings(), "slope") == {"steps": 40, "learning_rate": 0.1}


@pytest.mark.parametrize(
    ("change", "message"), [({"mode": "best"}, "mode.*'best'"), ({"ships": "flat"}, "'steep'.*'flat'")]
)
def test_a_recipe_that_makes_no_sense_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(RECIPE, **change)


def test_fitting_by_settings_is_fitting_with_the_config_of_their_names(tmp_path):
    settings, ours, theirs = LineSettings(seed=3), build(), build()

    def loss(model, x):
        return (model(x) - 2 * x).square().mean()

    def validate(model):
        return model.weight.item()

    trained = fit_by(settings, ours, batch_at, loss, parts=4, warmup=5, validate=validate, mode="max")
    config = FitConfig(steps=40, learning_rate=0.1, seed=3, warmup=5, evaluate_every=10)
    expected = fit(theirs, batch_at, loss, config=config, validate=validate, mode="max")
    assert isinstance(trained, Trained) and trained.model is ours and trained.settings is settings
    assert torch.equal(ours.weight, theirs.weight)
    assert trained.history.validation_steps.tolist() == [10, 20, 30, 40]
    assert trained.history.best_value == expected.best_value
    assert common(settings, FitConfig) == {"steps": 40, "learning_rate": 0.1, "seed": 3}


def test_what_is_told_beside_the_settings_counts():
    trained = fit_by(LineSettings(), build(), batch_at, lambda model, x: model(x).mean(), learning_rate=0.5)
    assert trained.history.learning_rates.max() == 0.5


def test_a_spread_is_a_standard_deviation():
    assert mean_and_spread("score", [1.0, 3.0]) == {"score": 2.0, "score, spread": pytest.approx(2**0.5)}
