"""How good is a segmentation: by its areas, and by its outlines. And a loss that asks for areas.

Everingham et al., "The Pascal visual object classes challenge: a retrospective", IJCV 111, 2015 (intersection over
union). Csurka et al., "What is a good evaluation measure for semantic segmentation?", BMVC 2013 (outlines).
Milletari, Navab & Ahmadi, "V-Net: fully convolutional neural networks for volumetric medical image segmentation", 3DV
2016, arXiv 1606.04797 (the loss).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


def confusion_matrix(
    predicted: Int[Tensor, "*pixels"], true: Int[Tensor, "*pixels"], num_classes: int
) -> Int[Tensor, "{num_classes} {num_classes}"]:
    """How many pixels of class i (row) were given class j (column), over all images together.

    Raises ValueError for a label that is not from 0 to num_classes - 1.
    """
    for name, labels in (("predicted", predicted), ("true", true)):
        if labels.numel() and not (0 <= int(labels.min()) and int(labels.max()) < num_classes):
            raise ValueError(
                f"{name} labels run from {int(labels.min())} to {int(labels.max())}, {num_classes} classes have 0 to "
                f"{num_classes - 1}"
            )
    pairs = true.flatten() * num_classes + predicted.flatten()
    return torch.bincount(pairs, minlength=num_classes**2).view(num_classes, num_classes)


def intersection_over_union(confusion: Int[Tensor, "K K"]) -> Float[Tensor, " K"]:
    """IoU_k = TP / (TP + FP + FN) of every class, Everingham et al. 2015, section 3.1.5.

    A class that is predicted somewhere but true nowhere (or the other way round) has 0; one that is neither, NaN.
    """
    hits = confusion.diagonal().double()
    return hits / (confusion.sum(dim=0) + confusion.sum(dim=1) - hits)


def mean_iou(predicted: Int[Tensor, "*pixels"], true: Int[Tensor, "*pixels"], num_classes: int) -> float:
    """The mean IoU over the classes that are predicted or true somewhere, from 0 to 1; all pixels count together.

    A class that is neither is left out, instead of counting as 0 or 1. Raises ValueError without a pixel or for labels
    outside the classes.
    """
    if not true.numel():
        raise ValueError("the mean IoU of no pixel is undefined")
    return intersection_over_union(confusion_matrix(predicted, true, num_classes)).nanmean().item()


def outlines(labels: Int[Tensor, "B H W"] | Bool[Tensor, "B H W"]) -> Bool[Tensor, "B H W"]:
    """True where a pixel's neighbour above, below, left or right has another label: on both sides of every edge."""
    edge = torch.zeros_like(labels, dtype=torch.bool)
    vertical, horizontal = labels[:, 1:] != labels[:, :-1], labels[:, :, 1:] != labels[:, :, :-1]
    edge[:, 1:] |= vertical
    edge[:, :-1] |= vertical
    edge[:, :, 1:] |= horizontal
    edge[:, :, :-1] |= horizontal
    return edge


def thickened(mask: Bool[Tensor, "B H W"], radius: float) -> Bool[Tensor, "B H W"]:
    """True where a pixel of the mask is `radius` pixels away or nearer, centre to centre (Euclidean)."""
    reach = int(radius)
    offset = torch.arange(-reach, reach + 1, device=mask.device)
    disc = (offset[:, None] ** 2 + offset**2 <= radius**2).float()
    return F.conv2d(mask[:, None].float(), disc[None, None], padding=reach)[:, 0] > 0.5


def boundary_f_score(
    predicted: Int[Tensor, "B H W"] | Bool[Tensor, "B H W"],
    true: Int[Tensor, "B H W"] | Bool[Tensor, "B H W"],
    *,
    tolerance: float = 1.0,
) -> float:
    """2 P R / (P + R) of the outlines, the mean over images, from 0 to 1 (Csurka et al. 2013, section 2.2).

    P is the share of predicted outline pixels that lie `tolerance` pixels or nearer (Euclidean) to a true one, R the
    share of true outline pixels with a predicted one as near. Any change of label is an outline, whatever the labels:
    this score asks where things end, not what they are (for one class as in Csurka et al., give `labels == k`).
    An image without any outline, predicted or true, has score 1; with one but not the other, 0.
    Raises ValueError without an image or for a negative tolerance.
    """
    if not len(true) or tolerance < 0:
        raise ValueError(f"need an image and a tolerance of 0 pixels or more, got {len(true)} images and {tolerance}")
    guessed, actual = outlines(predicted), outlines(true)
    precise, recalled = guessed & thickened(actual, tolerance), actual & thickened(guessed, tolerance)
    num_guessed, num_actual, num_precise, num_recalled = (
        mask.sum(dim=(1, 2)).double() for mask in (guessed, actual, precise, recalled)
    )
    precision, recall = num_precise / num_guessed.clamp(min=1), num_recalled / num_actual.clamp(min=1)
    score = 2 * precision * recall / (precision + recall).clamp(min=torch.finfo(torch.float64).tiny)
    return score.masked_fill((num_guessed == 0) & (num_actual == 0), 1.0).mean().item()


def dice_loss(logits: Float[Tensor, "B K H W"], true: Int[Tensor, "B H W"]) -> Float[Tensor, ""]:
    """1 - the mean over classes of 2 sum(p t) / (sum p + sum t), all pixels of the batch together, from 0 to 1.

    p is the softmax, t 1 at the pixels of the class and else 0. A small class weighs as much as the background. Differs
    from Milletari et al. 2016, section 3: nothing in the denominator is squared, and 1 is added to numerator and
    denominator, so that a class that is nowhere asks for no probability and is not undefined.
    """
    shares = logits.softmax(dim=1)
    targets = F.one_hot(true, logits.shape[1]).movedim(-1, 1).to(shares.dtype)
    common = (shares * targets).sum(dim=(0, 2, 3))
    total = shares.sum(dim=(0, 2, 3)) + targets.sum(dim=(0, 2, 3))
    return 1 - ((2 * common + 1) / (total + 1)).mean()
