"""How wrong a prediction is: cross-entropy against targets that are a little less sure than one word.

Szegedy et al., "Rethinking the Inception architecture for computer vision", CVPR 2016, arXiv 1512.00567, section 7.
Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv 1706.03762, section 5.4.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


def smoothed_targets(
    target: Int[Tensor, "*B"], num_classes: int, smoothing: float, *, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*B V"]:
    """q'(k) = (1 - eps) [k = y] + eps / K: label smoothing with the uniform prior, Szegedy et al. 2016, section 7.

    `smoothing` is eps. Raises ValueError if it is not from 0 to 1.
    """
    _check_smoothing(smoothing)
    return (1 - smoothing) * F.one_hot(target, num_classes).to(dtype) + smoothing / num_classes


def readable_cross_entropy(
    logits: Float[Tensor, "*B V"],
    target: Int[Tensor, "*B"],
    *,
    smoothing: float = 0.0,
    scored: Bool[Tensor, "*B"] | None = None,
) -> Float[Tensor, ""]:
    """H(q', p) = -sum_k q'(k) log p(k), Szegedy et al. 2016, section 7, in nats: the mean over the `scored` targets.

    The textbook twin of `cross_entropy`. Raises ValueError as that does.
    """
    _check_scored(scored)
    targets = smoothed_targets(target, logits.shape[-1], smoothing, dtype=logits.dtype)
    losses = -(targets * logits.log_softmax(dim=-1)).sum(dim=-1)
    return losses.mean() if scored is None else losses[scored].mean()


def cross_entropy(
    logits: Float[Tensor, "*B V"],
    target: Int[Tensor, "*B"],
    *,
    smoothing: float = 0.0,
    scored: Bool[Tensor, "*B"] | None = None,
) -> Float[Tensor, ""]:
    """Cross-entropy with smoothed labels, in one fused call: the mean over the `scored` targets, in nats.

    `smoothing` is eps of Vaswani et al. 2017, section 5.4; `scored` is False at padding, all True if not given.
    Raises ValueError for a smoothing that is not from 0 to 1, or if no target is scored.
    """
    _check_smoothing(smoothing)
    _check_scored(scored)
    if scored is not None:
        logits, target = logits[scored], target[scored]
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), target.reshape(-1), label_smoothing=smoothing)


def _check_smoothing(smoothing: float) -> None:
    if not 0.0 <= smoothing <= 1.0:
        raise ValueError(f"smoothing is the share of a target that goes to all classes: from 0 to 1, got {smoothing}")


def _check_scored(scored: Tensor | None) -> None:
    if scored is not None and not scored.any():
        raise ValueError("no target is scored: the mean of no loss is undefined")
