"""Lesson 17: digits by restricted Boltzmann machines, with and without labels, and by other learners of features.

Hinton, Osindero & Teh, "A fast learning algorithm for deep belief nets", Neural Computation 18, 2006. Larochelle &
Bengio, "Classification using discriminative restricted Boltzmann machines", ICML 2008 (labels as visible units).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, product
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.data.digits import handwritten_digits
from course_lib.lessons.lesson_17.recipes.features import fit_kmeans, train_autoencoder
from course_lib.models.boltzmann import DBN, RBM, DBNConfig, RBMConfig
from course_lib.training.batches import shuffled_batches
from course_lib.training.probes import Labelled, LinearProbe, few_label_accuracies, label_draw, tuned_probe
from course_lib.training.recipe import Recipe, Scores, Trained, fit_by, mean_and_spread, rounded
from course_lib.training.seeding import seeded

PIXELS, CLASSES = 64, 10
COUNTS, DRAWS = (20, 100), 3  # of the labels
EPOCHS, RATES = (40, 160), (0.005, 0.02)  # of fine-tuning by Adam, to choose from on validation
DREAMS, DREAM_STEPS = 1000, 100  # dreams that are classified, and the Gibbs steps of each


@dataclass(frozen=True, kw_only=True)
class BoltzmannSettings:
    """An RBM, or a stack of them that learns layer by layer."""

    dims: tuple[int, ...]  # units from the pixels up
    labels: bool = False  # whether a unit for each class is among the visible units of the top RBM
    chains: int = 0  # persistent ones; 0: contrastive divergence from the data
    divergence: int = 1  # Gibbs steps, k of CD-k
    steps: int = 4000  # of each layer
    batch_size: int = 50
    learning_rate: float = 0.05
    momentum: float = 0.9
    seed: int = 0


class LabelledDBN(nn.Module):
    """Two RBMs, the upper of which has the labels among its visible units: Hinton et al. 2006, figure 1, in small.

    Weights stay tied, as in `DBN`: no wake-sleep follows.
    """

    def __init__(self, lower: RBM, top: RBM):
        super().__init__()
        self.lower, self.top = lower, top

    @torch.no_grad()
    def dream(self, v: Float[Tensor, "B V"], steps: int, *, clamped: Bool[Tensor, " V"]) -> Float[Tensor, "B V"]:
        """Gibbs steps of the top RBM, then once down to the pixels' probabilities, with the labels behind them."""
        pixels, labels = v[:, :PIXELS], v[:, PIXELS:]
        features = drawn(self.lower.features(pixels))
        keep = torch.cat([clamped.new_zeros(features.shape[1]), clamped[PIXELS:]])
        above = self.top.dream(torch.cat([features, labels], dim=1), steps, clamped=keep)
        return torch.cat([self.lower.visible(drawn(above[:, : features.shape[1]])), labels], dim=1)


@lru_cache(maxsize=3)
def digits(split: str) -> Labelled:
    """The real digits of a split as rows of 64 numbers from 0 to 1, the probability that a pixel is ink."""
    pixels, labels = handwritten_digits(split)
    return Labelled(pixels.flatten(1), labels)


def with_labels(pixels: Float[Tensor, "B P"], labels: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
    """The pixels, or features, and behind them a unit for each class, of which the label's is 1."""
    return torch.cat([pixels, F.one_hot(labels, CLASSES).to(pixels.dtype)], dim=1)


def drawn(probs: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """Units that are 1 with these probabilities, else 0."""
    return (torch.rand_like(probs) < probs).to(probs.dtype)


def build(settings: BoltzmannSettings) -> list[RBM]:
    """Fresh layers; their first weights depend on the seed alone."""
    with seeded(settings.seed):
        return [
            RBM(
                RBMConfig(
                    num_visible=below + CLASSES * (settings.labels and above == settings.dims[-1]),
                    num_hidden=above,
                    num_chains=settings.chains,
                )
            )
            for below, above in pairwise(settings.dims)
        ]


def train(settings: BoltzmannSettings, *, checkpoint: Path | None = None) -> Trained:
    """One machine, rounded to 16 bits; a stack learns its layers one after the other, each for as many steps."""
    layers, data = build(settings), digits("train")
    indices_at = shuffled_batches(len(data.labels), settings.batch_size, settings.seed)
    for number, rbm in enumerate(layers):

        def loss(rbm: RBM, batch: Labelled, number: int = number) -> Tensor:
            units = drawn(batch.features)
            for below in layers[:number]:
                units = drawn(below.features(units).detach())
            if settings.labels and number == len(layers) - 1:
                units = with_labels(units, batch.labels)
            return rbm.loss(units, steps=settings.divergence)

        trained = fit_by(
            settings,
            rbm,
            lambda step: Labelled(*(part[indices_at(step)] for part in data)),
            loss,
            optimizer=torch.optim.SGD(rbm.parameters(), lr=settings.learning_rate, momentum=settings.momentum),
            clip_norm=None,
            checkpoint=None if checkpoint is None else checkpoint / f"layer-{number}",
        )
        rounded(rbm)
    return Trained(settings=settings, model=joined(settings, layers).eval(), history=trained.history)


def joined(settings: BoltzmannSettings, layers: list[RBM]) -> nn.Module:
    """The layers as one model."""
    if len(layers) == 1:
        return layers[0]
    if settings.labels:
        return LabelledDBN(*layers)
    model = DBN(DBNConfig(dims=settings.dims))
    model.layers = nn.ModuleList(layers)
    return model


# ----------------------------------------------------------------------------------------------- scores


@torch.no_grad()
def pseudo_likelihood(rbm: RBM, split: str) -> float:
    """Nats for each of the 64 pixels, drawn as ink or paper; each pixel in turn."""
    pixels = (digits(split).features > 0.5).float()
    every = [rbm.pseudo_log_likelihood(pixels, torch.full((len(pixels),), i)) for i in range(pixels.shape[1])]
    return float(torch.stack(every).mean()) / pixels.shape[1]


@torch.no_grad()
def label_probs(rbm: RBM, pixels: Float[Tensor, "B 64"]) -> Float[Tensor, "B 10"]:
    """p(label | pixels), exactly: a softmax of minus the free energy with each label in turn. Z is not needed."""
    classes = [torch.full((len(pixels),), label) for label in range(CLASSES)]
    return torch.stack([-rbm(with_labels(pixels, label)) for label in classes], dim=1).softmax(dim=1)


@torch.no_grad()
def dreams(model: nn.Module, labels: Int[Tensor, " B"], *, steps: int = DREAM_STEPS, seed: int = 0) -> Tensor:
    """The pixels' probabilities (B, 64) after Gibbs steps from random pixels with the labels clamped."""
    with seeded(seed):
        start = with_labels(torch.rand(len(labels), PIXELS).round(), labels)
        return model.dream(start, steps, clamped=torch.arange(start.shape[1]) >= PIXELS)[:, :PIXELS]


@lru_cache(maxsize=1)
def recogniser() -> LinearProbe:
    """A linear classifier of pixels that has learned from all training digits and from no dream."""
    return tuned_probe(digits("train"), digits("validation"))


def recognised(model: nn.Module, seed: int = 0) -> float:
    """The fraction of dreams that the recogniser classifies as the label that was clamped."""
    labels = torch.arange(DREAMS) % CLASSES
    return recogniser().accuracy(dreams(model, labels, seed=seed), labels)


def fine_tuned(dbn: DBN, few: Labelled, epochs: int, rate: float, seed: int, *, fresh: bool = False) -> DBN:
    """The stack with a head, all of it trained by backpropagation; `fresh`: the same network from first weights."""
    with seeded(seed):
        network = DBN(DBNConfig(dims=dbn.config.dims, num_classes=CLASSES))
        if fresh:
            for rbm in network.layers:  # an RBM's own first weights are too small for a stack of sigmoids
                nn.init.xavier_uniform_(rbm.weight, gain=4.0)
        else:
            network.layers.load_state_dict(dbn.layers.state_dict())
        optimizer = torch.optim.Adam(network.parameters(), lr=rate)
        for _ in range(epochs):
            optimizer.zero_grad()
            F.cross_entropy(network(few.features), few.labels).backward()
            optimizer.step()
    return network


@torch.no_grad()
def accuracy(network: DBN, images: Labelled) -> float:
    """The fraction of images that a network classifies correctly."""
    return (network(images.features).argmax(dim=1) == images.labels).float().mean().item()


def tuned_accuracies(trained: Trained, split: str, count: int, *, fresh: bool) -> list[float]:
    """For each draw of labels, the network whose epochs and learning rate are best on validation."""
    found, pool = [], digits("train")
    for draw in range(DRAWS):
        chosen = label_draw(pool.labels, count // CLASSES, seed=draw)
        few = Labelled(pool.features[chosen], pool.labels[chosen])
        seed = DRAWS * trained.settings.seed + draw
        networks = [fine_tuned(trained.model, few, *each, seed, fresh=fresh) for each in product(EPOCHS, RATES)]
        found.append(accuracy(max(networks, key=lambda one: accuracy(one, digits("validation"))), digits(split)))
    return found


@lru_cache(maxsize=1)
def other_learners(num_hidden: int, seed: int) -> dict[str, nn.Module]:
    """An autoencoder and k-means with as many features."""
    pixels = digits("train").features
    return {
        "autoencoder": train_autoencoder(pixels, num_hidden, seed=seed),
        "k-means": fit_kmeans(pixels, num_hidden, seed=seed),
    }


def encoders(trained: Mapping[str, Trained]) -> dict[str, Callable[[Tensor], Tensor]]:
    """What the probes read; random features are those of a network of the stack's sizes with first weights."""
    stack = trained["DBN"]
    random = fine_tuned(stack.model, digits("train"), 0, 1.0, stack.settings.seed, fresh=True)
    models = {name: one.model for name, one in trained.items() if not one.settings.labels}
    models |= {"random": random} | other_learners(stack.settings.dims[-1], stack.settings.seed)
    return {name: model.features for name, model in models.items()} | {"pixels": lambda pixels: pixels}


def scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """Dreams of labelled machines; pseudo-likelihoods of RBMs; accuracy with few labels, by probes and networks."""
    found = {"accuracy by free energy, RBM with labels": free_energy_accuracy(trained["RBM with labels"].model, split)}
    for name, one in trained.items():
        if one.settings.labels:
            found[f"dreams recognised, {name}"] = recognised(one.model, one.settings.seed)
        elif isinstance(one.model, RBM):
            found[f"nats a pixel, {name}"] = pseudo_likelihood(one.model, split)
    found["accuracy of the recogniser"] = recogniser().accuracy(*digits(split))
    for count in COUNTS:
        for name, encode in encoders(trained).items():
            with torch.no_grad():
                sets = [Labelled(encode(digits(s).features), digits(s).labels) for s in ("train", "validation", split)]
            accuracies = few_label_accuracies(*sets, per_class=count // CLASSES, draws=DRAWS)
            found |= mean_and_spread(f"probe, {count} labels, {name}", accuracies)
        for name, fresh in (("DBN, fine-tuned", False), ("the same network from scratch", True)):
            accuracies = tuned_accuracies(trained["DBN"], split, count, fresh=fresh)
            found |= mean_and_spread(f"{count} labels, {name}", accuracies)
    return found


def free_energy_accuracy(rbm: RBM, split: str) -> float:
    """How many digits of a split an RBM with labels classifies correctly."""
    pixels, labels = digits(split)
    return (label_probs(rbm, pixels).argmax(dim=1) == labels).float().mean().item()


CD = BoltzmannSettings(dims=(PIXELS, 128))
VARIANTS = {
    "RBM, CD-1": CD,
    "RBM, persistent": replace(CD, chains=50),
    "DBN": replace(CD, dims=(PIXELS, 128, 128)),
    "RBM with labels": replace(CD, labels=True),
    "DBN with labels": replace(CD, dims=(PIXELS, 128, 256), labels=True),
}

RECIPE = Recipe(
    title="Restricted Boltzmann machines of digits and their labels, and stacks of them",
    lesson="17",
    data="1,100 real digits of 8 x 8 pixels (data/images), each pixel drawn as ink or paper by its grey value, with "
    "labels only where a machine has units for them; labels for the probes and for fine-tuning are drawn from these; "
    "validation 300, test 397 other digits",
    minutes=1,
    variants=VARIANTS,
    train=train,
    scores=scores,
    ships="RBM with labels",
    chosen_by="accuracy by free energy, RBM with labels",
    mode="max",
)
RECIPES = {"boltzmann": RECIPE}
