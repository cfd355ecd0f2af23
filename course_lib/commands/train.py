"""`course train NAME`: trains what a lesson shows, goes on where it was interrupted, writes checkpoint and card."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from course_lib.commands.lessons import CannotStart
from course_lib.data.checkpoints import CARD, checkpoint_folder, replace_text, write_trained
from course_lib.data.place import course_home
from course_lib.lessons.recipes import all_recipes, find_recipe, real_recipes
from course_lib.training import progress, scale
from course_lib.training.engine import OneProcess, using
from course_lib.training.recipe import Outcome, Recipe
from course_lib.weights import own

SETTINGS, RESULT, MODEL, RUN = "settings.json", "result.json", "model.safetensors", "run"


def list_recipes() -> int:
    """Prints the trainings by name."""
    print("course train NAME    trains one of these and writes it, with its scores, to data/checkpoints/NAME:\n")
    for name, recipe in all_recipes().items():
        print(f"  {name:<20}lesson {recipe.lesson}, about {recipe.minutes:g} min a seed   {recipe.title}")
    print(
        "\nThe same models on real data sets, kept out of the course's folder; course data list says what these are:\n"
    )
    for name, recipe in real_recipes().items():
        print(f"  {with_option(name):<36}about {recipe.minutes:g} min a seed   {recipe.title}")
    return 0


def with_option(name: str) -> str:
    """vit_mnist -> vit --data mnist."""
    model, _, data = name.partition("_")
    return f"{model} --data {data}"


def train(
    name: str,
    *,
    data: str | None = None,
    seeds: Sequence[int] = (0,),
    out: Path | None = None,
    fresh: bool = False,
    setup: scale.Setup | None = None,
) -> int:
    """Trains a recipe, on request on a real data set, with each seed and ships the one that is best on validation.

    What is done lies in the course's home folder: an interrupted training loses at most the last interval, and a
    finished seed is not trained again. Checkpoints of real data, whose licences are not the course's, go there, too.
    `setup` says where and how to compute; the processes that torchrun started train together, and the first one writes
    and reports. Raises CannotStart for an unknown name, repeated seeds, a set that cannot be had, a training that was
    begun with other settings (`fresh` begins anew), or a setup that this machine cannot do.
    """
    try:
        name = name if data is None else real_name(name, data)
        recipe = find_recipe(name)
    except ValueError as problem:
        raise CannotStart(str(problem)) from None
    if len(set(seeds)) < len(seeds) or not seeds:
        raise CannotStart(f"Each seed can be trained once, got {' '.join(map(str, seeds)) or 'none'}.")
    engine, results = scale.start(setup), []
    for seed in seeds:
        folder = course_home() / "training" / name / f"seed-{seed}"
        results.append(train_seed(recipe, seed, folder, fresh=fresh, engine=engine))
        if engine.rank == 0:
            print(f"seed {seed}: {scores(results[-1])}", flush=True)
    if engine.rank:
        return 0
    chosen = recipe.best(results)
    target = checkpoint_folder(name, real=name in real_recipes()) if out is None else Path(out)
    folder = course_home() / "training" / name / f"seed-{chosen['seed']}"
    card = ship(name, recipe, chosen, results, folder / MODEL, target, settings=engine.facts())
    print(f"\n{card['model']} with {card['parameters']:,} parameters of seed {chosen['seed']}: {target}")
    return 0


def real_name(name: str, data: str) -> str:
    """The training `name` on a real set. Raises ValueError, with those that there are, if there is none."""
    if f"{name}_{data}" not in real_recipes():
        known = ", ".join(map(with_option, real_recipes()))
        raise ValueError(f"There is no training {name!r} on the data {data!r}. There are: {known}.")
    return f"{name}_{data}"


def parse_seeds(text: str) -> list[int]:
    """The seeds in a text such as "0,1,2". Raises CannotStart for anything else."""
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0:
        raise CannotStart(f"Seeds are whole numbers from 0 on with commas between them, such as 0,1,2; got {text!r}.")
    return seeds


def train_seed(
    recipe: Recipe, seed: int, folder: Path, *, fresh: bool = False, engine: Any = OneProcess
) -> dict[str, Any]:
    """Trains one seed, or takes up what is there of it; its model and result stay in the folder."""
    first = engine.rank == 0
    if fresh and first:
        shutil.rmtree(folder, ignore_errors=True)
    engine.wait()
    settings = recipe.facts()["settings"] | {"seed": seed} | engine.facts()
    check_same_settings(folder / SETTINGS, settings)
    if (folder / RESULT).exists():
        return json.loads((folder / RESULT).read_text(encoding="utf-8"))
    engine.wait()  # all have looked before the first one writes
    if first:
        folder.mkdir(parents=True, exist_ok=True)
        replace_text(folder / SETTINGS, json.dumps(settings, indent=2))
    display = progress.start(f"{recipe.title}, seed {seed}") if first else progress.Silent()
    with progress.using(lambda title: display), using(engine):
        outcome = recipe.run(seed, folder / RUN)
    result = summary(outcome, seed)
    if not first:
        return result
    shipped = outcome.shipped
    own.save(shipped.model, folder / MODEL, extra={"recipe": asdict(shipped.settings), **shipped.extra})
    replace_text(folder / RESULT, json.dumps(result, indent=2))  # last: with it the seed is done
    return result


def check_same_settings(path: Path, settings: dict[str, Any]) -> None:
    if not path.exists():
        return
    before, now = json.loads(path.read_text(encoding="utf-8")), json.loads(json.dumps(settings))
    changed = [key for key in dict.fromkeys([*before, *now]) if before.get(key) != now.get(key)]
    if changed:
        differences = "; ".join(f"{key} was {before.get(key)!r}, is {now.get(key)!r}" for key in changed)
        raise CannotStart(
            f"{path.parent} holds a training with other settings ({differences}). To begin it anew add --fresh."
        )


def summary(outcome: Outcome, seed: int) -> dict[str, Any]:
    """What is kept of a finished seed, as plain values."""
    history = outcome.shipped.history
    return {
        "seed": seed,
        "validation": {name: float(value) for name, value in outcome.validation.items()},
        "test": {name: float(value) for name, value in outcome.test.items()},
        "steps": len(history.losses),
        "cpu_seconds": float(history.cpu_seconds[-1]),
        "torch": torch.__version__.partition("+")[0],
        "threads": torch.get_num_threads(),
    }


def ship(
    name: str,
    recipe: Recipe,
    chosen: dict[str, Any],
    results: list[dict[str, Any]],
    model: Path,
    target: Path,
    *,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """Writes the chosen seed's checkpoint with its card, which has these settings, too; returns the card's facts."""
    seeds = [{key: run[key] for key in ("seed", "validation", "test", "cpu_seconds")} for run in results]
    facts = {"name": name} | recipe.facts() | {"notes": notes_of(name), "seeds": seeds} | chosen
    facts["settings"] |= settings
    return write_trained(target, own.load(model), extra=own.load_extra(model), facts=facts, weights=recipe.weights)


def notes_of(name: str) -> str:
    """What somebody wrote on the course's card of this name: it stays when the card is written anew."""
    card = checkpoint_folder(name) / CARD
    notes = json.loads(card.read_text(encoding="utf-8"))["notes"] if card.exists() else ""
    if notes:
        print(f"\nThe notes on the card are kept. Do they still hold?\n{notes}")
    return notes


def scores(result: dict[str, Any]) -> str:
    """A seed's scores in one line."""
    parts = [f"{name} {value:.4g}" for name, value in result["test"].items()]
    return f"test {', '.join(parts)}; {result['cpu_seconds']:.0f} CPU seconds"
