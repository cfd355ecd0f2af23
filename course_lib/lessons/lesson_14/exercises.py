"""Lesson 14, Image to image: its exercises; each formula has a knob for every mistake that learners make."""

import itertools

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.tasks import Case, Draw, Task, gradients, mistakes

# fc_as_convolution ------------------------------------------------------------------------------------------


def as_kernel(weight: Tensor, height: int, width: int, *, layout: str = "c h w", turned: bool = False) -> Tensor:
    """(D_out, C height width) to (D_out, C, height, width)."""
    D = len(weight)
    kernel = {
        "c h w": lambda: weight.reshape(D, -1, height, width),
        "c w h": lambda: weight.reshape(D, -1, width, height).mT,
        "h w c": lambda: weight.reshape(D, height, width, -1).permute(0, 3, 1, 2),
        "transposed": lambda: weight.mT.reshape(D, -1, height, width),
        "input first": lambda: weight.reshape(D, -1, height, width).transpose(0, 1),
    }[layout]()
    return kernel.flip(-2, -1) if turned else kernel


def weight_of_a_map(draw: Draw) -> tuple[Tensor, int, int]:
    """The weight of a layer that sees a map of drawn height and width, flattened."""
    D_out, C, height, width = draw.sizes(4)
    return draw(D_out, C * height * width), height, width


FC_AS_CONVOLUTION = Task(
    name="fc_as_convolution",
    title="A fully connected layer is a convolution",
    asks="weight, height, width",
    reference=as_kernel,
    cases=(Case("on a map of the layer's own size the convolution says what the layer says", weight_of_a_map),),
    mistakes=mistakes(r"""
channels read as the last axis: layout='h w c'
    The inputs were taken as if all channels of one pixel stood side by side.
    > `flatten(1)` of a `(B, C, H, W)` map goes channel by channel, and row by row in each.
height and width exchanged: layout='c w h'
    The inputs were taken column by column.
    > Within a channel `flatten` goes row by row: the height comes before the width.
kernel turned round: turned=True
    The kernel is turned upside down and left to right.
    > What torch calls a convolution does not turn its kernel: entry (i, j) meets pixel (i, j) of the window.
weight transposed: layout='transposed'
    The numbers of the weight have been shuffled among its outputs.
    > Row d of an `nn.Linear`'s weight belongs to output d, and so does kernel d: leave the first axis where it is.
channels before outputs: layout='input first'
    The kernel is (C, D_out, height, width).
    > A convolution's kernel is (out, in, height, width). The other order belongs to a transposed convolution.
"""),
    also=(gradients,),
    minutes=4,
    text="A classifier ends with `nn.Linear` on the flattened map: `weight` is `(D_out, C * height * width)`, for maps "
    "of `(C, height, width)`. Return the kernel of shape `(D_out, C, height, width)` with which `F.conv2d` computes "
    "the very same numbers on such a map, and on a larger map the same layer at every window.",
    hints=(
        "Nothing is computed: the same numbers in another shape. In which order does `flatten(1)` lay out a map?",
        "All of channel 0 comes first, row by row; then channel 1. The axes of the kernel stand in that order.",
        "`weight.reshape(D_out, C, height, width)`, where C follows from the other sizes: -1.",
    ),
    solution="""
def my_fc_as_convolution(weight, height, width):
    return weight.reshape(len(weight), -1, height, width)
""",
)

# unpool -----------------------------------------------------------------------------------------------------


def unpool(
    values: Tensor, positions: Tensor, height: int, width: int, *, shared: str = "add", place: str = "row * width"
) -> Tensor:
    """Each value back at its position of an image of zeros; where two values meet, their sum."""
    image = values.new_zeros(*values.shape[:2], height * width)
    if place == "by columns":
        positions = positions % height * width + positions // height
    if place in ("pooled width", "height", "height, width"):
        step = values.shape[-1] if place == "pooled width" else height
        positions = positions // step * width + positions % (width if place == "height, width" else step)
    if place == "first map's":
        positions = positions[:1, :1].expand_as(positions)
    if place == "corner":
        corners = torch.arange(values.shape[-2])[:, None] * width + torch.arange(values.shape[-1])
        positions = corners.expand_as(positions)
    indices, source = positions.flatten(2).clamp(max=height * width - 1), values.flatten(2)
    if shared == "last":
        return image.scatter(2, indices, source).unflatten(2, (height, width))
    how = "sum" if shared == "add" else shared
    return image.scatter_reduce(2, indices, source, how, include_self=False).unflatten(2, (height, width))


def pooled(draw: Draw, *, overlapping: bool = True) -> tuple[Tensor, Tensor, int, int]:
    """Values in place of the maxima of a drawn image, where these stood, and the image's size."""
    B, C, height, width = draw.sizes(4, 4, 9)
    height = height + (draw.same is not None)  # where all sizes are one, this one differs
    image = draw(B, C, height, width)
    if draw.same is not None:  # no maximum where an index read with the height would leave the image
        number = torch.arange(height * width).view(height, width)
        image = image.masked_fill(number % height >= width, -9.0)
    _, positions = F.max_pool2d(image, 2, stride=1 if overlapping else 2, return_indices=True)
    return draw(*positions.shape), positions, height, width


UNPOOL = Task(
    name="unpool",
    title="Unpooling",
    asks="values, positions, height, width",
    reference=unpool,
    cases=(
        Case("every value returns to its place", lambda draw: pooled(draw, overlapping=False)),
        Case("where windows overlap, values add", pooled),
    ),
    mistakes=mistakes(r"""
values overwrite each other: shared='last'
    Where two windows remembered the same pixel, only one of their values is left.
    > An assignment, and `+=` as well, with an index that holds a place twice keeps one of them: `scatter_add`, or one
    value at a time.
values averaged: shared='mean'
    Where two windows remembered the same pixel, it holds the mean of their values.
    > 300 and 450 in the same place are 750: the sum.
positions read by columns: place='by columns'
    The values lie where a count by columns would put them.
    > A position is row * width + column, as `flatten` counts.
width of the pooled map: place='pooled width'
    Rows were counted with the width of the small map.
    > The positions are those of the large image: it is `width` columns wide.
rows counted by the height: place='height' | 'height, width'
    Rows were counted with the height of the image.
    > A row of the image has `width` pixels: position q lies in row q // width and column q % width.
positions of one map for all: place="first map's"
    All channels and images use the positions of the first.
    > Every channel of every image has maxima, and positions, of its own: scatter along the last axis, `flatten(2)`.
positions ignored: place='corner'
    The values lie in the upper left corner of the image, as they do in the small map.
    > Each belongs where `positions` says that its maximum stood.
"""),
    also=(gradients,),
    forbids=("max_unpool2d", "MaxUnpool2d", "max_unpool"),
    minutes=6,
    text="Pooling kept the maximum of each window and remembered where it stood: `positions` holds row * width + "
    "column, counted in the large image. Put each of `values`, `(B, C, h, w)`, back at its position in a "
    "`(B, C, height, width)` image of zeros. Windows may overlap: values that meet in one pixel **add**.",
    hints=(
        "Each map of each image is unpooled by itself. How would you do it for one map with two loops?",
        "Flatten the image to `(B, C, height * width)`: then a position is an index along the last axis.",
        "`image.scatter_add(2, positions.flatten(2), values.flatten(2))` adds each value at its index; then give the "
        "result its rows and columns with `.view`.",
    ),
    solution="""
def my_unpool(values, positions, height, width):
    B, C = values.shape[:2]
    image = torch.zeros(B, C, height * width, dtype=values.dtype)
    image = image.scatter_add(2, positions.flatten(2), values.flatten(2))
    return image.view(B, C, height, width)
""",
)

# transposed_convolution -------------------------------------------------------------------------------------


def stamped(
    image: Tensor,
    kernel: Tensor,
    stride: int,
    *,
    stamp: str = "as it is",
    shared: str = "add",
    step: str = "stride",
    end: str = "whole",
) -> Tensor:
    """A stamp of the kernel for each pixel, `stride` apart, inked by its value; where stamps overlap they add."""
    kernel = {
        "as it is": kernel,
        "turned": kernel.flip(-2, -1),
        "transposed": kernel.mT,
        "out first": kernel.transpose(0, 1),
    }[stamp]
    (height, width), (rows, columns) = image.shape[-2:], kernel.shape[-2:]
    down, right = {"stride": (stride, stride), "one": (1, 1), "kernel": (rows, columns)}[step]
    H, W = (height - 1) * down + rows, (width - 1) * right + columns
    canvas = image.new_zeros(len(image), kernel.shape[1], H, W)
    hits = image.new_zeros(H, W)
    for i, j in reversed(list(itertools.product(range(rows), range(columns)))):  # a later stamp's earlier entry
        there = (..., slice(i, H - rows + i + 1, down), slice(j, W - columns + j + 1, right))
        ink = torch.einsum("bchw,cd->bdhw", image, kernel[:, :, i, j])
        canvas[there] = ink if shared == "last" else canvas[there] + ink
        hits[there] += 1
    canvas = canvas / hits.clamp(min=1) if shared == "mean" else canvas
    return canvas[..., : height * stride, : width * stride] if end == "cut" else canvas


def image_and_stamp(draw: Draw, *, overlapping: bool = True) -> tuple[Tensor, Tensor, int]:
    """An image, a kernel that is larger than the stride or not, and the stride."""
    B, C_in, C_out, height, width = draw.sizes(5, high=7)
    rows, columns = draw.sizes(2, 3, 5) if overlapping else (2, 2)
    stride = draw.integers(1, 3, 1).item() if overlapping else draw.integers(2, 4, 1).item()
    return draw(B, C_in, height, width), draw(C_in, C_out, rows, columns), stride


TRANSPOSED_CONVOLUTION = Task(
    name="transposed_convolution",
    title="Transposed convolution: stamp, and add",
    asks="image, kernel, stride",
    reference=stamped,
    cases=(
        Case("stamps that do not overlap", lambda draw: image_and_stamp(draw, overlapping=False)),
        Case("where stamps overlap they add", image_and_stamp),
    ),
    mistakes=mistakes(r"""
stamps overwrite each other: shared='last'
    Where stamps overlap, only the last is left.
    > Add each stamp to what is there: `canvas[...] += stamp`.
overlaps averaged: shared='mean'
    Where stamps overlap, the result is their mean.
    > Contributions add. That some pixels get more of them than others is what makes a checkerboard.
stamp turned round: stamp='turned' | 'transposed'
    The stamp is turned or mirrored.
    > Entry (i, j) of the kernel lands i rows below and j columns right of the stamp's corner.
input and output channels exchanged: stamp='out first'
    The kernel's first axis was taken for the output channels.
    > Here the kernel is (C_in, C_out, rows, columns): sum over the first axis.
stride ignored: step='one'
    Neighbouring pixels stamp one pixel apart, whatever the stride.
    > The stamp of pixel (r, c) has its corner at (r * stride, c * stride).
stamps side by side: step='kernel'
    Each stamp begins where the one before it ends.
    > It is `stride` that parts them, not the size of the kernel: they may overlap, or leave gaps.
overhang cut off: end='cut'
    The result is `stride` times as large as the image: what the last stamps add beyond is missing.
    > (h - 1) * stride + rows: the last stamp has its corner at (h - 1) * stride and all its rows.
"""),
    also=(gradients,),
    forbids=("conv_transpose2d", "ConvTranspose2d", "convolution"),
    minutes=9,
    text="Stamp the kernel once for each pixel, `stride` apart, inked by the pixel's value; where stamps overlap they "
    "**add**. `image` is `(B, C_in, h, w)`, `kernel` is `(C_in, C_out, rows, columns)`; the result is `(B, C_out, (h - "
    "1) * stride + rows, (w - 1) * stride + columns)`. Each output channel sums over the input channels. Write it "
    "without torch's own transposed convolution.",
    hints=(
        "Begin with a canvas of zeros of the final size. Where on it is the corner of the stamp of pixel (r, c)?",
        "The stamp of one pixel is `torch.einsum('bc,cdij->bdij', image[:, :, r, c], kernel)`: add it to a piece of "
        "the canvas, in two loops over the pixels.",
        "`canvas[:, :, top : top + rows, left : left + columns] += stamp`, with `top = r * stride` and `left = c * "
        "stride`. (Looping over the kernel's few entries instead, with slices in steps of the stride, is faster.)",
    ),
    solution="""
def my_transposed_convolution(image, kernel, stride):
    (B, _, h, w), (_, C_out, rows, columns) = image.shape, kernel.shape
    size = (h - 1) * stride + rows, (w - 1) * stride + columns
    canvas = torch.zeros(B, C_out, *size, dtype=image.dtype)
    for r in range(h):
        for c in range(w):
            stamp = torch.einsum("bc,cdij->bdij", image[:, :, r, c], kernel)
            top, left = r * stride, c * stride
            canvas[:, :, top : top + rows, left : left + columns] += stamp
    return canvas
""",
)

# overlap ----------------------------------------------------------------------------------------------------


def overlap(
    predicted: Tensor,
    true: Tensor,
    num_classes: int,
    *,
    union: str = "once",
    factor: int = 2,
    absent: str = "nan",
    over: str = "all pixels",
) -> Tensor:
    """TP / (TP + FP + FN) and 2 TP / (2 TP + FP + FN) of each class."""
    if over == "each image":
        images = [overlap(p, t, num_classes, union=union, factor=factor) for p, t in zip(predicted, true, strict=True)]
        return torch.stack(images).nanmean(dim=0)
    p, t = (F.one_hot(labels.flatten(), num_classes).bool() for labels in (predicted, true))
    hits, p_size, t_size = ((mask.sum(dim=0)).double() for mask in (p & t, p, t))
    both = p_size + t_size
    area = {"once": both - hits, "twice": both, "true": t_size, "predicted": p_size}[union]
    scores = torch.stack([hits / area, factor * hits / both]).float()
    return scores if absent == "nan" else scores.masked_fill(both == 0, float(absent))


def label_maps(draw: Draw, *, absent: bool = False) -> tuple[Tensor, Tensor, int]:
    """A predicted and a true map of some images; of two more classes one is only predicted, one nowhere."""
    B, K, H, W = draw.sizes(4, 3, 8)
    true = draw.integers(0, K, B, H, W)
    true.flatten()[:K] = torch.arange(K)
    predicted = torch.where(draw(B, H, W) > 0.3 * draw(B, 1, 1), true, draw.integers(0, K, B, H, W))
    predicted[0, 0, 0] = K if absent else 0
    return predicted, true, K + 2 * absent


OVERLAP = Task(
    name="overlap",
    title="Intersection over union, and Dice",
    asks="predicted, true, num_classes",
    reference=overlap,
    cases=(
        Case("each class, over all pixels", label_maps),
        Case("a class that is nowhere is undefined", lambda draw: label_maps(draw, absent=True)),
    ),
    mistakes=mistakes(r"""
intersection counted twice in the union: union='twice'
    The IoU is divided by the sum of both areas.
    > Pixels in both areas are in that sum twice: subtract the intersection once.
recall in place of IoU: union='true'
    The intersection is divided by the true area: predicting a class everywhere would score 1.
    > The union also holds what was predicted wrongly.
precision in place of IoU: union='predicted'
    The intersection is divided by the predicted area: predicting a single sure pixel would score 1.
    > The union also holds what was missed.
Dice without its two: factor=1
    A perfect prediction has Dice 1/2.
    > Twice the intersection, divided by the sum of both areas.
an absent class gets a number: absent='0' | '1'
    A class that is neither predicted nor true gets a number.
    > 0/0 says nothing of the prediction: leave NaN, and `nanmean` leaves the class out.
mean over images: over='each image'
    Each image was scored by itself, and the scores were averaged.
    > Count all pixels together: a class of three pixels in one image would weigh as much as a full one.
"""),
    minutes=6,
    text="How well do two maps of labels agree? `predicted` and `true` have the same shape, `(B, H, W)`, and hold "
    "whole numbers from 0 to `num_classes - 1`. Return a tensor `(2, num_classes)`: in row 0 the intersection over "
    "union of each class, in row 1 its Dice score, $2\\,|P \\cap T| \\,/\\, (|P| + |T|)$, **all pixels counted "
    "together**. A class that is neither predicted nor true anywhere has NaN in both.",
    hints=(
        "For one class both maps become yes or no. Which three counts do both scores need?",
        "`p = predicted == k` and `t = true == k`: the intersection is `(p & t).sum()`, the areas are their sums. "
        "Their union is smaller than the sum of the areas: by how much?",
        "`union = (p | t).sum()`; torch makes 0/0 of two tensors NaN by itself, so that no `if` is needed.",
    ),
    solution="""
def my_overlap(predicted, true, num_classes):
    scores = torch.empty(2, num_classes)
    for k in range(num_classes):
        p, t = predicted == k, true == k
        common = (p & t).sum()
        scores[0, k] = common / (p | t).sum()
        scores[1, k] = 2 * common / (p.sum() + t.sum())
    return scores
""",
)

# boxes ------------------------------------------------------------------------------------------------------


def boxes(
    mask: Tensor,
    smallest: int,
    *,
    neighbours: int = 4,
    ends: str = "behind",
    order: str = "x first",
    small: str = "left out",
    things: str = "each",
) -> list[tuple]:
    """The box around each connected thing of the mask, in the order of their first pixels."""
    left, found = [tuple(pixel) for pixel in mask.nonzero().tolist()], []
    steps = [step for step in itertools.product((-1, 0, 1), repeat=2) if neighbours == 8 or 0 in step]
    while left:
        thing = edge = set(left if things == "one" else left[:1])
        while edge:
            near = {(y + dy, x + dx) for y, x in edge for dy, dx in steps}
            edge = near.intersection(left) - thing
            thing = thing | edge
        left = [pixel for pixel in left if pixel not in thing]
        if small == "kept" or len(thing) >= smallest + (small == "at the limit, too"):
            found.append(thing)
    listed = []
    for thing in found:
        (top, bottom), (start, end) = ((min(places), max(places) + 1) for places in zip(*thing, strict=True))
        if ends != "behind":
            bottom, end = (bottom - 1, end - 1) if ends == "last" else (bottom - top, end - start)
        listed.append((start, top, end, bottom) if order == "x first" else (top, start, bottom, end))
    return listed


def speckled(draw: Draw, *, empty: bool = False) -> tuple[Tensor, int]:
    """A mask with things that touch at corners, some of them small."""
    height, width = draw.sizes(2, 9, 13)
    smallest = draw.integers(2, 4, 1).item()
    mask = draw(height, width) > 0.3
    mask[:5, :5] = False
    mask[0, 0] = mask[2, 1 : 1 + smallest] = mask[3, 1 + smallest : 3 + smallest] = not empty  # corner to corner
    return (mask & False if empty else mask), smallest


BOXES = Task(
    name="boxes",
    title="Things and their boxes, from a mask",
    asks="mask, smallest",
    reference=boxes,
    cases=(
        Case("a box for each connected thing", speckled),
        Case("no thing, no box", lambda draw: speckled(draw, empty=True)),
    ),
    mistakes=mistakes(r"""
pixels joined over corners: neighbours=8
    Things that only touch at a corner became one.
    > Neighbours are the pixels above, below, left and right.
box ends at its last pixel: ends='last'
    Right and bottom are the last column and row of the thing.
    > They are one further, so that right - left is the width and `mask[top:bottom, left:right]` holds the thing.
width and height in place of right and bottom: ends='size'
    The last two numbers of a box are its width and height.
    > (left, top, right, bottom): two corners.
rows before columns: order='y first'
    The boxes are (top, left, bottom, right).
    > First x, then y: (left, top, right, bottom).
small things kept: small='kept'
    Things of fewer than `smallest` pixels have a box, too.
    > Count the pixels of a thing before you list it.
things of the smallest size left out: small='at the limit, too'
    Things of exactly `smallest` pixels are left out.
    > `smallest` pixels are enough: `>=`.
one box for everything: things='one'
    There is one box, around the whole mask.
    > Start at one pixel, and go on to its neighbours until there is no new one: that is one thing. Then the next.
"""),
    minutes=10,
    stretch=True,
    text="A mask says where things are, not how many. `mask` is `(H, W)` and boolean; pixels above, below, left and "
    "right of each other belong to one thing, corners do not join. Return a list of boxes, `(left, top, right, "
    "bottom)` in whole numbers, `right` and `bottom` one behind the last pixel, one for each thing of at least "
    "`smallest` pixels, ordered by each thing's first pixel in reading order.",
    hints=(
        "Take any pixel of the mask that belongs to no thing yet. Which pixels belong to the same thing?",
        "Keep a list of pixels still to be looked at: take one, and add those of its four neighbours that are in the "
        "mask and new. When the list is empty, the thing is complete.",
        "`left = set(map(tuple, mask.nonzero().tolist()))`, remove from it what a thing has taken, and begin the next "
        "thing at `min(left)`, which is the first in reading order.",
    ),
    solution="""
def my_boxes(mask, smallest):
    left, boxes = set(map(tuple, mask.nonzero().tolist())), []
    while left:
        todo, thing = [min(left)], []
        left.remove(todo[0])
        while todo:
            y, x = todo.pop()
            thing.append((y, x))
            for near in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if near in left:
                    left.remove(near)
                    todo.append(near)
        if len(thing) >= smallest:
            ys, xs = zip(*thing)
            boxes.append((min(xs), min(ys), max(xs) + 1, max(ys) + 1))
    return boxes
""",
)

TASKS = {task.name: task for task in (FC_AS_CONVOLUTION, UNPOOL, TRANSPOSED_CONVOLUTION, OVERLAP, BOXES)}
