"""How good a segmentation is, by its areas, its outlines and the things in it, and a loss that asks for areas.

Everingham et al., "The Pascal visual object classes challenge: a retrospective", IJCV 111, 2015 (intersection over
union, average precision). Csurka et al., "What is a good evaluation measure for semantic segmentation?", BMVC 2013
(outlines). Milletari, Navab & Ahmadi, "V-Net: fully convolutional neural networks for volumetric medical image
segmentation", 3DV 2016, arXiv 1606.04797 (the loss).
"""

from collections.abc import Sequence
from dataclasses import dataclass

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
    check_labels("predicted labels", predicted, num_classes)
    check_labels("true labels", true, num_classes)
    pairs = true.flatten() * num_classes + predicted.flatten()
    return torch.bincount(pairs, minlength=num_classes**2).view(num_classes, num_classes)


def check_labels(name: str, labels: Tensor, num_classes: int) -> None:
    """Raises ValueError for a label that is not from 0 to num_classes - 1."""
    if labels.numel() and not (0 <= int(labels.min()) and int(labels.max()) < num_classes):
        raise ValueError(
            f"{name} run from {int(labels.min())} to {int(labels.max())}, {num_classes} classes have 0 to "
            f"{num_classes - 1}"
        )


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
    Raises ValueError for a label that is none of the K classes, such as 255 where nothing was labelled.
    """
    check_labels("true labels", true, logits.shape[1])
    probs = logits.softmax(dim=1)
    targets = F.one_hot(true, logits.shape[1]).movedim(-1, 1).to(probs.dtype)
    common = (probs * targets).sum(dim=(0, 2, 3))
    total = probs.sum(dim=(0, 2, 3)) + targets.sum(dim=(0, 2, 3))
    return 1 - ((2 * common + 1) / (total + 1)).mean()


@dataclass(frozen=True, kw_only=True)
class Instances:
    """The things in one image. `scores` rank guesses, the surest highest; of true things they mean nothing."""

    masks: Bool[Tensor, "N H W"]
    classes: Int[Tensor, " N"]
    scores: Float[Tensor, " N"]

    def __len__(self) -> int:
        return len(self.masks)


def connected_components(labels: Int[Tensor, "B H W"], *, connectivity: int = 4) -> Int[Tensor, "B H W"]:
    """Numbers the connected areas of equal label from 1 on, per image, by their first pixels; where the label is 0, 0.

    Pixels connect to those above, below, left and right, with connectivity 8 also to the diagonal ones. Every pixel
    points to a pixel of its component, at first itself. In each round neighbours compare where they point to, the
    higher of two targets is sent on to the lower one, and pointers to pointers are shortened: about log(H W) rounds.
    Raises ValueError for another connectivity.
    """
    if connectivity not in (4, 8):
        raise ValueError(f"connectivity must be 4 or 8, got {connectivity}")
    B, H, W = labels.shape
    itself = torch.arange(B * H * W, device=labels.device)
    first, second = touching_pairs(labels, itself.view(B, H, W), connectivity)
    target = itself
    while True:
        ends = torch.stack([target[first], target[second]])
        low, high = ends.amin(dim=0), ends.amax(dim=0)
        shorter = target.scatter_reduce(0, high, low, "amin")
        while not torch.equal(shorter, shorter[shorter]):
            shorter = shorter[shorter]
        if torch.equal(shorter, target):
            break
        target = shorter
    is_first = ((target == itself) & (labels.flatten() != 0)).view(B, H * W)
    number = is_first.cumsum(dim=1).flatten()[target].view(B, H, W)
    return number.masked_fill(labels == 0, 0)


def touching_pairs(
    labels: Int[Tensor, "B H W"], numbers: Int[Tensor, "B H W"], connectivity: int
) -> tuple[Int[Tensor, " pairs"], Int[Tensor, " pairs"]]:
    """The numbers of all pairs of neighbouring pixels that have the same label."""
    everything, but_first, but_last = slice(None), slice(1, None), slice(None, -1)
    shifts = [(but_last, everything, but_first, everything), (everything, but_last, everything, but_first)]
    if connectivity == 8:
        shifts += [(but_last, but_last, but_first, but_first), (but_last, but_first, but_first, but_last)]
    firsts, seconds = [], []
    for row, column, other_row, other_column in shifts:
        one, other = (slice(None), row, column), (slice(None), other_row, other_column)
        same = labels[one] == labels[other]
        firsts.append(numbers[one][same])
        seconds.append(numbers[other][same])
    return torch.cat(firsts), torch.cat(seconds)


def mask_boxes(masks: Bool[Tensor, "N H W"]) -> Int[Tensor, "N 4"]:
    """The smallest box around each mask: x0, y0, x1, y1 in pixels, the last column and row being x1 - 1 and y1 - 1.

    Raises ValueError for an empty mask, which has no box.
    """
    rows, columns = masks.any(dim=2).int(), masks.any(dim=1).int()
    if not bool(rows.any(dim=1).all()):
        raise ValueError("a mask without a pixel has no box: leave it out")
    H, W = masks.shape[1:]  # argmax is the first of the highest
    return torch.stack(
        [columns.argmax(1), rows.argmax(1), W - columns.flip(1).argmax(1), H - rows.flip(1).argmax(1)], dim=1
    )


def mask_iou(first: Bool[Tensor, "N H W"], second: Bool[Tensor, "M H W"]) -> Float[Tensor, "N M"]:
    """Intersection over union of each pair of masks; 0 for two empty ones."""
    a, b = first.flatten(1).double(), second.flatten(1).double()
    intersection = a @ b.T
    return intersection / (a.sum(dim=1)[:, None] + b.sum(dim=1) - intersection).clamp(min=1)


def instances_of(
    areas: Int[Tensor, "B H W"], evidence: Float[Tensor, "B K H W"], *, smallest: int = 1
) -> list[Instances]:
    """The numbered areas of every image as things; their class is put to the vote.

    Every pixel of an area says how much it is for each class (`evidence`); class 0, the background, cannot be chosen.
    The score is the winner's mean. Areas of fewer than `smallest` pixels are left out.
    """
    found = []
    for area, votes in zip(areas, evidence, strict=True):
        numbers, sizes = area[area > 0].unique(return_counts=True)
        numbers, sizes = numbers[sizes >= smallest], sizes[sizes >= smallest]
        masks = area == numbers[:, None, None]
        means = masks.flatten(1).to(votes.dtype) @ votes[1:].flatten(1).T / sizes[:, None]
        scores, winners = means.max(dim=1)
        found.append(Instances(masks=masks, classes=winners + 1, scores=scores))
    return found


def find_instances(logits: Float[Tensor, "B K H W"], *, smallest: int = 1) -> list[Instances]:
    """The things in a semantic segmentation: every connected area that is not background, however its classes mix.

    Simple and honest, and blind: things that touch are one thing here, whatever their classes, a thing in two parts is
    two, and of things that cover each other only what is seen has a mask. See `instances_of` for class and score.
    """
    foreground = logits.argmax(dim=1) != 0
    return instances_of(connected_components(foreground.long()), logits.softmax(dim=1), smallest=smallest)


def true_instances(numbered: Int[Tensor, "B H W"], semantic: Int[Tensor, "B H W"], num_classes: int) -> list[Instances]:
    """The things of numbered masks, 0 being background, with the class that `semantic` gives to their pixels."""
    return instances_of(numbered, F.one_hot(semantic, num_classes).movedim(-1, 1).float())


def match_instances(predicted: Instances, true: Instances, *, threshold: float = 0.5) -> Bool[Tensor, " N"]:
    """Which of the predicted things are right: the same class, and a mask IoU of `threshold` or more with a true thing.

    The surest guess chooses first. It takes the true thing of its class that it overlaps most, and is wrong if an
    earlier guess took that one already: of two guesses at one thing the second is wrong (Everingham et al. 2015,
    section 3.1.4, with masks for boxes).
    """
    overlap = mask_iou(predicted.masks, true.masks) * (predicted.classes[:, None] == true.classes)
    right = torch.zeros(len(predicted), dtype=torch.bool)
    taken = set()
    for guess in predicted.scores.argsort(descending=True, stable=True).tolist() if len(true) else []:
        best = int(overlap[guess].argmax())
        if overlap[guess, best] >= threshold and best not in taken:
            taken.add(best)
            right[guess] = True
    return right


def average_precision(
    predicted: Sequence[Instances], true: Sequence[Instances], *, threshold: float = 0.5
) -> dict[int, float]:
    """The area under the precision-recall curve of every class that is true somewhere, over all images, from 0 to 1.

    Going down the guesses of a class from the surest, recall is the share of its true things found so far and precision
    the share of right guesses; precision counts as the highest at this recall or a larger one (Everingham et al. 2015,
    section 3.1.4, as computed since 2010). Things never found keep the area below 1; classes without a true thing are
    left out, however often they are guessed. Raises ValueError unless there is one prediction per image.
    """
    if len(predicted) != len(true):
        raise ValueError(f"need the instances of as many images, got {len(predicted)} predicted and {len(true)} true")
    if not true:
        return {}
    classes = torch.cat([image.classes for image in predicted])
    scores = torch.cat([image.scores for image in predicted])
    right = torch.cat([match_instances(p, t, threshold=threshold) for p, t in zip(predicted, true, strict=True)])
    order = scores.argsort(descending=True, stable=True)
    classes, right = classes[order], right[order]
    kinds, counts = torch.cat([image.classes for image in true]).unique(return_counts=True)
    areas = {}
    for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        hits = right[classes == kind].double()
        precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
        highest = precision.flip(0).cummax(0).values.flip(0)
        areas[kind] = (highest * hits).sum().item() / count  # recall grows by 1 / count at each hit
    return areas
