"""Lesson 15, Transformers everywhere: its results, each with figure, alt text, claims and what it means."""

import html
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.classroom.results import Result
from course_lib.data.captions import caption_tokenizer, captions, right_words
from course_lib.data.scenes import DigitScenes
from course_lib.data.tones import NAMES
from course_lib.functional.ctc import error_rate
from course_lib.lessons.lesson_15 import figures, yours
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
WALKERS = ("Decision Transformer", "Transformer without returns, best 10 %", "behaviour cloning, best 10 %", "GAIL",
           "Transformer without returns", "behaviour cloning")  # fmt: skip


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


def timeline(*, bet=None) -> Result:
    return Result(
        figures.timeline(),
        alt="Seven rows from 2006 to 2023, grey for what did the work before and blue from the first Transformer on: "
        "translation 2017, language with BERT 2018 and T5 2020, pictures with ViT 2020, speech with the Conformer "
        "2020, control with the Decision Transformer 2021, pictures and words with ViLBERT 2019 and Flamingo 2022, "
        "learning without labels with GPT 2018 and MAE 2021.",
    )


# --------------------------------------------------------------------------------------------- language


def gaps(card: Card, *, bet=None) -> Result:
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
        alt="A table of the share of exact answers in five tasks, after 300 examples of each: gaps first is ahead, "
        "the tasks alone for as many steps come nearer, but stay at chance in judging whether a sentence is French.",
        claims=(
            ("gaps first is over 0.1 ahead of the tasks alone, every seed", min(first) > max(alone) + 0.1),
            ("only after the gaps it judges sentences over 0.15 better", min(accepts) > max(blind) + 0.15),
        ),
        came=100 * fmean(first),
        outcome="The third row is the fair question: as many steps in all, on the same few examples. It takes back a "
        "good part of the lead, so **part of what pre-training buys here is simply time**. What time does not buy "
        "stands under *acceptable*: which words agree with which cannot be learned from examples that do not have "
        "them. Plain text has them.",
    )


# --------------------------------------------------------------------------------------------- speech


@torch.no_grad()
def spikes(model: Conformer, melody, *, bet=None) -> Result:
    log_probs, lengths = speech.log_probs_of(model, melody)
    probs = log_probs[0, : int(lengths[0])].exp()
    begins = melody.begins[0, : int(melody.num_labels[0])].tolist()
    blank = (probs.argmax(dim=1) == 0).double().mean()
    return Result(
        figures.spikes(melody.frames[0, : int(melody.num_frames[0])], probs, NAMES, begins),
        alt="Above, the bands of a melody of five tones in noise. Below, the probability of each symbol in each "
        "frame: a plateau of two or three frames for each tone, with its name on it, and blank between them.",
        claims=(
            ("half of the frames or more are blank, and the peaks spell the melody",
             blank >= 0.5, speech.written(model, melody) == [played(melody)]),
        ),
        outcome="Nobody told it *when* a tone sounds, only which ones, in which order. A tone is said for two or "
        "three of the network's frames (40 ms: four of the ten that are heard), blank for the other half. Two equal "
        "tones in a row are two peaks with a blank between them; without it they would be one.",
    )  # fmt: skip


def played(melody) -> str:
    """The names of the tones that were played."""
    return " ".join(NAMES[label - 1] for label in melody.spoken()[0])


def heard(model: Conformer, card: Card, collapse: Callable, *, bet=None) -> Result:
    melodies = speech.held_out("test")
    error = error_rate(yours.transcripts(model, melodies, collapse), melodies.spoken())
    keys = ("token error, greedy", "token error, beam", "melodies without an error",
            "token error, greedy, long melodies")  # fmt: skip
    rows = [
        (name, *(spread(seeds(card, f"{key}, {name}"), 3) for key in keys)) for name in ("Conformer", "Transformer")
    ]
    errors = {name: seeds(card, f"token error, greedy, {name}") for name in ("Conformer", "Transformer")}
    return Result(
        table(("", "errors per tone", "with a beam of 8", "melodies without error", "twice as long: errors"), rows),
        alt="A table of the errors per tone of a Conformer and of a plain Transformer of its size, by the likeliest "
        "path and with a beam, and on melodies twice as long. The Conformer has fewer errors.",
        claims=(
            ("read off by the function in use, the shipped Conformer errs in less than 5 % of the tones",
             below(error, 0.05)),
            ("the Conformer errs less than the plain Transformer, every seed",
             max(errors["Conformer"]) < min(errors["Transformer"])),
        ),
        outcome="Same front, same head, as many parameters and steps. Perhaps because a tone is a matter of "
        "neighbouring frames, with which a convolution begins. The rate was chosen for the Conformer; with twice "
        "that rate the Transformer was no better on validation. Melodies twice as long as any in training cost both "
        "a little more. The beam hardly helps a network that is so sure.",
    )  # fmt: skip


# --------------------------------------------------------------------------------------------- control


def asked(model: nn.Module, card: Card, *, bet=None) -> Result:
    shown = [(f"asked for {wanted}", yours.walk(model, wanted, pair=4)) for wanted in (-10, -34)]
    got = [[seed["test"][f"return got, asked {wanted:g}"] for wanted in control.ASKED] for seed in card["seeds"]]
    reached = {name: seeds(card, f"reaches the goal, {name}") for name in WALKERS}
    cloned = max(max(values) for name, values in reached.items() if name != WALKERS[0])
    return Result(
        figures.asked(control.maze(), shown, control.ASKED, got, reached, bet),
        alt="Left, two walks through a maze: asked for -10 the way is straight, asked for -34 it wanders. Middle: "
        "the return got follows the return asked for from -10 to -34, a little worse than asked at the upper end. "
        "Right, walks that reach the goal: the Decision Transformer over 90 %, all others below 80 %, cloning of all "
        "walks below 20 %.",
        claims=(
            ("the Decision Transformer reaches the goal more often than any other, every seed",
             min(reached[WALKERS[0]]) > cloned),
            ("who asks for less gets less, at every step and seed",
             all(a > b for row in got for a, b in pairwise(row))),
        ),
        came=100 * fmean(reached[WALKERS[0]]),
        outcome="Four walks in five were longer than need be, and it learned from all of them: told *how good* each "
        "was, it can be asked for the best. Cloning without that word imitates the average. Cloning the best tenth "
        "helps, and a Transformer that sees two steps helps more than an MLP that sees one. GAIL walks itself as "
        "well and varies most from seed to seed; it was given another budget, so read its dots with care. Each seed "
        "has 14 pairs of start and goal, 8 walks each.",
    )  # fmt: skip


def walked(model: nn.Module, *, bet=None) -> Result:
    rows, returns = [], []
    for wanted in control.ASKED[::2]:
        walks = control.walks_of(model, "test", asked=wanted)
        returns.append(float(walks.returns.mean()))
        rows.append((f"{wanted:g}", f"{returns[-1]:.0f}", f"{100 * float(walks.reached.float().mean()):.0f} %"))
    return Result(
        table(("asked for", "return got", "reaches the goal"), rows),
        alt="A table: asked for -10, -22 and -34, the return that your model gets falls.",
        claims=(("asked for less it gets less", above(min(returns[0] - returns[1], returns[1] - returns[2]), 0)),),
        outcome="Sixty per cent of the shipped model's steps. The order is there: one network, and the wish is an "
        "input. But more walks end at -40 without arriving than with the shipped one, and these pull the mean "
        "towards the wish.",
    )


# --------------------------------------------------------------------------------------------- pictures and words


@torch.no_grad()
def gate(model: Flamingo, *, bet=None) -> Result:
    scenes = DigitScenes(split="test", clutter=words.CLUTTER).batch(LOOKED_AT, seed=2**32 - 1)
    fields = words.look(scenes.pixels)
    seen, true = torch.cat([fields, words.boxes_of(fields)], dim=-1), captions(scenes)
    wanted = [" ".join(caption_tokenizer().sentence(row[1:])) for row in encoded(true)]
    said = {share: words.write(yours.opened(model, share).given(seen), len(wanted)) for share in GATES}
    right = {share: right_words(lines, wanted) for share, lines in said.items()}
    curves = {name: [right[share][name] for share in GATES] for name in words.WORDS}
    ids = encoded(true[:8])[:, :-1]
    same = torch.equal(yours.opened(model, 0.0)(ids, seen[:8]), model.language(ids))
    some = [(wanted[i], said[0.0][i], said[1.0][i]) for i in range(4)]
    return Result(
        figures.gates(scenes.pixels[:4, 0], some, GATES, curves),
        alt="Left, four scenes with their true captions, and what is written with shut gates, the same for every "
        "scene, and with open ones. Right: as the gates open, size, ink, digit and place come out right more often.",
        claims=(
            ("with gates at 0 the logits are those of the language model, to the last bit", same),
            ("with shut gates every scene gets the same caption", len(set(said[0.0])) == 1),
        ),
        came=2,
        outcome="Shut, nothing of the picture gets through: the frozen model writes its likeliest caption, again and "
        "again. Training starts there, at a model that already writes well, and opens the gates as far as it pays: "
        "those of attention to 0.03 and 0.05, those of the feed-forward network to 0.03 and 0.15, and that suffices "
        "for two captions in three. (Under the pictures: blue is right, red is not.)",
    )


def encoded(texts: Sequence[str]) -> Tensor:
    """Captions as tokens between start and end."""
    return caption_tokenizer().encode_batch(texts, start=True, end=True)[0]


def layouts(card: Card, *, bet=None) -> Result:
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
        alt="A table of captions exactly right and word by word: one stream of the eye's fields leads, Flamingo is "
        "close, one stream of pixels fails at the digit; ViLBERT finds more than half of the scenes among twenty.",
        claims=(
            ("ViLBERT finds the scene among 20 in over 40 % of searches (chance 5 %), every seed", min(found) > 0.4),
            ("without the trained eye, pixels as tokens fall behind both, every seed",
             max(pixels) + 0.2 < min(flamingo + stream)),
        ),
        outcome="Three layouts, one attention. The simplest, all tokens in one stream, is a little ahead of the "
        "gates here; but it had to learn to write from scenes alone, and Flamingo's language model stayed as it was. "
        "The last line but one had no trained eye and no time to grow one: size, ink and place it can tell, the "
        "digit not.",
    )  # fmt: skip


# --------------------------------------------------------------------------------------------- cheaper attention


def recurrence(model: GPT, ids: Tensor, step: Callable, *, bet=None) -> Result:
    at_once, one_by_one = yours.logits_both_ways(model, ids, step)
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
        alt="A table of what each head keeps of the past: keys and values grow with the text, the sums do not.",
        claims=(
            (
                "read at once and read one by one, in double precision: the logits differ by less than a millionth",
                below(apart, 1e-6),
            ),
        ),
        outcome="(In single precision it is a few hundredths at worst: small sums are divided.) The same Transformer "
        "is trained in parallel, as lesson 06's, and writes like a recurrent network of lesson 03: with a state of "
        "fixed size. That is also its weakness: all that was read must fit into it.",
    )


def cheap(card: Card, *, bet=None) -> Result:
    lengths, names = efficient.LENGTHS, list(efficient.CONTESTANTS)
    counted = {
        name: [card["seeds"][0]["test"][f"operations a character at {length}, {name}"] for length in lengths]
        for name in names
    }
    bits = {name: seeds(card, f"bits per character, {name}") for name in names}
    pays = first_that_pays()
    linear, soft = bits["linear"], bits["softmax"]
    return Result(
        figures.cheap(lengths, counted, bits, pays, bet),
        alt="Left: operations for each character by the length of the text, both axes in logarithms. Softmax rises "
        "without end, local and linear attention stay level; the lines of softmax and linear cross at 80, a dotted "
        "line. Right: bits for each character, three seeds; linear attention needs the most, local the fewest.",
        claims=(
            ("at 4,096 characters it needs less than a fifth of the operations, and always more bits than softmax",
             5 * counted["linear"][-1] < counted["softmax"][-1] and min(linear) > max(soft)),
        ),
        came=float(pays),
        outcome=f"From {pays} characters on it needs fewer operations, as both are run here (below, partly filled "
        "blocks of 32 cost more; without its masked half softmax would hold out about twice as long). Little at "
        "first: at 256 characters less than a third is saved. In *time* it pays later still, since a loop over "
        "blocks is slower than one large product: `python -m course_lib.bench.lengths` shows by how much on your "
        "machine. Local attention is even ahead of softmax here: neighbours say nearly all in this text, and it need "
        "not learn that in so few steps. Where something far away matters it could not see it, and that we have not "
        "measured: 2,000 steps, windows of 128. **On other texts none of them has clearly beaten softmax "
        "everywhere** (Tay et al. 2021).",
    )  # fmt: skip


def first_that_pays() -> int:
    """The least number of characters from which on the linear GPT needs fewer operations than the softmax one."""
    of = efficient.CONTESTANTS
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
def dreams(model: DBN, *, bet=None) -> Result:
    first = model.layers[0]
    strongest = first.weight.norm(dim=1).argsort(descending=True)[:36]
    digits = boltzmann.digits("test").features[:12]
    torch.manual_seed(0)
    shown = {"Digits of the\ntest split": digits}
    shown |= {f"after {steps} steps\nof the chain": model.dream(digits, steps) for steps in (1, 10, 100)}
    return Result(
        figures.dreams(first.weight[strongest].view(-1, 8, 8), {k: v.view(-1, 8, 8) for k, v in shown.items()}),
        alt="Left, the weights of 36 hidden units as pictures of 8 by 8 pixels: bright and dark spots side by side. "
        "Right, twelve digits, and what the top of the stack makes of them after 1, 10 and 100 Gibbs steps: blurred "
        "strokes as digits have them, but seldom the digit that it began with.",
        outcome="No label was used. The hidden units look for ink here and paper there, much less tidily than the "
        "edges of lesson 01. Left to itself the machine dreams of something like digits, and soon forgets which one "
        "it began with.",
    )


def history(card: Card, *, bet=None) -> Result:
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
        alt="A table of the accuracy on digits with 20 and with 100 labels. With 20 the stack's features lead by a "
        "few points; with 100 pixels lead, and fine-tuning the stack is no better than starting from scratch.",
        claims=(
            ("with 20 labels the stack's features lead pixels by over 2 points; fine-tuned with 100 it gains nothing",
             min(stack) > max(pixels) + 0.02 and max(tuned) <= max(scratch)),
        ),
        came=1,
        outcome="The ranges are over seeds; from one draw of 20 labels to the next a score moves by 2 to 5 points, "
        "so a lead of four is a hint. In 2006 this was how deep fully connected networks could be trained at all: "
        "layer by layer, without labels first. With first weights of the right size and Adam the same net learns "
        "from scratch just as well. The machine is history; the idea, **first learn from what has no labels**, is "
        "lesson 07, 08 and 13.",
    )  # fmt: skip


RESULTS = {
    function.__name__: function
    for function in (
        timeline, gaps, spikes, heard, asked, walked, gate, layouts, recurrence, cheap, dreams, history,
    )
}  # fmt: skip
