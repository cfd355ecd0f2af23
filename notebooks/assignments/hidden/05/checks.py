"""Assignment 05, Attention: what the grader asks of each answer, and what it gives for it.

Everything here stays on the grader's side. A check's name is read by students: it says what is expected, and nothing of
the inputs that it is tried with. Some checks compare an answer with itself, such as "hiding keys is like leaving them
out": they give points for what is right in an answer that has a mistake elsewhere.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.functional.attention import additive_scores, causal_mask, masked_softmax, readable_attention
from course_lib.functional.positions import sinusoidal_positions
from course_lib.grading.boxed.limits import Limits
from course_lib.grading.spec import (
    DIFFERS,
    GRADIENT_DIFFERS,
    TOO_LITTLE_LEARNT,
    Assignment,
    HiddenCheck,
    Task,
    agrees,
    difference,
    given,
    module_agrees,
    property_check,
)
from course_lib.grading.subject import RemoteModule, Subject
from course_lib.layers.transformer import MultiHeadAttention
from course_lib.tasks import Finding
from course_lib.tasks import attention as properties
from course_lib.tasks.core import NUMBER_TYPE, other_type

EXACT = 1e-9  # only numbers of 64 bits can be that close


# references and inputs --------------------------------------------------------------------------------------


def softmax(x: Tensor) -> Tensor:
    return x.softmax(dim=-1)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return readable_attention(q, k, v, mask=mask)[0]


def additive_attention(q: Tensor, h: Tensor, W: Tensor, U: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return masked_softmax(additive_scores(q, h, W, U, v), mask) @ h


def queries_keys_values(subject: Subject, *front: int, queries: int, keys: int) -> list[Tensor]:
    """Queries and keys of width 8 and values of width 5, with these axes in front."""
    return [subject.random(*front, *size) for size in [(queries, 8), (keys, 8), (keys, 5)]]


def additive_inputs(subject: Subject, batch: int, queries: int, keys: int) -> list[Tensor]:
    """q, h, W, U and v; queries are 3 wide, annotations 5, the layer between them 4."""
    sizes = [(batch, queries, 3), (batch, keys, 5), (4, 3), (4, 5), (4,)]
    return [subject.random(*size) for size in sizes]


def some_visible(subject: Subject, *shape: int) -> Tensor:
    """A random mask; every query sees its first key, and each other with probability one half."""
    mask = subject.random(*shape) > 0
    mask[..., 0] = True
    return mask


def filled_up(subject: Subject, batch: int, keys: int) -> Tensor:
    """True for the words of sentences of different lengths, False for the filling behind them: (batch, keys)."""
    return torch.arange(keys) <= subject.integers(0, keys - 1, batch)[:, None]


def explained(misconception: str) -> Finding:
    message, hint = properties.EXPLANATIONS[misconception]
    return Finding(misconception=misconception, message=message, hint=hint)


# checks that several tasks share ----------------------------------------------------------------------------

HIDDEN = "Hiding keys is like leaving them out"
BLIND = "Who sees nothing gets zeros, and nobody else is touched by it"
GRADIENT = "The gradients that flow back through it are right"


def masked_is_left_out(attend: Callable[[Tensor | None, Tensor | None], Tensor], keys: int, hidden: Tensor) -> list:
    """Compares an answer with itself: `attend(mask, kept)` attends under a mask of shape (keys,) to the kept keys."""
    visible = torch.ones(keys, dtype=torch.bool).scatter(0, hidden, False)
    masked = attend(visible, None)
    if difference(masked, attend(None, None), 1e-5) is None:
        return [explained(properties.MASK_IGNORED)]
    if difference(masked, attend(None, visible.nonzero()[:, 0]), 1e-4) is None:
        return []
    if difference(masked, attend(None, hidden), 1e-4) is None:
        return [explained(properties.MASK_INVERTED)]
    return [
        Finding(
            misconception="hidden keys still count",
            message="Hidden keys still have an influence: without them your function gives another result.",
            hint="Give hidden scores the value -inf before the softmax: then the others share the whole.",
        )
    ]


def blind_findings(result: Tensor, expected: Tensor) -> list[Finding]:
    """For a result in which the first query saw nothing."""
    wrong = difference(result, expected, 1e-5)
    if wrong is None:
        return []
    first = result[..., 0, :]
    if not first.isfinite().all():
        return [explained(properties.SEES_NOTHING)]
    return [explained(properties.READS_HIDDEN) if difference(first, expected[..., 0, :], 1e-5) else plainly(wrong)]


def plainly(wrong: str) -> Finding:
    message = "The numbers differ from what they should be." if wrong == DIFFERS else ""
    return Finding(misconception=wrong, message=message)


def keeps_type(
    name: str, *, points: float, inputs: Callable[[Subject], list[Tensor]], reference: Callable[..., Tensor]
) -> HiddenCheck:
    """Numbers of 32 bits give numbers of 32 bits, and those of 64 bits full precision."""

    def run(subject: Subject) -> list[Finding]:
        arguments = inputs(subject)
        for number_type, tolerance in ((torch.float32, 1e-5), (torch.float64, EXACT)):
            typed = [value.to(number_type) for value in arguments]
            actual = subject.call(*typed)
            wrong = difference(actual, reference(*typed), tolerance)
            if wrong in (None, DIFFERS) and (other := other_type(actual, number_type)):
                return other
            if wrong:
                return [plainly(wrong)]
        return []

    return HiddenCheck(name=name, points=points, run=run, detects=(DIFFERS, NUMBER_TYPE))


def gradients_agree(
    *, points: float, inputs: Callable[[Subject], list[Tensor]], reference: Callable[..., Tensor], needs: str
) -> HiddenCheck:
    """The gradients of all inputs are those of the reference."""

    def run(subject: Subject) -> list[Finding]:
        arguments = inputs(subject)
        leaves = [value.clone().requires_grad_() if value.is_floating_point() else value for value in arguments]
        wanted = reference(*leaves)
        arriving = subject.random(*wanted.shape)
        wanted.backward(arriving)
        theirs = subject.gradients(*arguments, output_gradient=arriving).inputs
        pairs = [(own, leaf.grad) for own, leaf in zip(theirs, leaves, strict=True) if leaf.grad is not None]
        if not any(difference(own, wanted, 1e-4) for own, wanted in pairs):
            return []
        return [
            Finding(
                misconception=GRADIENT_DIFFERS,
                message="The result is right, but the gradients that flow back through it are not.",
                hint="Is something detached, computed under `no_grad`, or copied through `.data` or `.item()`?",
            )
        ]

    return HiddenCheck(name=GRADIENT, points=points, run=run, detects=(GRADIENT_DIFFERS,), needs=(needs,))


# 1 softmax --------------------------------------------------------------------------------------------------

ROWS = "Each row becomes shares that sum to one"
SOFTMAX = Task(
    name="softmax",
    title="A softmax for large numbers",
    checks=(
        property_check(properties.SOFTMAX[0], name=ROWS, points=3),
        property_check(
            properties.SOFTMAX[1], name="Large numbers do no harm, wherever they stand", points=3, needs=(ROWS,)
        ),
        agrees(
            "A single row is turned into shares, too",
            points=1,
            inputs=lambda subject: given(subject.random(9)),
            reference=softmax,
        ),
        agrees(
            "Any number of axes in front of the rows will do",
            points=1,
            inputs=lambda subject: given(subject.random(2, 1, 4, 3)),
            reference=softmax,
        ),
        keeps_type(
            "Numbers of 32 bits stay what they are, those of 64 bits keep their precision",
            points=1,
            inputs=lambda subject: [subject.random(4, 9)],
            reference=softmax,
        ),
        gradients_agree(points=1, inputs=lambda subject: [subject.random(3, 4, 6)], reference=softmax, needs=ROWS),
    ),
)


# 2 scaled dot-product attention -----------------------------------------------------------------------------


def hidden_keys(subject: Subject) -> list[Finding]:
    q, k, v = queries_keys_values(subject, 2, queries=4, keys=7)

    def attend(visible: Tensor | None, kept: Tensor | None) -> Tensor:
        keys, values = (k, v) if kept is None else (k[:, kept], v[:, kept])
        mask = {} if visible is None else {"mask": visible.expand(4, 7).clone()}
        return subject.tensor(q, keys, values, shape=(2, 4, 5), **mask)

    return masked_is_left_out(attend, 7, subject.random(7).argsort()[:3])


def blind_query(subject: Subject) -> list[Finding]:
    q, k, v = queries_keys_values(subject, 2, queries=4, keys=7)
    mask = some_visible(subject, 4, 7)
    expected = subject.tensor(q, k, v, mask=mask, shape=(2, 4, 5)).index_fill(1, torch.tensor([0]), 0.0)
    blind = mask.index_fill(0, torch.tensor([0]), False)
    return blind_findings(subject.tensor(q, k, v, mask=blind, shape=(2, 4, 5), finite=False), expected)


NO_ATTENTION = Finding(
    misconception="no weighted average",
    message="The result is no average of the values whose weights depend on the query and sum to one.",
    hint="Each query has weights of its own, a softmax over its scores with all the keys.",
)


def axes_in_front(subject: Subject) -> list[Finding]:
    q, k, v = queries_keys_values(subject, 2, 3, queries=4, keys=6)
    together = subject.tensor(q, k, v, shape=(2, 3, 4, 5))
    alone = subject.tensor(q[1, 2], k[1, 2], v[1, 2], shape=(4, 5))
    if wrong := difference(together[1, 2], alone, 1e-5):
        return [plainly(wrong)]
    asked_differently = subject.tensor(q[0, 0], k[1, 2], v[1, 2], shape=(4, 5))
    of_ones = subject.tensor(q[1, 2], k[1, 2], torch.ones(6, 5), shape=(4, 5))
    an_average = difference(of_ones, torch.ones(4, 5), 1e-4) is None
    return [] if an_average and difference(asked_differently, alone, 1e-5) else [NO_ATTENTION]


AVERAGE = "The values' average, weighted by how well each key fits"
ATTENTION = Task(
    name="attention",
    title="Scaled dot-product attention",
    checks=(
        property_check(properties.SCALED_DOT_PRODUCT_ATTENTION[0], name=AVERAGE, points=5),
        property_check(
            properties.LARGE_SCORES_OF_ATTENTION[0], name="Large scores do no harm", points=2, needs=(AVERAGE,)
        ),
        HiddenCheck(
            name=HIDDEN, points=3, run=hidden_keys, detects=(properties.MASK_IGNORED, properties.MASK_INVERTED)
        ),
        HiddenCheck(
            name=BLIND,
            points=3,
            run=blind_query,
            detects=(properties.SEES_NOTHING, properties.READS_HIDDEN),
            needs=(HIDDEN,),
        ),
        HiddenCheck(
            name="A batch with heads gives the same as each part alone",
            points=3,
            run=axes_in_front,
            detects=(NO_ATTENTION.misconception,),
        ),
        agrees(
            "Each sentence of a batch has a mask of its own",
            points=2,
            inputs=lambda subject: given(
                *queries_keys_values(subject, 3, queries=4, keys=6), mask=filled_up(subject, 3, 6)[:, None]
            ),
            reference=attention,
            needs=(AVERAGE,),
        ),
        keeps_type(
            "One query gets an answer of its own type: of 32 bits, or of 64 with full precision",
            points=1,
            inputs=lambda subject: queries_keys_values(subject, 1, queries=1, keys=9),
            reference=attention,
        ),
        gradients_agree(
            points=1,
            inputs=lambda subject: [*queries_keys_values(subject, 2, queries=5, keys=5), causal_mask(5, 5)],
            reference=attention,
            needs=AVERAGE,
        ),
    ),
)


# 3 additive attention ---------------------------------------------------------------------------------------


def hidden_annotations(subject: Subject) -> list[Finding]:
    q, h, *learned = additive_inputs(subject, 2, queries=4, keys=7)

    def attend(visible: Tensor | None, kept: Tensor | None) -> Tensor:
        mask = {} if visible is None else {"mask": visible.expand(4, 7).clone()}
        return subject.tensor(q, h if kept is None else h[:, kept], *learned, shape=(2, 4, 5), **mask)

    return masked_is_left_out(attend, 7, subject.random(7).argsort()[:3])


def blind_state(subject: Subject) -> list[Finding]:
    inputs = additive_inputs(subject, 2, queries=4, keys=7)
    mask = some_visible(subject, 4, 7)
    expected = subject.tensor(*inputs, mask=mask, shape=(2, 4, 5)).index_fill(1, torch.tensor([0]), 0.0)
    blind = mask.index_fill(0, torch.tensor([0]), False)
    return blind_findings(subject.tensor(*inputs, mask=blind, shape=(2, 4, 5), finite=False), expected)


CONTEXTS = "The contexts: annotations, weighted by the scores of the small network"
ADDITIVE = Task(
    name="additive_attention",
    title="Additive attention",
    checks=(
        property_check(properties.ADDITIVE_ATTENTION[0], name=CONTEXTS, points=6),
        HiddenCheck(
            name=HIDDEN, points=3, run=hidden_annotations, detects=(properties.MASK_IGNORED, properties.MASK_INVERTED)
        ),
        HiddenCheck(
            name=BLIND,
            points=2,
            run=blind_state,
            detects=(properties.SEES_NOTHING, properties.READS_HIDDEN),
            needs=(HIDDEN,),
        ),
        agrees(
            "One sentence and one query at a time, of other lengths and widths",
            points=2,
            inputs=lambda subject: given(
                *(subject.random(*size) for size in [(1, 1, 6), (1, 9, 2), (3, 6), (3, 2), (3,)])
            ),
            reference=additive_attention,
        ),
        gradients_agree(
            points=2,
            inputs=lambda subject: [*additive_inputs(subject, 2, queries=3, keys=4), some_visible(subject, 2, 3, 4)],
            reference=additive_attention,
            needs=CONTEXTS,
        ),
    ),
)


# 4 many heads -----------------------------------------------------------------------------------------------


def layer_with_weights(subject: Subject, dim: int, num_heads: int) -> tuple[RemoteModule, dict[str, Tensor]]:
    layer = subject.make("MultiHeadAttention", dim, num_heads)
    parameters = properties.projections(subject, dim)
    layer.set_parameters(parameters)
    return layer, parameters


def hidden_words(subject: Subject) -> list[Finding]:
    layer, _ = layer_with_weights(subject, 8, 2)
    x, hidden = subject.random(2, 7, 8), subject.random(7).argsort()[:3]
    seen = torch.ones(7, dtype=torch.bool).scatter(0, hidden, False).nonzero()[:, 0]

    def attend(visible: Tensor | None, kept: Tensor | None) -> Tensor:
        """The outputs of words that see the kept ones: those that are never hidden, or the kept themselves."""
        if kept is None:
            mask = {} if visible is None else {"mask": visible.expand(7, 7).clone()}
            return layer.tensor(x, shape=(2, 7, 8), **mask)[:, seen]
        alone = layer.tensor(x[:, kept], shape=(2, len(kept), 8))
        return alone

    return masked_is_left_out(attend, 7, hidden)


def blind_word(subject: Subject) -> list[Finding]:
    layer, parameters = layer_with_weights(subject, 8, 2)
    x, mask = subject.random(2, 6, 8), some_visible(subject, 6, 6)
    expected = layer.tensor(x, mask=mask, shape=(2, 6, 8))
    expected[:, 0] = parameters["o_proj.bias"]
    blind = mask.index_fill(0, torch.tensor([0]), False)
    return blind_findings(layer.tensor(x, mask=blind, shape=(2, 6, 8), finite=False), expected)


SLICES = "Each head attends in its own slice of the width"
HEADS = Task(
    name="MultiHeadAttention",
    title="Many heads",
    checks=(
        property_check(properties.MULTI_HEAD_ATTENTION[0], name=SLICES, points=7),
        HiddenCheck(
            name=HIDDEN, points=3, run=hidden_words, detects=(properties.MASK_IGNORED, properties.MASK_INVERTED)
        ),
        HiddenCheck(
            name=BLIND,
            points=2,
            run=blind_word,
            detects=(properties.SEES_NOTHING, properties.READS_HIDDEN),
            needs=(HIDDEN,),
        ),
        module_agrees(
            "Another width and another number of heads, one sentence at a time",
            points=2,
            build=given(20, 5),
            reference=MultiHeadAttention,
            inputs=lambda subject: given(subject.random(1, 3, 20)),
        ),
        module_agrees(
            "A single head is attention with four maps",
            points=2,
            build=given(6, 1),
            reference=MultiHeadAttention,
            inputs=lambda subject: given(subject.random(2, 5, 6)),
        ),
        module_agrees(
            "Each sentence and each head can have a mask of its own",
            points=2,
            build=given(12, 4),
            reference=MultiHeadAttention,
            inputs=lambda subject: given(subject.random(2, 5, 12), mask=some_visible(subject, 2, 4, 5, 5)),
            needs=(SLICES,),
        ),
        module_agrees(
            "The gradients reach the words and all four maps",
            points=2,
            build=given(12, 2),
            reference=MultiHeadAttention,
            inputs=lambda subject: given(subject.random(2, 4, 12)),
            gradients=True,
            tolerance=1e-4,
            needs=(SLICES,),
        ),
    ),
)


# 5 position codes -------------------------------------------------------------------------------------------


def even_pace(subject: Subject) -> list[Finding]:
    """Whatever the frequencies: each pair is a sine and a cosine that turns evenly, the first by 1 in each step."""
    codes = subject.tensor(9, 16, shape=(9, 16))
    sine, cosine = codes[:, 0::2], codes[:, 1::2]
    turned_sine = sine[1:] * cosine[:-1] - cosine[1:] * sine[:-1]  # sin(a - b)
    turned_cosine = cosine[1:] * cosine[:-1] + sine[1:] * sine[:-1]  # cos(a - b)
    wanted_sine, wanted_cosine = turned_sine[:1].clone(), turned_cosine[:1].clone()
    wanted_sine[0, 0], wanted_cosine[0, 0] = torch.tensor(1.0).sin(), torch.tensor(1.0).cos()
    round_the_circle = (sine**2 + cosine**2 - 1).abs().max() < 1e-3
    even = (turned_sine - wanted_sine).abs().max() < 1e-3 and (turned_cosine - wanted_cosine).abs().max() < 1e-3
    if round_the_circle and even:
        return []
    return [
        Finding(
            misconception="pairs do not turn",
            message="Columns 0 and 1, 2 and 3, ... are not the sine and the cosine of one angle that grows evenly.",
            hint="Even columns hold sines, odd ones cosines of the same angle; the first pair turns by 1 in each step.",
        )
    ]


def other_sizes(subject: Subject) -> list[Finding]:
    for length, dim in [(1, 2), (40, 2), (3, 50), (33, 24)]:
        codes = subject.tensor(length, dim, shape=(length, dim))
        if wrong := difference(codes, sinusoidal_positions(length, dim), 1e-3):
            return [plainly(wrong)]
    return []


WAVES = "A sine and a cosine for each pair of columns, each pair slower than the one before"
POSITIONS = Task(
    name="position_codes",
    title="A code for the order",
    checks=(
        property_check(properties.SINUSOIDAL_POSITIONS[0], name=WAVES, points=4),
        HiddenCheck(name="Each pair turns at an even pace", points=2, run=even_pace),
        HiddenCheck(name="Any length and any even width will do", points=2, run=other_sizes),
        agrees(
            "The codes are ordinary 32-bit numbers, those of far positions, too",
            points=2,
            same_type=True,
            inputs=lambda subject: given(3000, 32),
            reference=sinusoidal_positions,
            tolerance=2e-3,
        ),
    ),
)


# 6 training -------------------------------------------------------------------------------------------------

EXAMPLES, QUESTIONS, LONGEST = 300, 500, 8
LONGEST_WAIT = 20  # seconds of wall time for a training: students are promised 5, on a machine that does nothing else


def trained(subject: Subject, label: str, *, coded: bool) -> tuple[RemoteModule, Tensor | None]:
    """The trained model and the code its questions are in, made once for all checks of an answer."""

    def work(trainer: Subject) -> tuple[RemoteModule, Tensor | None]:
        code = properties.secret_code(trainer) if coded else None
        examples = properties.dictionaries(trainer, EXAMPLES, code=code)
        return trainer.make("train", *examples, seconds=LONGEST_WAIT), code

    return subject.once(label, work)


def answers(
    name: str, *, points: float, level: float, entries: int = 5, coded: bool = True, needs: tuple[str, ...] = ()
) -> HiddenCheck:
    """At least this share of new questions is answered right."""

    def run(subject: Subject) -> list[Finding]:
        model, code = trained(subject, "in code" if coded else "plain", coded=coded)
        new = properties.dictionaries(subject, QUESTIONS, entries, code=code)
        if properties.share_right(model, *new) >= level:
            return []
        return [
            Finding(
                misconception=TOO_LITTLE_LEARNT,
                message="On dictionaries that the training has not seen, the network is right less often than that.",
                hint="Compare the question with the keys through vectors that are learned, each symbol's own for "
                "questions and for keys, and see that the loss falls from step to step.",
            )
        ]

    return HiddenCheck(name=name, points=points, run=run, detects=(TOO_LITTLE_LEARNT,), needs=needs)


TRAINING = Task(
    name="train",
    title="A network that looks things up",
    limits=Limits(cpu_seconds=15),  # for both trainings and all questions
    checks=(
        answers("At least 95 % of new dictionaries are answered right", points=3, level=0.95, coded=False),
        answers("With questions in a secret code, at least 70 % are answered right", points=4, level=0.7),
        answers("With questions in a secret code, at least 95 % are answered right", points=4, level=0.95),
        answers("At least 90 % of longer dictionaries, in a secret code, too", points=4, level=0.9, entries=LONGEST),
    ),
)

ASSIGNMENT = Assignment(
    name="05",
    notebook="attention",
    title="Attention",
    tasks=(SOFTMAX, ATTENTION, ADDITIVE, HEADS, POSITIONS, TRAINING),
)
