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
    False behind an answer's end, all True if not given; nothing is paid there.
    """
    valid = torch.ones_like(log_probs, dtype=torch.bool) if valid is None else valid
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
    """
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
    """Half the mean of max((V - R)², (V_old + clamp(V - V_old, -eps, eps) - R)²): as in the authors' released code."""
    near = old + (values - old).clamp(-clip, clip)
    error = torch.maximum((values - returns).square(), (near - returns).square())
    return 0.5 * (error.mean() if valid is None else error[valid].mean())


def implicit_rewards(
    log_probs: Float[Tensor, " B"], reference: Float[Tensor, " B"], *, beta: float
) -> Float[Tensor, " B"]:
    """beta ln(pi(y|x) / pi_ref(y|x)) of whole answers: the reward that the policy would be best for, up to a number
    that depends on x alone; Rafailov et al. 2023, eq. (5).
    """
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
    """
    won = implicit_rewards(chosen, reference_chosen, beta=beta)
    lost = implicit_rewards(rejected, reference_rejected, beta=beta)
    return ranking_loss(torch.stack([won, lost], dim=1))
