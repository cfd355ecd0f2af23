"""Lesson 17, Long sequences and old roots: its results, each with figure, alt text, claims and what it means."""

import html
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.classroom.output import varies
from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.functional.attention import readable_attention
from course_lib.functional.cost import largest_tensor
from course_lib.lessons.lesson_17 import figures, learner
from course_lib.lessons.lesson_17.recipes import boltzmann, efficient
from course_lib.lessons.lesson_17.recipes import experts as mixtures
from course_lib.lessons.lesson_17.recipes.boltzmann import CLASSES, PIXELS
from course_lib.lessons.lesson_17.synthesis import LANDMARKS
from course_lib.models.gpt import GPT
from course_lib.tasks.claims import above, below
from course_lib.training.seeding import seeded
from course_lib.viz.timeline import timeline as landmarks_over_time

Card = Mapping[str, Any]
WIDTH, BLOCK, LENGTHS, QUERIES = 32, 64, (64, 256, 1024, 4096), 8  # of `flash`: a head, a block of keys
SHOWN, COUNTED = 4, 400  # dreams of each label that are shown; dreams that are classified
FILTERS = 54
CHAINS, OF_EACH, UNITS = 500, 16, 20  # of `stack`: dreams, those that are shown, units that are shown


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table; the first column names the rows."""
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join(
        f"<tr><td>{html.escape(name)}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>" for name, *cells in rows
    )
    return f"<table><tr>{top}</tr>{body}</table>"


def in_range(values: Sequence[float], digits: int = 2) -> str:
    """The least and the largest of some seeds."""
    low, high = (f"{value:.{digits}f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


# --------------------------------------------------------------------------------------------- attention


def recurrence(model: GPT, ids: Tensor, parallel: Callable, step: Callable, *, predicted=None) -> Result:
    """`parallel` is the learner's linear attention (q, k, v), `step` her recurrence (q, k, v, s, z); ids (1, T)."""
    library, at_once, one_by_one = learner.three_logits(model, ids, parallel, step)
    width, length = model.config.dim // model.config.num_heads, ids.shape[1]
    state = width * width + width
    rows = [
        (f"softmax, after {length} characters", f"{2 * width * length:,}"),
        ("softmax, after 4,096 characters", f"{2 * width * 4096:,}"),
        ("linear, after any number", f"{state:,}"),
    ]
    return Result(
        table(("", "numbers kept per head"), rows),
        claims={"equal": tuple(below(float((library - hers).abs().max()), 1e-6) for hers in (at_once, one_by_one))},
        came=float(state),
        values={"state": state, "width": width},
    )


def cost(card: Card, *, predicted=None) -> Result:
    """`card` is that of `efficient_attention`."""
    lengths, names = efficient.LENGTHS, list(efficient.VARIANTS)
    counted = {
        name: [card["seeds"][0]["test"][f"operations a character at {length}, {name}"] for length in lengths]
        for name in names
    }
    bits = {name: by_seed(card, f"bits per character, {name}") for name in names}
    crossing = first_with_fewer_operations()
    linear, soft, local = (bits[name] for name in ("linear", "softmax", "local"))
    return Result(
        figures.cost(lengths, counted, bits, crossing, predicted),
        claims={"trade": 5 * counted["linear"][-1] < counted["softmax"][-1] and min(linear) > max(soft)},
        came=float(crossing),
        values={
            "crossing": crossing,
            "ratio": counted["softmax"][-1] / counted["linear"][-1],
            "softmax": fmean(soft),
            "linear": fmean(linear),
            "local": fmean(local),
        },
    )


def first_with_fewer_operations() -> int:
    """The least number of characters from which on the linear GPT needs fewer operations than the softmax one."""
    of = efficient.VARIANTS
    low, high = 1, 1024
    while low < high:
        middle = (low + high) // 2
        if efficient.operations(of["linear"], middle) < efficient.operations(of["softmax"], middle):
            high = middle
        else:
            low = middle + 1
    return low


@torch.no_grad()
def flash(online: Callable, *, predicted=None) -> Result:
    """`online` is the learner's softmax attention of one query (K,) to blocks of keys and of values."""
    generator = torch.Generator().manual_seed(0)
    held: dict[str, list[int]] = {"all scores": [], f"blocks of {BLOCK}": []}
    apart = 0.0
    for length in LENGTHS:
        q, k, v = (torch.randn(length, WIDTH, generator=generator) for _ in range(3))
        held["all scores"].append(largest_tensor(lambda q=q, k=k, v=v: readable_attention(q, k, v)))
        keys, values = k.split(BLOCK), v.split(BLOCK)
        held[f"blocks of {BLOCK}"].append(largest_tensor(lambda q=q, k=keys, v=values: online(q[0], k, v)))
        exact = readable_attention(q[:QUERIES], k, v)[0]
        mine = torch.stack([online(one, keys, values) for one in q[:QUERIES]])
        apart = max(apart, float((mine - exact).abs().max()))
    megabytes = 4 * held["all scores"][-1] / 1e6
    return Result(
        figures.flash(LENGTHS, held, predicted),
        claims={"same": (below(apart, 1e-5), max(held[f"blocks of {BLOCK}"]) <= BLOCK * WIDTH)},
        came=megabytes,
        values={"megabytes": megabytes, "length": LENGTHS[-1], "block": BLOCK},
    )


# --------------------------------------------------------------------------------------------- experts


def experts(card: Card, *, predicted=None) -> Result:
    """`card` is that of `experts`."""
    names = list(mixtures.VARIANTS)
    bits = {name: by_seed(card, f"bits per character, {name}") for name in names}
    one = card["seeds"][0]["test"]
    operations = {name: one[f"operations a character, {name}"] for name in names}
    parameters = {name: one[f"parameters, {name}"] for name in names}
    two, free = "4 experts, k = 2", "4 experts, k = 2, no balance loss"
    count = mixtures.VARIANTS[two].num_experts
    loads = {
        title: [fmean(by_seed(card, f"load {rank} of block 2, {name}")) for rank in range(1, count + 1)]
        for title, name in (("with balance loss", two), ("without", free))
    }
    dense, mixture, large = bits["dense"], bits[two], bits["dense, all parameters"]
    order = 1 if max(mixture) < min(dense) else 0 if min(mixture) > max(dense) else 2
    seconds = {name: fmean(by_seed(card, f"CPU seconds, {name}")) for name in ("dense", two)}
    return Result(
        figures.experts(bits, operations, parameters, loads),
        claims={"ahead": order == 1, "load": loads["with balance loss"][0] < loads["without"][0]},
        came=order,
        values={
            "dense": fmean(dense),
            "mixture": fmean(mixture),
            "large": fmean(large),
            "one": in_range(bits["4 experts, k = 1"]),
            "free": fmean(bits[free]),
            "router": 100 * (operations[two] / operations["dense"] - 1),
            "more": 100 * (operations["dense, all parameters"] / operations["dense"] - 1),
            "time": seconds[two] / seconds["dense"],
            "busiest": 100 * loads["with balance loss"][0],
            "busiest_free": 100 * loads["without"][0],
            "steps": mixtures.DENSE.steps,
            "count": len(mixture),
        },
    )


@torch.no_grad()
def balanced(models: Mapping[str, nn.Module], k: int, *, predicted=None) -> Result:
    """`models` are GPTs that the learner trained with and without the balance loss, in this order."""
    bits = {name: learner.bits(model) for name, model in models.items()}
    busiest = {name: 100 * max(map(max, learner.loads(model, k))) for name, model in models.items()}
    rows = [(name, varies(f"{bits[name]:.2f}"), varies(f"{busiest[name]:.0f} %")) for name in models]
    first, second = busiest.values()
    return Result(
        table(("", "bits per character, validation", "choices of the busiest expert"), rows),
        claims={"load": below(first, second)},
        came=second,
        values={"first": varies(f"{first:.0f}"), "second": varies(f"{second:.0f}")},
    )


# --------------------------------------------------------------------------------------------- Boltzmann machines


@torch.no_grad()
def yours(model: nn.Module, errors: Sequence[float], *, predicted=None) -> Result:
    """`model` is the RBM with label units that the learner has trained, `errors` its reconstruction error per step."""
    labels = torch.arange(COUNTED) % CLASSES
    images = learner.dreams(model, labels)
    found = 100 * float((learner.recognised(images) == labels).float().mean())
    part = max(1, len(errors) // 20)
    first, last = fmean(errors[:part]), fmean(errors[-part:])
    return Result(
        figures.learned(errors, images[: SHOWN * CLASSES].view(-1, 8, 8), CLASSES),
        claims={"learned": (below(last, first / 2), above(found, 80))},
        came=found,
        values={
            "found": varies(f"{found:.0f}"),
            "error": varies(f"{last:.3f}"),
            "gap": varies(f"{learner.free_energy_gap(model):.1f}"),
        },
    )


@torch.no_grad()
def filters(model: nn.Module, *, predicted=None) -> Result:
    """`model` is an RBM of the lesson's digits, the library's or the learner's."""
    weights = next(value for value in model.parameters() if value.ndim == 2)[:, :PIXELS]
    strongest = weights.norm(dim=1).argsort(descending=True)[:FILTERS]
    return Result(figures.filters(weights[strongest].view(-1, 8, 8)))


@torch.no_grad()
def dreams(model: nn.Module, card: Card, *, predicted=None) -> Result:
    """`model` is an RBM with label units, the library's or the learner's; `card` is that of `boltzmann`."""
    labels = torch.arange(COUNTED) % CLASSES
    images = learner.dreams(model, labels)
    found = 100 * float((learner.recognised(images) == labels).float().mean())
    fractions = {
        name: [100 * value for value in by_seed(card, f"dreams recognised, {name}")]
        for name in ("RBM with labels", "DBN with labels")
    }
    single, stack = fractions.values()
    return Result(
        figures.dreams(images[: SHOWN * CLASSES].view(-1, 8, 8), CLASSES, fractions | {"chance": [10]}, predicted),
        claims={"recognised": (above(found, 90), min(single) > max(stack))},
        came=found,
        values={
            "found": varies(f"{found:.0f}"),
            "single": fmean(single),
            "stack": fmean(stack),
            "classified": 100 * fmean(by_seed(card, "accuracy by free energy, RBM with labels")),
            "recogniser": 100 * fmean(by_seed(card, "accuracy of the recogniser")),
            "steps": boltzmann.DREAM_STEPS,
        },
    )


@torch.no_grad()
def stack(lower: nn.Module, upper: nn.Module, dream: Callable, *, predicted=None) -> Result:
    """The learner's two RBMs, the lower one with label units, and her `dream(h, steps, generator)` of their stack."""
    pixels, labels = learner.digits()
    generator = torch.Generator().manual_seed(0)
    with seeded(0):
        often = lower.hidden(learner.with_labels(learner.drawn(pixels), labels)).mean(dim=0)
        start = torch.rand(CHAINS, len(often)).round()
        made = {
            "the stack": dream(start, boltzmann.DREAM_STEPS, generator),
            "independent units": lower.visible(learner.drawn(often.expand(CHAINS, -1))),
            "one machine": lower.dream(torch.rand(CHAINS, PIXELS + CLASSES).round(), boltzmann.DREAM_STEPS, generator),
        }
    written = {name: v[:, PIXELS:].argmax(dim=1) for name, v in made.items()}
    agrees = {name: learner.recognised(v[:, :PIXELS]) == written[name] for name, v in made.items()}
    found, apart, single = (100 * float(one.float().mean()) for one in agrees.values())
    shown = {
        name: (
            made[name][:OF_EACH, :PIXELS].view(-1, 8, 8),
            written[name][:OF_EACH].tolist(),
            agrees[name][:OF_EACH].tolist(),
        )
        for name in ("the stack", "independent units")
    }
    first = lower.W[:, :PIXELS]
    each = torch.eye(upper.W.shape[0])  # one unit of the upper machine on, all others off
    second = lower.visible(upper.visible(each)) - lower.visible(upper.visible(0 * each))
    layers = [one[one.norm(dim=1).argsort(descending=True)[:UNITS]] for one in (first, second[:, :PIXELS])]
    return Result(
        figures.stack(*(one.view(-1, 8, 8) for one in layers), shown),
        claims={"together": (above(found, 75), above(found - apart, 20))},
        came=found,
        values={
            "found": varies(f"{found:.0f}"),
            "apart": varies(f"{apart:.0f}"),
            "single": varies(f"{single:.0f}"),
            "steps": boltzmann.DREAM_STEPS,
        },
    )


def history(card: Card, *, predicted=None) -> Result:
    """`card` is that of `boltzmann`."""
    names = {
        "pixels, linear probe": "probe, {} labels, pixels",
        "autoencoder, linear probe": "probe, {} labels, autoencoder",
        "k-means, linear probe": "probe, {} labels, k-means",
        "RBM, linear probe": "probe, {} labels, RBM, CD-1",
        "DBN of two RBMs, linear probe": "probe, {} labels, DBN",
        "random features, linear probe": "probe, {} labels, random",
        "DBN, fine-tuned by backpropagation": "{} labels, DBN, fine-tuned",
        "the same network from scratch": "{} labels, the same network from scratch",
    }
    rows = [(name, *(in_range(by_seed(card, key.format(n))) for n in (20, 100))) for name, key in names.items()]
    few = {name: by_seed(card, key.format(20)) for name, key in names.items()}
    rbm, pixels, encoder = (few[f"{name}, linear probe"] for name in ("RBM", "pixels", "autoencoder"))
    tuned, scratch = (few[name] for name in list(names)[-2:])
    return Result(
        table(("accuracy on test, three seeds", "20 labels", "100 labels"), rows),
        claims={"labels": (min(rbm) > max(pixels + encoder), min(few["k-means, linear probe"]) > max(rbm))},
        came=100 * fmean(few["DBN of two RBMs, linear probe"]),
        values={
            "pixels": 100 * fmean(pixels),
            "rbm": 100 * fmean(rbm),
            "kmeans": 100 * fmean(few["k-means, linear probe"]),
            "encoder": 100 * fmean(encoder),
            "stack": 100 * fmean(few["DBN of two RBMs, linear probe"]),
            "tuned": 100 * fmean(tuned),
            "scratch": 100 * fmean(scratch),
        },
    )


# --------------------------------------------------------------------------------------------- synthesis


def timeline(*, predicted=None) -> Result:
    return Result(landmarks_over_time(LANDMARKS, first=2006, last=2024))


RESULTS = {
    function.__name__: function
    for function in (recurrence, cost, flash, experts, balanced, yours, filters, dreams, stack, history, timeline)
}
