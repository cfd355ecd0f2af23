"""Lesson 16, images and words: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.classroom.output import varies
from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.data.icons import Icons, icon_names, icons
from course_lib.lessons.lesson_16 import words_figures as figures
from course_lib.lessons.lesson_16 import words_learner as learner
from course_lib.lessons.lesson_16.recipes import icon_words
from course_lib.lessons.lesson_16.recipes import pictures_and_words as captioning
from course_lib.models.clip import CLIP
from course_lib.models.flamingo import Flamingo
from course_lib.tasks.claims import above

Card = Mapping[str, Any]
QUERIES = ("sunflower", "green book", "yellow face", "kitten")  # a training name, an unseen one, two that are no names
UNSEEN = ("new designer", "new names")
HITS = 6
GATES = (0.0, 0.25, 0.5, 0.75, 1.0)
SHOWN = 3  # scenes
VARIANTS = ("Flamingo", "Flamingo, gates at 0", "one stream", "one stream of pixels")


@cache
def unseen_icons() -> tuple[Icons, Float[Tensor, "N C"]]:
    """Drawings by a designer or of things that training lacks, and their features."""
    drawings = Icons(*map(torch.cat, zip(*map(icons, UNSEEN), strict=True)))
    return drawings, torch.cat([icon_words.drawings(split)[0] for split in UNSEEN])


@torch.no_grad()
def found_by(model: CLIP, query: str, count: int = HITS) -> tuple[Int[Tensor, " K"], Float[Tensor, " K"]]:
    """Which of the unseen icons have the highest cosine with the query, and these cosines."""
    cosines = model.embed_images(unseen_icons()[1]) @ model.embed_texts(*icon_words.encoded([query]))[0]
    best = cosines.topk(count)
    return best.indices, best.values


def search(model: CLIP, card: Card, queries: Sequence[str] = QUERIES, *, predicted=None) -> Result:
    """Unseen icons for `queries`; the prediction is recall@5 for names in percent, with an unseen designer."""
    drawings, _ = unseen_icons()
    shown = {}
    for query in queries:
        rows, cosines = found_by(model, query)
        names = [icon_names()[number] for number in drawings.names[rows].tolist()]
        shown[query] = drawings.on(1.0)[rows], names, cosines.tolist()
    designer = {k: fmean(by_seed(card, f"recall@{k} of names, new designer")) for k in icon_words.RANKS}
    unseen = {k: by_seed(card, f"recall@{k} of names, new names") for k in icon_words.RANKS}
    known, new = len(icon_words.known_names()), len(icons("new names").names.unique())
    return Result(
        figures.search(shown),
        claims={
            "unseen": (
                above(min(by_seed(card, "recall@1 of names, new designer")), 0.2),
                above(min(unseen[1]), 5 / new),
            ),
        },
        came=100 * designer[5],
        values={
            "known": known,
            "new": new,
            "one": 100 * designer[1],
            "five": 100 * designer[5],
            "chance": 100 / known,
            "unseen_one": 100 * fmean(unseen[1]),
            "unseen_five": 100 * fmean(unseen[5]),
            "unseen_chance": 100 / new,
        },
    )


def trained(model: learner.Towers, *, predicted=None) -> Result:
    """The learner's own CLIP beside chance."""
    known, new = len(icon_words.known_names()), len(icons("new names").names.unique())
    found = {split: learner.recall(model, split) for split in UNSEEN}
    rows = "".join(
        f"<tr><th scope='row' style='text-align:left'>{split}, {count} names</th>"
        + "".join(
            f"<td>{varies(f'{100 * found[split][k]:.0f} %')}</td><td>{100 * k / count:.1f} %</td>" for k in (1, 5)
        )
        + "</tr>"
        for split, count in (("new designer", known), ("new names", new))
    )
    head = "<tr><th></th><th>recall@1</th><th>by chance</th><th>recall@5</th><th>by chance</th></tr>"
    return Result(
        f"<table>{head}{rows}</table>",
        claims={"unseen": (above(found["new designer"][1], 0.15), above(found["new names"][1], 3 / new))},
        came=100 * found["new designer"][5],
    )


@cache
def unseen_scenes() -> tuple[Tensor, list[str], Tensor, Tensor]:
    """Test scenes: pixels, captions, these as tokens, and the image as a captioner gets it."""
    batch, texts = captioning.scenes("test", captioning.SPLIT_SCENES["test"], seed=2**32 - 1)
    image = captioning.with_boxes(captioning.encode_images(batch.pixels))
    return batch.pixels, texts, captioning.encoded(texts), image


@torch.no_grad()
def gate(model: Flamingo, *, predicted=None) -> Result:
    """Captions as the gates open; the prediction is an option, what is generated with closed gates."""
    pixels, wanted, words, image = unseen_scenes()
    said = {f: captioning.generate(learner.opened(model, f).given(image), len(wanted)) for f in GATES}
    scores = {factor: captioning.correct(texts, wanted) for factor, texts in said.items()}
    curves = {name: [scores[factor][name] for factor in GATES] for name in ("exact", *captioning.PARTS)}
    closed = learner.opened(model, 0.0)(words[:8, :-1], image[:8])
    alphas = [float(value) for layer in model.gated for value in (layer.alpha_attn.tanh(), layer.alpha_ffn.tanh())]
    exact = [i for i, text in enumerate(wanted) if said[1.0][i] == text]
    shown = [*exact[: SHOWN - 1], next(i for i in range(len(wanted)) if i not in exact)]
    return Result(
        figures.gates(pixels[shown], [(wanted[i], said[0.0][i], said[1.0][i]) for i in shown], GATES, curves),
        claims={
            "same": torch.equal(closed, model.language(words[:8, :-1])) and len(set(said[0.0])) == 1,
        },
        came=2,  # the same caption for all
        values={
            "exact": 100 * curves["exact"][-1],
            "closed": 100 * curves["exact"][0],
            "smallest": min(map(abs, alphas)),
            "largest": max(map(abs, alphas)),
        },
    )


def layouts(card: Card, *, predicted=None) -> Result:
    """All variants; the prediction is the percentage of exact captions by one stream of fields."""
    exact = {name: by_seed(card, f"exact, {name}") for name in VARIANTS}
    found = by_seed(card, "recall@1 of scenes, ViLBERT")
    rows = [
        (name, *(f"{100 * fmean(by_seed(card, f'{part}, {name}')):.0f} %" for part in ("exact", *captioning.PARTS)))
        for name in VARIANTS
    ]
    values = {f"{name.replace(' ', '_').replace(',', '')}": 100 * fmean(scores) for name, scores in exact.items()}
    return Result(
        figures.layouts(exact, rows, ("exact", *captioning.PARTS), predicted),
        claims={
            "pixels": max(exact["one stream of pixels"]) < min(exact["one stream"] + exact["Flamingo"]),
        },
        came=100 * fmean(exact["one stream"]),
        values=values | {"found": 100 * fmean(found), "chance": 100 / captioning.CANDIDATES},
    )


RESULTS = {function.__name__: function for function in (search, trained, gate, layouts)}
