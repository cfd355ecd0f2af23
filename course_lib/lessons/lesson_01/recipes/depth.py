"""A plain network gets worse with depth where a residual one does not, trained to the end.

He et al., "Deep residual learning for image recognition", CVPR 2016, arXiv 1512.03385, figures 1 and 6: the deeper
plain net has the higher *training* error, so it is not overfitting.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from course_lib.data.digits import CleanDigits, LabelledImages
from course_lib.models.resnet import ResNet, small_resnet
from course_lib.training.recipe import Recipe, Scores, Trained, each
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, fit_classifier, seed_of_step

KINDS = ("plain", "residual")
SPLIT_IMAGES = {"train": 2000, "validation": 2000, "test": 4000}  # by which a net is scored
SEED_OF_SCORES = 0
LAST = 0.1  # of the steps: their mean loss is the one reported, and those before them say whether it still fell


@dataclass(frozen=True, kw_only=True)
class DepthSettings:
    """A net of a given depth, and how it is trained; all have equal numbers of parameters, plain or residual."""

    kind: str = "residual"  # of `KINDS`
    num_layers: int = 44
    width: int = 8  # channels of the first of three stages
    size: int = 12  # pixels
    steps: int = 1200
    batch_size: int = 64
    learning_rate: float = 1e-2
    seed: int = 0


def build(settings: DepthSettings) -> ResNet:
    """A fresh net; its first weights depend on the seed alone. Raises ValueError for an unknown `kind`."""
    if settings.kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {settings.kind!r}")
    widths = tuple(settings.width * 2**stage for stage in range(3))
    residual = settings.kind == "residual"
    with seeded(settings.seed):
        return small_resnet(
            settings.num_layers, in_channels=1, stem_channels=settings.width, widths=widths, residual=residual
        )


def digits(settings: DepthSettings, split: str, count: int, seed: int) -> LabelledImages:
    """`count` clean digits of a given size."""
    return CleanDigits(split=split, size=settings.size).batch(count, seed)


def train(settings: DepthSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains on digits that are drawn afresh in each step."""
    numbers = settings.seed + 1  # so that training digits scored by `SEED_OF_SCORES` are none of them
    return fit_classifier(
        settings,
        build(settings),
        lambda step: digits(settings, "train", settings.batch_size, seed_of_step(numbers, step)),
        parts=4,
        warmup=min(50, settings.steps // 10),
        checkpoint=checkpoint,
    )


def right(trained: Trained, split: str) -> float:
    """Share of a split's digits that the net names right, from 0 to 1."""
    return accuracy(trained.model, *digits(trained.settings, split, SPLIT_IMAGES[split], SEED_OF_SCORES))


def last_losses(trained: Trained) -> tuple[float, float]:
    """Mean training loss, in nats, of the last tenth of the steps and of the tenth before."""
    losses, tenth = trained.history.losses, max(1, round(LAST * trained.settings.steps))
    return float(losses[-tenth:].mean()), float(losses[-2 * tenth : -tenth].mean())


def score(trained: Trained, split: str) -> Scores:
    """How often a net is right, and on the test how well it has learned what it was given."""
    scores = {"accuracy": right(trained, split)}
    if split == "test":
        scores["accuracy on training digits"] = right(trained, "train")
        scores["training loss"], scores["training loss, a tenth of the steps before"] = last_losses(trained)
    return scores


SETTINGS = DepthSettings()
SHIPPED = "residual, 44 layers"
PLAIN_44 = replace(SETTINGS, kind="plain", learning_rate=3e-3)
NETS = {  # learning rates were chosen on the validation split among 1e-3, 3e-3 and 1e-2
    "plain, 8 layers": replace(SETTINGS, kind="plain", num_layers=8),
    "plain, 20 layers": replace(SETTINGS, kind="plain", num_layers=20),
    "plain, 44 layers": PLAIN_44,
    "plain, 44 layers, twice the steps": replace(PLAIN_44, steps=2 * SETTINGS.steps),
    "residual, 8 layers": replace(SETTINGS, num_layers=8),
    "residual, 20 layers": replace(SETTINGS, num_layers=20),
    SHIPPED: SETTINGS,
}

RECIPE = Recipe(
    title="Depth with and without shortcuts",
    lesson="01",
    data=(
        f"clean digits, {SETTINGS.size} x {SETTINGS.size} grey pixels, drawn afresh in each step by "
        f"course_lib.data.digits; validation {SPLIT_IMAGES['validation']:,}, test {SPLIT_IMAGES['test']:,} images, of "
        "handwritten digits of their own"
    ),
    minutes=3,
    variants=NETS,
    ships=SHIPPED,
    train=train,
    scores=each(score, "{name}, {score}"),
    chosen_by=f"{SHIPPED}, accuracy",
    mode="max",
    settings={name: getattr(SETTINGS, name) for name in ("width", "size", "steps", "batch_size")}
    | {f"learning rate, {name}": settings.learning_rate for name, settings in NETS.items()},
    weights=False,
)
