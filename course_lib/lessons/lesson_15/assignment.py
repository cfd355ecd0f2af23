"""Lesson 15, Transformers everywhere: what its assignment's check cells ask; the grader's tables are in hidden/15."""

import torch
from torch import Generator, Tensor

from course_lib.functional.ctc import error_rate, greedy_decode
from course_lib.tasks import Check, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general

SYMBOLS, FEATURES, FRAMES, LONGEST = 6, 8, 48, 6
HEARD = 1_500  # sequences to learn from
NOISE = 0.7

NEIGHBOURS = Finding(
    "outputs depend on the other sequences",
    "What your model says of a sequence changes with the others of its batch.",
    "`model.eval()` where there is a BatchNorm, and no mean over the batch.",
)
SILENT = Finding(
    "only blanks",
    "Your model writes nothing at all: blank is the likeliest in every frame.",
    "So every CTC training begins. Train on: then symbols appear, one after the other.",
)
NOT_LEARNED = Finding(
    "not learned",
    "Half of the symbols are wrong, or more.",
    "Does the loss fall? Are the lengths of inputs and targets right, and is 0 the blank?",
)
MORE = Finding(
    "not good enough",
    "Most symbols are right; one in eight may be wrong.",
    "Let a frame see its neighbours (a convolution of width 5, or a GRU): the noise is not theirs.",
)


class Code:
    """A made code: each symbol has a sound of eight numbers that lasts for some frames; between symbols is silence."""

    def __init__(self, generator: Generator):
        self.random = generator
        self.sounds = 2.5 * torch.linalg.qr(torch.randn(FEATURES, SYMBOLS, generator=generator)).Q.T

    def batch(self, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Frames (count, 48, 8), symbols (count, 6) from 1 to 6, filled up with 0, and how many they are."""
        frames = NOISE * torch.randn(count, FRAMES, FEATURES, generator=self.random)
        symbols = torch.randint(1, SYMBOLS + 1, (count, LONGEST), generator=self.random)
        lengths = torch.randint(2, LONGEST + 1, (count,), generator=self.random)
        lasts = torch.randint(2, 6, (count, LONGEST), generator=self.random)
        gaps = torch.randint(1, 4, (count, LONGEST), generator=self.random)
        for row in range(count):
            position = 0
            for which in range(int(lengths[row])):
                position += int(gaps[row, which])
                end = position + int(lasts[row, which])
                frames[row, position:end] += self.sounds[symbols[row, which] - 1]
                position = end
        return frames, symbols * (torch.arange(LONGEST) < lengths[:, None]), lengths


def heard(model: ModuleProbe, frames: Tensor) -> list[list[int]]:
    """What the model writes, greedily: fails if it depends on chance or on the other sequences, or is nothing."""
    shape = (len(frames), FRAMES, SYMBOLS + 1)
    found = model.tensor(frames, shape=shape)
    if not torch.allclose(found, model.tensor(frames, shape=shape), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    for few in (3, 1):
        alone = model.tensor(frames[:few], shape=(few, *shape[1:]))
        if not torch.allclose(found[:few], alone, atol=1e-3, rtol=1e-3):
            raise CheckFailed(NEIGHBOURS)
    written = greedy_decode(found.log_softmax(dim=-1), torch.full((len(frames),), FRAMES))
    if not any(written):
        raise CheckFailed(SILENT)
    return written


def errs(name: str, points: float, *, below: float) -> Check:
    """Of new sequences a smaller share of symbols than this is wrong, missing or too many."""

    def trained(probe: Probe) -> tuple[ModuleProbe, Code]:
        code = Code(probe.draw.generator)
        return probe.make("train", *code.batch(HEARD), seconds=90), code

    def run(probe: Probe) -> list[Finding]:
        model, code = probe.once("trained", trained)
        frames, symbols, lengths = code.batch(300)
        wanted = [row[:length] for row, length in zip(symbols.tolist(), lengths.tolist(), strict=True)]
        rate = error_rate(heard(model, frames), wanted)
        return [] if rate < below else [(NOT_LEARNED if rate > 0.45 else MORE)]

    told = (NEIGHBOURS, SILENT, NOT_LEARNED, MORE)
    return Check(name=name, points=points, run=run, detects=tuple(one.misconception for one in told))


# the examples -----------------------------------------------------------------------------------------------

WALK = (
    ([[[1.0], [2.0]]], [[[10.0], [20.0]]], [[[100.0], [200.0]]]),
    [[[1.0], [10.0], [100.0], [2.0], [20.0], [200.0]]],
)
ENERGY = (([[1.0, 0.0]], [[1.0], [5.0]], [0.5, 9.0], [-1.0]), [-1.1931])
SEEN = (
    (torch.tensor([[7, 9, 3, 9, 4]]), 9, 2),
    [[[False, False], [True, False], [True, False], [False, True], [False, True]]],
)
BUCKETS = ((torch.tensor([0, 1, 3, 4, 8, 31, 500]), 8, 32), [0, 1, 3, 4, 5, 7, 7])
SQUARE = ((torch.tensor([[0, 5], [40, 2]]), 8, 32), [[0, 4], [7, 2]])

SHOWN = (
    Task("interleave", "Three tokens for each step", asks="returns, states, actions", also=(keeps_type, gradients),
         example=(WALK,)),
    Task("free_energy", "What a machine likes", asks="v, W, b, c", also=(keeps_type, gradients), example=(ENERGY,)),
    Task("last_picture", "Look at the last picture", asks="tokens, picture_token, count", example=(SEEN,)),
    Task("buckets", "Near exactly, far roughly", asks="distance, num_buckets, max_distance", example=(BUCKETS, SQUARE)),
    Task(
        "train",
        "Symbols without an alignment",
        asks="frames, symbols, lengths",
        seconds=90.0,
        checks=(
            errs("New sequences: more than half of the symbols right", 8, below=0.45),
            errs("New sequences: seven of eight right", 12, below=0.125),
        ),
    ),
)  # fmt: skip
ASSIGNMENT = {task.name: task for task in SHOWN}
