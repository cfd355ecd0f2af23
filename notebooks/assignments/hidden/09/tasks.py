"""Assignment 09, Scaling laws: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

from dataclasses import replace

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_09.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, mistakes


def huber_of_logs(
    predicted: Tensor, measured: Tensor, delta: float, *, log: bool = True, outside: str = "line", inside: str = "half",
    reduce: str = "sum", sign: str = "both",
) -> Tensor:  # fmt: skip
    """Sum of the Huber losses of ln predicted - ln measured: Hoffmann et al. 2022, eq. (3)."""
    gap = predicted.log() - measured.log() if log else predicted - measured
    gap = gap.abs() if sign == "both" else gap
    near = gap.square() * (0.5 if inside == "half" else 1.0)
    far = {"line": delta * (gap - delta / 2), "square": near, "absolute": gap, "no shift": delta * gap}[outside]
    each = torch.where(gap <= delta, near, far)
    return each.sum() if reduce == "sum" else each.mean()


def some_runs(draw: Draw, *, near: bool = True, far: bool = True) -> tuple[Tensor, Tensor, float]:
    """What a law says and what came: within delta of each other, beyond it on both sides, or some of each."""
    (count,) = draw.sizes(1, low=3)
    delta = round(0.05 + 0.15 * torch.rand(1, generator=draw.generator).item(), 2)
    inside = delta * (2 * torch.rand(count, generator=draw.generator) - 1)
    signs = torch.tensor([1.0, -1.0]).repeat(count)[:count]
    gaps = torch.cat([inside] * near + [(delta + 0.2 + draw(count).abs()) * signs] * far)
    measured = 1.5 + draw(len(gaps)).abs()
    return measured * gaps.exp(), measured, delta


HUBER = replace(
    SHOWN["huber_of_logs"],
    reference=huber_of_logs,
    cases=(
        Case("the sum over runs near and far", some_runs, 7),
        Case("all runs are far from the law", lambda draw: some_runs(draw, near=False), 4),
        Case("all runs are near the law", lambda draw: some_runs(draw, far=False), 3),
    ),
    mistakes=mistakes(r"""
no logarithms: log=False
    The losses themselves are compared.
    > Their logarithms: a miss of 5 % counts the same at 4 nats and at 2.
squared everywhere: outside='square'
    Far runs are squared, too: one outlier outweighs all others.
    > Beyond delta it is a straight line: $\delta (|r| - \delta / 2)$.
squared where the law says too little: sign='one'
    A law that says far too little is squared: r is negative there.
    > The *size* of r decides, and counts: `abs`.
plain distance beyond delta: outside='absolute'
    Beyond delta the slope is 1, not delta: the curve has a jump.
    > $\delta (|r| - \delta / 2)$.
jump at delta: outside='no shift'
    The two parts do not meet at delta.
    > $\delta (|r| - \delta / 2)$.
half forgotten: inside='whole'
    Inside it is *half* the square.
    > $r^2 / 2$.
mean instead of sum: reduce='mean'
    That is the mean.
    > The sum over the runs.
"""),
    wrong={"no logarithms": ("predicted.log() - measured.log()", "predicted - measured")},
)


def effective_tokens(
    epochs: Tensor, unique: float, fade: float, *, repeats: str = "less one", first: bool = True, law: str = "fades",
    over: str = "fade",
) -> Tensor:  # fmt: skip
    """U + U fade (1 - e^(-(epochs - 1) / fade)): Muennighoff et al. 2023, eq. (5)."""
    R = epochs - 1 if repeats == "less one" else epochs
    fallen = (-R / (fade if over == "fade" else 1)).exp()
    gain = {"fades": fade * (1 - fallen), "all": R, "no scale": 1 - fallen, "sign": fade * fallen}[law]
    return unique * ((1 if first else 0) + gain)


def readings(draw: Draw) -> tuple[Tensor, float, float]:
    (count,) = draw.sizes(1)
    fade = round(1.5 + 4 * torch.rand(1, generator=draw.generator).item(), 2)
    return 1 + 6 * torch.rand(count, generator=draw.generator), 1.0 + draw.sizes(1)[0], fade


def read_once(draw: Draw) -> tuple[Tensor, float, float]:
    epochs, unique, fade = readings(draw)
    return torch.ones_like(epochs), unique, fade


EFFECTIVE = replace(
    SHOWN["effective_tokens"],
    reference=effective_tokens,
    cases=(
        Case("what repeated text is worth", readings, 11),
        Case("text that is read once", read_once, 4, ("repeats", "first")),
    ),
    mistakes=mistakes(r"""
first reading counted as a repetition: repeats='all'
    The first reading is no repetition.
    > Repetitions: `epochs - 1`.
first reading forgotten: first=False
    What the first reading is worth is missing.
    > It counts in full: `unique`.
nothing fades: law='all'
    Each reading counts in full.
    > $R^* (1 - e^{-R / R^*})$ in place of R.
scale forgotten: law='no scale'
    The factor `fade` in front is missing: after many readings the repetitions are worth `fade` times the text.
    > $R^* (1 - e^{-R / R^*})$.
one less forgotten: law='sign'
    The 1 is missing: repetitions begin with nothing, and grow.
    > $1 - e^{-R / R^*}$.
not divided: over='one'
    The exponent is not divided by `fade`.
    > $e^{-R / R^*}$.
"""),
    wrong={"first reading counted as a repetition": ("epochs - 1", "epochs")},
)  # fmt: skip


def steps_and_examples(
    batch: Tensor, fewest_steps: float, fewest_examples: float, *, critical: str = "examples / steps",
    ratio: str = "critical / batch", steps: str = "1 +", examples: str = "steps x batch", order: str = "steps first",
) -> Tensor:  # fmt: skip
    """S = S_min (1 + B_crit / B), E = S B: McCandlish et al. 2018, eq. (2.11) and section 2.3."""
    crit = fewest_examples / fewest_steps if critical == "examples / steps" else fewest_steps / fewest_examples
    r = crit / batch if ratio == "critical / batch" else batch / crit
    S = fewest_steps * (1 + r if steps == "1 +" else r)
    E = S * batch if examples == "steps x batch" else fewest_examples + 0 * batch
    return torch.stack([S, E] if order == "steps first" else [E, S])


def a_task(draw: Draw) -> tuple[Tensor, float, float]:
    """In thousands of steps and examples."""
    steps, times, count = draw.sizes(3)
    return 1 + 5 * torch.rand(count, generator=draw.generator), 1.0 * steps, 2.0 * steps * times


BATCH = replace(
    SHOWN["steps_and_examples"],
    reference=steps_and_examples,
    cases=(Case("steps and examples for each batch", a_task, 15),),
    mistakes=mistakes(r"""
critical batch turned: critical='steps / examples'
    The critical batch is turned round.
    > $B_{crit} = E_{min} / S_{min}$: examples for each step.
quotient turned: ratio='batch / critical'
    More steps for *larger* batches: the quotient is turned round.
    > $1 + B_{crit} / B$.
one forgotten: steps='no 1'
    With a huge batch there would be no steps at all.
    > $S = S_{min} (1 + B_{crit} / B)$: never fewer than $S_{min}$.
examples not counted: examples='fewest'
    The second number is not the examples that these steps read.
    > Steps times batch.
exchanged: order='examples first'
    The two are exchanged.
    > Steps first.
"""),
    wrong={"one forgotten": ("(1 + critical / batch)", "(critical / batch)")},
)


def law_with_floor(
    x: Tensor, y: Tensor, floors: Tensor, *, error: str = "of y", choose: str = "least", taken: bool = True,
    flip: bool = True,
) -> Tensor:  # fmt: skip
    """a, b, c of a x^-b + c: for each floor a straight line in logarithms; the one with the least squared error."""
    found = []
    for c in floors:
        if (y <= c).any():
            continue
        u, v = x.log(), (y - c if taken else y).log()
        du, dv = u - u.mean(), v - v.mean()
        slope = (du * dv).sum() / du.square().sum()
        a = (v.mean() - slope * u.mean()).exp()
        made = a * x**slope + c
        miss = (made - y if error == "of y" else (made - c).log() - v).square().sum()
        found.append((miss, torch.stack([a, -slope if flip else slope, c])))
    return found[0][1] if choose == "first" else min(found, key=lambda one: float(one[0]))[1]


def bent(draw: Draw, *, exact: bool = False, alone: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Points of a law with a floor, roughly or exactly; of the floors on offer some lie above a point, one touches it.

    With `alone` there is one floor only.
    """
    count, many = draw.sizes(2, low=6, high=9)
    x = torch.logspace(0, 3, count)
    c = 1.0 + 0.5 * torch.rand(1, generator=draw.generator)
    y = 3 * x**-0.6 + c + (0 if exact else 0.05 * draw(count).clamp(-1.5, 1.5))
    floors = torch.linspace(0.3, 2.4, 3 * many + draw.integers(0, 3, 1).item())
    if exact:
        floors = torch.cat([floors[(floors - c).abs() > 0.02], c])
    floors = torch.cat([floors, y.min()[None]])
    order = draw(len(floors)).argsort() if exact else floors.argsort(descending=True)
    return x, y, 0.8 * c if alone else floors[order]


def clearly_bent(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Points for which errors in logarithms would choose another floor."""
    for _ in range(20):
        given = bent(draw)
        if law_with_floor(*given)[2] != law_with_floor(*given, error="of logs")[2]:
            break
    return given


FLOOR = replace(
    SHOWN["law_with_floor"],
    reference=law_with_floor,
    cases=(
        Case("the floor with the least squared error, and its line", clearly_bent, 9),
        Case("points that lie on a law with one of the floors", lambda draw: bent(draw, exact=True), 6),
        Case("a single floor", lambda draw: bent(draw, alone=True), 4),
    ),
    mistakes=mistakes(r"""
error in logarithms: error='of logs'
    The floors are compared by errors in logarithms: each floor has logarithms of its own.
    > Compare what all have in common: $\sum (y - a x^{-b} - c)^2$.
the first floor: choose='first'
    The first floor is taken, whatever it misses.
    > The one with the least squared error.
floor not taken off: taken=False
    The line was fitted to ln y.
    > $\ln (y - c)$: then $y - c = a x^{-b}$ is a straight line.
sign of b: flip=False
    b has the wrong sign.
    > $x^{-b}$: b is minus the slope.
"""),
    wrong={"floor not taken off": ("(y - c).log()", "y.log()")},
)

PREDICT = replace(
    SHOWN["predict"],
    wrong={
        "predictions far off": ("return best_said", "return torch.full_like(larger_N, L.min().item())"),
        "a name that is not there": ("return best_said", "return best_said / unknown"),
    },
)

ASSIGNMENT = Assignment(
    "09",
    notebook="scaling",
    title="Scaling laws",
    tasks=(HUBER, EFFECTIVE, BATCH, FLOOR, PREDICT),
    seconds={"predict": 120},
)
