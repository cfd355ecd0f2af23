"""Lesson 15, One model for text and sound: what its assignment's check cells ask; the tables are in hidden/15."""

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from course_lib.functional.ctc import error_rate, greedy_decode
from course_lib.tasks import TRAINING_SECONDS, Check, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general
from course_lib.tasks.trained import ELSEWHERE, in_parameters

# an artificial code, drawn anew for each training -------------------------------------------------------------

SYMBOLS, FEATURES, NOISE = 6, 8, 0.7
KNOWN, NEW = 150, 300  # recordings of the training, and of the measurement
FRAMES, LONGER = 48, 96
AHEAD = 4  # frames behind a frame on which its logits may depend


class Code:
    """An artificial code: each symbol is a vector of eight numbers that lasts for some frames, with silence between."""

    def __init__(self, generator: Generator):
        self.random = generator
        self.vectors = 2.5 * torch.linalg.qr(torch.randn(FEATURES, SYMBOLS, generator=generator)).Q.T

    def recordings(self, count: int, T: int = FRAMES) -> tuple[Tensor, Tensor, Tensor]:
        """Frames (count, T, 8), symbols from 1 to 6 (count, T // 8), padded with 0, and how many they are (count,)."""
        most = T // 8
        frames = NOISE * torch.randn(count, T, FEATURES, generator=self.random)
        symbols = torch.randint(1, SYMBOLS + 1, (count, most), generator=self.random)
        lengths = torch.randint(most // 3, most + 1, (count,), generator=self.random)
        last = torch.randint(2, 6, (count, most), generator=self.random)
        silent = torch.randint(1, 4, (count, most), generator=self.random)
        ends = (last + silent).cumsum(dim=1)[..., None]
        real = torch.arange(most) < lengths[:, None]
        heard = (torch.arange(T) < ends) & (torch.arange(T) >= ends - last[..., None]) & real[..., None]
        frames += torch.einsum("bst,bsf->btf", heard.float(), self.vectors[symbols - 1])
        return frames, symbols * real, lengths


TOGETHER = Finding(
    "result depends on the other recordings",
    "The logits of a recording change with the other recordings of its batch.",
    "A batch norm in training mode uses the batch. Return the network in evaluation mode: `model.eval()`.",
)
TOO_LATE = Finding(
    "too much look-ahead",
    f"The logits of a frame change when frames that come more than {AHEAD} frames later change.",
    "Add up over all layers how many later frames each of them sees. Attention needs a mask, and a convolution can be "
    "padded on the left alone.",
)
ONLY_BLANKS = Finding(
    "only blanks",
    "In every frame of every recording the largest logit is that of the blank.",
    "Each CTC training begins like this. Train for more steps, or with a larger learning rate.",
)
NOT_LEARNED = Finding(
    "not learned",
    "Many symbols are wrong, in recordings of the training, too.",
    "Does the loss fall? Is the blank number 0, are the lengths right, and does a frame see its neighbours?",
)
MEMORISED = Finding(
    "memorised",
    "The recordings of the training are transcribed much better than new ones of the same code.",
    "There are few recordings. What lets the network see each of them in another version in each step?",
)
LONG_ONES = Finding(
    "only recordings of one length",
    "Recordings of the training's length are transcribed well, and longer ones are not.",
    "Does a layer depend on the number of frames, or on absolute positions?",
)


def transcribed(model: ModuleProbe, frames: Tensor, draw: Tensor) -> list[list[int]]:
    """The greedy transcriptions; a CheckFailed if they depend on chance, on later frames or on other recordings.

    `draw` are frames of one recording, in place of later ones.
    """
    B, T, _ = frames.shape

    def ask(some: Tensor) -> Tensor:
        return model.tensor(some, shape=(len(some), T, SYMBOLS + 1))

    few = ask(frames[:3])
    again, alone, found = ask(frames[:3]), ask(frames[:1]), ask(frames)
    for one, other, fault in (
        (few, again, general(RANDOM)),
        (few[:1], alone, TOGETHER),
        (few, found[:3], TOGETHER),
    ):
        if not torch.allclose(one, other, atol=1e-2, rtol=1e-2):
            raise CheckFailed(fault)
    for t in (T // 2, T - AHEAD - 2):
        changed = torch.where(torch.arange(T)[:, None] > t + AHEAD, draw, frames[:3])
        if not torch.allclose(ask(changed)[:, : t + 1], few[:, : t + 1], atol=1e-2, rtol=1e-2):
            raise CheckFailed(TOO_LATE)
    return greedy_decode(found, torch.full((B,), T))


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A trained network, the code, the recordings of the training, and the error rate in new ones."""

    model: ModuleProbe
    code: Code
    known: tuple[Tensor, Tensor, Tensor]
    wrong: float


def errors(model: ModuleProbe, recordings: tuple[Tensor, Tensor, Tensor], draw: Tensor) -> float:
    """The error rate of a network's transcriptions; a CheckFailed if they all are empty."""
    frames, symbols, lengths = recordings
    found = transcribed(model, frames, draw)
    if not any(found):
        raise CheckFailed(ONLY_BLANKS)
    true = [row[:length] for row, length in zip(symbols.tolist(), lengths.tolist(), strict=True)]
    return error_rate(found, true)


def _others(probe: Probe, T: int) -> Tensor:
    return 2 * probe.draw(T, FEATURES)


def _trained(probe: Probe) -> Trained:
    """A CheckFailed if the network depends on chance, later frames or other recordings, or knows without parameters."""
    code = Code(probe.draw.generator)
    known = code.recordings(KNOWN)
    model = probe.make("train", *known)
    new, others = code.recordings(NEW), _others(probe, FRAMES)
    in_parameters(model, new[0][:8], knows=lambda: errors(model, new, others) < 0.7)
    return Trained(model=model, code=code, known=known, wrong=errors(model, new, others))


def _why(probe: Probe, trained: Trained, wrong: float) -> list[Finding]:
    """What is said of an error rate that is too large."""
    on_known = errors(trained.model, trained.known, _others(probe, FRAMES))
    return [MEMORISED if on_known < min(0.5 * wrong, wrong - 0.03) else NOT_LEARNED]


def transcribes(name: str, points: float, *, below: float) -> Check:
    """The error rate in new recordings is below this."""

    def run(probe: Probe) -> list[Finding]:
        trained = probe.once("trained", _trained)
        return [] if trained.wrong < below else _why(probe, trained, trained.wrong)

    told = (TOGETHER, TOO_LATE, ONLY_BLANKS, NOT_LEARNED, MEMORISED)
    return Check(name=name, points=points, run=run, detects=(*(one.misconception for one in told), ELSEWHERE))


def longer(name: str, points: float, *, below: float) -> Check:
    """The error rate in recordings that are twice as long as those of the training is below this."""

    def run(probe: Probe) -> list[Finding]:
        trained = probe.once("trained", _trained)
        recordings = trained.code.recordings(NEW // 2, LONGER)
        try:
            wrong = errors(trained.model, recordings, _others(probe, LONGER))
        except CheckFailed as fault:
            raise fault if fault.finding == TOO_LATE else CheckFailed(LONG_ONES) from None
        if wrong < below:
            return []
        return [LONG_ONES] if wrong > trained.wrong + 0.1 else _why(probe, trained, wrong)

    told = (TOGETHER, TOO_LATE, ONLY_BLANKS, NOT_LEARNED, MEMORISED, LONG_ONES)
    return Check(name=name, points=points, run=run, detects=(*(one.misconception for one in told), ELSEWHERE))


# the examples -----------------------------------------------------------------------------------------------

CUTS = (
    (
        [[0.5, 0.9, 0.2, 0.1, 0.6, 0.3, 0.4, 0.7, 0.75, 0.8]],
        [[0.8, 0.3, 0.7, 0.6, 0.9, 0.1, 0.4, 0.2, 0.5, 0.55]],
        0.4,
        2.0,
    ),
    [[0, 0, 1, 1, 1, 0, 0, 0, 0, 1]],
)
GAPS = (
    (
        torch.arange(11, 21),
        [0.5, 0.1, 0.8, 0.3, 0.6, 0.2, 0.9, 0.4, 0.7, 0.05],
        [0.2, 0.6, 0.9, 0.1, 0.7, 0.3, 0.8, 0.4, 0.05, 0.5, 0.15],
        0.4,
        2.0,
        0,
    ),
    [0, 13, 14, 15, 0, 16, 17, 0, 20],
)
CHUNKS = (
    (torch.tensor([5]), 6, 2, 1),
    [[[1, 1, 0, 0, 0, 0]] * 2 + [[1, 1, 1, 1, 0, 0]] * 2 + [[0, 0, 1, 1, 1, 0]] * 2],
)
OF_CHUNKS = [[1, 0, 0, 1, 1, 0, 0, 0, 0], [0, 1, 0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 0]]
COPIES = (
    (torch.tensor([5]), 6, 2, 1, 1),
    [OF_CHUNKS + [row for row in OF_CHUNKS for _ in range(2)]],
)


def _log_probs(*of_the_symbol: float) -> list[list[list[float]]]:
    """One recording: the logarithms of the probabilities of the blank, and of the only symbol."""
    return [[[math.log(1 - p), math.log(p)] for p in of_the_symbol]]


BEST_PATH = (_log_probs(0.9, 0.8, 0.3, 0.6), torch.tensor([[1]])), [[1, 1, 0, 0]]
WRITTEN = (
    (
        [[_log_probs(0.6, 0.5)[0], _log_probs(0.5, 0.2)[0]]],
        torch.tensor([[1]]),
        torch.tensor([2]),
        torch.tensor([1]),
    ),
    [-math.log(0.4)],
)
FRACTIONS = (_log_probs(0.4, 0.5), torch.tensor([[1]])), [[[3 / 7, 4 / 7], [2 / 7, 5 / 7]]]

SHOWN = (
    Task("span_mask", "Spans to corrupt", asks="u, v, rate, mean_length", example=(CUTS,)),
    Task(
        "text_infilling",
        "Text infilling",
        asks="ids, u, v, rate, mean_length, mask_id",
        example=(GAPS,),
    ),
    Task("chunk_mask", "A mask for streaming", asks="lengths, T, size, left", example=(CHUNKS,)),
    Task("look_ahead_mask", "A mask with look-ahead", asks="lengths, T, size, left, right", example=(COPIES,)),
    Task("align", "Forced alignment", asks="log_probs, targets", example=(BEST_PATH,)),
    Task(
        "transducer_loss",
        "The loss of a transducer",
        asks="log_probs, targets, input_lengths, target_lengths",
        also=(gradients,),
        example=(WRITTEN,),
    ),
    Task(
        "occupation",
        "Where each symbol is",
        asks="log_probs, targets",
        also=(keeps_type,),
        forbids=("ctc_loss", "autograd", "backward", "grad", "requires_grad", "requires_grad_", "vjp", "jacrev"),
        example=(FRACTIONS,),
    ),
    Task(
        "train",
        "Symbols without an alignment",
        asks="frames, symbols, lengths",
        seconds=TRAINING_SECONDS,
        checks=(
            transcribes("New recordings: error rate below 0.25", 8, below=0.25),
            transcribes("New recordings: error rate below 0.09", 8, below=0.09),
            longer("Longer recordings: error rate below 0.1", 8, below=0.1),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
