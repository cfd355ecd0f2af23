"""Lesson 15, One model for text and sound: its results, each with figure, alt text, claims and what it means."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.data.tones import NAMES, Melodies
from course_lib.functional.ctc import collapse, error_rate, may_jump, prefix_beam_search, with_blanks
from course_lib.lessons.lesson_15 import figures, learner
from course_lib.lessons.lesson_15.recipes import speech, t5_layouts, text_to_text
from course_lib.models.conformer import Conformer
from course_lib.models.t5 import T5
from course_lib.tasks.claims import above, below

Card = Mapping[str, Any]
QUESTIONS = (  # and the correct answers; the last but one is of a kind that no training example had, the last one fails
    ("acceptable: le juge visitent les hôpitaux .", "no"),
    ("choose: les banques signe or signent les accords .", "signent"),
    ("kind: the letters were long .", "thing"),
    ("negate: the story was famous .", "the story was not famous ."),
    ("who: the famous teacher rejected a proposal .", "the famous teacher"),
    ("who: le juge visite les hôpitaux .", "le juge"),
    ("negate: the child does not visit this old island .", "the child visits this old island ."),
)
FEW = 300  # examples of each task
FARTHEST = 24  # tokens
HEADS = (1, 2, 0)  # of the encoder, shown with their biases
SYMBOLS, TARGET, FRAMES = "–ab", (1, 1, 2), 8  # of the lattice
NOISE = (0.8, 1.2, 1.6, 2.0, 2.4)
ASKED = 2.0  # noise of the prediction
MELODIES = 120  # for each noise


# --------------------------------------------------------------------------------------------- text


def opening(model: T5, card: Card, *, predicted=None) -> Result:
    """`model` and `card` are those of `text_to_text`."""
    answers = text_to_text.written(model, [question for question, _ in QUESTIONS])
    shown = [(question, answer, correct) for (question, correct), answer in zip(QUESTIONS, answers, strict=True)]
    scores = {"all five tasks": by_seed(card, "exact, pre-trained, 1000 examples")}
    scores |= {task: by_seed(card, f"exact, {task}, pre-trained, 1000 examples") for task in text_to_text.TASKS}
    means = {name: 100 * fmean(values) for name, values in scores.items()}
    return Result(
        figures.opening(shown, scores, predicted),
        came=means["all five tasks"],
        values={"all": means["all five tasks"], "choose": means["choose"], "kind": means["kind"]},
    )


@torch.no_grad()
def buckets(bucket: Callable[..., Tensor], model: T5, *, predicted=None) -> Result:
    """`bucket(distance, num_buckets, max_distance, bidirectional)` is the learner's function."""
    config, table = model.config, model.encoder_bias.table
    distances = torch.arange(-FARTHEST, FARTHEST + 1)
    found = bucket(distances, num_buckets=config.num_buckets, max_distance=config.max_distance, bidirectional=True)
    biases = table[found].T
    before = int((distances == -1).nonzero())
    others = torch.cat([biases[HEADS[0], :before], biases[HEADS[0], before + 1 :]])
    lead = biases[HEADS[0], before] - others.max()
    return Result(
        figures.buckets(distances, found, {f"head {head + 1}": biases[head] for head in HEADS}, predicted),
        claims={"previous": above(lead, 2)},
        came=int(found[-1]),
        values={
            "bias": biases[HEADS[0], before].item(),
            "second": others.max().item(),
            "factor": (biases[HEADS[0], before] - others.max()).exp().item(),
        },
    )


def gaps(card: Card, *, predicted=None) -> Result:
    """`card` is that of `text_to_text`."""
    names = {
        "gaps first, then tasks": f"pre-trained, {FEW} examples",
        "tasks alone": f"from scratch, {FEW} examples",
        "tasks alone, as many steps in all": f"from scratch, {FEW} examples, longer",
    }
    scores = {
        name: {"all five": by_seed(card, f"exact, {which}")}
        | {task: by_seed(card, f"exact, {task}, {which}") for task in text_to_text.TASKS}
        for name, which in names.items()
    }
    first, alone, longer = scores.values()
    percent = {
        name: 100 * fmean(each["all five"])
        for name, each in zip(("first", "alone", "longer"), scores.values(), strict=True)
    }
    return Result(
        figures.gaps(scores, predicted),
        claims={
            "overall": min(first["all five"]) > max(alone["all five"]) + 0.1,
            "agreement": min(first["acceptable"]) > max(longer["acceptable"]) + 0.15,
        },
        came=percent["first"],
        values=percent | {"chance": 100 * fmean(longer["acceptable"]), "agrees": 100 * fmean(first["acceptable"])},
    )


def stacks(card: Card, *, predicted=None) -> Result:
    """`card` is that of `t5_layouts`."""
    scores = {name: by_seed(card, f"exact, {name}") for name in t5_layouts.VARIANTS}
    sizes = {
        name: f"{by_seed(card, f'thousand parameters, {name}')[0]:.0f} thousand parameters,\n"
        f"{by_seed(card, f'million operations, {name}')[0]:.0f} million operations"
        for name in scores
    }
    both, prefix, causal = (100 * fmean(values) for values in scores.values())
    return Result(
        figures.stacks(scores, sizes, predicted),
        claims={"close": below(max(both, prefix, causal) - min(both, prefix, causal), 5)},
        came=prefix,
        values={"both": both, "prefix": prefix, "causal": causal},
    )


# --------------------------------------------------------------------------------------------- speech


@torch.no_grad()
def spikes(model: Conformer, melody: Melodies, *, predicted=None) -> Result:
    log_probs, lengths = speech.log_probs_of(model, melody)
    probs = log_probs[0, : int(lengths[0])].exp()
    begins = melody.begins[0, : int(melody.num_labels[0])].tolist()
    blank = (probs.argmax(dim=1) == 0).double().mean()
    return Result(
        figures.spikes(melody.frames[0, : int(melody.num_frames[0])], probs, NAMES, begins),
        claims={"peaks": (blank >= 0.5, speech.written(model, melody) == [played(melody)])},
        came=100 * blank.item(),
    )


def lattice(loss: Callable[[Tensor, Tensor], Tensor], *, predicted=None) -> Result:
    """`loss(log_probs, labels)`, of shapes (T, V) and (S,), is the learner's CTC loss in nats."""
    logits = 1.5 * torch.randn(FRAMES, len(SYMBOLS), generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    labels = torch.tensor(TARGET)
    states = with_blanks(labels[None])[0]
    allowed = steps(states)
    alpha, best, count = forward(logits.softmax(dim=1), states, allowed)
    ends = forward(logits.softmax(dim=1).flip(0), states.flip(0), allowed.T.flip(0, 1))[0].flip(0, 1)
    hers, theirs = (logits.clone().requires_grad_() for _ in range(2))
    mine = loss(hers.log_softmax(dim=1), labels)
    mine.backward()
    lengths = torch.tensor([FRAMES]), torch.tensor([len(labels)])
    official = F.ctc_loss(theirs.log_softmax(dim=1)[:, None], labels[None], *lengths, reduction="sum")
    official.backward()
    return Result(
        figures.lattice(
            [SYMBOLS[state] for state in states.tolist()],
            alpha,
            allowed,
            (alpha > 0) & (ends > 0),
            best,
            (theirs.grad.flatten(), hers.grad.flatten()),
        ),
        claims={
            "agrees": (
                below((mine - official).abs().item(), 1e-4),
                below((hers.grad - theirs.grad).abs().max(), 1e-4),
            )
        },
        came=count,
        values={
            "count": count,
            "all": len(SYMBOLS) ** FRAMES,
            "path": " ".join(SYMBOLS[states[state]] for state in best),
            "text": "".join(SYMBOLS[label] for label in TARGET),
            "nats": official.item(),
            "likely": 100 * (-official).exp().item(),
        },
    )


def heard(model: Conformer, card: Card, collapse: Callable[..., Sequence[int]], *, predicted=None) -> Result:
    """`model` and `card` are those of `tones`; `collapse` is the learner's function."""
    melodies = speech.held_out("test")
    error = error_rate(learner.transcripts(model, melodies, collapse), melodies.spoken())
    conditions = {
        "greedy decoding": "token error, greedy",
        "beam of 8": "token error, beam",
        "12 to 16 tones,\ngreedy decoding": "token error, greedy, long melodies",
    }
    errors = {
        name: {shown: by_seed(card, f"{key}, {name}") for shown, key in conditions.items()}
        for name in ("Conformer", "Transformer")
    }
    greedy = {name: rows["greedy decoding"] for name, rows in errors.items()}
    means = {name: 100 * fmean(values) for name, values in greedy.items()}
    long = {name: 100 * fmean(list(rows.values())[-1]) for name, rows in errors.items()}
    return Result(
        figures.heard(errors, predicted),
        claims={
            "yours": below(error, 0.05),
            "seeds": max(greedy["Conformer"]) < min(greedy["Transformer"]),
        },
        came=means["Transformer"],
        values={
            "conformer": means["Conformer"],
            "transformer": means["Transformer"],
            "ratio": means["Transformer"] / means["Conformer"],
            "long": long["Conformer"],
            "long_transformer": long["Transformer"],
        },
    )


@torch.no_grad()
def beam(model: Conformer, search: Callable[..., Sequence] = prefix_beam_search, *, predicted=None) -> Result:
    """`search(log_probs, width)` is the learner's, for the small example; melodies are decoded by the library's."""
    probs = {"–": 0.6, "a": 0.4}
    paths = {
        "".join(path): (probs[path[0]] * probs[path[1]], "a" * len(collapse(["–a".index(symbol) for symbol in path])))
        for path in product(probs, repeat=2)
    }
    labels, log_p = search(torch.tensor([[*probs.values()]] * 2).log(), width=2)[0]
    errors: dict[str, list[float]] = {"greedy decoding": [], f"beam of {speech.WIDTH}": []}
    differ = []
    for noise in NOISE:
        melodies = replace(speech.TONES, noise=noise).batch(MELODIES, speech.HELD_OUT["test"])
        greedy, wide = (speech.labels_of(model, melodies, width=width) for width in (1, speech.WIDTH))
        for found, values in zip((greedy, wide), errors.values(), strict=True):
            values.append(error_rate(found, melodies.spoken()))
        differ.append(sum(a != b for a, b in zip(greedy, wide, strict=True)))
    at = NOISE.index(ASKED)
    before, after = (values[at] for values in errors.values())
    avoided = 100 * (before - after) / before
    star = None if predicted is None else (ASKED, 100 * before * (1 - predicted / 100))
    return Result(
        figures.beam(paths, NOISE, errors, star),
        claims={"text": (list(labels) == [1], below(abs(math.exp(log_p) - 0.64), 1e-4)), "little": below(avoided, 10)},
        came=avoided,
        values={
            "greedy": 100 * before,
            "beam": 100 * after,
            "avoided": avoided,
            "differ": differ[at],
            "melodies": MELODIES,
            "noise": ASKED,
            "width": speech.WIDTH,
        },
    )


def played(melody: Melodies) -> str:
    """The names of the tones that were played."""
    return " ".join(NAMES[number - 1] for number in melody.spoken()[0])


def steps(states: Int[Tensor, " S"]) -> Tensor:
    """allowed[s, r]: a path may step from state s to state r."""
    size = len(states)
    ahead = torch.arange(size) - torch.arange(size)[:, None]
    return (ahead == 0) | (ahead == 1) | ((ahead == 2) & may_jump(states[None], 0)[0])


def forward(
    probs: Float[Tensor, "T V"], states: Int[Tensor, " S"], allowed: Tensor
) -> tuple[Float[Tensor, "T S"], list[int], int]:
    """The forward variables, the most probable path through the states, and how many paths there are."""
    begins = torch.arange(len(states)) < 2
    moves = allowed.to(probs)
    alphas, best, counts, back = [begins * probs[0, states]], begins * probs[0, states], begins.double(), []
    for frame in probs[1:]:
        alphas.append(alphas[-1] @ moves * frame[states])
        step = (best[:, None] * moves).max(dim=0)
        best, counts = step.values * frame[states], counts @ moves.double()
        back.append(step.indices)
    path = [int(best[-2:].argmax()) + len(states) - 2]
    for indices in reversed(back):
        path.append(int(indices[path[-1]]))
    return torch.stack(alphas), path[::-1], int(counts[-2:].sum())


RESULTS = {function.__name__: function for function in (opening, buckets, gaps, stacks, spikes, lattice, heard, beam)}
