"""Lesson 08, GPT: what the check cells of its assignment ask; the grader's tables are in hidden/08."""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.tasks import TRAINING_SECONDS, Check, Draw, Finding, Task, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general
from course_lib.tasks.table import Measure
from course_lib.tasks.trained import ELSEWHERE, in_parameters

# a small language, drawn anew for each training -------------------------------------------------------------

SYMBOLS = 9  # the letters 1 to 8, and 0 for a space
LENGTH = 32  # symbols that a model reads at most


class Language:
    """Thirty words of two to six letters; each may be followed by three words, all equally likely."""

    def __init__(self, draw: Draw):
        words = [draw.integers(1, SYMBOLS, length).tolist() for length in draw.integers(2, 7, 30).tolist()]
        self.words = [[*word, 0] for word in words]
        self.follow = draw(30, 30).argsort(dim=1)[:, :3].tolist()

    def text(self, draw: Draw, size: int) -> Tensor:
        """So many symbols, words with a space behind each."""
        text, word = [], 0
        for choice in draw.integers(0, 3, size).tolist():
            word = self.follow[word][choice]
            text += self.words[word]
            if len(text) >= size:
                break
        return torch.tensor(text[:size])


FUTURE = Finding(
    "attends to later symbols",
    "The predictions at a position change when later symbols change: the model has read what it must predict.",
    "Hide the later positions in every layer: causal masks in attention, no layer that reads from right to left.",
)
NOT_LEARNED = Finding(
    "not learned",
    "The symbols of new text are predicted worse than the task requires.",
    "Does the loss fall from step to step? Compare with the bits in the text: more steps, or a larger learning rate?",
)
MEMORISED = Finding(
    "memorised",
    "The beginning of the training text is predicted much better than new text of the same language: it is memorised.",
    "Draw the windows from the whole text, at other positions in each step.",
)
COPIES = Finding(
    "target not shifted",
    "The logits at a position predict the symbol at this position, which the model has read, and not the next one.",
    "In training, the label of the logits at position t is the symbol at t + 1.",
)
PROBABILITIES = Finding(
    "probabilities instead of logits",
    "Your model returns probabilities; the grader takes a softmax of what it returns.",
    "Return the logits, which go into the softmax; `cross_entropy` in your training takes the logits, too.",
)
LAST = Finding(
    "last position not trained",
    "The logits at the last position, after 32 symbols, are much worse than those before it.",
    "A window of 32 symbols has 31 next symbols. Which windows train a prediction after all 32?",
)
ONE_LENGTH = Finding(
    "only texts of one length",
    "Windows of the training length are predicted well, shorter ones are not.",
    "Add positions 0 to T-1 for the T symbols that are given, and make the mask for T, too.",
)


def windows(text: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """The text in pieces that have no symbol in common: what is read, and what comes next."""
    pieces = text[: len(text) // (length + 1) * (length + 1)].view(-1, length + 1)
    return pieces[:, :-1], pieces[:, 1:]


def scores(model: ModuleProbe, read: Tensor, draw: Draw) -> Tensor:
    """The model's scores; a CheckFailed if they depend on chance, or on what comes later."""
    N, T = read.shape
    found = model.tensor(read, shape=(N, T, SYMBOLS))
    if not torch.allclose(found, model.tensor(read, shape=(N, T, SYMBOLS)), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    other = read.clone()
    other[:, T // 2 :] = draw.integers(0, SYMBOLS, N, T - T // 2)
    changed = model.tensor(other, shape=(N, T, SYMBOLS))
    if not torch.allclose(found[:, : T // 2], changed[:, : T // 2], atol=1e-3, rtol=1e-3):
        raise CheckFailed(FUTURE)
    return found


def bits(found: Tensor, right: Tensor) -> float:
    """Bits per symbol, in the second half of each window."""
    half = right.shape[1] // 2
    return F.cross_entropy(found[:, half:].flatten(0, 1), right[:, half:].flatten()).item() / math.log(2)


def writes(name: str, points: float, *, below: float, length: int = LENGTH) -> Check:
    """New text of the language costs fewer bits per symbol than this, in windows of this length."""

    def trained(probe: Probe) -> tuple[ModuleProbe, Language, Tensor]:
        language = Language(probe.draw)
        text, fresh = language.text(probe.draw, 20_000), language.text(probe.draw, 1_000)
        model = probe.make("train", text)
        read, _ = windows(fresh, LENGTH)
        in_parameters(model, read, knows=lambda: cost(model, fresh, probe.draw) < 2.2)
        return model, language, text

    def cost(model: ModuleProbe, text: Tensor, draw: Draw, length: int = LENGTH) -> float:
        read, right = windows(text, length)
        return bits(scores(model, read, draw), right)

    def run(probe: Probe) -> list[Finding]:
        model, language, text = probe.once("trained", trained)
        fresh = language.text(probe.draw, 8_000)
        new = cost(model, fresh, probe.draw)
        if length == LENGTH:
            probe.measured = new - math.log2(3) * (fresh == 0).float().mean().item()  # 3 choices for each word
        else:
            full = new
            try:
                new = cost(model, fresh, probe.draw, length)
            except CheckFailed:
                new = math.inf
            return [] if new < below else [(ONE_LENGTH if full < below else NOT_LEARNED)]
        if new < below:
            return []
        read, right = windows(fresh, length)
        found = scores(model, read, probe.draw)
        if bits(found[:, :-1], right[:, :-1]) < below:
            return [LAST]
        if (found >= 0).all() and torch.allclose(found.sum(-1), torch.ones(()), atol=1e-3):
            return [PROBABILITIES]
        if bits(found, read) < new:
            return [COPIES]
        if cost(model, text[:1_000], probe.draw) < new - 0.3:
            return [MEMORISED]
        measured = f"New text costs {new:.2f} bits per symbol; the task requires less than {below}."
        return [replace(NOT_LEARNED, message=measured)]

    told = (FUTURE, NOT_LEARNED, LAST, MEMORISED, COPIES, PROBABILITIES, ONE_LENGTH)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


# the examples -----------------------------------------------------------------------------------------------

ODDS = (
    ([[4 * math.log(2), 2 * math.log(2), -math.log(2), 0.0]], torch.tensor([[2, 0, 2]]), 2.0, 0.2),
    [[4 / 9, 4 / 9, 0.0, 1 / 9]],
)
ROWS = [[8.0, 6.0, 4.0, 2.0], [7.0, 5.0, 3.0, 1.0], [9.0, 4.0, 2.0, 1.0]]  # in bits
ONCE = ([[n * math.log(2) for n in row] for row in ROWS], [0, 2, 3], "déjà dit"), 2.5
TYPICAL = (
    (
        [[2 * math.log(2), math.log(2), 0.0, 0.0, 5 * math.log(2)]],
        torch.tensor([[2, 0, 4, 1, 2, 0]]),
        3,
        0.5,
    ),
    [[2 / 3, 1 / 3, 0.0, 0.0, 0.0]],
)
PIECES = [("déj", -1.0), ("dé", -1.5), ("jà", -2.0), ("l", -3.0), ("à", -3.0)]
CUT = ("déjà là", PIECES, -2.0), [257, 258, 32, 108, 260]
LIKELY = [math.log(p) for p in (1 / 8, 1 / 2, 1 / 4, 1 / 8)]
DOCUMENTS = ([[LIKELY] * 4] * 2, torch.tensor([[0, 1, 2, 3], [0, 3, 1, 0]]), [4, 3], ["ne", "né"]), 2.0
TOKENS = ("déjà dé", [(195, 169), (100, 256), (32, 100)]), [257, 106, 195, 160, 32, 257]

TYPE = (keeps_type,)  # drawing needs no gradient
SHOWN = (
    Task(
        "sampling_odds",
        "Sampling with a penalty and min-p",
        asks="logits, written, penalty, min_p",
        also=TYPE,
        example=(ODDS,),
    ),
    Task(
        "typical_odds",
        "Typical tokens, and no phrase twice",
        asks="logits, written, n, mass",
        also=TYPE,
        example=(TYPICAL,),
    ),
    Task("encode", "From bytes to tokens", asks="text, merges", example=(TOKENS,)),
    Task("encode_unigram", "The most probable pieces", asks="text, pieces, byte_score", example=(CUT,)),
    Task("bits_per_byte", "Bits per byte of a long text", asks="nats, starts, text", example=(ONCE,)),
    Task(
        "corpus_bits_per_byte",
        "Bits per byte of many documents",
        asks="logits, tokens, lengths, texts",
        example=(DOCUMENTS,),
    ),
    Task(
        "train",
        "A language in half a minute",
        asks="text",
        seconds=TRAINING_SECONDS,
        measure=Measure("number of bits per symbol of new text, beyond those that are in it", lower_is_better=True),
        checks=(
            writes("New text costs fewer bits than with a table of pairs", 5, below=2.2),
            writes("New text costs fewer bits than with a table of triples", 5, below=0.9),
            writes("New text costs hardly more bits than there are in it", 7, below=0.5),
            writes("Shorter texts are predicted well, too", 5, below=0.65, length=12),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
