"""The trained models that come with the course: data/checkpoints/NAME holds the weights and the card."""

import json
import os
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from torch import nn

from course_lib.data.files import data_folder, data_path
from course_lib.data.place import course_home
from course_lib.functional.images import Normalisation
from course_lib.weights import own

FOLDER, MODEL, CARD, READABLE_CARD = "checkpoints", "model.safetensors", "card.json", "card.md"


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A trained model of the course. Of a comparison the card alone is kept: its model is None, its extra empty."""

    model: nn.Module | None
    extra: dict[str, Any]  # what belongs to the weights, such as a vocabulary
    card: dict[str, Any]  # the facts of card.json


def load_trained(name: str) -> TrainedModel:
    """The model that the course was given under this name, or that was trained here on real data, in evaluation mode.

    Raises FileNotFoundError, saying how to make it, if it is missing, and ValueError, saying how to mend it, if a file
    of it is damaged, missing or that of another model.
    """
    folder, cure = checkpoint_folder(name, real=True), f"make it anew: course train {name}"  # trained here on real data
    if not (folder / CARD).is_file():
        try:
            folder, cure = data_path(FOLDER, name), f"restore it with `git restore data`, or {cure}"
        except FileNotFoundError as problem:
            raise FileNotFoundError(f"{problem} Or train it: course train {name}") from None
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        made, expected = card["name"], card.get("sha256")
        found = checksum(folder / MODEL) if expected or (folder / MODEL).exists() else None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ValueError(f"{folder} does not hold a card and the file of its model, whole: {cure}") from problem
    if made != name:
        raise ValueError(f"{folder} holds the model {made!r}, not {name!r}: {cure}")
    if found != expected:
        raise ValueError(f"{folder / MODEL} is damaged or not the file of its card: {cure}")
    if expected is None:
        return TrainedModel(model=None, extra={}, card=card)
    model = own.load(folder / MODEL)
    if "normalisation" in card:
        model.normalisation = normalisation_of(card)
    return TrainedModel(model=model, extra=own.load_extra(folder / MODEL), card=card)


def by_seed(card: dict[str, Any], score: str) -> list[float]:
    """A score of a card on test data, for each seed."""
    return [seed["test"][score] for seed in card["seeds"]]


def measured_card(name: str) -> dict[str, Any] | None:
    """What the course measured of a training on real data, whose weights are not shipped; None if it did not."""
    try:
        return json.loads(data_path("cards", f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def checkpoint_folder(name: str, *, real: bool = False) -> Path:
    """Where the checkpoint of this name lies, or will lie; one of `real` data in the course's home."""
    return (course_home() if real else data_folder()) / FOLDER / name


def write_trained(
    folder: Path, model: nn.Module, *, extra: dict[str, Any], facts: dict[str, Any], weights: bool = True
) -> dict[str, Any]:
    """Writes both cards and, unless they are not wanted, the weights; each file is replaced whole.

    Returns the facts with those of the model and of its file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    card = json.loads(json.dumps(facts), parse_float=_as_float32) | {  # as it is read back: tuples are lists
        "model": type(model).__name__,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    if weights:
        own.save(model, folder / MODEL, extra=extra)
        card |= {"bytes": (folder / MODEL).stat().st_size, "sha256": checksum(folder / MODEL)}
    else:
        (folder / MODEL).unlink(missing_ok=True)
    if getattr(model, "normalisation", None) is not None:
        card["normalisation"] = {name: list(values) for name, values in asdict(model.normalisation).items()}
    replace_text(folder / CARD, json.dumps(card, indent=1, ensure_ascii=False) + "\n")
    replace_text(folder / READABLE_CARD, readable_card(card))
    return card


def _as_float32(digits: str) -> float:
    """A number without the digits that float32 does not have."""
    return float(f"{float(digits):.7g}")


def normalisation_of(card: dict[str, Any]) -> Normalisation:
    """What a model of images expects of pixels."""
    return Normalisation(**{name: tuple(values) for name, values in card["normalisation"].items()})


def readable_card(card: dict[str, Any]) -> str:
    """A card's facts as a page of Markdown; it holds nothing else, so that the two cannot differ."""
    settings = "\n".join(f"- {name}: {value}" for name, value in card["settings"].items())
    runs = card["seeds"]
    names = dict.fromkeys(name for run in runs for name in (*run["validation"], *run["test"]))
    kept = [f"{run['seed']}{' (this one)' if run['seed'] == card['seed'] else ''}" for run in runs]
    rows = [["CPU seconds", *(f"{run['cpu_seconds']:.0f}" for run in runs)]]
    for name in names:
        rows.append([name, *(f"{shown(run['validation'], name)} / {shown(run['test'], name)}" for run in runs)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in [["validation / test, seed", *kept], *rows])
    table = table.replace("\n", f"\n|{'---|' * (len(runs) + 1)}\n", 1)
    pixels = ""
    if "normalisation" in card:
        pixels = f"""
Pixels, from 0 (black) to 1 (white), are given to the model as {normalisation_of(card)}: `accuracy` and `predictions` of
`course_lib.training.vision` do so and take the pixels as they are.
"""
    seeds = ",".join(str(run["seed"]) for run in card["seeds"])
    notes = f"\n{card['notes']}\n" if card["notes"] else ""
    file, parts = "the weights are not kept", ".card"
    if "sha256" in card:
        file, parts = f"{card['bytes']:,} bytes, SHA-256\n{card['sha256']}", ".model, .extra, .card"
    return f"""# {card["title"]}

Of lesson {card["lesson"]}. `{card["model"]}`, {card["parameters"]:,} parameters, {file}.

    from course_lib.data.checkpoints import load_trained
    trained = load_trained("{card["name"]}")     # {parts}

## Data

{card["data"]}
{pixels}
## Training

Made by `course train {card["name"]} --seeds {seeds}` with torch {card["torch"]} and {card["threads"]} thread(s),
{card["steps"]:,} steps a seed. Seed {card["seed"]} is kept: it has the best validation score ({card["chosen_by"]}).
Nothing was chosen by the test set, unless the notes below say so.

{settings}

## Scores

{table}
{notes}
## Licence

{card["licence"]}
"""


def shown(scores: dict[str, float], name: str) -> str:
    """A score as it stands in the table, - where there is none."""
    return f"{scores[name]:.4g}" if name in scores else "-"


def checksum(path: Path) -> str:
    """SHA-256 of a file's content."""
    return sha256(path.read_bytes()).hexdigest()


def replace_text(path: Path, text: str) -> None:
    """Writes a whole file or leaves the old one."""
    written = path.with_name(path.name + ".partial")
    written.write_text(text, encoding="utf-8", newline="\n")
    os.replace(written, path)
