"""Lesson 15: digits without labels by a restricted Boltzmann machine, then a stack of them, then few labels.

Hinton, Osindero & Teh, "A fast learning algorithm for deep belief nets", Neural Computation 18, 2006.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.data.digits import handwritten_digits
from course_lib.models.boltzmann import DBN, RBM, DBNConfig, RBMConfig
from course_lib.training.batches import shuffled_batches
from course_lib.training.probes import Labelled, few_label_accuracies, label_draw
from course_lib.training.recipe import Recipe, Scores, Trained, fit_by, mean_and_spread
from course_lib.training.seeding import seeded

CLASSES, COUNTS, DRAWS = 10, (20, 100), 3  # of the labels
EPOCHS, RATES = (40, 160), (0.005, 0.02)  # of fine-tuning by Adam, to choose from on validation


@dataclass(frozen=True, kw_only=True)
class BoltzmannSettings:
    """An RBM, or a stack of them that learns layer by layer."""

    dims: tuple[int, ...]  # units from the pixels up
    chains: int = 0  # persistent ones; 0: contrastive divergence from the data
    divergence: int = 1  # Gibbs steps, k of CD-k
    steps: int = 1500  # of each layer
    batch_size: int = 50
    learning_rate: float = 0.1
    momentum: float = 0.5
    seed: int = 0


@lru_cache(maxsize=3)
def digits(split: str) -> Labelled:
    """The real digits of a split as rows of 64 numbers from 0 to 1: how likely a pixel is to be ink."""
    pixels, labels = handwritten_digits(split)
    return Labelled(pixels.flatten(1), labels)


def build(settings: BoltzmannSettings) -> RBM | DBN:
    """A fresh machine; its first weights depend on the seed alone."""
    with seeded(settings.seed):
        if len(settings.dims) > 2:
            return DBN(DBNConfig(dims=settings.dims))
        visible, hidden = settings.dims
        return RBM(RBMConfig(num_visible=visible, num_hidden=hidden, num_chains=settings.chains))


def train(settings: BoltzmannSettings, *, checkpoint: Path | None = None) -> Trained:
    """One machine; a stack learns its layers one after the other, each for as many steps."""
    model, data = build(settings), digits("train").features
    layers = model.layers if isinstance(model, DBN) else [model]
    indices_at = shuffled_batches(len(data), settings.batch_size, settings.seed)
    for number, rbm in enumerate(layers):

        def loss(rbm: RBM, v: Tensor, number: int = number) -> Tensor:
            seen = model.below(v, number).detach() if isinstance(model, DBN) else v
            drawn = (torch.rand_like(seen) < seen).to(seen.dtype)
            return rbm.loss(drawn, steps=settings.divergence)

        trained = fit_by(
            settings,
            rbm,
            lambda step: data[indices_at(step)],
            loss,
            optimizer=torch.optim.SGD(rbm.parameters(), lr=settings.learning_rate, momentum=settings.momentum),
            clip_norm=None,
            checkpoint=None if checkpoint is None else checkpoint / f"layer-{number}",
        )
    return Trained(settings=settings, model=model.eval(), history=trained.history)


# ----------------------------------------------------------------------------------------------- scores


@torch.no_grad()
def pseudo_likelihood(rbm: RBM, split: str) -> float:
    """Nats for each of the 64 pixels, drawn as ink or paper; each pixel in turn."""
    pixels = (digits(split).features > 0.5).float()
    every = [rbm.pseudo_log_likelihood(pixels, torch.full((len(pixels),), i)) for i in range(pixels.shape[1])]
    return float(torch.stack(every).mean()) / pixels.shape[1]


def fine_tuned(dbn: DBN, few: Labelled, epochs: int, rate: float, seed: int, *, fresh: bool = False) -> DBN:
    """The stack with a head, all of it trained by backpropagation; `fresh`: the same net from first weights."""
    with seeded(seed):
        net = DBN(DBNConfig(dims=dbn.config.dims, num_classes=CLASSES))
        if fresh:
            for rbm in net.layers:  # an RBM's own first weights are too small for a stack of sigmoids
                nn.init.xavier_uniform_(rbm.weight, gain=4.0)
        else:
            net.layers.load_state_dict(dbn.layers.state_dict())
        optimizer = torch.optim.Adam(net.parameters(), lr=rate)
        for _ in range(epochs):
            optimizer.zero_grad()
            F.cross_entropy(net(few.features), few.labels).backward()
            optimizer.step()
    return net


def right(net: DBN, images: Labelled) -> float:
    """Share of the labels that a net gets right."""
    with torch.no_grad():
        return (net(images.features).argmax(dim=1) == images.labels).float().mean().item()


def tuned_accuracies(trained: Trained, split: str, count: int, *, fresh: bool) -> list[float]:
    """For each draw of labels, the net whose epochs and rate are best on validation."""
    found, pool = [], digits("train")
    for draw in range(DRAWS):
        chosen = label_draw(pool.labels, count // CLASSES, seed=draw)
        few = Labelled(pool.features[chosen], pool.labels[chosen])
        seed = DRAWS * trained.settings.seed + draw
        nets = [fine_tuned(trained.model, few, *each, seed, fresh=fresh) for each in product(EPOCHS, RATES)]
        found.append(right(max(nets, key=lambda net: right(net, digits("validation"))), digits(split)))
    return found


def encoders(trained: Mapping[str, Trained]) -> dict[str, Callable[[Tensor], Tensor]]:
    """What the probes look at; random features are those of a net of the stack's sizes with first weights."""
    stack = trained["DBN"]
    random = fine_tuned(stack.model, digits("train"), 0, 1.0, stack.settings.seed, fresh=True)
    features = {name: one.model.features for name, one in trained.items()}
    return features | {"random": random.features, "pixels": lambda pixels: pixels}


def scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """Pseudo-likelihoods of RBMs; accuracy with few labels, by a linear probe and by nets."""
    found = {
        f"nats a pixel, {name}": pseudo_likelihood(one.model, split)
        for name, one in trained.items()
        if isinstance(one.model, RBM)
    }
    for count in COUNTS:
        for name, encode in encoders(trained).items():
            with torch.no_grad():
                sets = [Labelled(encode(digits(s).features), digits(s).labels) for s in ("train", "validation", split)]
            accuracies = few_label_accuracies(*sets, per_class=count // CLASSES, draws=DRAWS)
            found |= mean_and_spread(f"probe, {count} labels, {name}", accuracies)
        for name, fresh in (("DBN, fine-tuned", False), ("the same net from scratch", True)):
            accuracies = tuned_accuracies(trained["DBN"], split, count, fresh=fresh)
            found |= mean_and_spread(f"{count} labels, {name}", accuracies)
    return found


VARIANTS = {
    "RBM, CD-1": BoltzmannSettings(dims=(64, 128)),
    "RBM, persistent": BoltzmannSettings(dims=(64, 128), chains=50, learning_rate=0.05),
    "DBN": BoltzmannSettings(dims=(64, 128, 128)),
}

RECIPE = Recipe(
    title="Restricted Boltzmann machines of digits, and a stack of them",
    lesson="15",
    data="1,100 real digits of 8 x 8 pixels (data/images), without labels, each pixel drawn as ink or paper by its "
    "grey value; labels for the probes and for fine-tuning are drawn from these; validation 300, test 397 other digits",
    minutes=1,
    variants=VARIANTS,
    train=train,
    scores=scores,
    ships="DBN",
    chosen_by="probe, 100 labels, DBN",
    mode="max",
)
RECIPES = {"boltzmann": RECIPE}
