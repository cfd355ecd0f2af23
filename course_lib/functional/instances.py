"""From a map of classes to things one can count: connected components, boxes, and how many were found.

Everingham et al., "The Pascal visual object classes challenge: a retrospective", IJCV 111, 2015 (average precision).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


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
