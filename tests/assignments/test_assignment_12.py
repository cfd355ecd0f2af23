"""Assignment 12: its references are what the library does, and its cells are what the grader has."""

import nbformat
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.layers.windows import PatchMerging
from course_lib.lessons.lesson_12.assignment import SIDE, lights, make_boards, regions, secret_distances
from course_lib.models.swin import Swin, SwinConfig
from course_lib.tasks import Draw, run_checks
from course_lib.tasks.wrong import ignored
from tests.assignments.mistaken import passed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "12")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)
EVERY_DISTANCE = [(2, 1, 1, 1), (1, 2, 1, 1), (2, 2, 1, 1), (1, 1, 2, 2), (2, 1, 1, 2), (1, 2, 2, 1)]


@pytest.mark.parametrize(("blocks", "position"), [(1, (2, 3)), (2, (1, 7)), (3, (8, 0)), (4, (5, 6))])
def test_the_receptive_field_is_where_the_gradient_of_a_swin_comes_from(blocks, position):
    config = SwinConfig(
        patch_size=1, in_channels=1, num_classes=None, dim=8, depths=(blocks,), num_heads=(2,), window_size=3
    )
    torch.manual_seed(0)
    stage = Swin(config).double().stages[0].eval()
    for parameter in stage.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    x = torch.randn(1, 9, 12, 8, dtype=torch.double, requires_grad=True)
    found = TABLES["receptive_field"].reference(torch.tensor(position), 9, 12, 3, 1, blocks)
    stage(x)[0, *position].sum().backward()
    assert torch.equal(x.grad[0].abs().amax(-1) > 0, found)


def neighbours(i, length, kernel, dilation):
    """The rows that row i attends to: those k of its group that lie nearest to it, found by trying all windows."""
    group = [row for row in range(length) if row % dilation == i % dilation]
    windows = [group[start : start + kernel] for start in range(len(group) - kernel + 1)]
    return min(windows, key=lambda window: abs(window[kernel // 2] - i))


def test_neighborhoods_are_those_of_a_search():
    for case in TABLES["neighborhood_field"].cases:
        position, height, width, kernel, dilations = case.inputs(Draw(4))
        fields = [{int(position[0])}, {int(position[1])}]
        for axis, length in enumerate((height, width)):
            for dilation in dilations[::-1]:
                fields[axis] = {row for i in fields[axis] for row in neighbours(i, length, kernel, dilation)}
        rows, columns = (torch.zeros(length, dtype=torch.bool) for length in (height, width))
        rows[list(fields[0])], columns[list(fields[1])] = True, True
        found = TABLES["neighborhood_field"].reference(position, height, width, kernel, dilations)
        assert torch.equal(found, rows[:, None] & columns)


def test_the_decomposed_bias_is_that_of_a_loop():
    for case in TABLES["decomposed_bias"].cases:
        q, rows, columns, height, width, stride = case.inputs(Draw(4))
        found = TABLES["decomposed_bias"].reference(q, rows, columns, height, width, stride)
        keys = [(row, column) for row in range(0, height, stride) for column in range(0, width, stride)]
        for i in range(height * width):
            for j, (row, column) in enumerate(keys):
                vector = rows[i // width - row + height - stride] + columns[i % width - column + width - stride]
                torch.testing.assert_close(found[:, :, i, j], q[:, :, i] @ vector)


def test_reassembling_with_one_weight_is_upsampling_of_the_nearest():
    x, logits = torch.randn(2, 3, 4, 5), torch.zeros(2, 3, 4, 4, 9)
    logits[..., 4] = 100.0  # the middle of each neighbourhood
    found = TABLES["reassemble"].reference(x, logits.flatten(3), 3, 2)
    torch.testing.assert_close(found, x.repeat_interleave(2, dim=1).repeat_interleave(2, dim=2))
    mean = TABLES["reassemble"].reference(x, 0 * logits[..., 0, :], 3, 1)
    wanted = F.avg_pool2d(x.permute(0, 3, 1, 2), 3, stride=1, padding=1).permute(0, 2, 3, 1)
    torch.testing.assert_close(mean, wanted)


def test_patch_expanding_undoes_patch_merging():
    x, merging = torch.randn(2, 5, 3, 6), PatchMerging(6)
    merging.norm, merging.proj = torch.nn.Identity(), torch.nn.Identity()  # leaves the four of 6 side by side: 24
    found = TABLES["patch_expanding"].reference(merging(x), torch.eye(24), 5, 3)
    assert torch.equal(found, x)


FUNCTIONS = [name for name, table in TABLES.items() if table.cases]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_argument_can_be_ignored(name):
    assert list(ignored(TABLES[name])) == []


# the boards --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distances", [(1, 1, 1, 1), (2, 1, 1, 2), (1, 2, 1, 1)])
def test_the_boards_of_the_notebook_follow_the_rule_of_the_grader(distances):
    names = {}
    (source,) = (cell.source for cell in NOTEBOOK.cells if cell.id == "boards")
    exec("import torch\nimport torch.nn.functional as F\n" + source, names)
    theirs = names["make_boards"](40, seed=3, distances=distances)
    ours = make_boards(Draw(3), 40, distances=distances)
    assert all(torch.equal(one, other) for one, other in zip(theirs, ours, strict=True))
    (boards, lit), (up, down, left, right) = ours, distances
    for row, column in ((0, 0), (3, 4), (11, 7)):
        lamps = [(row + up, column), (row - down, column), (row, column + left), (row, column - right)]
        seen = sum(boards[:, i, j] for i, j in lamps if 0 <= i < 12 and 0 <= j < 12)
        assert torch.equal(lit[:, row, column], (seen > 0).long())
    assert 0.15 < boards.float().mean() < 0.25


def test_the_secret_distances_are_never_those_of_the_notebook():
    drawn = {secret_distances(Draw(seed)) for seed in range(200)}
    assert {distances.count(2) for distances in drawn} == {1, 2} and len(drawn) == 10


def best_without(part, distances, side=SIDE):
    """The accuracy that no network exceeds whose windows are never shifted, or without a mask."""
    up, down, left, right = distances
    errors = []
    for i in range(side):
        for j in range(side):
            lamps = [(i + up, j), (i - down, j), (i, j + left), (i, j - right)]
            real = [(a, b) for a, b in lamps if 0 <= a < side and 0 <= b < side]
            seen = [(a, b) for a, b in real if a // 4 == i // 4 and b // 4 == j // 4]
            known, unknown = (len(seen), len(real) - len(seen)) if part == "shift" else (len(real), 4 - len(real))
            errors.append(0.8**known * (1 - 0.8**unknown))  # no known lamp, and another one decides
    return 1 - sum(errors) / side**2


@pytest.mark.parametrize("distances", EVERY_DISTANCE)
def test_the_thresholds_tell_apart_networks_without_shift_without_mask_and_with_both(distances):
    assert best_without("shift", distances) < 0.93 - 0.02
    assert 0.93 + 0.01 < best_without("mask", distances) < 0.985 - 0.02
    assert best_without("mask", distances, side=20) < 0.985 - 0.01


def test_each_position_is_in_one_region():
    assert (torch.stack(regions(12, (1, 2, 1, 1))).sum(dim=0) == 1).all()
    edge, border, inside = regions(12, (1, 1, 1, 1))
    assert [int(region.sum()) for region in (edge, border, inside)] == [44, 64, 36]


# answers -----------------------------------------------------------------------------------------------------


class Says(nn.Module):
    """Logits made of boards by a function, times trained numbers: many, one, or none."""

    def __init__(self, says, numbers=300):
        super().__init__()
        self.says, self.scale = says, nn.Parameter(torch.ones(numbers) / numbers) if numbers else torch.ones(1)

    def forward(self, boards):
        return self.says(boards) * self.scale.sum()


def by_rule(boards, distances=(1, 1, 1, 1)):
    """The rule, with nothing learned."""
    up, down, left, right = distances
    padded, (H, W) = F.pad(boards, (2, 2, 2, 2)), boards.shape[1:]
    steps = ((2 + up, 2), (2 - down, 2), (2, 2 + left), (2, 2 - right))
    lamps = sum(padded[:, row : row + H, column : column + W] for row, column in steps)
    return torch.stack([lamps == 0, lamps > 0], dim=-1).float()


def found_rule(boards, lit):
    """The distances that explain the training boards: a search, without any training."""
    every = [tuple(map(int, f"{number:04b}")) for number in range(16)]
    every = [tuple(1 + one for one in distances) for distances in every]
    return max(every, key=lambda one: (by_rule(boards, one).argmax(-1) == lit).float().mean())


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (by_rule, "another rule than that of the data"),
        (lambda boards: by_rule(boards).squeeze(0), "wrong shape"),
        (lambda boards: 0 * by_rule(boards), "not learned"),
        (lambda boards: by_rule(boards) + torch.rand(1), "another result each time"),
    ],
)
def test_an_answer_without_a_training_earns_nothing_and_is_told_why(says, told):
    table = TABLES["train"]
    for check in table.scored:
        report = run_checks(lambda boards, lit: Says(says), [check], asks=table.asks)
        assert report.misconceptions == [told]


@pytest.mark.parametrize("numbers", [0, 1])
def test_a_rule_that_was_searched_for_is_no_network(numbers):
    def train(boards, lit):
        distances = found_rule(boards, lit)
        return Says(lambda x: by_rule(x, distances), numbers)

    report = run_checks(train, [lights("any", 1, above=0.93)], asks="boards, lit")
    assert report.misconceptions == ["not learned by its parameters"]


def test_a_convolution_is_forbidden_where_attention_is_asked_for():
    assert {"Conv2d", "conv2d", "unfold"} <= set(TABLES["train"].forbids)


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("receptive_field", "borders of the shifted windows elsewhere"),
        ("neighborhood_field", "groups of equal size"),
        ("continuous_bias", "bias of the first layer forgotten"),
        ("decomposed_bias", "keys numbered as if not pooled"),
        ("patch_expanding", "both sides cropped"),
        ("reassemble", "new positions column by column"),
    ],
)
def test_a_mistake_that_the_example_does_not_show_costs_part_of_the_points(name, mistake):
    table = TABLES[name]
    right = passed(table, mistake)
    assert 0 < sum(check.points for check in right) < table.points
