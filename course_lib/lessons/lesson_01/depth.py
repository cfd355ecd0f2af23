"""Lesson 01: a plain network gets worse with depth where a residual one does not, trained to the end.

He et al., "Deep residual learning for image recognition", CVPR 2016, arXiv 1512.03385, figures 1 and 6: the deeper
plain net has the higher *training* error, so it is not overfitting.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from course_lib.data.digits import CleanDigits, LabelledImages
from course_lib.models.resnet import ResNet, small_resnet
from course_lib.training.history import History
from course_lib.training.progress import Progress
from course_lib.training.registry import Recipe, Trained
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, fit_classifier, seed_of_step

KINDS = ("plain", "residual")
SPLIT_IMAGES = {"train": 2000, "validation": 2000, "test": 4000}  # by which a net is scored
SEED_OF_SCORES = 0
LAST = 0.1  # of the steps: their mean loss is the one reported, and those before them say whether it still fell


@dataclass(frozen=True, kw_only=True)
class DepthRecipe:
    """A net of a given depth, and how it is trained; all have equal numbers of parameters, plain or residual."""

    kind: str = "residual"  # of `KINDS`
    num_layers: int = 44
    width: int = 8  # channels of the first of three stages
    size: int = 12  # pixels
    steps: int = 1200
    batch_size: int = 64
    learning_rate: float = 1e-2
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class TrainedNet:
    """A finished training: its recipe, its model and what happened."""

    recipe: DepthRecipe
    model: ResNet
    history: History

    def last_losses(self) -> tuple[float, float]:
        """Mean training loss, in nats, of the last tenth of the steps and of the tenth before."""
        losses, tenth = self.history.losses, max(1, round(LAST * self.recipe.steps))
        return float(losses[-tenth:].mean()), float(losses[-2 * tenth : -tenth].mean())


def build(recipe: DepthRecipe) -> ResNet:
    """A fresh net; its first weights depend on the seed alone. Raises ValueError for an unknown `kind`."""
    if recipe.kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {recipe.kind!r}")
    widths = tuple(recipe.width * 2**stage for stage in range(3))
    with seeded(recipe.seed):
        return small_resnet(
            recipe.num_layers,
            in_channels=1,
            stem_channels=recipe.width,
            widths=widths,
            residual=recipe.kind == "residual",
        )


def digits(recipe: DepthRecipe, split: str, count: int, seed: int) -> LabelledImages:
    """`count` clean digits of the recipe's size."""
    return CleanDigits(split=split, size=recipe.size).batch(count, seed)


def train_net(recipe: DepthRecipe, *, checkpoint: Path | None = None, progress: Progress | None = None) -> TrainedNet:
    """Trains on digits that are drawn afresh in each step; with a folder `checkpoint` it can go on, see `fit`."""
    model = build(recipe)
    numbers = recipe.seed + 1  # so that training digits scored by `SEED_OF_SCORES` are none of them
    history = fit_classifier(
        model,
        lambda step: digits(recipe, "train", recipe.batch_size, seed_of_step(numbers, step)),
        steps=recipe.steps,
        parts=4,
        learning_rate=recipe.learning_rate,
        warmup=min(50, recipe.steps // 10),
        seed=recipe.seed,
        checkpoint=checkpoint,
        progress=progress,
    )
    return TrainedNet(recipe=recipe, model=model, history=history)


def score(net: TrainedNet, split: str) -> float:
    """Share of a split's digits that the net names right, from 0 to 1."""
    images = digits(net.recipe, split, SPLIT_IMAGES[split], SEED_OF_SCORES)
    return accuracy(net.model, images.pixels, images.labels)


# -------------------------------------------------------------------------------------------- course train

SETTINGS = DepthRecipe()
SHIPPED = "residual, 44 layers"
NETS = {  # learning rates were chosen on the validation split among 1e-3, 3e-3 and 1e-2
    "plain, 8 layers": replace(SETTINGS, kind="plain", num_layers=8),
    "plain, 20 layers": replace(SETTINGS, kind="plain", num_layers=20),
    "plain, 44 layers": replace(SETTINGS, kind="plain", num_layers=44, learning_rate=3e-3),
    "plain, 44 layers, twice the steps": replace(
        SETTINGS, kind="plain", num_layers=44, learning_rate=3e-3, steps=2 * SETTINGS.steps
    ),
    "residual, 8 layers": replace(SETTINGS, num_layers=8),
    "residual, 20 layers": replace(SETTINGS, num_layers=20),
    SHIPPED: SETTINGS,
}


def train(seed: int, checkpoint: Path, progress: Progress | None) -> Trained:
    """Plain and residual nets of all depths, on the same digits."""
    validation, test, shipped = {}, {}, None
    for name, recipe in NETS.items():
        net = train_net(replace(recipe, seed=seed), checkpoint=checkpoint / name.replace(", ", "-"), progress=progress)
        loss, loss_before = net.last_losses()
        validation[f"{name}, accuracy"] = score(net, "validation")
        test |= {
            f"{name}, accuracy": score(net, "test"),
            f"{name}, accuracy on training digits": score(net, "train"),
            f"{name}, training loss": loss,
            f"{name}, training loss, a tenth of the steps before": loss_before,
        }
        shipped = net if name == SHIPPED else shipped
    return Trained(
        model=shipped.model,
        history=shipped.history,
        validation=validation,
        test=test,
        extra={"recipe": asdict(shipped.recipe)},
    )


RECIPE = Recipe(
    title="Depth with and without shortcuts",
    lesson="01",
    data=(
        f"clean digits, {SETTINGS.size} x {SETTINGS.size} grey pixels, drawn afresh in each step by "
        f"course_lib.data.digits; validation {SPLIT_IMAGES['validation']:,}, test {SPLIT_IMAGES['test']:,} images, of "
        "handwritten digits of their own"
    ),
    licence="MIT",
    minutes=3,
    settings={name: getattr(SETTINGS, name) for name in ("width", "size", "steps", "batch_size")}
    | {f"learning rate, {name}": recipe.learning_rate for name, recipe in NETS.items()},
    train=train,
    chosen_by=f"{SHIPPED}, accuracy",
    best=max,
    notes=(
        "Training losses are means over the last tenth of the steps, while the learning rate goes to zero, and over "
        "the tenth before. Learning rates, by validation accuracy of seed 0: the plain net of 44 layers reached 0.907 "
        "at 1e-3 and 0.8245 at 1e-2 after 1,200 steps, 0.933 at 3e-3 after 1,500; the others, after 600 steps, were "
        "best at 1e-2 (plain, 8 layers, 0.961 at 1e-3 and 0.9825 at 1e-2; 20 layers 0.9555, 0.972 and 0.9855 at 1e-3, "
        "3e-3 and 1e-2; residual, 8 layers 0.9685, 0.977 and 0.9855; 20 layers 0.977, 0.9815 and 0.9845; 44 layers "
        "0.9755 at 1e-3 and 0.985 at 1e-2). At 20 layers the plain net still learns its task, with two to four times "
        "the residual net's training loss; at 44 layers its training loss is more than thirty times as high, even "
        "after twice the steps, and its accuracy lower in every seed."
    ),
)
