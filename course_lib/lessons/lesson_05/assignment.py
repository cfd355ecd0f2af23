"""Lesson 05, Attention: what the check cells of its assignment ask; the grader's tables are in hidden/05."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from course_lib.layers.transformer import MultiHeadAttention
from course_lib.tasks import TRAINING_SECONDS, Check, Draw, Finding, Task, TaskInput, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import CheckFailed
from course_lib.tasks.trained import ELSEWHERE, in_parameters


def dictionaries(draw: Draw, count: int, entries: int = 5, code: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Dictionaries with a question, (count, 1 + entries, 2), and their answers, (count,).

    Row 0 holds the question and an 8, the other rows a key and its value; `code` maps keys to what asks for them.
    """
    keys = draw(count, 8).argsort(dim=1)[:, :entries]
    values, asked = draw.integers(0, 8, count, entries), draw.integers(0, entries, count, 1)
    question = keys.gather(1, asked) if code is None else code[keys.gather(1, asked)]
    head = torch.stack([question, torch.full_like(question, 8)], dim=2)
    return torch.cat([head, torch.stack([keys, values], dim=2)], dim=1), values.gather(1, asked)[:, 0]


NOT_LEARNED = Finding(
    "not learned",
    "On new dictionaries the accuracy is too low, and on the training examples it is hardly higher.",
    "Does the loss fall from step to step? Compare the question with the keys, and only then read the values.",
)
MEMORISED = Finding(
    "memorised",
    "The accuracy on the training examples is much higher than on new ones.",
    "Apply the same layers to each entry, and weight the values by the products of the question and the keys.",
)
ONE_LENGTH = Finding(
    "only dictionaries of one length",
    "The answers are correct for dictionaries of the training length, but not for longer ones.",
    "Nothing in the module may depend on the number of entries or on their positions.",
)
BUILT_IN = Finding(
    "rule not learned from the data",
    "When the questions are in a secret code, too many answers are wrong.",
    "Give the question an embedding of its own, so that training learns which question belongs to which key.",
)


def answers(name: str, points: float, *, level: float, entries: int = 5, coded: bool = True) -> Check:
    """The accuracy on new questions, of what `train` returns, is at least this."""

    def trained(probe: Probe) -> tuple[ModuleProbe, tuple, Tensor | None]:
        ring = probe.draw(8).argsort()  # each symbol asks for the next in a ring, never for itself
        code = torch.empty_like(ring).scatter(0, ring, ring.roll(1)) if coded else None
        examples, new = dictionaries(probe.draw, 300, code=code), dictionaries(probe.draw, 200, code=code)
        model = probe.make("train", *examples)
        in_parameters(model, new[0], knows=lambda: right(model, *new) > 0.5, at_least=16)
        return model, examples, code

    def right(model: ModuleProbe, inputs: Tensor, targets: Tensor) -> float:
        return (model.tensor(inputs, shape=(len(inputs), 8)).argmax(dim=1) == targets).float().mean().item()

    def run(probe: Probe) -> list[Finding]:
        model, examples, code = probe.once(f"trained, coded: {coded}", trained)
        try:
            new = right(model, *dictionaries(probe.draw, 500, entries, code))
        except CheckFailed:
            if entries == 5:
                raise
            new = 0.0
        if new >= level:
            return []
        if entries != 5 and right(model, *dictionaries(probe.draw, 500, code=code)) >= level:
            return [ONE_LENGTH]
        known = right(model, *examples)
        return [(MEMORISED if known > new + 0.2 else BUILT_IN if coded else NOT_LEARNED)]

    told = (NOT_LEARNED, MEMORISED, ONE_LENGTH, BUILT_IN)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


BOTH = (keeps_type, replace(gradients, points=3.0))
PREDICTIVE = (
    (
        [[[2.0, 0.0, 0.0, 0.0]]],
        [[[0.0] * 4, [math.log(3), 0.0, 0.0, 0.0], [0.0] * 4, [0.0] * 4]],
        [[[24.0], [8.0], [24.0], [96.0]]],
        [[math.log(2) / 2, 0.0, 0.0, 0.0]],
        [-math.log(3) / 0.6],
        math.sqrt(2 / math.log(2)),
    ),
    [[[9.0]]],
)
RELATIVE = (
    (
        [[[2.0, 0.0, 0.0, 0.0]] * 3],
        [[[math.log(2), 0.0, 0.0, 0.0], [0.0] * 4, [0.0] * 4]],
        [[[1.0], [2.0], [4.0]]],
        [[math.log(2), 0.0, 0.0, 0.0], [0.0] * 4, [math.log(3), 0.0, 0.0, 0.0]],
        [[1.0], [3.0], [5.0]],
        1,
    ),
    [[[7.0], [5.0], [3.0]]],
)
VALUES = [[[4.0], [8.0], [0.0], [12.0], [3.0]]]
LOOKING = [2 * math.log(3), 0.0, 0.0, 0.0]
NEAR = [[LOOKING, LOOKING, *[[0.0] * 4] * 3]], [[[0.0] * 4, [1.0, 0.0, 0.0, 0.0], *[[0.0] * 4] * 3]], VALUES
LOW = [[[500.0, 0.0, 0.0, 0.0]] * 5], [[[-200.0, 0.0, 0.0, 0.0]] * 5], VALUES  # all scores are -50,000
FIRST = [[0.0] * 4, LOOKING, LOOKING, [0.0] * 4, [0.0] * 4]
LOCAL = (
    ((*NEAR, 1), [[[7.0], [5.6], [20 / 3], [5.0], [7.5]]]),
    ((*LOW, 1), [[[6.0], [4.0], [20 / 3], [5.0], [7.5]]]),
)
STREAMING = (
    (([FIRST], *NEAR[1:], 2, 2), [[[4.0], [7.0], [5.6], [6.0], [6.75]]]),
    ((*LOW, 2, 2), [[[4.0], [6.0], [4.0], [6.0], [6.75]]]),
)
LINKS = [[(0, 0), (1, 2), (2, 1)], [(0, 0)]], [[(0, 0), (1, 1)], [(0, 0)]], [[(2, 1)], []]
MAPS = {"q_proj.weight": math.log(3) * torch.eye(2), "o_proj.weight": torch.eye(2)}
MAPS |= {"k_proj.weight": torch.tensor([[1.0, 0.0]]), "v_proj.weight": torch.tensor([[0.0, 1.0]])}
MAPS |= {name.replace("weight", "bias"): torch.zeros(len(weight)) for name, weight in MAPS.items()}
HEADS = TaskInput(([[[0.0, 1.0], [1.0, 0.0]]],), build=(2, 2, 1), parameters=MAPS), [[[0.5, 0.25], [0.25, 0.5]]]
COPIES = {"q_proj.weight": torch.zeros(8, 8), "o_proj.weight": torch.eye(8)}
COPIES |= {"k_proj.weight": torch.zeros(4, 8), "v_proj.weight": torch.eye(4, 8)}
COPIES |= {name.replace("weight", "bias"): torch.zeros(len(weight)) for name, weight in COPIES.items()}
ALONE = (
    TaskInput(
        (
            [[[1.0, 2.0, 3.0, 4.0, *[0.0] * 4], [5.0, 6.0, 7.0, 8.0, *[0.0] * 4]]],
            torch.eye(2, dtype=torch.bool)[None, None],
        ),
        build=(8, 4, 2),
        parameters=COPIES,
    ),
    [[[1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0], [5.0, 6.0, 5.0, 6.0, 7.0, 8.0, 7.0, 8.0]]],
)


class GroupedQueryAttention(MultiHeadAttention):
    """Query heads in groups that share keys and values, Ainslie et al. 2023, section 2.2."""

    def __init__(self, dim: int, num_heads: int, num_kv_heads: int):
        super().__init__(dim, num_heads, num_kv_heads=num_kv_heads)


SHOWN = (
    Task(
        "predictive_attention",
        "Predict where to attend",
        asks="q, k, v, W, w, radius",
        also=BOTH,
        example=(PREDICTIVE,),
    ),
    Task(
        "relative_attention",
        "Attend by relative position",
        asks="q, k, v, R_k, R_v, clip",
        also=BOTH,
        example=(RELATIVE,),
    ),
    Task("local_attention", "Only the neighbours", asks="q, k, v, window", also=BOTH, example=LOCAL),
    Task(
        "streaming_attention",
        "The first words and the last",
        asks="q, k, v, sinks, window",
        also=BOTH,
        example=STREAMING,
    ),
    Task(
        "alignment_error_rate",
        "How wrong are the links?",
        asks="predicted, sure, possible",
        example=((LINKS, 2 / 7),),
    ),
    Task(
        "alignment_f_measure",
        "How good are the links?",
        asks="predicted, sure, possible, alpha",
        example=(((*LINKS, 0.25), 24 / 35),),
    ),
    Task(
        "GroupedQueryAttention",
        "Heads that share keys and values",
        asks="x, mask=None",
        module=GroupedQueryAttention,
        also=BOTH[1:],
        example=(HEADS, ALONE),
    ),
    Task(
        "train",
        "A network that looks things up",
        asks="inputs, targets",
        seconds=TRAINING_SECONDS,
        checks=(
            answers("At least 95 % of new dictionaries are answered right", 3, level=0.95, coded=False),
            answers("With questions in a secret code, at least 70 % are answered right", 4, level=0.7),
            answers("With questions in a secret code, at least 95 % are answered right", 4, level=0.95),
            answers("At least 90 % of longer dictionaries, in a secret code, too", 4, level=0.9, entries=8),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
