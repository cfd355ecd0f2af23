"""Lesson 09, Scaling laws: its exercises; each formula has a knob for every mistake that learners make."""

import torch
from torch import Tensor

from course_lib.tasks import Case, Draw, Task, keeps_type, mistakes

# training_cost ----------------------------------------------------------------------------------------------


def training_cost(
    dim: int, depth: int, tokens: int, *, per_block: int = 12, passes: int = 6, layers: bool = True, power: int = 2
) -> float:
    """6 N D with N = 12 depth dim²."""
    return float(passes * per_block * (depth if layers else 1) * dim**power * tokens)


TRAINING_COST = Task(
    name="training_cost",
    title="What a training costs",
    asks="dim, depth, tokens",
    reference=training_cost,
    cases=(
        Case(
            "operations of a whole training",
            lambda draw: (*draw.sizes(2, 5, 20), 1000 * draw.sizes(1)[0]),
            tolerance=1e-6,
        ),
    ),
    mistakes=mistakes(r"""
a third of it: passes=2
    That is a third: only the forward pass, or only attention's weights.
    > Backwards costs twice as much as forwards: 6 operations for each weight and token. And a block has
    $4 d^2$ weights in attention, $8 d^2$ in its MLP.
half of it: passes=3
    That is half: additions are operations, too; and the MLP's matrices are d x 4d, not d x d.
    > A weight and a token: one product and one sum, forwards once, backwards twice. A block has $12 d^2$ weights.
two thirds of it: passes=4
    That is two thirds: one product backwards, where there are two; or attention, or one of the MLP's two matrices.
    > Backwards: a gradient for the inputs, and one for the weights. A block has $4 d^2$ weights in attention,
    $8 d^2$ in its MLP.
one block: layers=False
    Only one block is counted.
    > `depth` of them.
width not squared: power=1
    A matrix of d x d has $d^2$ weights.
    > `dim ** 2`.
"""),
    example=(((10, 2, 1000), 14_400_000.0),),
    minutes=5,
    text="A GPT has `depth` blocks of width `dim`; its MLPs are four times as wide. Count the weights of its matrices "
    "alone (no embeddings, biases, norms): that is N. It is trained on `tokens` tokens, D. Return the operations of "
    "the whole training, $6 N D$, as a plain number.",
    hints=(
        "First one block: which matrices are there, and how many numbers has each?",
        "Attention: W_q, W_k, W_v, W_o, all d x d. The MLP: d x 4d, and back.",
        "N = 12 depth dim².",
    ),
    solution="""
def my_training_cost(dim, depth, tokens):
    N = depth * (4 * dim**2 + 2 * dim * 4 * dim)
    return 6.0 * N * tokens
""",
)

# power_law --------------------------------------------------------------------------------------------------


def power_law(
    x: Tensor, y: Tensor, *, log_x: bool = True, log_y: bool = True, flip: bool = True, unlog: bool = True,
    through: str = "least squares", order: str = "a first",
) -> Tensor:  # fmt: skip
    """(a, b) of y = a x^-b, least squares in logs."""
    u, v = x.log() if log_x else x, y.log() if log_y else y
    if through == "ends":
        slope = (v[-1] - v[0]) / (u[-1] - u[0])
        height = v[0] - slope * u[0]
    else:
        mean_u, mean_v = u.mean(), v.mean()
        slope = ((u - mean_u) * (v - mean_v)).sum() / (u - mean_u).square().sum()
        height = mean_v - slope * mean_u if through == "least squares" else v[0] - slope * u[0]
    a, b = height.exp() if unlog else height, -slope if flip else slope
    return torch.stack([a, b] if order == "a first" else [b, a])


def some_runs(draw: Draw) -> tuple[Tensor, Tensor]:
    """Losses that fall roughly by a power law."""
    (count,) = draw.sizes(1, low=5)
    x = (2 + 6 * torch.rand(count, generator=draw.generator)).exp().sort().values
    return x, 4 * x**-0.3 * (0.2 * draw(count)).exp()


POWER_LAW = Task(
    name="power_law",
    title="A straight line in logarithms",
    asks="x, y",
    reference=power_law,
    cases=(Case("a and b of the line with the least squares in logarithms", some_runs),),
    mistakes=mistakes(r"""
no logarithms: log_x=False; log_y=False
    The line was fitted to the values themselves.
    > $\ln y = \ln a - b \ln x$ is a straight line: take the logarithm of both.
one logarithm only: log_x=False
    Only y was taken in logarithms: that is an exponential, not a power.
    > The logarithm of x, too.
no logarithm of y: log_y=False
    Only x was taken in logarithms.
    > The logarithm of y, too.
sign of b: flip=False
    b has the wrong sign.
    > $y = a x^{-b}$: a falling line has a *positive* b.
a left in logarithms: unlog=False
    You return $\ln a$.
    > `exp` of it.
through the ends: through='ends'
    The line goes through the first and the last point, whatever lies between.
    > Least squares: slope = covariance over variance.
through the first point: through='first point'
    The line goes through the first point.
    > It goes through the *mean* of the logarithms.
exchanged: order='b first'
    a and b are exchanged.
    > a first.
"""),
    also=(keeps_type,),
    example=((([1.0, 10.0, 100.0], [8.0, 4.0, 2.0]), [8.0, 0.30103]),),
    minutes=8,
    text="`x` and `y`, both `(n,)`, are sizes and losses. If $y = a x^{-b}$, then $\\ln y = \\ln a - b \\ln x$: a "
    "straight line. Return a tensor of two numbers, $a$ and $b$ of the line with the least squared error in $\\ln y$.",
    hints=(
        "With u = ln x and v = ln y: the slope of the best line is the covariance of u and v over the variance of u.",
        "The line goes through (mean of u, mean of v). That gives its height at u = 0, which is ln a.",
        "b is minus the slope; `torch.stack([a, b])`.",
    ),
    solution="""
def my_power_law(x, y):
    u, v = x.log(), y.log()
    du, dv = u - u.mean(), v - v.mean()
    slope = (du * dv).sum() / du.square().sum()
    a = (v.mean() - slope * u.mean()).exp()
    return torch.stack([a, -slope])
""",
)

# bootstrap_interval -----------------------------------------------------------------------------------------


def bootstrap_interval(
    x: Tensor, y: Tensor, picks: Tensor, level: float, *, pairs: bool = True, fits: str = "each", tail: str = "both",
    spread: str = "quantiles",
) -> Tensor:  # fmt: skip
    """The middle `level` of the exponents of all resamples."""
    u, v = x.log(), y.log()
    if fits == "of means":
        U, V = u[picks].mean(dim=0)[None], v[picks].mean(dim=0)[None]
    else:
        U, V = u[picks], (v[picks] if pairs else v.expand(picks.shape))
    U, V = U - U.mean(dim=1, keepdim=True), V - V.mean(dim=1, keepdim=True)
    b = -(U * V).sum(dim=1) / U.square().sum(dim=1)
    if spread == "extremes":
        return torch.stack([b.min(), b.max()])
    if spread == "deviation":
        return torch.stack([b.mean() - b.std(), b.mean() + b.std()])
    cut = {"both": (1 - level) / 2, "one": 1 - level, "level": level / 2}[tail]
    return b.quantile(torch.tensor([cut, 1 - cut], dtype=b.dtype))


def resampled(draw: Draw) -> tuple[Tensor, Tensor, Tensor, float]:
    x, y = some_runs(draw)
    picks = draw.integers(0, len(x), 40, len(x))
    picks[:, 0], picks[:, 1] = 0, len(x) - 1  # two different sizes, so that there is a line
    return x, y, picks, 0.8


BOOTSTRAP = Task(
    name="bootstrap_interval",
    title="How sure is the exponent?",
    asks="x, y, picks, level",
    reference=bootstrap_interval,
    cases=(Case("the middle of the exponents of all resamples", resampled),),
    mistakes=mistakes(r"""
sizes without their losses: pairs=False
    The sizes were drawn anew, but each loss stayed where it was.
    > A run is a size *and* its loss: the same picks for both.
one fit of means: fits='of means'
    The resamples were averaged, and then fitted once.
    > Fit each resample by itself: R exponents.
one tail only: tail='one'
    All that is left out was cut off at each end.
    > Half of it at the lower end, half at the upper: $(1 - level) / 2$ and $1 - (1 - level) / 2$.
level in place of the rest: tail='level'
    You cut off `level`, not what is left of it.
    > For level 0.9 cut off 0.05 at each end.
the extremes: spread='extremes'
    Those are the smallest and the largest exponent.
    > `quantile`.
mean and deviation: spread='deviation'
    That is mean minus and plus a standard deviation.
    > Quantiles: nothing says that the exponents are normally distributed.
"""),
    also=(keeps_type,),
    minutes=9,
    text="If the runs had been others, the exponent would be another one. `picks`, `(R, n)` whole numbers, says which "
    "of the n runs each of R *resamples* takes; some come twice, others not at all. Fit each resample as in "
    "`my_power_law`, and return a tensor of two numbers: the lower and the upper end of the middle `level` (0.9: leave "
    "out 5 % on each side) of the R exponents $b$.",
    hints=(
        "Row r of `picks` makes the resample `x[picks[r]]`, `y[picks[r]]`.",
        "A loop over the rows, or all at once: `x[picks]` is `(R, n)`, and slopes are sums over `dim=1`.",
        "`b.quantile(torch.tensor([0.05, 0.95], dtype=b.dtype))`, with the right numbers.",
    ),
    solution="""
def my_bootstrap_interval(x, y, picks, level):
    u, v = x.log()[picks], y.log()[picks]
    u = u - u.mean(dim=1, keepdim=True)
    v = v - v.mean(dim=1, keepdim=True)
    b = -(u * v).sum(dim=1) / u.square().sum(dim=1)
    cut = (1 - level) / 2
    return b.quantile(torch.tensor([cut, 1 - cut], dtype=b.dtype))
""",
)

# best_size --------------------------------------------------------------------------------------------------


def best_size(
    parameters: Tensor, losses: Tensor, *, log: bool = True, vertex: str = "-q / 2p", unlog: bool = True,
    by: str = "parabola",
) -> float:  # fmt: skip
    """The N at the lowest point of a parabola in ln N."""
    if by == "smallest measured":
        return float(parameters[losses.argmin()])
    u = parameters.double().log() if log else parameters.double()
    u0, scale = u.mean(), u.std()
    t = (u - u0) / scale
    columns = torch.stack([t**2, t, torch.ones_like(t)], dim=1)
    p, q, _ = torch.linalg.lstsq(columns, losses.double()[:, None]).solution[:, 0]
    p, q = p / scale**2, q / scale - 2 * p / scale**2 * u0
    best = {"-q / 2p": -q / (2 * p), "-q / p": -q / p, "q / 2p": q / (2 * p)}[vertex]
    return float(best.exp() if unlog and log else best)


def one_budget(draw: Draw) -> tuple[Tensor, Tensor]:
    """Five to eight sizes at one cost, the best one between two of them."""
    (count,) = draw.sizes(1, low=5)
    u = torch.linspace(7.0, 10.0, count) + 0.05 * draw(count)
    middle = 8.2 + 0.3 * torch.rand(1, generator=draw.generator)
    return u.exp(), 2 + 0.1 * (u - middle) ** 2 + 0.005 * draw(count)


BEST_SIZE = Task(
    name="best_size",
    title="The best size for a budget",
    asks="parameters, losses",
    reference=best_size,
    cases=(Case("the lowest point of the parabola", one_budget, tolerance=1e-3),),
    mistakes=mistakes(r"""
parabola in N: log=False
    The parabola was fitted over N.
    > Over ln N: sizes are told apart by factors.
left in logarithms: unlog=False
    You return ln N.
    > `exp` of it.
factor 2 forgotten: vertex='-q / p'
    The lowest point of $p u^2 + q u + r$ is not at $-q / p$.
    > Set the derivative to 0: $2 p u + q = 0$.
sign: vertex='q / 2p'
    The lowest point has the wrong sign.
    > $u = -q / (2 p)$.
smallest measured: by='smallest measured'
    That is the best of the sizes that were tried.
    > The best one lies between them: fit a parabola.
"""),
    example=((([2.718281828, 7.389056099, 20.08553692], [1.0, 0.0, 1.0]), 7.389056),),
    minutes=8,
    text="Runs of one budget, each with another size: `parameters` and `losses`, both `(n,)`, at least three. Fit a "
    "parabola $L = p u^2 + q u + r$ with $u = \\ln N$ (least squares), and return the N at its lowest point, a plain "
    "number.",
    hints=(
        "A least-squares problem: a matrix with the columns u², u and 1, and the losses on the right.",
        "`torch.linalg.lstsq(columns, losses[:, None]).solution` has p, q, r.",
        "Lowest where the derivative is 0. Then back from u to N. (`.double()` keeps digits that u² would cost.)",
    ),
    solution="""
def my_best_size(parameters, losses):
    u = parameters.double().log()
    columns = torch.stack([u**2, u, torch.ones_like(u)], dim=1)
    p, q, r = torch.linalg.lstsq(columns, losses.double()[:, None]).solution[:, 0]
    return (-q / (2 * p)).exp().item()
""",
)

# allocation -------------------------------------------------------------------------------------------------


def allocation(
    A: float, B: float, alpha: float, beta: float, flops: float, *, crossed: bool = True, six: bool = True,
    root: bool = True, order: str = "N first", balance: str = "alpha A / beta B",
) -> Tensor:  # fmt: skip
    """N and D with the lowest A / N^alpha + B / D^beta at 6 N D = flops."""
    both = alpha + beta
    ratio = {"alpha A / beta B": alpha * A / (beta * B), "A / B": A / B, "turned": beta * B / (alpha * A)}[balance]
    G = ratio ** (1 / both if root else 1.0)
    budget = flops / 6 if six else flops
    N = G * budget ** ((beta if crossed else alpha) / both)
    D = budget / N
    return torch.tensor([N, D] if order == "N first" else [D, N], dtype=torch.float64)


def a_law(draw: Draw) -> tuple[float, float, float, float, float]:
    A, B, alpha, beta = (float(value) for value in torch.rand(4, generator=draw.generator))
    return 1 + 2 * A, 2 + 3 * B, 0.3 + 0.2 * alpha, 0.55 + 0.2 * beta, 600.0


ALLOCATION = Task(
    name="allocation",
    title="Spend it well",
    asks="A, B, alpha, beta, flops",
    reference=allocation,
    cases=(Case("the best N and D for this much computing", a_law),),
    mistakes=mistakes(r"""
exponents crossed: crossed=False
    The exponents are exchanged: if more parameters help much (large alpha), *fewer* more of them are needed.
    > $N = G (C / 6)^{\beta / (\alpha + \beta)}$.
six forgotten: six=False
    6 N D does not come to the budget.
    > $N D = C / 6$.
root forgotten: root=False
    The balance G has an exponent.
    > $G = \big(\frac{\alpha A}{\beta B}\big)^{1 / (\alpha + \beta)}$.
exponents missing in the balance: balance='A / B'
    The derivatives bring down $\alpha$ and $\beta$: they are missing in G.
    > $\frac{\alpha A}{\beta B}$.
balance turned: balance='turned'
    The balance is turned round.
    > $\frac{\alpha A}{\beta B}$.
exchanged: order='D first'
    N and D are exchanged.
    > N first.
"""),
    example=(((1.0, 1.0, 0.5, 0.5, 600.0), [10.0, 10.0]),),
    minutes=9,
    stretch=True,
    text="The law is $L = E + A / N^\\alpha + B / D^\\beta$, the budget $6 N D = C$ (`flops`). Which N and D give the "
    "lowest loss? Replace D by $C / (6 N)$, set the derivative by N to 0, solve for N. Return a tensor of two numbers, "
    "N and D.",
    hints=(
        "$A N^{-\\alpha} + B (6 N / C)^\\beta$: one unknown left.",
        "$\\alpha A N^{-\\alpha - 1} = \\beta B (6 / C)^\\beta N^{\\beta - 1}$: bring all N to one side.",
        "$N = G (C / 6)^{\\beta / (\\alpha + \\beta)}$ with $G = (\\alpha A / (\\beta B))^{1 / (\\alpha + \\beta)}$; "
        "then $D = C / (6 N)$.",
    ),
    solution="""
def my_allocation(A, B, alpha, beta, flops):
    G = (alpha * A / (beta * B)) ** (1 / (alpha + beta))
    N = G * (flops / 6) ** (beta / (alpha + beta))
    return torch.tensor([N, flops / 6 / N], dtype=torch.float64)
""",
)

TASKS = {task.name: task for task in (TRAINING_COST, POWER_LAW, BOOTSTRAP, BEST_SIZE, ALLOCATION)}
