"""Laws of scale: how the loss of a language model falls with its size N, its data D and the operations C spent on it.

Kaplan et al., "Scaling laws for neural language models", 2020, arXiv 2001.08361.
Hoffmann et al., "Training compute-optimal large language models", NeurIPS 2022, arXiv 2203.15556.
"""

import itertools
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

ZOOMS, POINTS = 6, 60  # of the search for an exponent
EXPONENTS = (0.01, 4.0)  # it is sought between these
TOGETHER = 0.999  # a higher correlation of log N and log D leaves the two exponents undetermined
STARTS = 6  # of the grid of section D.2, those with the lowest objective are followed


def training_flops(parameters: float, tokens: float) -> float:
    """C = 6 N D: a multiply-add (2) for each weight and token, once forward and twice backward.

    Kaplan et al. 2020, section 2.1, where N leaves embeddings out; the products of attention are left out, too.
    """
    return 6.0 * parameters * tokens


# ------------------------------------------------------------------------------------------ one variable


@dataclass(frozen=True, kw_only=True)
class PowerLaw:
    """L(x) = a x^-b + c."""

    a: float
    b: float
    c: float

    def __call__(self, x: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        return self.a * x.double() ** -self.b + self.c


def fit_power_law(x: Float[Tensor, " n"], y: Float[Tensor, " n"], *, floor: bool = True) -> PowerLaw:
    """The law a x^-b + c with the least squared error in y, a > 0 and c >= 0; without a `floor` c is 0.

    Raises ValueError for values that are not positive and finite, for fewer different x than the law has numbers, and
    for a y that does not fall as x grows.
    """
    x, y = checked(x, y, at_least=3 if floor else 2)
    a, b, c = power_laws(x, y[None], floor=floor)
    if a.item() <= 0:
        raise ValueError(f"y does not fall as x grows: x={x.tolist()}, y={y.tolist()}")
    return PowerLaw(a=a.item(), b=b.item(), c=c.item())


def bootstrap_power_laws(
    x: Float[Tensor, " n"], y: Float[Tensor, " n"], *, floor: bool = True, resamples: int = 500, seed: int = 0
) -> list[PowerLaw]:
    """Laws of data that could have come as well: the fitted curve with residuals drawn anew (Efron 1979).

    n points leave n - 3 (without a floor n - 2) free, and residuals are stretched for it. Raises ValueError as
    `fit_power_law`, and where no point is left over.
    """
    x, y = checked(x, y, at_least=4 if floor else 3)
    fitted = fit_power_law(x, y, floor=floor)(x)
    residuals = (y - fitted) * math.sqrt(len(x) / (len(x) - (3 if floor else 2)))
    drawn = torch.randint(len(x), (resamples, len(x)), generator=torch.Generator().manual_seed(seed))
    laws = power_laws(x, fitted + residuals[drawn], floor=floor)
    return [PowerLaw(a=a, b=b, c=c) for a, b, c in zip(*(values.tolist() for values in laws), strict=True)]


def interval(values: list[float], level: float = 0.9) -> tuple[float, float]:
    """The middle part of bootstrapped values, `level` of them. Raises ValueError for a level outside of 0 to 1."""
    if not 0 < level < 1 or not values:
        raise ValueError(
            f"level must be between 0 and 1 and there must be values, got {level} and {len(values)} values"
        )
    low, high = torch.tensor(values, dtype=torch.float64).quantile(
        torch.tensor([0.5 - level / 2, 0.5 + level / 2]).double()
    )
    return low.item(), high.item()


def power_laws(x: Tensor, y: Float[Tensor, "R n"], *, floor: bool) -> tuple[Tensor, Tensor, Tensor]:
    """a, b, c for each row of y. For a given b the rest is a straight line; b is sought on grids ever finer."""
    scale = x.log().mean().exp()  # keeps x^-b near 1
    low = torch.full((len(y), 1), math.log(EXPONENTS[0]), dtype=y.dtype)
    high = torch.full_like(low, math.log(EXPONENTS[1]))
    for _ in range(ZOOMS):
        b = (low + (high - low) * torch.linspace(0, 1, POINTS, dtype=y.dtype)).exp()  # (R, points)
        u = (x / scale) ** -b[..., None]  # (R, points, n)
        flat = u.new_zeros(()) if not floor else u.mean(-1)
        level = y.mean(-1, keepdim=True) if floor else y.new_zeros(len(y), 1)
        centred = u - flat[..., None]
        a = (centred * (y - level)[:, None]).sum(-1) / centred.square().sum(-1)
        c = level - a * flat
        through_zero = (u * y[:, None]).sum(-1) / u.square().sum(-1)  # what is best where c would be negative
        a, c = torch.where(c < 0, through_zero, a), c.clamp_min(0)
        errors = (a[..., None] * u + c[..., None] - y[:, None]).square().sum(-1)
        best = errors.argmin(-1, keepdim=True)
        step = (high - low) / (POINTS - 1)
        at = b.gather(1, best).log()
        low, high = (at - step).clamp_min(math.log(EXPONENTS[0])), (at + step).clamp_max(math.log(EXPONENTS[1]))
    a, b, c = (values.gather(1, best).squeeze(1) for values in (a, b, c))
    return a * scale**b, b, c


# ----------------------------------------------------------------------------------------- two variables


@dataclass(frozen=True, kw_only=True)
class ScalingLaw:
    """L(N, D) = E + A / N^alpha + B / D^beta, Hoffmann et al. 2022, eq. (2)."""

    E: float
    A: float
    B: float
    alpha: float
    beta: float

    def __call__(self, parameters: Float[Tensor, " n"], tokens: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        return self.E + self.A * parameters.double() ** -self.alpha + self.B * tokens.double() ** -self.beta

    def allocation(self, flops: float) -> tuple[float, float]:
        """N and D with the lowest loss for C = 6 N D, Hoffmann et al. 2022, eq. (4).

        N = G (C/6)^a and D = (C/6)^b / G with G = (alpha A / (beta B))^(1/(alpha + beta)), a = beta/(alpha + beta)
        and b = alpha/(alpha + beta).
        """
        if flops <= 0:
            raise ValueError(f"flops must be positive, got {flops}")
        both = self.alpha + self.beta
        balance = (self.alpha * self.A / (self.beta * self.B)) ** (1 / both)
        return balance * (flops / 6) ** (self.beta / both), (flops / 6) ** (self.alpha / both) / balance


def fit_scaling_law(
    parameters: Float[Tensor, " n"], tokens: Float[Tensor, " n"], losses: Float[Tensor, " n"], *, delta: float = 1e-3
) -> ScalingLaw:
    """The law with the least Huber loss of log L, Hoffmann et al. 2022, eq. (3) and section D.2, by L-BFGS.

    The starts are their grid. Differs from the paper in following those with the lowest objective only.
    Raises ValueError for values that are not positive and finite, too few sizes, amounts or runs to tell, and amounts
    that grow with the sizes, such as D = 20 N everywhere: there alpha and beta cannot be told apart.
    """
    n, losses_ = checked(parameters, losses, at_least=3)
    d, _ = checked(tokens, losses, at_least=3)
    if len(n) < 6:
        raise ValueError(f"five numbers need six runs or more, got {len(n)}")
    log_n, log_d, log_l = n.log(), d.log(), losses_.log()
    if abs(together := torch.corrcoef(torch.stack([log_n, log_d]))[0, 1].item()) > TOGETHER:
        raise ValueError(
            f"parameters and tokens grow together (their logarithms correlate by {together:.4f}), so that their "
            "exponents cannot be told apart: train with several amounts of data for a size"
        )

    def objective(theta: Tensor) -> Tensor:  # theta: (..., 5) = log A, log B, log E, alpha, beta
        a, b, e, alpha, beta = theta[..., None].unbind(-2)
        terms = torch.stack(torch.broadcast_tensors(a - alpha * log_n, b - beta * log_d, e + 0 * log_n))
        predicted = terms.logsumexp(0)
        return F.huber_loss(predicted, log_l.expand_as(predicted), delta=delta, reduction="none").sum(-1) / delta**2

    logs, exponents, floors = torch.arange(0, 30, 5), torch.arange(0, 2.5, 0.5), torch.arange(-1, 1.5, 0.5)
    grid = itertools.product(*(values.tolist() for values in (logs, logs, floors, exponents, exponents)))
    starts = torch.tensor(list(grid), dtype=torch.float64)
    starts = starts[objective(starts).argsort()[:STARTS]]
    found = [descend(objective, start) for start in starts]
    best = min(found, key=lambda theta: objective(theta).item())
    a, b, e, alpha, beta = best.tolist()
    return ScalingLaw(E=math.exp(e), A=math.exp(a), B=math.exp(b), alpha=alpha, beta=beta)


def descend(objective, start: Float[Tensor, " k"]) -> Float[Tensor, " k"]:
    """Where L-BFGS comes from `start`."""
    theta = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [theta],
        max_iter=400,
        history_size=20,
        tolerance_grad=1e-12,
        tolerance_change=1e-15,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = objective(theta)
        value.backward()
        return value

    optimizer.step(closure)
    return theta.detach()


# -------------------------------------------------------------------------------------------- one budget


@dataclass(frozen=True, kw_only=True)
class IsoFlop:
    """A parabola L = q (ln N)^2 + r ln N + s through the runs of one budget, and its lowest point."""

    q: float
    r: float
    s: float
    inside: bool  # the lowest point lies between the sizes that were tried

    @property
    def parameters(self) -> float:
        return math.exp(-self.r / (2 * self.q))

    @property
    def loss(self) -> float:
        return self.s - self.r**2 / (4 * self.q)


def fit_isoflop(parameters: Float[Tensor, " n"], losses: Float[Tensor, " n"]) -> IsoFlop:
    """Approach 2 of Hoffmann et al. 2022, section 3.2, by least squares.

    Raises ValueError for values that are not positive and finite, fewer than three sizes, and losses without a valley.
    """
    n, y = checked(parameters, losses, at_least=3)
    centre = n.log().mean()
    z = n.log() - centre
    s, r, q = torch.linalg.lstsq(torch.stack([z**0, z, z**2], dim=1), y[:, None]).solution.squeeze(1).tolist()
    if q <= 1e-12:
        raise ValueError(f"no valley: the losses {y.tolist()} do not curve upwards over the sizes {n.tolist()}")
    at = (centre - r / (2 * q)).exp()
    m = centre.item()
    return IsoFlop(q=q, r=r - 2 * q * m, s=s - r * m + q * m**2, inside=bool(n.min() <= at <= n.max()))


def checked(x: Tensor, y: Tensor, *, at_least: int) -> tuple[Tensor, Tensor]:
    """Both in double precision. Raises ValueError for what no law can be fitted to."""
    if x.shape != y.shape or x.dim() != 1:
        raise ValueError(f"need as many x as y in a row, got shapes {tuple(x.shape)} and {tuple(y.shape)}")
    x, y = x.double(), y.double()
    if not (torch.isfinite(x).all() and torch.isfinite(y).all() and (x > 0).all() and (y > 0).all()):
        raise ValueError(f"all values must be positive and finite, got {x.tolist()} and {y.tolist()}")
    if len(x.unique()) < at_least:
        raise ValueError(f"need {at_least} different values or more, got {x.unique().tolist()}")
    return x, y


# --------------------------------------------------------------------------------------------- published

CHINCHILLA = ScalingLaw(E=1.69, A=406.4, B=410.7, alpha=0.34, beta=0.28)  # Hoffmann et al. 2022, eq. (10), section D.3
REPLICATION = ScalingLaw(E=1.8172, A=482.01, B=2085.43, alpha=0.3478, beta=0.3658)  # Besiroglu et al. 2024, 2404.10102
KAPLAN = {  # L = (x_c / x)^exponent alone, Kaplan et al. 2020, eqs. (1.1)-(1.3): exponent, x_c
    "N": (0.076, 8.8e13),  # parameters without embeddings
    "D": (0.095, 5.4e13),  # tokens
    "C_min": (0.050, 3.1e8),  # PF-days
}
ALLOCATIONS = {  # exponents a, b of N ~ C^a and D ~ C^b, Hoffmann et al. 2022, table 2
    "envelope of training curves": (0.50, 0.50),
    "isoFLOP profiles": (0.49, 0.51),
    "parametric fit": (0.46, 0.54),
    "Kaplan et al. 2020": (0.73, 0.27),
}
