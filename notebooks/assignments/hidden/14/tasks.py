"""Assignment 14, Image to image: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.functional.segmentation import mask_iou
from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_14.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, mistakes


def upsample(
    maps: Tensor,
    factor: int,
    *,
    size: str = "2f - f mod 2",
    stamp: str = "tent",
    cut: str = "both sides",
    channels: str = "each",
    outside: str = "zeros",
) -> Tensor:
    """A transposed convolution with the bilinear stamp; the overhang is cut off on both sides alike."""
    C, (h, w) = maps.shape[1], maps.shape[-2:]
    if outside == "repeated":
        return F.interpolate(maps, scale_factor=factor, mode="bilinear", align_corners=False)
    K = {"2f - f mod 2": 2 * factor - factor % 2, "2f": 2 * factor, "f": factor}[size]
    centre = K / 2 if stamp == "off centre" else (K - 1) / 2
    far = (torch.arange(K, dtype=maps.dtype) - centre).abs()
    tent = {"flat": torch.ones_like(far), "steep": 1 - 2 * far / max(K - 1, 1)}.get(stamp, 1 - far / factor).clamp(
        min=0
    )
    kernel = tent[:, None] * tent
    kernel = kernel / kernel.sum() if stamp == "sum of one" else kernel
    weight = kernel.expand(C, 1 if channels == "each" else C, K, K)
    grown = F.conv_transpose2d(maps, weight, stride=factor, groups=C if channels == "each" else 1)
    over = K - factor
    top = {"both sides": over // 2, "at the end": 0, "at the beginning": over, "never": 0}[cut]
    return grown if cut == "never" else grown[..., top : top + factor * h, top : top + factor * w]


def maps_and_factor(draw: Draw, *, odd: bool) -> tuple[Tensor, int]:
    """Maps of drawn sizes, and by how much they grow."""
    return draw(*draw.sizes(4, high=6)), 2 * draw.integers(1, 3, 1).item() + odd


UPSAMPLE = replace(
    SHOWN["upsample"],
    reference=upsample,
    cases=(
        Case("maps grow twice or four times, and bilinearly", lambda draw: maps_and_factor(draw, odd=False), 8),
        Case("an odd number of times", lambda draw: maps_and_factor(draw, odd=True), 3, ("size", "cut")),
        Case("once: nothing changes", lambda draw: (draw(*draw.sizes(4, high=6)), 1), 2, ("size",)),
    ),
    mistakes=mistakes(r"""
stamp of an even size for every factor: size='2f'
    With an odd factor the result is shifted by half a pixel.
    > The stamp is 2f - f mod 2 pixels wide: an odd factor needs an odd size, so that there is a pixel in its middle.
stamp as small as the stride: size='f'
    Stamps do not overlap.
    > Between two pixels both count: the stamp is about twice as wide as the stride.
flat stamp: stamp='flat'
    Each pixel stamps the same value everywhere.
    > The stamp falls from its middle to its sides: 1 - |i - c| / f, in both directions.
stamp off its centre: stamp='off centre'
    The stamp is not symmetric.
    > Places count from 0 to size - 1: the middle is at (size - 1) / 2.
wrong slope: stamp='steep'
    The stamp falls to 0 at its outermost pixels.
    > Neighbouring stamps, f pixels apart, must add up to 1 everywhere: divide the distance by f.
stamp divided by its sum: stamp='sum of one'
    The result is too dark: a map of ones does not stay one.
    > Every pixel of the result gets several stamps, which add up to 1 as they are.
overhang cut off on one side: cut='at the end' | 'at the beginning'
    The result is shifted.
    > What is too much stands on all four sides: cut off (size - f) / 2 on each.
overhang left: cut='never'
    The result is larger than f times the map.
    > (h - 1) f + size - 2 p = f h: which padding p follows?
channels mixed: channels='all'
    Every channel of the result is a sum over all channels.
    > Each channel grows by itself: `groups=C`, with a kernel of shape (C, 1, size, size).
border repeated: outside='repeated'
    At the border the result is that of an interpolation which repeats the last pixel.
    > Outside of the map there is nothing, and nothing is stamped: a transposed convolution becomes darker there.
"""),
    wrong={"overhang left": ("padding=(size - factor) // 2, ", "")},
)


def crop_and_join(
    skip: Tensor, x: Tensor, *, cut: str = "middle", order: str = "skip first", way: str = "cut"
) -> Tensor:
    """The middle of the skip, and behind its channels those of x."""
    (H, W), (h, w) = skip.shape[-2:], x.shape[-2:]
    if way == "padded":
        left, top = (W - w) // 2, (H - h) // 2
        x = F.pad(x, (left, W - w - left, top, H - h - top))
    elif way == "resized":
        skip = F.interpolate(skip, size=(h, w), mode="nearest")
    elif way == "grown":
        x = F.interpolate(x, size=(H, W), mode="nearest")
    else:
        top, left = {
            "middle": ((H - h) // 2, (W - w) // 2),
            "more above": ((H - h + 1) // 2, (W - w + 1) // 2),
            "first": (0, 0),
            "last": (H - h, W - w),
        }[cut]
        skip = skip[..., top : top + h, left : left + w]
    if way == "added":
        return skip + x
    return torch.cat([x, skip] if order == "x first" else [skip, x], dim=2 if order == "rows" else 1)


def skip_and_map(draw: Draw, *, over: tuple[int, ...] = (2, 4)) -> tuple[Tensor, Tensor]:
    """A map, and a skip that has so many rows and columns more, in either order."""
    B, C, c, h, w = draw.sizes(5, high=7)
    more = [over[place] for place in draw(2).argsort().tolist()]
    return draw(B, C, h + more[0], w + more[1]), draw(B, c, h, w)


JOIN = replace(
    SHOWN["crop_and_join"],
    reference=crop_and_join,
    cases=(
        Case("the middle of the skip beside the map", skip_and_map, 6),
        Case("an odd number is left over", lambda draw: skip_and_map(draw, over=(1, 3)), 2, ("cut",)),
        Case("nothing to cut", lambda draw: skip_and_map(draw, over=(0, 0)), 2, ("order", "way")),
    ),
    mistakes=mistakes(r"""
cut from the corner: cut='first' | 'last'
    The skip's corner was taken, not its middle.
    > Without padding every convolution loses pixels on all sides: what `x` shows lies in the middle of the skip.
one more cut above: cut='more above'
    Where an odd number is left over, one row or column too many is cut off above or on the left.
    > `(H - h) // 2` on that side rounds down.
map before the skip: order='x first'
    The channels of `x` stand before those of the skip.
    > First the skip's: `torch.cat([skip, x], dim=1)`.
joined along the rows: order='rows'
    Both maps stand one above the other.
    > They are to lie on each other: join along the channels, `dim=1`.
added instead of joined: way='added'
    The maps were added.
    > That is FCN's and ResNet's way. U-Net keeps both, and lets the next convolution decide.
map padded to the skip: way='padded'
    Zeros were put around `x`, and the skip is whole.
    > In 2015 it is the skip that is cut: there is nothing to know about the pixels around `x`.
resized instead of cut: way='resized' | 'grown'
    One of the maps was squeezed or stretched to the size of the other.
    > Pixels must keep their places: cut, without resampling.
"""),
    wrong={"map before the skip": ("[middle, x]", "[x, middle]")},
)


def border_weights(
    things: Tensor,
    w0: float,
    sigma: float,
    *,
    far: str = "both",
    metric: float = 2.0,
    square: str = "of the sum",
    width: int = 2,
    inside: str = "one",
    base: float = 1.0,
    alone: str = "one",
    of: str = "things",
) -> Tensor:
    """1 + w0 exp(-(d1 + d2)^2 / (2 sigma^2)) on the ground between two things, and 1 elsewhere."""
    if things.dim() == 3:
        knobs = {"far": far, "metric": metric, "square": square, "width": width}
        knobs |= {"inside": inside, "base": base, "alone": alone, "of": of}
        return torch.stack([border_weights(picture, w0, sigma, **knobs) for picture in things])
    places = torch.cartesian_prod(*(torch.arange(float(size)) for size in things.shape))
    held = [things == thing for thing in things.unique().tolist() if thing]
    each = [torch.cdist(places, mask.nonzero().float(), p=metric) for mask in held]
    each = [torch.cat(each, dim=1)] if each and of == "pixels" else [d.amin(dim=1, keepdim=True) for d in each]
    nothing = torch.full((len(places), 2), torch.inf)
    distances = torch.cat([*each, nothing], dim=1).sort(dim=1).values
    d1, d2 = distances[:, 0], distances[:, 1]
    if alone == "twice" and len(held) == 1 or far == "nearest":
        d2 = d1
    d1 = d1 * 0 if far == "second" and len(held) > 1 else d1
    squared = {"of the sum": (d1 + d2) ** 2, "of each": d1**2 + d2**2, "none": d1 + d2}[square]
    extra = w0 * torch.exp(-squared / (width * sigma**2)).view(things.shape)
    return base + (extra if inside == "as outside" else extra.masked_fill(things > 0, 0.0))


def rectangles(draw: Draw, *, counts: tuple[int, ...] = (3, 4)) -> tuple[Tensor, float, float]:
    """Pictures with so many things, which have any numbers, w0 and sigma."""
    things = torch.zeros(len(counts), *draw.integers(11, 15, 2).tolist(), dtype=torch.int64)
    for picture, count in zip(things, counts, strict=True):
        numbers, corners = 1 + draw(9).argsort(), torch.tensor([(0, 0), (0, 6), (6, 0), (6, 6)])[draw(4).argsort()]
        for number, (row, column) in zip(numbers, corners[:count].tolist(), strict=False):
            top, left, height, width = (*draw.integers(0, 2, 2).tolist(), *draw.integers(2, 5, 2).tolist())
            picture[row + top : row + top + height, column + left : column + left + width] = number
    return things, 5 + draw.integers(0, 50, 1).item() / 10, 2 + draw.integers(0, 20, 1).item() / 10


WEIGHTS = replace(
    SHOWN["border_weights"],
    reference=border_weights,
    cases=(
        Case("ground between two things weighs more", rectangles, 9),
        Case("a picture alone", lambda draw: rectangles(draw, counts=(3,)), 4, ("far", "width", "base")),
        Case("a thing alone has no neighbour", lambda draw: rectangles(draw, counts=(3, 1)), 3, ("alone",)),
        Case("a picture without things", lambda draw: rectangles(draw, counts=(0, 2)), 2, ("alone",)),
    ),
    mistakes=mistakes(r"""
one thing as its own neighbour: alone='twice'
    With a single thing on the map the ground around it weighs more than 1.
    > There is no second thing: nothing has to be kept apart, and all weights are 1.
distance to the nearest thing alone: far='nearest'
    Ground near any thing weighs more, with or without a second one.
    > d2 is the distance to *another* thing, the second nearest.
distance to the second thing alone: far='second'
    Only the distance to the second nearest thing counts.
    > Both are added before the sum is squared.
two pixels of one thing: of='pixels'
    d1 and d2 are the distances to the two nearest pixels, which may belong to one thing.
    > First the distance to each thing, which is that to its nearest pixel; then the two smallest of these.
distances squared one by one: square='of each'
    The squares of both distances were added.
    > First add, then square: (d1 + d2)^2.
distance not squared: square='none'
    The exponential falls with the distance, not with its square.
    > (d1 + d2)^2 / (2 sigma^2).
width without its two: width=1
    The squared distance was divided by sigma^2.
    > By 2 sigma^2, as in the formula.
distance in steps: metric=1.0
    Distances were counted in steps along rows and columns.
    > Euclid: the root of the sum of both squares; `torch.cdist` has it.
things weigh more, too: inside='as outside'
    Pixels of things have more weight than 1.
    > The extra weight is for the ground between things: `torch.where` with a mask.
ground weighs nothing: base=0.0
    Far from all things the weight is 0.
    > Every pixel has weight 1, and the border's extra comes on top.
"""),
    wrong={
        "distances squared one by one": ("(d1 + d2) ** 2", "(d1 ** 2 + d2 ** 2)"),
        "things weigh more, too": ("torch.where(picture > 0, 0.0, extra)", "extra"),
    },
)


def average_precision(
    masks: Tensor,
    scores: Tensor,
    true: Tensor,
    threshold: float,
    *,
    order: str = "surest first",
    taken: str = "once",
    overlap: str = "IoU",
    curve: str = "highest",
    over: str = "true",
    enough: str = "at least",
) -> float:
    """The sum over right guesses of the highest precision from there on, divided by the number of true things."""
    both = masks.flatten(1).double() @ true.flatten(1).double().T
    sizes, of_true = masks.flatten(1).sum(dim=1, keepdim=True), true.flatten(1).sum(dim=1)
    share = {"IoU": mask_iou(masks, true), "Dice": 2 * both / (sizes + of_true), "of true": both / of_true}[overlap]
    turns = {"surest first": -scores, "least sure first": scores}.get(order, torch.arange(len(scores))).argsort()
    gone, right = set(), []
    for guess in turns.tolist():
        row = share[guess].clone()
        if taken == "next best":
            row[list(gone)] = -1.0
        best = int(row.argmax())
        reached = row[best] >= threshold if enough == "at least" else row[best] > threshold
        right.append(bool(reached) and (taken == "again" or best not in gone))
        gone |= {best} if right[-1] else set()
    hits = torch.tensor(right, dtype=torch.float64)
    precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
    highest = precision.flip(0).cummax(0).values.flip(0) if curve == "highest" else precision
    if curve == "last":
        return float(precision[-1])
    count = {"true": len(true), "found": max(1, int(hits.sum())), "guesses": len(hits)}[over]
    return float((highest * hits).sum() / count)


def strips(count: int, first: int, end: int | Tensor) -> Tensor:
    """Masks of a row of pixels, in the i-th of which those from 16 i + first to 16 i + end are True."""
    place, begin = torch.arange(16 * count + 8), 16 * torch.arange(count)[:, None]
    return (place >= begin + first) & (place < begin + end)


def guesses(draw: Draw, *, kinds: str = "all") -> tuple[Tensor, Tensor, Tensor, float]:
    """Guesses at things in a row: good ones, doubles, ones that are too large, and ones at nothing; with scores.

    Those in `wider` have an IoU between 0.4 and 0.8 each, so that the threshold decides how many of them are right.
    """
    M = draw.integers(5, 8, 1).item()
    threshold = draw.integers(42, 62, 1).item() / 100 + 0.003  # which no IoU is exactly
    close, near, far, large, wide = (strips(M, *ends) for ends in ((0, 8), (1, 9), (3, 11), (0, 11), (-8, 17)))
    wider = strips(M, 0, 8 + draw.integers(2, 12, M, 1))
    true = torch.cat([close, strips(M, 3, 10)[:1]])  # the last is a second choice beside the first
    some = [near[:-1], far[1:-1], close[:2], wide, large[:2], wider]
    masks = torch.cat(some if kinds == "all" else [near, close, large, wider])
    masks = masks[draw(len(masks)).argsort()]
    scores = 0.05 + 0.9 * draw(len(masks)).argsort() / len(masks)
    return masks[:, None], scores, true[:, None], threshold


def one_for_each(draw: Draw) -> tuple[Tensor, Tensor, Tensor, float]:
    """A guess at nothing, and then one for each thing, whose IoU is exactly the threshold."""
    M, quarters = draw.integers(2, 8, 1).item(), draw.integers(1, 4, 1).item()
    masks = torch.cat([strips(M, 9, 12)[:1], strips(M, 0, 2 * quarters)])
    return masks[:, None], 0.9 - torch.arange(M + 1) / 10, strips(M, 0, 8)[:, None], quarters / 4


def a_guess(draw: Draw) -> tuple[Tensor, Tensor, Tensor, float]:
    """A single guess, at one of some things."""
    M, threshold = draw.integers(2, 5, 1).item(), draw.integers(3, 7, 1).item() / 10
    which = draw.integers(0, M, 1)
    return strips(M, 1, 9)[which][:, None], torch.rand(1, generator=draw.generator), strips(M, 0, 8)[:, None], threshold


PRECISION = replace(
    SHOWN["average_precision"],
    reference=average_precision,
    cases=(
        Case("the surest guesses choose first, and what they find counts", guesses, 9),
        Case("of two guesses at one thing one is right", lambda draw: guesses(draw, kinds="doubles"), 3),
        Case("an IoU that is exactly the threshold is enough", one_for_each, 4),
        Case("a single guess", a_guess, 4),
    ),
    mistakes=mistakes(r"""
not in the order of the scores: order='as given' | 'least sure first'
    The guesses did not choose in the order of their scores, from the surest on.
    > `scores.argsort(descending=True)` gives the order in which guesses choose.
two guesses at one thing both right: taken='again'
    A thing that was found already counts again.
    > Remember which true things are taken: a second guess at one is wrong.
second best thing taken: taken='next best'
    A guess whose best thing is taken got another one.
    > Each guess stands for the true thing that it overlaps *most*; is that one taken, the guess is wrong.
Dice in place of IoU: overlap='Dice'
    The overlap was measured by Dice, which is larger than IoU.
    > Intersection over union: the union is what belongs to either mask.
share of the true thing: overlap='of true'
    The overlap is the share of the true thing that was covered: a guess over the whole picture would always be right.
    > Divide by the union of guess and thing.
the threshold itself is not enough: enough='more'
    A guess whose IoU is exactly the threshold was taken for wrong.
    > *At least* the threshold: `>=`.
precision as it stands: curve='as it comes'
    The precision at each right guess was added as it stands there.
    > It counts as the highest at this place *or later*: go through the precisions from the end.
precision of all guesses: curve='last'
    The result is the share of right guesses among all.
    > After every guess there is a precision; the average runs over the things that were found, in order.
divided by what was found: over='found' | 'guesses'
    The sum was divided by the number of found things, or of guesses.
    > Divide by the number of true things: what was never found lowers the score.
"""),
    wrong={
        "two guesses at one thing both right": (" and best not in taken", ""),
        "the threshold itself is not enough": ("iou.item() >= threshold", "iou.item() > threshold"),
    },
)

TRAIN = replace(
    SHOWN["train"],
    wrong={
        "not learned": ("range(150)", "range(1)"),
        "circles and squares mixed up": ("labels[pick])", "labels[pick].clamp(max=1))"),
        "learned by heart": ("torch.randint(len(pictures), (16,))", "torch.randint(16, (16,))"),
        "only pictures of one size": ("return self.head(x)", "return self.head(x)[:, :, :32, :32]"),
        "depends on the rest of the batch": ("    optimizer =", "    return model\n    optimizer ="),
        "borders astray": ("return self.head(x)", "return F.interpolate(self.head(x)[:, :, ::4, ::4], scale_factor=4)"),
    },
)

ASSIGNMENT = Assignment(
    "14",
    notebook="segmentation",
    title="Image to image",
    tasks=(UPSAMPLE, JOIN, WEIGHTS, PRECISION, TRAIN),
    seconds={"train": 90},  # for the training, and all questions
)
