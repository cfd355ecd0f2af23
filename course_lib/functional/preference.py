"""Learning from preferences: reward models, policy gradients on what they say, and the short cut without them.

Ouyang et al., "Training language models to follow instructions with human feedback", NeurIPS 2022, arXiv 2203.02155
(reward model, KL penalty). Schulman et al., "High-dimensional continuous control using generalized advantage
estimation", ICLR 2016, arXiv 1506.02438. Schulman et al., "Proximal policy optimization algorithms", 2017, arXiv
1707.06347. Rafailov et al., "Direct preference optimization", NeurIPS 2023, arXiv 2305.18290.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor


def ranking_loss(rewards: Float[Tensor, "B K"]) -> Float[Tensor, ""]:
    """-mean ln sigmoid(r_w - r_l) over all pairs of K answers, the best one first: Ouyang et al. 2022, eq. (1).

    With K = 2 that is Bradley & Terry's model of who wins. Adding a number to all rewards changes nothing.
    Raises ValueError for fewer than two answers.
    """
    if rewards.shape[-1] < 2:
        raise ValueError(f"a ranking needs two answers or more, got rewards of shape {tuple(rewards.shape)}")
    better, worse = torch.triu_indices(rewards.shape[-1], rewards.shape[-1], offset=1, device=rewards.device)
    return -F.logsigmoid(rewards[:, better] - rewards[:, worse]).mean()


def penalised_rewards(
    scores: Float[Tensor, " B"],
    log_probs: Float[Tensor, "B T"],
    reference: Float[Tensor, "B T"],
    *,
    beta: float,
    valid: Bool[Tensor, "B T"] | None = None,
) -> Float[Tensor, "B T"]:
    """-beta ln(pi / pi_ref) for each token, and the reward model's score of the whole answer on its last one.

    The sum over an answer is what Ouyang et al. 2022 maximise in eq. (2), without its pre-training term. `valid` is
    False behind an answer's end, all True if not given; there is no reward there.
    Raises ValueError for shapes that differ, and for an answer without a token, which no score could be paid on.
    """
    check_one_shape(log_probs, reference, *([] if valid is None else [valid]))
    if scores.shape != log_probs.shape[:1]:
        raise ValueError(
            f"scores must have one number for each answer, got {shape(scores)} beside log_probs {shape(log_probs)}"
        )
    valid = torch.ones_like(log_probs, dtype=torch.bool) if valid is None else valid
    if empty := (~valid.any(dim=1)).nonzero().flatten().tolist():
        raise ValueError(f"every answer needs a token that gets its score, rows {empty} have no token")
    last = F.one_hot(valid.sum(dim=1) - 1, valid.shape[1])
    return (-beta * (log_probs - reference) + scores[:, None] * last) * valid


def advantages(
    rewards: Float[Tensor, "B T"], values: Float[Tensor, "B T1"], *, discount: float = 1.0, trace: float = 0.95
) -> Float[Tensor, "B T"]:
    """A_t = sum_k (gamma lambda)^k delta_{t+k}, delta_t = r_t + gamma V_{t+1} - V_t: Schulman et al. 2016, eq. (16).

    `values` has one entry more than `rewards`: what is expected behind the last step, 0 at an end. With a `trace`
    lambda of 0 it is the surprise of one step, with 1 the return less what was expected. Raises ValueError for another
    number of values.
    """
    if values.shape[1] != rewards.shape[1] + 1:
        raise ValueError(f"{rewards.shape[1]} rewards need one value more, got {values.shape[1]}")
    delta = rewards + discount * values[:, 1:] - values[:, :-1]
    total, found = torch.zeros_like(delta[:, 0]), []
    for each in delta.flip(1).unbind(1):
        total = each + discount * trace * total
        found.append(total)
    return torch.stack(found[::-1], dim=1)


def clipped_objective(
    log_probs: Float[Tensor, "*B"],
    old: Float[Tensor, "*B"],
    advantage: Float[Tensor, "*B"],
    *,
    clip: float = 0.2,
    valid: Bool[Tensor, "*B"] | None = None,
) -> Float[Tensor, ""]:
    """Mean of min(r A, clamp(r, 1 - eps, 1 + eps) A) with r = pi / pi_old: Schulman et al. 2017, eq. (7); maximise it.

    Where r has already gone beyond 1 +- `clip` in the direction that A asks for, the gradient is zero.
    Raises ValueError for shapes that differ.
    """
    check_one_shape(log_probs, old, advantage, *([] if valid is None else [valid]))
    ratio = (log_probs - old).exp()
    objective = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    return objective.mean() if valid is None else objective[valid].mean()


def clipped_value_loss(
    values: Float[Tensor, "*B"],
    old: Float[Tensor, "*B"],
    returns: Float[Tensor, "*B"],
    *,
    clip: float = 0.2,
    valid: Bool[Tensor, "*B"] | None = None,
) -> Float[Tensor, ""]:
    """Half the mean of max((V - R)², (V_old + clamp(V - V_old, -eps, eps) - R)²): as in the authors' released code.

    Raises ValueError for shapes that differ.
    """
    check_one_shape(values, old, returns, *([] if valid is None else [valid]))
    near = old + (values - old).clamp(-clip, clip)
    error = torch.maximum((values - returns).square(), (near - returns).square())
    return 0.5 * (error.mean() if valid is None else error[valid].mean())


def implicit_rewards(
    log_probs: Float[Tensor, " B"], reference: Float[Tensor, " B"], *, beta: float
) -> Float[Tensor, " B"]:
    """beta ln(pi(y|x) / pi_ref(y|x)) of whole answers: the reward that the policy would be best for, up to a number
    that depends on x alone; Rafailov et al. 2023, eq. (5). Raises ValueError for shapes that differ.
    """
    check_one_shape(log_probs, reference)
    return beta * (log_probs - reference)


def dpo_loss(
    chosen: Float[Tensor, " B"],
    rejected: Float[Tensor, " B"],
    reference_chosen: Float[Tensor, " B"],
    reference_rejected: Float[Tensor, " B"],
    *,
    beta: float = 0.1,
) -> Float[Tensor, ""]:
    """-mean ln sigmoid of the difference of implicit rewards: Rafailov et al. 2023, eq. (7).

    All four are ln p of whole answers, the sums of their tokens'. ln 2 as long as the policy is the reference.
    Raises ValueError for anything but one number for each answer.
    """
    check_one_shape(chosen, rejected, reference_chosen, reference_rejected)
    if chosen.ndim != 1:
        raise ValueError(f"need one number for each answer, (B), got {shape(chosen)}: sum over the answer's tokens")
    won = implicit_rewards(chosen, reference_chosen, beta=beta)
    lost = implicit_rewards(rejected, reference_rejected, beta=beta)
    return ranking_loss(torch.stack([won, lost], dim=1))


def check_one_shape(*tensors: Tensor) -> None:
    """Raises ValueError unless all have one shape: others may broadcast, to a number that means nothing."""
    if len({tensor.shape for tensor in tensors}) > 1:
        *first, last = map(shape, tensors)
        raise ValueError(f"all must have the same shape, got {', '.join(first)} and {last}")


def shape(tensor: Tensor) -> str:
    """The sizes of a tensor as text, such as (2, 3)."""
    return f"({', '.join(map(str, tensor.shape))})"
