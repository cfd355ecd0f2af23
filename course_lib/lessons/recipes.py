"""The trainings that `course train` knows by name: `RECIPES` in the recipes of each lesson's folder.

Those on real data sets stand in `real_data`, with the set in their names: vit_mnist.
"""

from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path

from course_lib.training.recipe import Recipe


@cache
def all_recipes() -> dict[str, Recipe]:
    """Every training by its name, in the order of the course. Raises ValueError if two lessons use one name."""
    found: dict[str, Recipe] = {}
    for path in sorted(Path(__file__).parent.glob("lesson_[0-9][0-9]/recipes*")):
        recipes = import_module(f"{__package__}.{path.parent.name}.recipes").RECIPES
        if twice := found.keys() & recipes.keys():
            raise ValueError(f"{path.parent.name} and a lesson before it have a training {min(twice)!r}")
        found |= recipes
    return found


@cache
def real_recipes() -> dict[str, Recipe]:
    """Every training on a real data set, by the name of the training, an underscore and that of the set."""
    modules = (import_module(f"{__package__}.real_data.{name}") for name in ("images", "shakespeare", "captions"))
    return {name: recipe for module in modules for name, recipe in module.RECIPES.items()}


def find_recipe(name: str) -> Recipe:
    """The recipe of this name. Raises ValueError, with the nearest names, for another."""
    known = all_recipes() | real_recipes()
    if name not in known:
        near = get_close_matches(name, known, n=2, cutoff=0.4)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(f"There is no training {name!r}.{hint} There are: {', '.join(all_recipes())}.")
    return known[name]
