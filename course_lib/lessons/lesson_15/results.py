"""Lesson 15, Transformers everywhere: its results, each with figure, alt text, claims and what it means."""

import html
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.classroom.output import varies
from course_lib.classroom.results import Result
from course_lib.data.captions import caption_tokenizer, captions, right_words
from course_lib.data.scenes import DigitScenes
from course_lib.data.tones import NAMES
from course_lib.functional.ctc import error_rate
from course_lib.lessons.lesson_15 import figures, learner
from course_lib.lessons.lesson_15.recipes import boltzmann, control, efficient, speech, text_to_text
from course_lib.lessons.lesson_15.recipes import pictures_and_words as words
from course_lib.models.boltzmann import DBN
from course_lib.models.conformer import Conformer
from course_lib.models.flamingo import Flamingo
from course_lib.models.gpt import GPT
from course_lib.tasks.claims import above, below

Card = Mapping[str, Any]
FEW = 300  # examples of each task
GATES = (0.0, 0.25, 0.5, 0.75, 1.0)
LOOKED_AT = 400  # scenes
PIXELS = "one stream of pixels"
WALKERS = (
    "Decision Transformer",
    "Transformer without returns, best 10 %",
    "behaviour cloning, best 10 %",
    "GAIL",
    "Transformer without returns",
    "behaviour cloning",
)


def seeds(card: Card, key: str) -> list[float]:
    """A score on test, of each seed."""
    return [seed["test"][key] for seed in card["seeds"]]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column names the rows."""
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join(
        f'<tr><th scope="row" style="text-align:left">{html.escape(name)}</th>'
        + "".join(f'<td style="text-align:right">{html.escape(cell)}</td>' for cell in cells)
        + "</tr>"
        for name, *cells in rows
    )
    return f"<div><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The mean and, where there are several, the range."""
    if len(values) < 2:
        return f"{values[0]:.{digits}f}"
    return f"{fmean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def timeline(*, predicted=None) -> Result:
    return Result(figures.timeline())


# --------------------------------------------------------------------------------------------- language


def gaps(card: Card, *, predicted=None) -> Result:
    names = {
        "gaps first, then the tasks": f"pre-trained, {FEW} examples",
        "the tasks alone": f"from scratch, {FEW} examples",
        "the tasks alone, as many steps in all": f"from scratch, {FEW} examples, longer",
    }
    rows = [
        (name, spread(seeds(card, f"exact, {which}")), *(
            f"{fmean(seeds(card, f'exact, {task}, {which}')):.2f}" for task in text_to_text.TASKS
        ))
        for name, which in names.items()
    ]  # fmt: skip
    first, alone, longer = (seeds(card, f"exact, {which}") for which in names.values())
    accepts = seeds(card, f"exact, acceptable, {names['gaps first, then the tasks']}")
    blind = seeds(card, f"exact, acceptable, {names['the tasks alone, as many steps in all']}")
    return Result(
        table(("answers exactly right", "all five", *text_to_text.TASKS), rows),
        claims={"overall": min(first) > max(alone) + 0.1, "judgements": min(accepts) > max(blind) + 0.15},
        came=100 * fmean(first),
    )


# --------------------------------------------------------------------------------------------- speech


@torch.no_grad()
def spikes(model: Conformer, melody, *, predicted=None) -> Result:
    log_probs, lengths = speech.log_probs_of(model, melody)
    probs = log_probs[0, : int(lengths[0])].exp()
    begins = melody.begins[0, : int(melody.num_labels[0])].tolist()
    blank = (probs.argmax(dim=1) == 0).double().mean()
    return Result(
        figures.spikes(melody.frames[0, : int(melody.num_frames[0])], probs, NAMES, begins),
        claims={"peaks": (blank >= 0.5, speech.written(model, melody) == [played(melody)])},
    )


def played(melody) -> str:
    """The names of the tones that were played."""
    return " ".join(NAMES[label - 1] for label in melody.spoken()[0])


def heard(model: Conformer, card: Card, collapse: Callable, *, predicted=None) -> Result:
    melodies = speech.held_out("test")
    error = error_rate(learner.transcripts(model, melodies, collapse), melodies.spoken())
    keys = (
        "token error, greedy",
        "token error, beam",
        "melodies without an error",
        "token error, greedy, long melodies",
    )
    rows = [
        (name, *(spread(seeds(card, f"{key}, {name}"), 3) for key in keys)) for name in ("Conformer", "Transformer")
    ]
    errors = {name: seeds(card, f"token error, greedy, {name}") for name in ("Conformer", "Transformer")}
    return Result(
        table(("", "errors per tone", "with a beam of 8", "melodies without error", "twice as long: errors"), rows),
        claims={"yours": below(error, 0.05), "seeds": max(errors["Conformer"]) < min(errors["Transformer"])},
    )


# --------------------------------------------------------------------------------------------- control


def asked(model: nn.Module, card: Card, *, predicted=None) -> Result:
    shown = [(f"asked for {wanted}", learner.walk(model, wanted, pair=4)) for wanted in (-10, -34)]
    got = [[seed["test"][f"return got, asked {wanted:g}"] for wanted in control.ASKED] for seed in card["seeds"]]
    reached = {name: seeds(card, f"reaches the goal, {name}") for name in WALKERS}
    cloned = max(max(values) for name, values in reached.items() if name != WALKERS[0])
    return Result(
        figures.asked(control.maze(), shown, control.ASKED, got, reached, predicted),
        claims={"goal": min(reached[WALKERS[0]]) > cloned, "less": all(a > b for row in got for a, b in pairwise(row))},
        came=100 * fmean(reached[WALKERS[0]]),
    )


def walked(model: nn.Module, *, predicted=None) -> Result:
    rows, returns = [], []
    for wanted in control.ASKED[::2]:
        walks = control.walks_of(model, "test", asked=wanted)
        returns.append(float(walks.returns.mean()))
        arrived = 100 * float(walks.reached.float().mean())
        rows.append((f"{wanted:g}", varies(f"{returns[-1]:.0f}"), varies(f"{arrived:.0f} %")))
    return Result(
        table(("asked for", "return got", "reaches the goal"), rows),
        claims={"less": above(min(returns[0] - returns[1], returns[1] - returns[2]), 0)},
    )


# --------------------------------------------------------------------------------------------- pictures and words


@torch.no_grad()
def gate(model: Flamingo, *, predicted=None) -> Result:
    scenes = DigitScenes(split="test", clutter=words.CLUTTER).batch(LOOKED_AT, seed=2**32 - 1)
    fields = words.look(scenes.pixels)
    seen, true = torch.cat([fields, words.boxes_of(fields)], dim=-1), captions(scenes)
    wanted = [" ".join(caption_tokenizer().sentence(row[1:])) for row in encoded(true)]
    said = {share: words.write(learner.opened(model, share).given(seen), len(wanted)) for share in GATES}
    right = {share: right_words(lines, wanted) for share, lines in said.items()}
    curves = {name: [right[share][name] for share in GATES] for name in words.WORDS}
    ids = encoded(true[:8])[:, :-1]
    same = torch.equal(learner.opened(model, 0.0)(ids, seen[:8]), model.language(ids))
    some = [(wanted[i], said[0.0][i], said[1.0][i]) for i in range(4)]
    return Result(
        figures.gates(scenes.pixels[:4, 0], some, GATES, curves),
        claims={"same": same, "same caption": len(set(said[0.0])) == 1},
        came=2,
    )


def encoded(texts: Sequence[str]) -> Tensor:
    """Captions as tokens between start and end."""
    return caption_tokenizer().encode_batch(texts, start=True, end=True)[0]


def layouts(card: Card, *, predicted=None) -> Result:
    names = {
        "Flamingo: a frozen language model looks": "Flamingo",
        "the same, gates at 0": "Flamingo, gates at 0",
        "one stream, the eye's fields as tokens": "one stream",
        "one stream, pixels as tokens": "one stream of pixels",
    }
    rows = [
        (name, spread(seeds(card, f"exact, {which}")), *(
            f"{fmean(seeds(card, f'{aspect}, {which}')):.2f}" for aspect in words.WORDS))
        for name, which in names.items()
    ]  # fmt: skip
    found = seeds(card, "recall@1 of scenes, ViLBERT")
    rows.append(
        ("another task, ViLBERT: the scene found among 20 (chance .05)", spread(found), *[""] * len(words.WORDS))
    )
    flamingo, stream, pixels = (seeds(card, f"exact, {name}") for name in ("Flamingo", "one stream", PIXELS))
    return Result(
        table(("", "exactly right", *words.WORDS), rows),
        claims={"ViLBERT": min(found) > 0.4, "pixels": max(pixels) + 0.2 < min(flamingo + stream)},
    )


# --------------------------------------------------------------------------------------------- cheaper attention


def recurrence(model: GPT, ids: Tensor, step: Callable, *, predicted=None) -> Result:
    at_once, one_by_one = learner.logits_both_ways(model, ids, step)
    width = model.config.dim // model.config.num_heads
    apart = float((at_once - one_by_one).abs().max())
    return Result(
        table(
            ("", "numbers kept for each head"),
            [
                (f"softmax, after {ids.shape[1]} characters", f"{2 * width * ids.shape[1]:,}"),
                ("softmax, after 4,096", f"{2 * width * 4096:,}"),
                ("linear, always", f"{width * width + width:,}"),
            ],
        ),
        claims={"equal": below(apart, 1e-6)},
    )


def cheap(card: Card, *, predicted=None) -> Result:
    lengths, names = efficient.LENGTHS, list(efficient.VARIANTS)
    counted = {
        name: [card["seeds"][0]["test"][f"operations a character at {length}, {name}"] for length in lengths]
        for name in names
    }
    bits = {name: seeds(card, f"bits per character, {name}") for name in names}
    pays = first_that_pays()
    linear, soft = bits["linear"], bits["softmax"]
    return Result(
        figures.cheap(lengths, counted, bits, pays, predicted),
        claims={"trade": 5 * counted["linear"][-1] < counted["softmax"][-1] and min(linear) > max(soft)},
        came=float(pays),
        values={"pays": pays},
    )


def first_that_pays() -> int:
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


# --------------------------------------------------------------------------------------------- where it began


@torch.no_grad()
def dreams(model: DBN, *, predicted=None) -> Result:
    first = model.layers[0]
    strongest = first.weight.norm(dim=1).argsort(descending=True)[:36]
    digits = boltzmann.digits("test").features[:12]
    torch.manual_seed(0)
    shown = {"Digits of the\ntest split": digits}
    shown |= {f"after {steps} steps\nof the chain": model.dream(digits, steps) for steps in (1, 10, 100)}
    return Result(
        figures.dreams(first.weight[strongest].view(-1, 8, 8), {k: v.view(-1, 8, 8) for k, v in shown.items()})
    )


def history(card: Card, *, predicted=None) -> Result:
    names = {
        "pixels, linear probe": "probe, {} labels, pixels",
        "random features, linear probe": "probe, {} labels, random",
        "one RBM, linear probe": "probe, {} labels, RBM, CD-1",
        "stack of two, linear probe": "probe, {} labels, DBN",
        "stack of two, fine-tuned": "{} labels, DBN, fine-tuned",
        "the same net from scratch": "{} labels, the same net from scratch",
    }
    rows = [(name, *(spread(seeds(card, key.format(n))) for n in (20, 100))) for name, key in names.items()]
    stack, pixels = (seeds(card, f"probe, 20 labels, {name}") for name in ("DBN", "pixels"))
    tuned, scratch = (seeds(card, names[name].format(100)) for name in list(names)[4:])
    return Result(
        table(("accuracy on test", "20 labels", "100 labels"), rows),
        claims={"labels": min(stack) > max(pixels) + 0.02 and max(tuned) <= max(scratch)},
        came=1,
    )


RESULTS = {
    function.__name__: function
    for function in (
        timeline, gaps, spikes, heard, asked, walked, gate, layouts, recurrence, cheap, dreams, history,
    )
}  # fmt: skip
