"""How wrong a prediction is: cross-entropy, with targets that are a little less sure than one word, and between views.

Szegedy et al., "Rethinking the Inception architecture for computer vision", CVPR 2016, arXiv 1512.00567, section 7.
Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv 1706.03762, section 5.4. Chen, Kornblith, Norouzi &
Hinton, "A simple framework for contrastive learning of visual representations", ICML 2020, arXiv 2002.05709.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


def smoothed_targets(
    target: Int[Tensor, "*B"], num_classes: int, smoothing: float, *, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*B V"]:
    """q'(k) = (1 - eps) [k = y] + eps / K: label smoothing with the uniform prior, Szegedy et al. 2016, section 7.

    `smoothing` is eps. Raises ValueError if it is not from 0 to 1, or for a target that is none of the classes.
    """
    _check_smoothing(smoothing)
    _check_targets(target, num_classes)
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
    logits, target = _scored(logits, target, scored)
    targets = smoothed_targets(target, logits.shape[-1], smoothing, dtype=logits.dtype)
    return -(targets * logits.log_softmax(dim=-1)).sum(dim=-1).mean()


def cross_entropy(
    logits: Float[Tensor, "*B V"],
    target: Int[Tensor, "*B"],
    *,
    smoothing: float = 0.0,
    scored: Bool[Tensor, "*B"] | None = None,
) -> Float[Tensor, ""]:
    """Cross-entropy with smoothed labels, in one fused call: the mean over the `scored` targets, in nats.

    `smoothing` is eps of Vaswani et al. 2017, section 5.4; `scored` is False at padding, all True if not given.
    Raises ValueError for a smoothing that is not from 0 to 1, if no target is scored, or if a scored one is none of the
    V classes or no whole number: torch would leave out those of -100. (On a GPU a target outside ends in CUDA's error.)
    """
    _check_smoothing(smoothing)
    logits, target = _scored(logits, target, scored)
    rows = logits.reshape(-1, logits.shape[-1]), target.reshape(-1)
    try:
        return F.cross_entropy(*rows, label_smoothing=smoothing, ignore_index=torch.iinfo(torch.int64).min)
    except IndexError:
        _check_targets(target, logits.shape[-1])
        raise


def check_whole(name: str, labels: Tensor) -> None:
    """Raises ValueError for classes that are not integers: floats would be taken for probabilities, or not at all."""
    if labels.is_floating_point() or labels.is_complex():
        raise ValueError(f"{name} must be whole numbers, one for each class, got {labels.dtype}: convert by .long()")


def _check_smoothing(smoothing: float) -> None:
    if not 0.0 <= smoothing <= 1.0:
        raise ValueError(f"smoothing is the share of a target that goes to all classes: from 0 to 1, got {smoothing}")


def _check_targets(target: Tensor, num_classes: int) -> None:
    outside = target[(target < 0) | (target >= num_classes)]
    if len(outside):
        raise ValueError(
            f"targets must lie in 0..{num_classes - 1}, got {outside[:5].tolist()}: to leave places out use `scored`"
        )


def _scored(logits: Tensor, target: Tensor, scored: Tensor | None) -> tuple[Tensor, Tensor]:
    if logits.shape[:-1] != target.shape:
        shapes = f"logits {tuple(logits.shape)} and targets {tuple(target.shape)}"
        raise ValueError(f"each row of logits needs its target, got {shapes}")
    check_whole("targets", target)
    if scored is not None and not scored.any():
        raise ValueError("no target is scored: the mean of no loss is undefined")
    return (logits, target) if scored is None else (logits[scored], target[scored])


def nt_xent(
    first: Float[Tensor, "B D"], second: Float[Tensor, "B D"], *, temperature: float = 0.5
) -> Float[Tensor, ""]:
    """The mean over all 2B views i of -ln [exp(s_ij / t) / sum_{k != i} exp(s_ik / t)], Chen et al. 2020, eq. (1).

    Row n of `first` and row n of `second` are the projections of two views of image n: i's other view is j. s is the
    cosine of the angle between two projections and t the `temperature`. In nats; ln(2B - 1) for a guess.
    Raises ValueError for unequal shapes, fewer than two images, or a temperature that is not positive.
    """
    if first.ndim != 2 or first.shape != second.shape:
        raise ValueError(
            f"both views of the images must have one shape (B, D), got {tuple(first.shape)} and {tuple(second.shape)}"
        )
    if len(first) < 2:
        raise ValueError(f"a view needs other images to be told from: two or more, got {len(first)}")
    if temperature <= 0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    z = F.normalize(torch.cat([first, second]), dim=-1)
    similarity = (z @ z.T / temperature).fill_diagonal_(-torch.inf)  # k != i
    other_view = torch.arange(len(z), device=z.device).roll(len(first))
    return F.cross_entropy(similarity, other_view)
