"""What pre-training on icon names is worth: few labels of new things, and transfer by depth; `measured.json` has it.

Loop, groups and heads are the solutions of the page's exercises. The page only reads the file. To measure again takes
an hour on one core: `python -m course_lib.lessons.lesson_01.measuring few_labels depths`.

Few labels: the 100 new things are halved. Learning rates and penalties are chosen on one half, scores are of the other.
In each draw one family of designers is left out of the labels, and tested. Depths: Yosinski et al., "How transferable
are features in deep neural networks?", NIPS 2014, arXiv 1411.1792, on two halves of the known things.
"""

import copy
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.classroom.opening import copy_weights
from course_lib.data.checkpoints import load_trained
from course_lib.data.icons import DESIGNERS, Icons, icons
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_01.models import NAMES, sizes
from course_lib.lessons.lesson_01.recipes import icon_names
from course_lib.lessons.lesson_01.recipes.icon_names import batch_of, with_classes
from course_lib.lessons.lesson_01.tasks import TASKS
from course_lib.models.resnet import ResNet
from course_lib.training.probes import logistic_regression
from course_lib.training.vision import accuracy, fit_classifier, seed_of_step

FILE = Path(__file__).with_name("measured.json")
FAMILIES = ("noto", "twemoji", "fluent")  # left out of the labels in turn: they have drawn all new things
PER_NAME = (1, 2, 4)  # labelled drawings of each thing, at most
DRAWS, TUNED_ON = (0, 1, 2, 3, 4, 5), (0, 1)
STEPS, BATCH = 150, 32
WHOLE = (1e-3, 3e-3, 1e-2)
PENALTIES = (1.0, 10.0, 100.0)
DECAY = 0.5  # from part to part, with rates by layer


class FewLabels(NamedTuple):
    """A few labelled drawings of new things, and drawings of them by a family that drew none of these."""

    given: Icons
    labels: Int[Tensor, " B"]
    asked: Icons
    asked_labels: Int[Tensor, " N"]


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to learn from few labels; its rates are those it is tuned over."""

    rates: Sequence[float] = WHOLE
    steps: int = STEPS
    scratch: bool = False
    head_first: bool = False
    head_only: bool = False  # fitted to convergence on cached features
    decay: float = 1.0
    augmented: bool = True


WAYS = {
    "scratch": Way(scratch=True, steps=3 * STEPS),
    "frozen, random weights": Way(rates=PENALTIES, scratch=True, head_only=True),
    "frozen": Way(rates=PENALTIES, head_only=True),
    "fine-tuned": Way(),
    "fine-tuned, not augmented": Way(augmented=False),
    "head first, then all": Way(head_first=True),
    "learning rates by layer": Way(decay=DECAY),
}


def halves() -> tuple[Int[Tensor, " K"], Int[Tensor, " K"]]:
    """The new things to tune on, and those to score."""
    names = icons("new names").names.unique()
    return names[::2].contiguous(), names[1::2].contiguous()


def few_labels_of(names: Int[Tensor, " K"], per_name: int, draw: int) -> FewLabels:
    """A draw of the labelled drawings; the family that is tested depends on the draw."""
    drawings, labels = with_classes(icons("new names"), names)
    family = FAMILIES[draw % len(FAMILIES)]
    out = torch.tensor([designer.family == family for designer in DESIGNERS.values()])[drawings.designers]
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(draw))
    order = order[~out[order]]
    taken: list[int] = []
    for label in range(len(names)):
        taken += order[labels[order] == label][:per_name].tolist()
    rows = torch.tensor(taken)
    return FewLabels(drawings.take(rows), labels[rows], drawings.take(out), labels[out])


def learners_own(model: ResNet) -> nn.Module:
    """A network of the library as the page's class."""
    mine = TASKS["resnet"].module(**sizes(model))
    copy_weights(model, mine, NAMES)
    return mine.eval()


@torch.no_grad()
def features(model: nn.Module, drawings: Icons) -> Float[Tensor, "B D"]:
    """The features of drawings on white, in evaluation mode."""
    model.eval()
    return torch.cat([model.features(standardise(part)) for part in drawings.on(1.0).split(250)])


def fitted_head(model: nn.Module, task: FewLabels, penalty: float) -> nn.Linear:
    """A head fitted to convergence on the cached features of the labelled drawings."""
    probe = logistic_regression(features(model, task.given), task.labels, l2=penalty, scale="all")
    head = nn.Linear(probe.weight.shape[1], probe.weight.shape[0])
    with torch.no_grad():
        head.weight.copy_(probe.weight), head.bias.copy_(probe.bias)
    return head


def learned(source: nn.Module, way: Way, task: FewLabels, rate: float, draw: int, penalty: float) -> nn.Module:
    """The network after training in one way on one draw of labels."""
    torch.manual_seed(draw)
    count = int(task.labels.max()) + 1
    if way.scratch:
        model = TASKS["resnet"].module(count, *_sizes_of(source))
    else:
        model = TASKS["new_head"].reference(source, count, False)
    if way.head_first or way.head_only:
        model.head = fitted_head(model, task, rate if way.head_only else penalty)
    if way.head_only:
        return model.eval()
    size = min(BATCH, len(task.labels))
    batches = [
        batch_of(task.given, task.labels, size, augmented=way.augmented, seed=seed_of_step(draw, step))
        for step in range(way.steps)
    ]
    TASKS["fine_tune"].reference(model, [(standardise(x), y) for x, y in batches], rate, way.decay, False)
    return model


def _sizes_of(model: nn.Module) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(stage[-1].conv2.out_channels for stage in model.stages), tuple(map(len, model.stages))


def percent(model: nn.Module, drawings: Icons, labels: Int[Tensor, " B"]) -> float:
    """Accuracy on drawings on white."""
    return 100 * accuracy(model, drawings.on(1.0), labels)


def few_labels(source: nn.Module, *, ways: Mapping[str, Way] = WAYS, draws=DRAWS, tuned_on=TUNED_ON) -> dict[str, Any]:
    """The accuracy of each way and number of labels by draw, the tuned rates, and how far features have moved."""
    tuning, scoring = halves()
    found: dict[str, Any] = {"accuracy (%)": {}, "chosen": {}, "features moved": {}}
    for per_name in PER_NAME:
        penalty = 1.0
        for name, way in sorted(ways.items(), key=lambda item: item[0] != "frozen"):  # it gives the penalty
            tried = {}
            for rate in way.rates:
                tasks = [(few_labels_of(tuning, per_name, draw), draw) for draw in tuned_on]
                tried[rate] = mean(
                    percent(learned(source, way, task, rate, draw, penalty), task.asked, task.asked_labels)
                    for task, draw in tasks
                )
            best = max(tried, key=tried.__getitem__)
            penalty = best if name == "frozen" else penalty
            scores, moved = [], []
            for draw in draws:
                task = few_labels_of(scoring, per_name, draw)
                model = learned(source, way, task, best, draw, penalty)
                scores.append(percent(model, task.asked, task.asked_labels))
                before, after = features(source, task.asked), features(model, task.asked)
                moved.append(float((after - before).norm() / before.norm()))
            key = f"{per_name} a thing, {name}"
            found["accuracy (%)"][key], found["chosen"][key] = scores, {"rate": best, "tried": tried}
            found["features moved"][key] = moved
            print(key, best, [round(score, 1) for score in scores], flush=True)
    return found


# transfer by depth ------------------------------------------------------------------------------------------

DEPTH_STEPS, SEEDS = 1000, (0, 1, 2)
PARTS = 4  # stem and three stages
DEPTHS = (  # what is copied, from which half, frozen or trained, too, and how many parts
    ("from B, frozen", "B", True, range(1, PARTS + 1)),
    ("from A, frozen", "A", True, range(1, PARTS + 1)),
    ("from A, trained, too", "A", False, [PARTS]),
)


def known_halves(seed: int) -> tuple[Int[Tensor, " K"], Int[Tensor, " K"]]:
    """The known things in two halves, A and B."""
    names = icon_names.known_names()
    order = torch.randperm(len(names), generator=torch.Generator().manual_seed(seed))
    middle = len(names) // 2
    return names[order[:middle]].sort().values, names[order[middle:]].sort().values


def trained_on(names: Int[Tensor, " K"], model: ResNet, seed: int, steps: int) -> ResNet:
    """The network after training on the drawings of these things."""
    drawings, labels = with_classes(icons("train"), names)
    settings = replace(icon_names.SETTINGS, steps=steps, seed=seed)
    fit_classifier(
        settings,
        model,
        lambda step: batch_of(drawings, labels, settings.batch_size, augmented=True, seed=seed_of_step(seed, step)),
        warmup=min(100, max(1, steps // 10)),
    )
    return model


def cut(base: ResNet, count: int, num_classes: int, seed: int, *, frozen: bool) -> ResNet:
    """A fresh network whose first `count` parts, stem and stages, come from another one."""
    made = icon_names.build(replace(icon_names.SETTINGS, seed=seed + 100), num_classes)
    for mine, theirs in zip([made.stem, *made.stages][:count], [base.stem, *base.stages], strict=False):
        mine.load_state_dict(copy.deepcopy(theirs.state_dict()))
    return made.freeze(count) if frozen else made


def depths(*, steps: int = DEPTH_STEPS, seeds: Sequence[int] = SEEDS) -> dict[str, Any]:
    """Test accuracy on B by number of parts that are copied, from A or from B itself, and frozen or trained, too."""
    found: dict[str, list[list[float]]] = {}
    for seed in seeds:
        halves_of = dict(zip("AB", known_halves(seed), strict=True))
        bases = {}
        for key, names in halves_of.items():
            fresh = icon_names.build(replace(icon_names.SETTINGS, seed=seed), len(names))
            bases[key] = trained_on(names, fresh, seed, steps)
        asked = [with_classes(icons(split), halves_of["B"]) for split in ("test", "new designer")]
        found.setdefault("B, from scratch", []).append([of_all(bases["B"], asked)])
        for name, key, frozen, counts in DEPTHS:
            row = []
            for count in counts:
                made = cut(bases[key], count, len(halves_of["B"]), seed, frozen=frozen)
                row.append(of_all(trained_on(halves_of["B"], made, seed, steps), asked))
            found.setdefault(name, []).append(row)
            print(seed, name, [round(score, 1) for score in row], flush=True)
    return found


def of_all(model: ResNet, asked: Sequence[tuple[Icons, Int[Tensor, " B"]]]) -> float:
    """Accuracy on all of these drawings, in percent."""
    return 100 * accuracy(
        model, torch.cat([drawings.on(1.0) for drawings, _ in asked]), torch.cat([y for _, y in asked])
    )


def settings() -> Mapping[str, Any]:
    """How it was measured, as plain values."""
    return {
        "drawings of each thing": list(PER_NAME),
        "draws": list(DRAWS),
        "tuned on": list(TUNED_ON),
        "steps": {name: way.steps for name, way in WAYS.items() if not way.head_only},
        "tried": {name: list(way.rates) for name, way in WAYS.items()},
        "batch": BATCH,
        "by depth": {"steps": DEPTH_STEPS, "seeds": list(SEEDS)},
    }


def measured() -> Mapping[str, Any]:
    """What this program has written."""
    return json.loads(FILE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for asked in sys.argv[1:]:
        found = depths() if asked == "depths" else few_labels(learners_own(load_trained("icon_names").model))
        known = dict(measured()) if FILE.exists() else {}
        FILE.write_text(json.dumps(known | {"settings": settings(), asked: found}, indent=1) + "\n", encoding="utf-8")
