"""Right answers in other styles pass the exercises of lesson 01."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.classroom.opening import compare, copy_weights
from course_lib.lessons.lesson_01.models import NAMES, sizes
from course_lib.lessons.lesson_01.recipes import icon_names
from course_lib.lessons.lesson_01.tasks import PARTS, TASKS


class ByNorms(nn.Module):
    """The skip connection is chosen by a conditional expression, and ReLU is a function."""

    def __init__(self, in_channels, out_channels, stride=1):
        super().__init__()
        same = stride == 1 and in_channels == out_channels
        self.shortcut = nn.Identity() if same else nn.Sequential(*self.pair(in_channels, out_channels, 1, stride))
        self.conv1, self.norm1 = self.pair(in_channels, out_channels, 3, stride)
        self.conv2, self.norm2 = self.pair(out_channels, out_channels, 3, 1)

    def pair(self, inside, outside, kernel, stride):
        conv = nn.Conv2d(inside, outside, kernel_size=kernel, stride=stride, padding=kernel // 2, bias=False)
        return conv, nn.BatchNorm2d(outside)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return F.relu(torch.add(self.shortcut(x), y))


class Pooled(nn.Module):
    """Stages in a loop over blocks, and the pooling as a layer."""

    def __init__(self, num_classes, widths, depths, first_stride=2):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, widths[0], 3, padding=1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()
        )
        inside, stages = [widths[0], *widths[:-1]], []
        for i in range(len(widths)):
            stage = nn.Sequential()
            for j in range(depths[i]):
                stride = 1 if j else (2 if i else first_stride)
                stage.append(PARTS["BasicBlock"](widths[i] if j else inside[i], widths[i], stride))
            stages.append(stage)
        self.stages, self.head = nn.ModuleList(stages), nn.Linear(widths[-1], num_classes)

    def features(self, images):
        x = nn.Sequential(self.stem, *self.stages)(images)
        return F.adaptive_avg_pool2d(x, 1).flatten(1)

    def forward(self, images):
        return F.linear(self.features(images), self.head.weight, self.head.bias)


def by_rows(rgba, flip, shift, ground):
    B, _, H, W = rgba.shape
    large = torch.zeros(B, 4, H + 8, W + 8)
    large[:, :, 4:-4, 4:-4] = rgba
    made = torch.empty(B, 3, H, W)
    for b in range(B):
        top, left = int(shift[b, 0]), int(shift[b, 1])
        part = large[b, :, top : top + H, left : left + W]
        if flip[b]:
            part = part[..., torch.arange(W - 1, -1, -1)]
        made[b] = torch.lerp(ground[b][:, None, None].expand(3, H, W), part[:3], part[3])
    return made


def flipped_first(rgba, flip, shift, ground):
    """Mirroring first needs the shift from the other side."""
    start = torch.where(flip, 8 - shift[:, 1], shift[:, 1])
    turned = torch.where(flip[:, None, None, None], rgba.flip(3), rgba)
    H, W = rgba.shape[2:]
    windows = [
        image[:, d : d + H, r : r + W]
        for image, d, r in zip(F.pad(turned, (4,) * 4), shift[:, 0].tolist(), start.tolist(), strict=True)
    ]
    moved = torch.stack(windows)
    return ground[..., None, None] + moved[:, 3:] * (moved[:, :3] - ground[..., None, None])


def one_by_one(model, num_classes, frozen):
    new = copy.deepcopy(model)
    for name, parameter in new.named_parameters():
        parameter.requires_grad = not frozen or name.startswith("head")
    new.head = nn.Linear(new.head.weight.shape[1], num_classes)
    return new


def by_list(parts, rate, decay):
    return [dict(params=[*part.parameters()], lr=rate * decay**i) for i, part in enumerate(parts)]


def by_scheduler(model, batches, rate, decay, frozen):
    parts = [model.head] if frozen else [model.head, *list(model.stages)[::-1], model.stem]
    optimizer = torch.optim.AdamW(PARTS["parameter_groups"](parts, rate, decay), weight_decay=0.01)
    n = len(batches)
    w = max(1, n // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: min((t + 1) / w, (n - t) / (n - w + 1)))
    found = torch.zeros(n)
    for t, (images, labels) in enumerate(batches):
        model.eval() if frozen else model.train()
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(model(images), labels)
        loss.backward()
        optimizer.step()
        schedule.step()
        found[t] = loss.item()
    model.train(False)
    return found


OTHERS = {
    "block": (ByNorms,),
    "resnet": (Pooled,),
    "augment": (by_rows, flipped_first),
    "new_head": (one_by_one,),
    "parameter_groups": (by_list,),
    "fine_tune": (by_scheduler,),
}


@pytest.mark.parametrize(("name", "answer"), [(name, answer) for name, all_ in OTHERS.items() for answer in all_])
def test_right_answers_of_other_forms_pass(name, answer):
    assert not TASKS[name].run(answer).misconceptions


def test_her_class_computes_what_a_network_of_the_library_does():
    ours = icon_names.build(icon_names.SETTINGS, 7).eval()
    mine = TASKS["resnet"].module(**sizes(ours)).eval()
    assert copy_weights(ours, mine, NAMES) == sum(parameter.numel() for parameter in ours.parameters())
    compare(ours, mine, (torch.randn(3, 3, 32, 32),), NAMES)
