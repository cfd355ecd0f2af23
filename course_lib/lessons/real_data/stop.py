"""The stop "On real data" at the end of a lesson: what its model reached there, and its work if it is here."""

from collections.abc import Callable, Mapping
from typing import Any

from course_lib.classroom.markup import to_html, to_plain
from course_lib.classroom.output import present
from course_lib.data.checkpoints import CARD, checkpoint_folder, load_trained, measured_card
from course_lib.data.fetching import find_set, is_here
from course_lib.data.place import course_home
from course_lib.lessons.real_data import captions, images, shakespeare
from course_lib.lessons.recipes import find_recipe

AT_WORK: dict[str, Callable[..., None]] = {  # of a model: shows some of a set, and with weights what they make of it
    "resnet": images.show,
    "vit": images.show,
    "gpt": shakespeare.show,
    "translator": captions.show,
}


def on_real_data(model: str, data: str, *, train: bool = False) -> None:
    """Show what a lesson's model reached on a real set, some of the set if it is here, and the model if it is trained.

    `train=True` trains it on the page with seed 0, fetching the set before, and goes on where it was stopped; without
    it nothing is computed that takes longer than some seconds. Raises ValueError for a training that there is not and
    a damaged checkpoint, CannotStart for a set that cannot be fetched.
    """
    name = f"{model}_{data}"
    recipe, shown = find_recipe(name), AT_WORK[model]
    command = f"course train {model} --data {data}"
    say(_measured(name))
    if train:
        trained = recipe.train(recipe.variants[""], checkpoint=course_home() / "training" / f"{name}-on-the-page")
        say(f"Trained on this page: {listed(recipe.scores({'': trained}, 'test'))}.")
        shown(data, trained)
    elif not is_here(data):
        say(f"The set is not here: {find_set(data).title}. In a terminal, `course data fetch {data}` fetches it.")
    elif not (checkpoint_folder(name, real=True) / CARD).is_file():
        shown(data)
        say(f"The set is here, a model is not. `{command}` in a terminal trains one; on this page, `train=True` does.")
    else:
        loaded = load_trained(name)
        say(f"Trained here: {listed(loaded.card['test'])}.")
        shown(data, loaded)


def _measured(name: str) -> str:
    """What the course measured, of a whole set on the part of it that it could have."""
    card = measured_card(name) or measured_card(f"{name}_part")
    size, minutes = f"{card['parameters']:,} parameters", f"{card['cpu_seconds'] / 60:.1f} minutes of one processor"
    return f"**{card['title']}**, {size}, {minutes}. What it has not seen: {listed(card['test'])}."


def listed(scores: Mapping[str, Any]) -> str:
    """Scores in one line."""
    return "; ".join(f"{name} {value:.4g}" for name, value in scores.items())


def say(text: str) -> None:
    """A paragraph on the page."""
    present(to_plain(text), to_html(text))
