"""Lesson 15, One model for text and sound: what its exercises are tried with; tasks.md has their text and mistakes.

Where all sizes are one, each input is that of the hardest case: there every mistake changes the result.
"""

import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.layers.relative_attention import RelativeAttention, relative_sinusoids
from course_lib.layers.transformer import FeedForward
from course_lib.lessons.lesson_05.tasks import lengths as real_positions
from course_lib.models.conformer import Subsampling
from course_lib.tasks import Case, Check, Draw, Finding, TaskInput, gradients
from course_lib.tasks.core import Probe
from course_lib.tasks.findings import CUT_OFF, GRADIENT_DIFFERS, GRADIENT_LOST
from course_lib.tasks.markdown import read_tasks

# ----------------------------------------------------------------------------------------------------- T5


def text_and_spans(draw: Draw) -> tuple[list[int], list[tuple[int, int]], int]:
    """A text with two spans, neither of which touches the other or an end."""
    length = draw.integers(12, 16, 1).item()
    first, second = draw.integers(1, 3, 1).item(), draw.integers(7, 9, 1).item()
    spans = [(first, first + draw.integers(2, 5, 1).item()), (second, second + draw.integers(2, 4, 1).item())]
    return draw.integers(1, 50, length).tolist(), spans, draw.integers(70, 99, 1).item()


def spans_at_the_ends(draw: Draw) -> tuple[list[int], list[tuple[int, int]], int]:
    """A text that begins and ends with a span."""
    length = draw.integers(8, 12, 1).item()
    return draw.integers(1, 50, length).tolist(), [(0, 2), (length - 3, length)], draw.integers(70, 99, 1).item()


def distances(
    draw: Draw, *, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128, default: bool = True
) -> tuple:
    """Distances of both signs: the bounds of all rules, small ones and large ones.

    Those on the edge of a logarithmic bucket are left out, where rounding decides.
    """
    B, T = draw.sizes(2, 3, 8)
    exact = num_buckets // 4 if bidirectional else num_buckets // 2
    known = torch.tensor([0, 1, exact - 1, exact, exact + 1, max_distance - 1, max_distance, 2 * max_distance])
    drawn = torch.cat([draw.integers(0, 3 * exact, 3 * B * T), draw.integers(0, 2 * max_distance, 3 * B * T)])
    past = torch.cat([known, drawn]).double()
    growth = (past.clamp(min=exact) / exact).log() / math.log(max_distance / exact) * exact
    clear = (past <= exact) | (past >= max_distance) | ((growth - growth.round()).abs() > 1e-4)
    both = torch.cat([past[clear], -past[clear]]).long()
    order = draw(len(both)).argsort()[: len(both) // B * B]
    given = both[order].view(B, -1)
    if default and bidirectional:
        return (given,)
    return (given, bidirectional) if default else (given, bidirectional, num_buckets, max_distance)


def other_buckets(draw: Draw) -> tuple:
    """Distances for a drawn number of buckets, up to a drawn largest distance."""
    num_buckets = (8, 10, 12, 20, 22, 24)[draw.integers(0, 6, 1).item()]  # neither the default, nor half of it
    return distances(draw, num_buckets=num_buckets, max_distance=draw.integers(30, 100, 1).item(), default=False)


def two_lengths(draw: Draw) -> tuple[int, int]:
    source, target = draw.sizes(2, 2, 8)
    return source, target


def for_attention(
    draw: Draw, *, bias: bool = False, causal: bool = False, padded: bool = False, each: bool = False
) -> TaskInput:
    """Vectors, perhaps a padded context of another length, a mask and a bias, and the sizes of T5's attention."""
    B, T, T_k, d, dim = draw.sizes(5, 3, 9)
    heads = draw.integers(2, 5, 1).item()
    dim = heads * d if draw.same else dim + 10  # which is not heads * d
    x = 1.5 * draw(B, T, dim)
    context = 1.5 * draw(B, T_k, dim) if padded or draw.same else None
    mask = torch.ones(T, T, dtype=torch.bool).tril() if causal else None
    mask = mask if context is None else real_positions(draw, B, T_k, True)[:, None, None]
    scores = draw(B if each else 1, heads, T, T if context is None else T_k) if bias or draw.same else None
    return TaskInput((x, context, mask, scores), build=(dim, heads, d))


def sizes_of_t5(draw: Draw) -> tuple[int, int, int, int]:
    """Width, heads, width of a head, and inner width: the heads' widths do not add up to the whole one."""
    d, inner, dim = draw.sizes(3, 3, 8)
    heads = draw.integers(2, 4, 1).item()
    return (heads * d if draw.same else dim + 8), heads, d, 2 * inner


def for_block(draw: Draw, *, decoder: bool = False, small: bool = False) -> TaskInput:
    """Vectors, masks, biases, perhaps an encoder's output, and the sizes of a block of T5."""
    B, T, T_k = draw.sizes(3, 4, 8)
    dim, heads, d, inner = sizes_of_t5(draw)
    decoder = decoder or bool(draw.same)
    if small and not draw.same:
        return TaskInput((1e-3 * draw(B, T, dim),), build=(dim, heads, d, inner))
    x, bias = 2 * draw(B, T, dim), draw(1, heads, T, T)
    if not decoder:
        return TaskInput((x, real_positions(draw, B, T, True)[:, None, None], bias), build=(dim, heads, d, inner))
    causal = torch.ones(T, T, dtype=torch.bool).tril()
    context = draw(B, T_k, dim), real_positions(draw, B, T_k, True)[:, None, None]
    return TaskInput((x, causal, bias, *context), build=(dim, heads, d, inner, True))


def sources_and_targets(draw: Draw) -> TaskInput:
    """Padded sources, previous tokens of the targets, and the sizes of a T5 with few buckets."""
    B, T, T_k, V = draw.sizes(4, 4, 9)
    given = draw.integers(0, V, B, T_k), draw.integers(0, V, B, T), real_positions(draw, B, T_k, True)
    dim, *sizes = sizes_of_t5(draw)
    return TaskInput(given, build=(V, dim, 2, *sizes, 8, 16))


class RelativeBias(nn.Module):
    """For each head a learned number for each bucket of distances: (1, H, T, T). The page gives it."""

    def __init__(self, num_heads: int, num_buckets: int, max_distance: int, bidirectional: bool):
        super().__init__()
        self.table, self.settings = nn.Embedding(num_buckets, num_heads), (bidirectional, num_buckets, max_distance)

    def forward(self, length: int) -> Tensor:
        distance = torch.arange(length) - torch.arange(length)[:, None]
        return self.table(TASKS["bucket"].reference(distance, *self.settings)).permute(2, 0, 1)[None]


# ------------------------------------------------------------------------------------------------- speech


def a_path(draw: Draw, *, blank_first: bool = True) -> tuple[list[int]]:
    """Frames with repetitions, equal labels with a blank between them, and a label that occurs again later."""
    a, b = draw.integers(1, 5, 1).item(), draw.integers(5, 8, 1).item()
    times = draw.integers(2, 4, 4).tolist()
    return ([0 if blank_first else b] * times[0] + [a] * times[1] + [0] + [a] * times[2] + [b] * times[3] + [a, 0],)


def a_path_with_another_blank(draw: Draw) -> tuple[list[int], int]:
    return [9 if symbol == 0 else symbol % 5 for symbol in a_path(draw)[0]], 9


def frames_and_labels(
    draw: Draw, *, frames: tuple[int, int], labels: int, equal: bool = False, blank: int = 0, size: float = 2.0
) -> tuple[Tensor, Tensor] | tuple[Tensor, Tensor, int]:
    """Log-probabilities of some frames, their number drawn, and labels: two neighbours are `equal`, or none are."""
    V = draw.integers(5, 9, 1).item()
    symbols = torch.tensor([symbol for symbol in range(V) if symbol != blank])
    a, b, c = symbols[draw(V - 1).argsort()[:3]].tolist()
    target = torch.tensor(([a, b, b, c] if equal else [a, b, c]) * (1 + labels // 3))[:labels]
    T = draw.integers(*frames, 1).item()
    given = (size * draw(T, V)).log_softmax(dim=-1), target
    return (*given, blank) if blank else given


def equal_labels(draw: Draw, *, blank: int = 0) -> tuple[Tensor, Tensor] | tuple[Tensor, Tensor, int]:
    """Two of the labels are equal and neighbours, and one of them occurs again later."""
    return frames_and_labels(draw, frames=(9, 13), labels=5, equal=True, blank=blank)


def finite_gradients(probe: Probe) -> list[Finding]:
    """The gradient of CTC's loss is that of the reference; NaN has a finding of its own."""
    log_probs, target = equal_labels(probe.draw)
    found = probe.gradients(log_probs, target, output_gradient=torch.tensor(1.0)).inputs[0]
    if found is not None and not found.isfinite().all():
        return [TASKS["ctc_loss"].finding("gradient is NaN")]
    return gradients.run(TASKS["ctc_loss"], probe)


def odd_kernel(draw: Draw) -> int:
    return 2 * draw.integers(1, 4, 1).item() + 1


def for_convolution(draw: Draw, *, padded: bool = False) -> TaskInput:
    """Vectors of frames, perhaps with a mask of the real ones, and the sizes of a convolution module."""
    B, T, dim = draw.sizes(3, 4, 9)
    x = 2 * draw(B, T, dim)
    args = (x, real_positions(draw, B, T, True)) if padded or draw.same else (x,)
    return TaskInput(args, build=(dim, odd_kernel(draw)))


def sizes_of_conformer(draw: Draw) -> tuple[int, int, int, int]:
    """An even width, heads, inner width and kernel."""
    d, inner = draw.sizes(2, 2, 5)
    heads = draw.integers(2, 4, 1).item()
    return 2 * heads * d, heads, 2 * inner + 1, odd_kernel(draw)


def for_conformer_block(draw: Draw, *, padded: bool = False) -> TaskInput:
    """Vectors of frames, sinusoids of their distances, perhaps a mask, and the sizes of a Conformer block."""
    B, T = draw.sizes(2, 5, 9)
    build = sizes_of_conformer(draw)
    given = 2 * draw(B, T, build[0]), relative_sinusoids(T, build[0])
    return TaskInput((*given, real_positions(draw, B, T, True)) if padded or draw.same else given, build=build)


def recordings(draw: Draw, *, padded: bool = False) -> TaskInput:
    """Frames of recordings, perhaps a mask of the real ones, and the sizes of a Conformer of two blocks."""
    B, bands, V = draw.sizes(3, 3, 8)
    T = draw.integers(17, 25, 1).item()
    dim, *sizes = sizes_of_conformer(draw)
    frames = draw(B, T, bands)
    given = (frames, real_positions(draw, B, T, True)) if padded or draw.same else (frames,)
    return TaskInput(given, build=(bands, V, dim, 2, *sizes))


def has_shorter(probe: Probe) -> list[Finding]:
    """The Conformer has the method that says which of its frames are real."""
    task = TASKS["conformer"]
    model = probe.make("conformer", *recordings(probe.draw).build, asks="sizes")._function
    valid = torch.arange(18) < torch.tensor([[18], [9], [6]])
    if not callable(getattr(model, "shorter", None)):
        return [task.finding("no method shorter")]
    shorter = Probe(model.shorter, asks="valid").tensor(valid)
    right = valid[:, ::4].float()
    return [] if shorter.shape == right.shape and torch.equal(shorter, right) else [task.finding("no method shorter")]


def frames_and_width(draw: Draw, *, blank: int = 0) -> tuple[Tensor, int] | tuple[Tensor, int, int]:
    """Log-probabilities of a few frames, and a width that prefixes of probability 0 do not fit into."""
    V, T = draw.integers(3, 5, 1).item(), draw.integers(5, 8, 1).item()
    given = (1.5 * draw(T, V)).log_softmax(dim=-1), draw.integers(2, V + 1, 1).item()
    return (*given, blank) if blank else given


def part(name: str) -> Callable[..., nn.Module]:
    """What a learner's module takes if she has no such part of her own: that of the solution."""
    return lambda *sizes, **more: TASKS[name].module(*sizes, **more)


CASES = {
    "corrupt": (Case("two spans inside a text", text_and_spans), Case("spans at both ends", spans_at_the_ends)),
    "bucket": (
        Case("both directions", distances),
        Case("the past only", lambda draw: distances(draw, bidirectional=False)),
        Case("another number of buckets", other_buckets),
    ),
    "prefix_mask": (Case("a source and a target", two_lengths),),
    "t5_attention": (
        Case("self-attention", for_attention),
        Case("a bias for each pair of positions", lambda draw: for_attention(draw, bias=True)),
        Case("a causal mask", lambda draw: for_attention(draw, causal=True)),
        Case("padding of the context", lambda draw: for_attention(draw, padded=True, bias=True, each=True)),
    ),
    "t5_block": (
        Case("a block of the encoder", for_block),
        Case("a block of the decoder", lambda draw: for_block(draw, decoder=True)),
        Case("small activations", lambda draw: for_block(draw, small=True)),
    ),
    "t5": (Case("padded sources, and targets of another length", sources_and_targets, tolerance=1e-3),),
    "collapse": (
        Case("a path with blanks and repetitions", a_path),
        Case("another blank", a_path_with_another_blank),
        Case("a label in the first frame", lambda draw: a_path(draw, blank_first=False)),
    ),
    "ctc_loss": (
        Case("neighbouring labels differ", lambda draw: frames_and_labels(draw, frames=(5, 8), labels=3)),
        Case("equal labels beside each other", equal_labels),
        Case("an empty target", lambda draw: frames_and_labels(draw, frames=(3, 6), labels=0)),
        Case("a single frame", lambda draw: frames_and_labels(draw, frames=(1, 2), labels=1)),
        Case("another blank", lambda draw: equal_labels(draw, blank=draw.integers(1, 5, 1).item())),
        Case("more labels than fit into the frames", lambda draw: frames_and_labels(draw, frames=(3, 5), labels=5)),
        Case("hundreds of frames", lambda draw: frames_and_labels(draw, frames=(400, 401), labels=20, size=4.0)),
    ),
    "conv_module": (
        Case("all frames are real", for_convolution, tolerance=1e-3),
        Case("padded frames", lambda draw: for_convolution(draw, padded=True), tolerance=1e-3),
    ),
    "conformer_block": (
        Case("all frames are real", for_conformer_block, tolerance=1e-3),
        Case("padded frames", lambda draw: for_conformer_block(draw, padded=True), tolerance=1e-3),
    ),
    "conformer": (
        Case("all frames are real", recordings, tolerance=1e-3),
        Case("padded frames", lambda draw: recordings(draw, padded=True), tolerance=1e-3),
    ),
    "beam": (
        Case("the most probable labels", frames_and_width),
        Case("another blank", lambda draw: frames_and_width(draw, blank=draw.integers(1, 3, 1).item())),
    ),
}
PARTS = {
    "T5Attention": part("t5_attention"),
    "T5Block": part("t5_block"),
    "RelativeBias": RelativeBias,
    "ConvModule": part("conv_module"),
    "ConformerBlock": part("conformer_block"),
    "FeedForward": FeedForward,
    "RelativeAttention": RelativeAttention,
    "Subsampling": Subsampling,
    "relative_sinusoids": relative_sinusoids,
}
FINITE = Check(
    name="gradients flow back, and they are right",
    detects=("gradient is NaN", CUT_OFF, GRADIENT_LOST, GRADIENT_DIFFERS),
    run=finite_gradients,
    gate=True,
)
SHORTER = Check(name="which of the frames are real", detects=("no method shorter",), run=has_shorter)
TASKS = read_tasks(
    Path(__file__).with_name("tasks.md"), CASES, PARTS, ctc_loss={"checks": (FINITE,)}, conformer={"checks": (SHORTER,)}
)
