"""Connectionist temporal classification: labels without a place in time, learned and read off frames.

Graves, Fernández, Gomez & Schmidhuber, "Connectionist temporal classification: labelling unsegmented sequence data with
recurrent neural networks", ICML 2006. Hannun, Maas, Jurafsky & Ng, "First-pass large vocabulary continuous speech
recognition using bi-directional recurrent DNNs", 2014, arXiv 1408.2873 (prefix beam search).

At each frame a network says one of its V symbols: a label, or the blank, "nothing new". A path is one symbol per frame;
collapsed, it is a sequence of labels.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

NEVER = -1e30  # log 0 that can be added and differentiated: of -inf alone a log-sum has the gradient NaN
Labels = Sequence[int]


def collapse(path: Labels, *, blank: int = 0) -> list[int]:
    """B(path), Graves et al. 2006, section 3.1: first repetitions become one symbol, then blanks go."""
    return [symbol for symbol, _ in groupby(path) if symbol != blank]


def with_blanks(targets: Int[Tensor, "B S"], *, blank: int = 0) -> Int[Tensor, "B L"]:
    """l', section 4.1: the labels with a blank before, between and after them, L = 2S + 1 states."""
    pairs = torch.stack([torch.full_like(targets, blank), targets], dim=2)
    return F.pad(pairs.flatten(1), (0, 1), value=blank)


def forward_variables(
    log_probs: Float[Tensor, "B T V"], states: Int[Tensor, "B L"], *, blank: int = 0
) -> Float[Tensor, "B T L"]:
    """log alpha_t(s): the probability of being in state s at frame t, summed over all paths there; section 4.1.

    alpha_t(s) = y_t(l'_s) (alpha_t-1(s) + alpha_t-1(s-1) + alpha_t-1(s-2)): stay, go on, or jump over a blank, which is
    allowed between labels that differ. A path begins in one of the first two states.
    """
    log_y = log_probs.gather(2, states[:, None].expand(-1, log_probs.shape[1], -1)).clamp(min=NEVER)  # (B, T, L)
    jumps = may_jump(states, blank)
    begins = torch.arange(states.shape[1], device=states.device) < 2
    alphas = [log_y[:, 0].masked_fill(~begins, NEVER)]
    for y in log_y.unbind(dim=1)[1:]:
        stay = alphas[-1]
        go_on, jump = (F.pad(stay, (by, 0), value=NEVER)[:, : stay.shape[1]] for by in (1, 2))
        alphas.append(y + torch.stack([stay, go_on, jump.masked_fill(~jumps, NEVER)]).logsumexp(dim=0))
    return torch.stack(alphas, dim=1)


def may_jump(states: Int[Tensor, "B L"], blank: int) -> Bool[Tensor, "B L"]:
    """True at a label that differs from the one before it: the blank between the two may be left out."""
    return states != F.pad(states, (2, 0), value=blank)[:, :-2]  # two states before a blank is a blank


def ctc_loss(
    log_probs: Float[Tensor, "B T V"],
    targets: Int[Tensor, "B S"],
    input_lengths: Int[Tensor, " B"],
    target_lengths: Int[Tensor, " B"],
    *,
    blank: int = 0,
) -> Float[Tensor, " B"]:
    """-ln p(l | x) of each row, in nats: the sum over all paths that collapse to its labels, section 4.1.

    p(l | x) = alpha_T(|l'|) + alpha_T(|l'| - 1): at the last frame a path is at the last label or the blank after it.
    The loss is inf where no path fits (too few frames for the labels, and a blank between equal ones), with gradient 0.
    It is what `torch.nn.functional.ctc_loss` gives with reduction="none", which takes (T, B, V). For the logits before
    a log-softmax both have the same gradient, for `log_probs` themselves PyTorch's is that of a log-softmax, too.
    Raises ValueError for labels or lengths that are out of range.
    """
    states = checked_states(log_probs, targets, input_lengths, target_lengths, blank)
    alpha = forward_variables(log_probs, states, blank=blank)
    log_p = at_the_end(alpha, input_lengths, target_lengths)
    return torch.where(log_p > NEVER / 2, -log_p, math.inf)


class Lattice(NamedTuple):
    """All paths of some labels at once, to be drawn: numbers per frame and state of `with_blanks`."""

    states: Int[Tensor, "B L"]  # the symbol of each state
    log_alpha: Float[Tensor, "B T L"]
    log_beta: Float[Tensor, "B T L"]
    posterior: Float[Tensor, "B T L"]  # p(in this state at this frame | the labels): sums to 1 over states

    def of_symbols(self, num_symbols: int) -> Float[Tensor, "B T V"]:
        """p(this symbol at this frame | the labels): the sum over lab(l, k) in section 4.2.

        The loss has the gradient softmax - posterior by the logits.
        """
        at = self.states[:, None].expand_as(self.posterior)
        return self.posterior.new_zeros(*at.shape[:2], num_symbols).scatter_add(2, at, self.posterior)


@torch.no_grad()
def ctc_lattice(
    log_probs: Float[Tensor, "B T V"],
    targets: Int[Tensor, "B S"],
    input_lengths: Int[Tensor, " B"],
    target_lengths: Int[Tensor, " B"],
    *,
    blank: int = 0,
) -> Lattice:
    """Forward and backward variables, and where the paths run: alpha_t(s) beta_t(s) / (y_t(l'_s) p(l | x)).

    beta_t(s) is the probability of all ends of paths from frame t in state s on, y_t included (section 4.1): the
    forward variables of everything read backwards. States and frames beyond the lengths have posterior 0; so has
    everything in rows without a path. Raises ValueError as `ctc_loss`.
    """
    states = checked_states(log_probs, targets, input_lengths, target_lengths, blank)
    num_states = 2 * target_lengths + 1
    alpha = forward_variables(log_probs, states, blank=blank)
    ends = read_backwards(log_probs, input_lengths), read_backwards(states, num_states)
    backwards = forward_variables(*ends, blank=blank)
    beta = read_backwards(read_backwards(backwards, input_lengths).transpose(1, 2), num_states).transpose(1, 2)
    log_y = log_probs.gather(2, states[:, None].expand_as(alpha)).clamp(min=NEVER)
    log_p = at_the_end(alpha, input_lengths, target_lengths)[:, None, None]
    frames, positions = (torch.arange(size, device=states.device) for size in alpha.shape[1:])
    real = (
        (frames < input_lengths[:, None])[:, :, None] & (positions < num_states[:, None])[:, None] & (log_p > NEVER / 2)
    )
    posterior = (alpha + beta - log_y - log_p).exp().masked_fill(~real, 0.0)
    return Lattice(states, alpha, beta, posterior)


def greedy_decode(
    log_probs: Float[Tensor, "B T V"], input_lengths: Int[Tensor, " B"], *, blank: int = 0
) -> list[list[int]]:
    """The most probable path of each row, collapsed: "best path decoding", Graves et al. 2006, section 3.2.

    It need not be the most probable labelling, whose probability is the sum of many paths.
    """
    paths = zip(log_probs.argmax(dim=-1).tolist(), input_lengths.tolist(), strict=True)
    return [collapse(path[:length], blank=blank) for path, length in paths]


def prefix_beam_search(
    log_probs: Float[Tensor, "T V"], *, width: int = 8, blank: int = 0
) -> list[tuple[tuple[int, ...], float]]:
    """The most probable labellings of one row with log-probabilities, best first: Hannun et al. 2014, algorithm 1.

    A prefix keeps two numbers: paths that end in a blank, after which its last label may come again, and paths that end
    in that label, which the next frame may hold on. Of all prefixes the best `width` go on; if these are all, the
    result is exact, else each probability is a lower bound. Labellings of probability 0 are left out. Differs from the
    paper in that there is no language model.
    Raises ValueError for a width below 1.
    """
    if width < 1:
        raise ValueError(f"a beam holds at least one prefix, got width={width}")
    beam: dict[tuple[int, ...], list[float]] = {(): [0.0, -math.inf]}  # prefix -> [ends in a blank, in its last label]
    for frame in log_probs.tolist():
        grown: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [-math.inf, -math.inf])
        for prefix, (in_blank, in_label) in beam.items():
            total = log_add(in_blank, in_label)
            for symbol, log_y in enumerate(frame):
                if symbol == blank:
                    add_to(grown[prefix], 0, total + log_y)
                elif prefix[-1:] == (symbol,):
                    add_to(grown[prefix], 1, in_label + log_y)  # held on
                    add_to(grown[*prefix, symbol], 1, in_blank + log_y)  # said again
                else:
                    add_to(grown[*prefix, symbol], 1, total + log_y)
        possible = [item for item in grown.items() if log_add(*item[1]) > -math.inf]
        beam = dict(sorted(possible, key=lambda item: -log_add(*item[1]))[:width])
    return [(prefix, log_add(*both)) for prefix, both in beam.items()]


def edit_distance(first: Labels, second: Labels) -> int:
    """The fewest insertions, deletions and substitutions that turn one sequence into the other."""
    row = list(range(len(second) + 1))
    for i, label in enumerate(first, start=1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(second, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (label != other))
    return row[-1]


def error_rate(hypotheses: Sequence[Labels], references: Sequence[Labels]) -> float:
    """All edits that are needed, per label of the references: word error rate, if labels are words. It may exceed 1.

    Differs from Graves et al. 2006, eq. (1), which averages over sequences. Raises ValueError without a label.
    """
    total = sum(map(len, references))
    if len(hypotheses) != len(references) or not total:
        raise ValueError(f"{len(hypotheses)} hypotheses for {len(references)} references with {total} labels")
    return sum(map(edit_distance, hypotheses, references)) / total


def log_add(first: float, second: float) -> float:
    """log(e^first + e^second)."""
    low, high = sorted((first, second))
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def add_to(numbers: list[float], position: int, log_p: float) -> None:
    numbers[position] = log_add(numbers[position], log_p)


def at_the_end(
    alpha: Float[Tensor, "B T L"], input_lengths: Int[Tensor, " B"], target_lengths: Int[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """log p(l | x), eq. (8)."""
    last = alpha[torch.arange(len(alpha), device=alpha.device), input_lengths - 1]  # (B, L)
    in_blank = last.gather(1, 2 * target_lengths[:, None])[:, 0]
    in_label = last.gather(1, (2 * target_lengths[:, None] - 1).clamp(min=0))[:, 0]
    return torch.logaddexp(in_blank, in_label.masked_fill(target_lengths == 0, NEVER))


def read_backwards(rows: Tensor, lengths: Int[Tensor, " B"]) -> Tensor:
    """The first `lengths[b]` entries along axis 1 in the opposite order; twice is what it was."""
    size = rows.shape[1]
    positions = (lengths[:, None] - 1 - torch.arange(size, device=rows.device)) % size
    return rows[torch.arange(len(rows), device=rows.device)[:, None], positions]


def checked_states(log_probs: Tensor, targets: Tensor, inputs: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """The states of the real labels, padding blank. Raises ValueError for labels or lengths that are out of range."""
    frames, num_symbols = log_probs.shape[1:]
    if not 0 <= blank < num_symbols:
        raise ValueError(f"blank must be one of the {num_symbols} symbols, got {blank}")
    if ((inputs < 1) | (inputs > frames)).any() or ((lengths < 0) | (lengths > targets.shape[1])).any():
        raise ValueError(
            f"lengths must lie in 1..{frames} frames and 0..{targets.shape[1]} labels, "
            f"got {inputs.tolist()} and {lengths.tolist()}"
        )
    real = torch.arange(targets.shape[1], device=targets.device) < lengths[:, None]
    if wrong := [label for label in targets[real].unique().tolist() if label == blank or not 0 <= label < num_symbols]:
        raise ValueError(f"labels must lie in 0..{num_symbols - 1} and not be the blank, {blank}; got {wrong}")
    return with_blanks(targets.masked_fill(~real, blank), blank=blank)
