"""The exercises of lesson 14 ask for what the library does, its solutions open the library's models, styles pass."""

import linecache
import math
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.classroom.opening import DoesNotOpen, compare, copy_weights
from course_lib.functional import diffusion
from course_lib.functional.images import (
    fully_connected_as_convolution,
    max_unpool,
    readable_transposed_convolution,
)
from course_lib.functional.segmentation import (
    confusion_matrix,
    connected_components,
    dice_loss,
    intersection_over_union,
    mask_boxes,
)
from course_lib.lessons.lesson_14 import diffusion_recipes, icon_recipes
from course_lib.lessons.lesson_14.models import MODELS
from course_lib.lessons.lesson_14.tasks import TASKS
from course_lib.models.unet import UNet, UNetConfig
from course_lib.tasks import Draw

BUILD = {
    "unet": lambda seed: icon_recipes.build(icon_recipes.IconSegmentation(seed=seed)),
    "diffusion": lambda seed: diffusion_recipes.build(diffusion_recipes.DiffusionSettings(seed=seed)),
}
NAMES = {"math": math, "torch": torch, "F": F, "nn": nn}

as_kernel, unpool, transposed, overlap, boxes = (
    TASKS[name].reference for name in ("fc_as_convolution", "unpool", "transposed_convolution", "overlap", "boxes")
)


def drawn(name):
    """The inputs of each case of a task."""
    return [case.inputs(Draw(seed)) for case in TASKS[name].cases for seed in (1, 2)]


def library_loss(logits, labels, ignore):
    """The loss of the lesson's recipe, of the pixels that have a class."""
    kept = labels != ignore
    z, y = logits.movedim(1, -1)[kept].T[None, :, :, None], labels[kept][None, :, None]
    return F.cross_entropy(z, y) + dice_loss(z, y)


def in_schedule(function):
    """A step of the library, given the betas."""
    return lambda *given: function(*given[:-1], diffusion.NoiseSchedule(given[-1]))


def library_noise(images, noise, t, alpha_bars):
    """The noising of the library, given the products."""
    betas = 1 - alpha_bars / torch.cat([torch.ones(1), alpha_bars[:-1]])
    return diffusion.add_noise(images, noise, t, diffusion.NoiseSchedule(betas))


@pytest.mark.parametrize(
    ("name", "mine", "ours"),
    [
        ("fc_as_convolution", as_kernel, fully_connected_as_convolution),
        ("unpool", unpool, max_unpool),
        (
            "transposed_convolution",
            transposed,
            lambda image, kernel, stride: F.conv_transpose2d(image, kernel, stride=stride),
        ),
        ("segmentation_loss", TASKS["segmentation_loss"].reference, library_loss),
        (
            "overlap",
            lambda *given: overlap(*given)[0],
            lambda p, t, k: intersection_over_union(confusion_matrix(p, t, k)),
        ),
        ("add_noise", TASKS["add_noise"].reference, library_noise),
        ("denoise_step", TASKS["denoise_step"].reference, in_schedule(diffusion.denoise_step)),
    ],
)
def test_the_references_do_what_the_library_does(name, mine, ours):
    for given in drawn(name):
        torch.testing.assert_close(mine(*given), ours(*given), check_dtype=False, equal_nan=True, atol=1e-4, rtol=1e-4)


def test_boxes_are_those_of_the_connected_components():
    for mask, smallest in drawn("boxes")[:2]:
        numbers = connected_components(mask[None].long())[0]
        masks = numbers == torch.arange(1, int(numbers.max()) + 1)[:, None, None]
        masks = masks[masks.sum(dim=(1, 2)) >= smallest]
        assert boxes(mask, smallest) == [tuple(box) for box in mask_boxes(masks).tolist()] != []


def test_the_numbers_worked_out_in_the_lesson():
    image = torch.tensor([[[[120.0, 150, 120], [100, 50, 110], [25, 25, 10]]]])
    values, positions = F.max_pool2d(image, 2, stride=1, return_indices=True)
    assert values.tolist() == [[[[150, 150], [100, 110]]]]
    grown = unpool(torch.tensor([[[[300.0, 450], [100, 250]]]]), positions, 3, 3)
    assert grown.tolist() == [[[[0, 750, 0], [100, 0, 250], [0, 0, 0]]]]
    row, kernel = torch.tensor([[[[120.0, 150]]]]), torch.tensor([[[[1.0, -1], [2, -2]]]])
    assert transposed(row, kernel, 1).tolist() == [[[[120, 30, -150], [240, 60, -300]]]]
    assert torch.equal(transposed(row, kernel, 2), readable_transposed_convolution(row, kernel, stride=2))


class Up(nn.Module):
    """A transposed convolution of torch's, computed by a function."""

    def __init__(self, layer, function):
        super().__init__()
        self.layer, self.function = layer, function

    def forward(self, x):
        return self.function(x, self.layer.weight, self.layer.stride[0]) + self.layer.bias[:, None, None]


def test_a_function_that_passes_runs_inside_the_decoder_and_learns():
    torch.manual_seed(0)
    model, pixels = UNet(UNetConfig(widths=(4, 6, 8))).eval(), torch.randn(2, 1, 16, 16)
    wanted = model(pixels)
    for block in model.decoder:
        block.up = Up(block.up, transposed)
    torch.testing.assert_close(model(pixels), wanted)
    model(pixels).sum().backward()
    assert all(block.up.layer.weight.grad.abs().sum() > 0 for block in model.decoder)


@pytest.fixture(params=["unet", "diffusion"])
def shipped(request):
    """What the lesson ships, and a model of the same form whose norms are no identities."""
    ours = BUILD[request.param](1).eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in ours.parameters():
            weight += 0.5 * torch.randn_like(weight) if weight.dim() == 1 else 0
    return MODELS[request.param], ours


def test_the_solution_opens_a_model_of_the_library(shipped):
    known, ours = shipped
    mine = TASKS["unet"].module(**known.sizes(ours)).eval()
    assert copy_weights(ours, mine, known.names) == sum(p.numel() for p in ours.parameters())
    compare(ours, mine, known.inputs(), known.names)
    with torch.no_grad():
        found, wanted = mine(*known.inputs()), ours(*known.inputs())
    assert (found - wanted).abs().max() < 1e-5 * wanted.abs().max()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[skips.pop(), x]", "[x, skips.pop()]"), "between `up.0` and `merge.0`, in `UNet.forward`"),
        (("x = F.max_pool2d(x, 2)", "x = F.avg_pool2d(x, 2)"), "between `down.0` and `down.1`, in `UNet.forward`"),
    ],
)
def test_a_model_that_does_not_open_is_told_where_it_differs(shipped, change, said):
    known, ours = shipped
    mine = TASKS["unet"].reference.changed((change,))(**known.sizes(ours)).eval()
    copy_weights(ours, mine, known.names)
    with pytest.raises(DoesNotOpen, match=re.escape(said)):
        compare(ours, mine, known.inputs(), known.names)


def test_a_fresh_fcn_and_a_fresh_unet_learn_to_segment_two_images():
    torch.manual_seed(0)
    images, labels = torch.randn(2, 3, 16, 16), torch.zeros(2, 16, 16, dtype=torch.long)
    images[:, 0, 4:9, 5:12] += 3
    labels[:, 4:9, 5:12] = 1
    labels[:, 0] = 255
    for model in (TASKS["fcn"].module(3, 2, [8, 16]), TASKS["unet"].module(3, 2, [8, 16])):
        optimizer, losses = torch.optim.Adam(model.parameters(), lr=1e-2), []
        for _ in range(30):
            loss = TASKS["segmentation_loss"].reference(model(images), labels, 255)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < 0.4 * losses[0]


def test_denoising_with_the_true_noise_gives_the_image_back():
    schedule = diffusion.linear_schedule(50)
    clean, noise = torch.randn(2, 3, 4, 4), torch.randn(2, 3, 4, 4)
    add, step = TASKS["add_noise"].reference, TASKS["denoise_step"].reference
    x = add(clean, noise, torch.tensor([49, 49]), schedule.alpha_bars)
    for t in reversed(range(50)):
        left = schedule.alpha_bars[t]
        x = step(x, (x - left.sqrt() * clean) / (1 - left).sqrt(), torch.randn(x.shape), t, schedule.betas)
    torch.testing.assert_close(x, clean, atol=1e-3, rtol=1e-3)


def told(task, text):
    """What a check says of an answer, given as text."""
    file, names = f"<{task} {hash(text)}>", NAMES | dict(getattr(TASKS[task].reference, "names", {}))
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    return TASKS[task].run(names[re.findall(r"^(?:def|class) (\w+)", text, flags=re.MULTILINE)[-1]]).misconceptions


RIGHT = {
    ("fc_as_convolution", "unflatten"): """
def my_fc_as_convolution(weight, height, width):
    return weight.unflatten(1, (-1, height, width))
""",
    ("fc_as_convolution", "a loop over the outputs"): """
def my_fc_as_convolution(weight, height, width):
    C = weight.shape[1] // (height * width)
    return torch.stack([row.view(C, height, width) for row in weight])
""",
    ("unpool", "two loops, row and column by divmod"): """
def my_unpool(values, positions, height, width):
    image = torch.zeros(*values.shape[:2], height, width)
    for b in range(values.shape[0]):
        for c in range(values.shape[1]):
            for i in range(values.shape[2]):
                for j in range(values.shape[3]):
                    row, column = divmod(positions[b, c, i, j].item(), width)
                    image[b, c, row, column] += values[b, c, i, j]
    return image
""",
    ("unpool", "index_put_ with accumulate"): """
def my_unpool(values, positions, height, width):
    B, C = values.shape[:2]
    image = torch.zeros(B, C, height, width)
    b = torch.arange(B)[:, None, None, None].expand_as(positions)
    c = torch.arange(C)[:, None, None].expand_as(positions)
    image.index_put_((b, c, positions // width, positions % width), values, accumulate=True)
    return image
""",
    ("unpool", "index_add on one long vector"): """
def my_unpool(values, positions, height, width):
    B, C = values.shape[:2]
    first = (torch.arange(B * C) * height * width).view(B, C, 1, 1)
    image = torch.zeros(B * C * height * width)
    image = image.index_add(0, (first + positions).flatten(), values.flatten())
    return image.reshape(B, C, height, width)
""",
    ("unpool", "scatter_add_ in place"): """
def my_unpool(values, positions, height, width):
    B, C, h, w = values.shape
    image = torch.zeros((B, C, height * width))
    image.scatter_add_(-1, positions.reshape(B, C, h * w), values.reshape(B, C, h * w))
    return image.unflatten(-1, (height, width))
""",
    ("unpool", "one-hot vectors and a matrix product"): """
def my_unpool(values, positions, height, width):
    hot = F.one_hot(positions.flatten(2), height * width).float()
    return (values.flatten(2).unsqueeze(2) @ hot).squeeze(2).unflatten(-1, (height, width))
""",
    ("transposed_convolution", "zero insertion, padding k - 1, and a flipped kernel"): """
def my_transposed_convolution(image, kernel, stride):
    (B, C, h, w), (rows, columns) = image.shape, kernel.shape[-2:]
    wide = torch.zeros(B, C, (h - 1) * stride + 1, (w - 1) * stride + 1)
    wide[:, :, ::stride, ::stride] = image
    flipped = kernel.flip(-2, -1).transpose(0, 1)
    return F.conv2d(wide, flipped, padding=(rows - 1, columns - 1))
""",
    ("transposed_convolution", "zero insertion by hand and nn.functional's module name"): """
def my_transposed_convolution(image, kernel, stride):
    B, C, h, w = image.shape
    k1, k2 = kernel.shape[2:]
    big = image.new_zeros(B, C, h * stride, w * stride)
    for i in range(h):
        for j in range(w):
            big[:, :, i * stride, j * stride] = image[:, :, i, j]
    big = big[:, :, : (h - 1) * stride + 1, : (w - 1) * stride + 1]
    big = F.pad(big, (k2 - 1, k2 - 1, k1 - 1, k1 - 1))
    return torch.nn.functional.conv2d(big, torch.flip(kernel.permute(1, 0, 2, 3), dims=(2, 3)))
""",
    ("transposed_convolution", "F.fold"): """
def my_transposed_convolution(image, kernel, stride):
    B, C, h, w = image.shape
    rows, columns = kernel.shape[-2:]
    columns_of = kernel.flatten(1).T @ image.flatten(2)
    size = ((h - 1) * stride + rows, (w - 1) * stride + columns)
    return F.fold(columns_of, size, (rows, columns), stride=stride)
""",
    ("transposed_convolution", "a loop over the entries of the kernel"): """
def my_transposed_convolution(image, kernel, stride):
    (B, _, h, w), (_, C_out, rows, columns) = image.shape, kernel.shape
    out = torch.zeros(B, C_out, (h - 1) * stride + rows, (w - 1) * stride + columns)
    for i in range(rows):
        for j in range(columns):
            part = torch.einsum("bchw,cd->bdhw", image, kernel[:, :, i, j])
            out[:, :, i : i + h * stride : stride, j : j + w * stride : stride] += part
    return out
""",
    ("conv_block", "modules for the ReLU, unsqueeze for the condition"): """
class ConvBlock(nn.Module):
    def __init__(self, in_channels, out_channels, condition_dim=0):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.norm1 = nn.GroupNorm(num_groups=8, num_channels=out_channels)
        self.norm2 = nn.GroupNorm(num_groups=8, num_channels=out_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, kernel_size=3, padding="same", bias=False)
        self.conv2 = nn.Conv2d(out_channels, out_channels, kernel_size=3, padding="same", bias=False)
        self.condition = nn.Linear(condition_dim, out_channels) if condition_dim else None

    def forward(self, x, condition=None):
        h = self.norm1(self.conv1(x))
        if condition is not None and self.condition is not None:
            h += self.condition(condition).unsqueeze(-1).unsqueeze(-1)
        return self.relu(self.norm2(self.conv2(self.relu(h))))
""",
    ("conv_block", "the normalisation by hand"): """
class ConvBlock(nn.Module):
    def __init__(self, in_channels, out_channels, condition_dim=0):
        super().__init__()
        for i, channels in ((1, in_channels), (2, out_channels)):
            setattr(self, f"conv{i}", nn.Conv2d(channels, out_channels, 3, 1, 1, bias=False))
            setattr(self, f"norm{i}", nn.GroupNorm(8, out_channels))
        if condition_dim > 0:
            self.condition = nn.Linear(condition_dim, out_channels)

    def normalised(self, x, norm):
        groups = x.unflatten(1, (8, -1))
        mean = groups.mean(dim=(2, 3, 4), keepdim=True)
        variance = groups.var(dim=(2, 3, 4), keepdim=True, correction=0)
        x = ((groups - mean) / (variance + norm.eps).sqrt()).flatten(1, 2)
        return x * norm.weight.view(1, -1, 1, 1) + norm.bias.view(1, -1, 1, 1)

    def forward(self, x, condition=None):
        B = x.shape[0]
        x = self.normalised(self.conv1(x), self.norm1)
        shift = 0 if condition is None else self.condition(condition).reshape(B, -1, 1, 1)
        x = (x + shift).clamp(min=0)
        return self.normalised(self.conv2(x), self.norm2).clamp(min=0)
""",
    ("fcn", "feature maps first, then from coarse to fine"): """
class FCN(nn.Module):
    def __init__(self, in_channels, num_classes, widths):
        super().__init__()
        self.blocks, self.scores = nn.ModuleList(), nn.ModuleList()
        for width in widths:
            self.blocks.append(ConvBlock(in_channels, width))
            self.scores.append(nn.Conv2d(width, num_classes, kernel_size=1))
            in_channels = width

    def forward(self, images):
        maps = [self.blocks[0](images)]
        for block in self.blocks[1:]:
            maps.append(block(nn.MaxPool2d(2)(maps[-1])))
        result = self.scores[-1](maps[-1])
        for i in reversed(range(len(maps) - 1)):
            size = maps[i].shape[-2:]
            result = F.interpolate(result, size=size, mode="bilinear") + self.scores[i](maps[i])
        return result
""",
    ("fcn", "recursion"): """
class FCN(nn.Module):
    def __init__(self, in_channels, num_classes, widths):
        super().__init__()
        self.blocks = nn.ModuleList([ConvBlock(([in_channels] + widths)[i], w) for i, w in enumerate(widths)])
        self.scores = nn.ModuleList([nn.Conv2d(w, num_classes, 1) for w in widths])

    def from_level(self, x, i):
        x = self.blocks[i](x)
        own = self.scores[i](x)
        if i == len(self.blocks) - 1:
            return own
        return own + nn.Upsample(scale_factor=2, mode="bilinear")(self.from_level(F.max_pool2d(x, 2), i + 1))

    def forward(self, images):
        return self.from_level(images, 0)
""",
    ("unet", "indices from both ends"): """
class UNet(nn.Module):
    def __init__(self, in_channels, out_channels, widths, condition_dim=0):
        super().__init__()
        n = len(widths)
        self.down = nn.ModuleList([ConvBlock(in_channels, widths[0], condition_dim)])
        for i in range(1, n):
            self.down.append(ConvBlock(widths[i - 1], widths[i], condition_dim))
        self.up, self.merge = nn.ModuleList(), nn.ModuleList()
        for i in range(n - 1, 0, -1):
            self.up.append(nn.ConvTranspose2d(widths[i], widths[i - 1], kernel_size=2, stride=2))
            self.merge.append(ConvBlock(2 * widths[i - 1], widths[i - 1], condition_dim))
        self.head = nn.Conv2d(widths[0], out_channels, kernel_size=1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, images, condition=None):
        maps = [self.down[0](images, condition)]
        for block in self.down[1:]:
            maps.append(block(self.pool(maps[-1]), condition))
        x = maps[-1]
        for i in range(len(self.up)):
            x = self.merge[i](torch.concat((maps[-2 - i], self.up[i](x)), 1), condition)
        return self.head(x)
""",
    ("unet", "recursion"): """
class UNet(nn.Module):
    def __init__(self, in_channels, out_channels, widths, condition_dim=0):
        super().__init__()
        pairs = [(widths[i + 1], widths[i]) for i in range(len(widths) - 1)][::-1]
        self.down = nn.ModuleList(ConvBlock(a, b, condition_dim) for a, b in zip([in_channels] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.merge = nn.ModuleList(ConvBlock(b + b, b, condition_dim) for a, b in pairs)
        self.head = nn.Conv2d(widths[0], out_channels, 1)

    def level(self, x, condition, i):
        skip = self.down[i](x, condition)
        if i + 1 == len(self.down):
            return skip
        lower = self.level(F.max_pool2d(skip, 2), condition, i + 1)
        back = len(self.up) - 1 - i
        return self.merge[back](torch.cat([skip, self.up[back](lower)], dim=1), condition)

    def forward(self, images, condition=None):
        return self.head(self.level(images, condition, 0))
""",
    ("augment", "slices into zeros"): """
def my_augment(images, labels, flip, shift, ignore):
    B, C, H, W = images.shape
    out, out_labels = torch.zeros_like(images), torch.full_like(labels, ignore)
    for b in range(B):
        x, y = (images[b].flip(2), labels[b].flip(1)) if flip[b] else (images[b], labels[b])
        d, r = int(shift[b, 0]), int(shift[b, 1])
        to = slice(max(d, 0), min(H, H + d)), slice(max(r, 0), min(W, W + r))
        of = slice(max(-d, 0), min(H, H - d)), slice(max(-r, 0), min(W, W - r))
        out[b, :, to[0], to[1]] = x[:, of[0], of[1]]
        out_labels[b, to[0], to[1]] = y[of[0], of[1]]
    return out, out_labels
""",
    ("augment", "indices for the whole batch"): """
def my_augment(images, labels, flip, shift, ignore):
    B, C, H, W = images.shape
    images = torch.where(flip[:, None, None, None], images.flip(3), images)
    labels = torch.where(flip[:, None, None], labels.flip(2), labels)
    rows, columns = torch.arange(H) - shift[:, :1], torch.arange(W) - shift[:, 1:]
    inside = ((rows >= 0) & (rows < H))[:, :, None] & ((columns >= 0) & (columns < W))[:, None]
    b, i, j = torch.arange(B)[:, None, None], rows.clamp(0, H - 1)[:, :, None], columns.clamp(0, W - 1)[:, None]
    moved = images.movedim(1, -1)[b, i, j].movedim(-1, 1) * inside[:, None]
    return moved, labels[b, i, j].masked_fill(~inside, ignore)
""",
    ("augment", "roll, and what came back is cleared"): """
def my_augment(images, labels, flip, shift, ignore):
    images, labels = images.clone(), labels.clone()
    for b in range(images.size(0)):
        if flip[b]:
            images[b], labels[b] = images[b].flip(-1), labels[b].flip(-1)
        down, right = shift[b].tolist()
        images[b] = torch.roll(images[b], (down, right), (1, 2))
        labels[b] = torch.roll(labels[b], (down, right), (0, 1))
        rows = slice(0, down) if down >= 0 else slice(down, None)
        columns = slice(0, right) if right >= 0 else slice(right, None)
        images[b][:, rows] = 0
        images[b][:, :, columns] = 0
        labels[b][rows] = ignore
        labels[b][:, columns] = ignore
    return images, labels
""",
    ("segmentation_loss", "ignore_index, and a mask for the Dice loss"): """
def my_segmentation_loss(logits, labels, ignore):
    K = logits.shape[1]
    ce = F.cross_entropy(logits, labels, ignore_index=ignore)
    known = (labels != ignore).unsqueeze(1)
    p = logits.softmax(dim=1) * known
    t = F.one_hot(labels.masked_fill(labels == ignore, 0), K).permute(0, 3, 1, 2) * known
    dims = (0, 2, 3)
    score = (2 * (p * t).sum(dims) + 1) / (p.sum(dims) + t.sum(dims) + 1)
    return ce + (1 - score).mean()
""",
    ("segmentation_loss", "one class after another, logarithms by hand"): """
def my_segmentation_loss(logits, labels, ignore):
    K = logits.size(1)
    known = labels.ne(ignore).flatten()
    z = logits.transpose(0, 1).flatten(1).T[known]
    y = labels.flatten()[known]
    log_p = z - z.logsumexp(1, keepdim=True)
    ce = -log_p[torch.arange(len(y)), y].mean()
    total = 0
    for k in range(K):
        p, t = log_p[:, k].exp(), (y == k).to(z.dtype)
        total = total + 1 - (2 * p @ t + 1) / (p.sum() + t.sum() + 1)
    return ce + total / K
""",
    ("segmentation_loss", "nn.CrossEntropyLoss and einsum"): """
def my_segmentation_loss(logits, labels, ignore):
    m = (labels != ignore).float()
    hot = torch.stack([(labels == k).float() for k in range(logits.shape[1])], dim=1)
    p = torch.softmax(logits, 1)
    both = torch.einsum("bkhw,bkhw->k", p, hot)
    area = torch.einsum("bkhw,bhw->k", p, m) + hot.sum((0, 2, 3))
    dice = 1 - torch.mean((2 * both + 1) / (area + 1))
    return nn.CrossEntropyLoss(ignore_index=ignore)(logits, labels) + dice
""",
    ("overlap", "a confusion matrix"): """
def my_overlap(predicted, true, num_classes):
    K = num_classes
    table = torch.bincount((true * K + predicted).flatten(), minlength=K * K).view(K, K).float()
    hits, rows, columns = table.diagonal(), table.sum(1), table.sum(0)
    return torch.stack([hits / (rows + columns - hits), 2 * hits / (rows + columns)])
""",
    ("overlap", "one-hot vectors, and the Dice score from the IoU"): """
def my_overlap(predicted, true, num_classes):
    p, t = (F.one_hot(x.flatten(), num_classes).bool() for x in (predicted, true))
    iou = (p & t).sum(0) / (p | t).sum(0)
    return torch.stack((iou, 2 * iou / (1 + iou)))
""",
    ("overlap", "Python's numbers"): """
def my_overlap(predicted, true, num_classes):
    rows = [[], []]
    for k in range(num_classes):
        a, b = int((predicted == k).sum()), int((true == k).sum())
        both = int(((predicted == k) & (true == k)).sum())
        rows[0].append(both / (a + b - both) if a + b else float("nan"))
        rows[1].append(2 * both / (a + b) if a + b else math.nan)
    return torch.tensor(rows)
""",
    ("add_noise", "a view, roots first"): """
def my_add_noise(images, noise, t, alpha_bars):
    a = torch.sqrt(alpha_bars).gather(0, t).view(-1, 1, 1, 1)
    b = torch.sqrt(1 - alpha_bars).gather(0, t).view(-1, 1, 1, 1)
    return a * images + b * noise
""",
    ("add_noise", "image by image"): """
def my_add_noise(images, noise, t, alpha_bars):
    rows = []
    for x, e, step in zip(images, noise, t):
        left = alpha_bars[step].item()
        rows.append(math.sqrt(left) * x + math.sqrt(1 - left) * e)
    return torch.stack(rows)
""",
    ("add_noise", "einsum"): """
def my_add_noise(images, noise, t, alpha_bars):
    signal, rest = alpha_bars[t] ** 0.5, (1 - alpha_bars[t]) ** 0.5
    return torch.einsum("b,bchw->bchw", signal, images) + torch.einsum("b,bchw->bchw", rest, noise)
""",
    ("denoise_step", "by the estimate of the clean image, eq. (7)"): """
def my_denoise_step(noisy, predicted, fresh, t, betas):
    alphas = 1 - betas
    bar = torch.cat([torch.ones(1), torch.cumprod(alphas, 0)])
    now, before = bar[t + 1], bar[t]
    clean = (noisy - (1 - now).sqrt() * predicted) / now.sqrt()
    mean = before.sqrt() * betas[t] * clean + alphas[t].sqrt() * (1 - before) * noisy
    return mean / (1 - now) + torch.sqrt((1 - before) / (1 - now) * betas[t]) * fresh
""",
    ("denoise_step", "products of slices, an if for the last step"): """
def my_denoise_step(noisy, predicted, fresh, t, betas):
    alpha = 1 - betas[t]
    now, before = torch.prod(1 - betas[: t + 1]), torch.prod(1 - betas[:t])
    x = alpha**-0.5 * (noisy - (1 - alpha) / (1 - now) ** 0.5 * predicted)
    if t == 0:
        return x
    sigma = (betas[t] * (1 - before) / (1 - now)) ** 0.5
    return x + sigma * fresh
""",
    ("denoise_step", "Python's numbers"): """
def my_denoise_step(noisy, predicted, fresh, t, betas):
    now = 1.0
    for beta in betas.tolist()[: t + 1]:
        before, now = now, now * (1 - beta)
    mean = (noisy - beta / math.sqrt(1 - now) * predicted) / math.sqrt(1 - beta)
    return mean + math.sqrt(beta * (1 - before) / (1 - now)) * fresh
""",
    ("boxes", "a queue, row by row"): """
def my_boxes(mask, smallest):
    H, W = mask.shape
    seen, found = torch.zeros_like(mask), []
    for row in range(H):
        for column in range(W):
            if not mask[row, column] or seen[row, column]:
                continue
            queue = [(row, column)]
            seen[row, column] = True
            for y, x in queue:
                for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                    v, u = y + dy, x + dx
                    if 0 <= v < H and 0 <= u < W and mask[v, u] and not seen[v, u]:
                        seen[v, u] = True
                        queue.append((v, u))
            if len(queue) >= smallest:
                y, x = torch.tensor(queue).T
                found.append((int(x.min()), int(y.min()), int(x.max()) + 1, int(y.max()) + 1))
    return found
""",
}


@pytest.mark.parametrize(("task", "style"), RIGHT)
def test_a_right_answer_in_another_style_passes(task, style):
    assert told(task, RIGHT[task, style]) == []


LOOP = """
def my_unpool(values, positions, height, width):
    image = torch.zeros(*values.shape[:2], height, width)
    for b in range(len(values)):
        for c in range(values.shape[1]):
            for value, q in zip(values[b, c].flatten(), positions[b, c].flatten().tolist()):
                image[b, c, {row}, {column}] += value
    return image
"""
AT_ONCE = """
def my_unpool(values, positions, height, width):
    (B, C), image = values.shape[:2], torch.zeros(*values.shape[:2], height, width)
    b, c, q = torch.arange(B)[:, None, None, None], torch.arange(C)[:, None, None], positions
    return image.index_put((b, c, {row}, {column}), values, accumulate={accumulate})
"""
LEVELS = """
class UNet(nn.Module):
    def __init__(self, in_channels, out_channels, widths, condition_dim=0):
        super().__init__()
        sizes, steps = [in_channels, *widths], [*zip(widths[1:], widths)][::-1]
        self.down = nn.ModuleList(ConvBlock(a, b, condition_dim) for a, b in zip(sizes, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in steps)
        self.merge = nn.ModuleList(ConvBlock(2 * b, b, condition_dim) for _, b in steps)
        self.head = nn.Conv2d(widths[0], out_channels, 1)

    def forward(self, images, condition=None):
        maps, x = [], images
        for block in self.down:
            {down}
        x = maps.pop()
        for up, merge in zip(self.up, self.merge):
            {up}
        return self.head(x)
"""
WRONG = [  # a task, an answer, and what is said of it
    ("unpool", LOOP.format(row="q // height", column="q % height"), "rows counted by the height"),
    ("unpool", LOOP.format(row="q // height", column="q % width"), "rows counted by the height"),
    ("unpool", LOOP.format(row="q % width", column="q // width"), "row and column exchanged"),
    ("unpool", LOOP.format(row="q % height", column="q // height"), "positions read column by column"),
    *(
        ("unpool", AT_ONCE.format(row=row, column=column, accumulate=accumulate), name)
        for row, column, accumulate, name in (
            ("q // height", "q % height", True, "rows counted by the height"),
            ("q // height", "q % width", True, "rows counted by the height"),
            ("q % width", "q // width", True, "row and column exchanged"),
            ("q // width", "q % width", False, "values overwrite each other"),
        )
    ),
    (
        "transposed_convolution",
        """
def my_transposed_convolution(image, kernel, stride):
    (B, C, h, w), (rows, columns) = image.shape, kernel.shape[-2:]
    wide = torch.zeros(B, C, (h - 1) * stride + 1, (w - 1) * stride + 1)
    wide[:, :, ::stride, ::stride] = image
    return F.conv2d(wide, kernel.transpose(0, 1), padding=(rows - 1, columns - 1))
""",
        "kernel flipped or transposed",
    ),
    (
        "transposed_convolution",
        """
def my_transposed_convolution(image, kernel, stride):
    (B, C, h, w), (rows, columns) = image.shape, kernel.shape[-2:]
    wide = torch.zeros(B, C, (h - 1) * stride + 1, (w - 1) * stride + 1)
    wide[:, :, ::stride, ::stride] = image
    return F.conv2d(wide, kernel.flip(-2, -1), padding=(rows - 1, columns - 1))
""",
        "input and output channels exchanged",
    ),
    (
        "transposed_convolution",
        """
def my_transposed_convolution(image, kernel, stride):
    (B, C, h, w) = image.shape
    wide = torch.zeros(B, C, (h - 1) * stride + 1, (w - 1) * stride + 1)
    wide[:, :, ::stride, ::stride] = image
    return F.conv2d(wide, kernel.flip(-2, -1).transpose(0, 1))
""",
        "zero insertion without padding",
    ),
    *(
        (
            "transposed_convolution",
            f"def my_transposed_convolution(image, kernel, stride):\n    return {call}\n",
            "a ready-made function",
        )
        for call in (
            "F.conv_transpose2d(image, kernel, stride=stride)",
            "nn.functional.conv_transpose2d(image, kernel, None, stride)",
            "nn.ConvTranspose2d(*kernel.shape[:2], kernel.shape[2:], stride)(image)",
            "torch.nn.grad.conv2d_input(image.shape, kernel, image, stride)",
        )
    ),
    (
        "unet",
        LEVELS.format(
            down="x = block(F.max_pool2d(x, 2) if maps else x, condition); maps.append(x)",
            up="x = merge(torch.cat([up(x), maps.pop()], dim=1), condition)",
        ),
        "upsampled feature map first",
    ),
    (
        "unet",
        LEVELS.format(
            down="x = F.max_pool2d(x, 2) if maps else x; maps.append(x); x = block(x, condition)",
            up="x = merge(torch.cat([maps.pop(), up(x)], dim=1), condition)",
        ).replace("x = maps.pop()", "maps.pop()"),
        "skip connection before the block",
    ),
    (
        "segmentation_loss",
        """
def my_segmentation_loss(logits, labels, ignore):
    p = logits.softmax(1)
    t = torch.stack([labels == k for k in range(logits.shape[1])], dim=1).float()
    dice = (2 * (p * t).sum((0, 2, 3)) + 1) / (p.sum((0, 2, 3)) + t.sum((0, 2, 3)) + 1)
    return F.cross_entropy(logits, labels, ignore_index=ignore) + 1 - dice.mean()
""",
        "pixels without a class count in the Dice loss",
    ),
    (
        "augment",
        """
def my_augment(images, labels, flip, shift, ignore):
    out = torch.zeros_like(images), torch.full_like(labels, ignore)
    H, W = labels.shape[1:]
    for b in range(len(images)):
        down, right = shift[b].tolist()
        for r in range(H):
            for c in range(W):
                y, x = r + down, c + right
                if 0 <= y < H and 0 <= x < W:
                    out[0][b, :, y, x], out[1][b, y, x] = images[b, :, r, c], labels[b, r, c]
        if flip[b]:
            out[0][b], out[1][b] = out[0][b].flip(-1), out[1][b].flip(-1)
    return out
""",
        "shifted before mirroring",
    ),
    (
        "add_noise",
        """
def my_add_noise(images, noise, t, alpha_bars):
    return alpha_bars[t].sqrt() * images + (1 - alpha_bars[t]).sqrt() * noise
""",
        "factors along the width",
    ),
]


@pytest.mark.parametrize(("task", "text", "name"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong_with_it(task, text, name):
    assert told(task, text) == [name]
