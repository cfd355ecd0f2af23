"""The trained models that come with the course: small, complete, and what their cards say."""

import json

import pytest

from course_lib.data.checkpoints import checkpoint_folder, load_trained, readable_card
from course_lib.data.files import data_folder
from course_lib.functional.images import Normalisation
from course_lib.lessons.recipes import all_recipes, find_recipe

NAMES = sorted(all_recipes())
MOST_BYTES = 60e6


def test_all_data_are_small_together():
    assert sum(path.stat().st_size for path in data_folder().rglob("*") if path.is_file()) < MOST_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_a_card_agrees_with_its_file_and_its_recipe(name):
    trained, recipe = load_trained(name), find_recipe(name)  # load_trained compares the checksum
    card = trained.card
    assert card["name"] == name and recipe.weights == (trained.model is not None)
    if recipe.weights:
        assert card["model"] == type(trained.model).__name__
        assert card["parameters"] == sum(parameter.numel() for parameter in trained.model.parameters())
    else:
        assert {path.suffix for path in checkpoint_folder(name).iterdir()} == {".json", ".md"}
    facts = json.loads(json.dumps(recipe.facts()))
    assert {name: card[name] for name in facts} == facts
    assert (checkpoint_folder(name) / "card.md").read_text(encoding="utf-8") == readable_card(card)


ONE_SEED = {
    "diffusion_icons"  # its training takes hours, and nothing is compared
}


@pytest.mark.parametrize("name", NAMES)
def test_three_seeds_or_more_were_trained_and_the_best_on_validation_kept(name):
    card, recipe = load_trained(name).card, find_recipe(name)
    seeds = {run["seed"] for run in card["seeds"]}
    if name == "scaling_practice":  # a sweep over seeds itself, beside the one of `scaling`
        runs = load_trained(name).extra["runs"]["isoflop"]
        seeds = {run["seed"] for run in runs} | {load_trained("scaling").card["seed"]}
    assert len(seeds) >= (1 if name in ONE_SEED else 3)
    best = recipe.best(card["seeds"])
    assert best["seed"] == card["seed"] and best["test"] == card["test"]


def test_a_model_of_images_says_what_it_expects_on_its_card_and_is_given_it():
    trained = load_trained("resnet")
    assert trained.card["normalisation"] == {"mean": [0.5], "std": [0.25]}
    assert trained.model.normalisation == Normalisation(mean=(0.5,), std=(0.25,))
    assert "(pixels - 0.5) / 0.25" in readable_card(trained.card)
    models = {name: load_trained(name) for name in NAMES if find_recipe(name).weights}
    told = {name for name, each in models.items() if "normalisation" in each.card}
    assert told == {name for name, each in models.items() if hasattr(each.model, "normalisation")}
    assert {"resnet", "vit", "swin", "unet", "mae", "simclr"} < told and "dictionary" not in told
