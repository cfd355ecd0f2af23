"""A network that knows six digits learns four others from a few labels: frozen, fine-tuned, from scratch.

Yosinski et al., "How transferable are features in deep neural networks?", NIPS 2014, arXiv 1411.1792. Howard & Ruder,
"Universal language model fine-tuning for text classification", ACL 2018, arXiv 1801.06146, section 3.2, for learning
rates that differ from layer to layer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

from torch.optim import AdamW

from course_lib.data.digits import LabelledImages
from course_lib.data.scenes import DigitScenes
from course_lib.models.resnet import ResNet, small_resnet
from course_lib.training.batches import shuffled_batches
from course_lib.training.probes import Labelled, features_of, label_draw, tuned_probe
from course_lib.training.recipe import Recipe, Scores, Trained, each, plain
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, fit_classifier, seed_of_step

SOURCE, TARGET = (0, 1, 2, 3, 4, 5), (6, 7, 8, 9)  # the digits of either task
POOL, VALIDATION_SCENES, TEST_SCENES = 1000, 600, 2000  # of the target task; labels are drawn from the pool
PER_CLASS = (2, 10, 30, 100)  # labels of each of the four digits
DRAWS = 5
LENGTHS = 4  # of a training on the target task: so often it is validated, and its best weights are kept
SOURCE_SCORE = "accuracy on the source task"


@dataclass(frozen=True, kw_only=True)
class SourceSettings:
    """A ResNet-8 with wider stages at half the resolution, and how it learns the source task."""

    widths: tuple[int, int, int] = (24, 48, 96)
    stem_channels: int = 16
    steps: int = 1500
    batch_size: int = 64
    learning_rate: float = 3e-3
    weight_decay: float = 0.01
    ema: float = 0.99
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class TargetSettings:
    """How the whole network is trained on the labels of the target task."""

    learning_rate: float  # of the head
    steps: int  # at most: the length is chosen on the validation scenes
    decay: float = 1.0  # each part of the network, from the head down, learns this much more slowly than the one above
    scratch: bool = False  # begins with fresh weights instead of the source task's
    batch_size: int = 32
    weight_decay: float = 0.01


def by_labels(rates: Sequence[float], steps: Sequence[int], **settings: Any) -> dict[int, TargetSettings]:
    """Settings for each number of labels per digit."""
    return {
        count: TargetSettings(learning_rate=rate, steps=length, **settings)
        for count, rate, length in zip(PER_CLASS, rates, steps, strict=True)
    }


VARIANTS = {  # rates and steps were chosen on the validation scenes of seed 0
    "fine-tuned": by_labels((1e-3, 1e-3, 3e-3, 3e-3), (40, 80, 120, 240)),
    "fine-tuned, rates by layer": by_labels((3e-3, 3e-3, 3e-3, 3e-3), (40, 80, 120, 240), decay=0.5),
    "scratch": by_labels((3e-3, 3e-3, 1e-2, 1e-2), (120, 200, 400, 800), scratch=True),
}


def build(settings: SourceSettings, num_classes: int, seed: int) -> ResNet:
    """A fresh network; its first weights depend on the seed alone."""
    with seeded(seed):
        return small_resnet(
            8,
            in_channels=1,
            num_classes=num_classes,
            stem_channels=settings.stem_channels,
            widths=settings.widths,
            stride_in_first_stage=True,
        )


def train_source(settings: SourceSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains on scenes of the source digits that are drawn afresh in each step."""
    scenes = DigitScenes(split="train", classes=SOURCE)
    return fit_classifier(
        settings,
        build(settings, len(SOURCE), settings.seed),
        lambda step: scenes.batch(settings.batch_size, seed_of_step(settings.seed, step)).classification(),
        warmup=min(50, settings.steps),
        checkpoint=checkpoint,
    )


@lru_cache
def target_scenes(split: str) -> LabelledImages:
    """The scenes of the target task, the same for all seeds; labels are 0 ... 3."""
    count = {"train": POOL, "validation": VALIDATION_SCENES, "test": TEST_SCENES}[split]
    pixels, labels = DigitScenes(split=split, classes=TARGET).batch(count, seed=0).classification()
    return LabelledImages(pixels, labels - TARGET[0])


def with_new_head(source: Trained, seed: int) -> ResNet:
    """The backbone of the source's network under a fresh head for the target's classes."""
    model = build(source.settings, len(TARGET), seed)
    backbone = {name: value for name, value in source.model.state_dict().items() if not name.startswith("head.")}
    model.load_state_dict(backbone, strict=False)
    return model


def rates_by_layer(model: ResNet, settings: TargetSettings) -> AdamW:
    """AdamW with the given rate in the head and, part by part below it, `decay` times that of the part above."""
    groups = []
    for depth, part in enumerate((model.head, *reversed(model.stages), model.stem)):
        parameters, rate = list(part.parameters()), settings.learning_rate * settings.decay**depth
        matrices, others = [p for p in parameters if p.ndim >= 2], [p for p in parameters if p.ndim < 2]
        groups.append({"params": matrices, "lr": rate, "weight_decay": settings.weight_decay})
        groups.append({"params": others, "lr": rate, "weight_decay": 0.0})
    return AdamW(groups, fused=True)


def train_target(
    settings: TargetSettings, source: Trained, per_class: int, draw: int, *, checkpoint: Path | None = None
) -> Trained:
    """Trains on a draw of labels, and keeps the weights of the length that is best on the validation scenes."""
    seed = source.settings.seed * DRAWS + draw
    model = build(source.settings, len(TARGET), seed) if settings.scratch else with_new_head(source, seed)
    pixels, labels = target_scenes("train")
    chosen = label_draw(labels, per_class, seed=draw)
    pixels, labels = pixels[chosen], labels[chosen]
    indices_at = shuffled_batches(len(labels), min(settings.batch_size, len(labels)), seed)
    trained = fit_classifier(
        settings,
        model,
        lambda step: (pixels[indices_at(step)], labels[indices_at(step)]),
        parts=LENGTHS,
        warmup=min(10, settings.steps),
        seed=seed,
        optimizer=rates_by_layer(model, settings),
        validate=lambda model: accuracy(model, *target_scenes("validation")),
        checkpoint=checkpoint,
    )
    trained.history.load_best(model)
    return trained


def frozen_scores(source: Trained) -> Iterator[dict[str, Any]]:
    """A new head, logistic regression, on the backbone as it is: for each number of labels and each draw."""
    known = {}
    for split in ("train", "validation", "test"):
        pixels, labels = target_scenes(split)
        known[split] = Labelled(features_of(source.model, pixels, encode=source.model.features), labels)
    for per_class in PER_CLASS:
        for draw in range(DRAWS):
            chosen = label_draw(known["train"].labels, per_class, seed=draw)
            few = Labelled(*(values[chosen] for values in known["train"]))
            probe = tuned_probe(few, known["validation"])
            found = {split: probe.accuracy(*known[split]) for split in ("validation", "test")}
            yield {"method": "frozen", "per_class": per_class, "draw": draw, **found, "steps": None}


def trained_scores(source: Trained, *, checkpoint: Path | None = None) -> Iterator[dict[str, Any]]:
    """The variants that train the whole network: for each number of labels and each draw."""
    for variant, by_count in VARIANTS.items():
        for per_class, settings in by_count.items():
            for draw in range(DRAWS):
                folder = checkpoint and checkpoint / f"{variant.replace(', ', '-')}-{per_class}-{draw}"
                trained = train_target(settings, source, per_class, draw, checkpoint=folder)
                best, test = trained.history, accuracy(trained.model, *target_scenes("test"))
                told = {"method": variant, "per_class": per_class, "draw": draw}
                yield told | {"validation": best.best_value, "test": test, "steps": best.best_step}


def train(settings: SourceSettings, *, checkpoint: Path | None = None) -> Trained:
    """The source task, and then every variant on the target task; their scores are kept beside the weights."""
    source = train_source(settings, checkpoint=checkpoint and checkpoint / "source")
    scores = [*frozen_scores(source), *trained_scores(source, checkpoint=checkpoint)]
    return replace(source, extra={"scores": scores})


def table(scores: Sequence[dict[str, Any]], split: str) -> Scores:
    """Mean accuracy, and its standard deviation over the draws, by number of labels and variant."""
    cells: dict[str, list[float]] = {}
    for score in sorted(scores, key=lambda score: score["per_class"]):
        name = f"{score['per_class'] * len(TARGET)} labels, {score['method']}"
        cells.setdefault(name, []).append(score[split])
    found = {}
    for name, values in cells.items():
        found |= {f"accuracy, {name}": mean(values), f"spread over draws, {name}": pstdev(values)}
    return found


def score(trained: Trained, split: str) -> Scores:
    """The accuracy on the source task, from 0 to 1, and the table of the target task."""
    count = {"validation": VALIDATION_SCENES, "test": TEST_SCENES}[split]
    scenes = DigitScenes(split=split, classes=SOURCE).batch(count, seed=0).classification()
    return {SOURCE_SCORE: accuracy(trained.model, *scenes)} | table(trained.extra["scores"], split)


SETTINGS = SourceSettings()

RECIPE = Recipe(
    title="ResNet-8 of six digits, and what four others gain from it",
    lesson="01",
    data="one handwritten digit on a photograph's texture, 32 x 32 grey pixels, by course_lib.data.scenes: digits 0-5 "
    f"drawn afresh in each step (source), digits 6-9 with 8 to 400 labels out of {POOL:,} scenes (target); validation "
    f"{VALIDATION_SCENES:,}, test {TEST_SCENES:,} scenes of either task, with digits and textures of their own",
    minutes=4,
    variants={"": SETTINGS},
    train=train,
    scores=each(score),
    chosen_by=SOURCE_SCORE,
    mode="max",
    settings=plain(SETTINGS)
    | {
        name: {len(TARGET) * count: asdict(settings) for count, settings in by_count.items()}
        for name, by_count in VARIANTS.items()
    }
    | {"draws": DRAWS},
)
