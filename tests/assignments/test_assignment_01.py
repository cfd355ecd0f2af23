"""Assignment 01: its references are what torch and the library do, and its cells are what the grader has."""

import nbformat
import pytest
import torch
from torch import nn

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_01.assignment import (
    KNOWN,
    NEIGHBOURS,
    NEW,
    NO_TRANSFER,
    NOT_LEARNED,
    PER_CHARACTER,
    Script,
    accuracy,
    classifies,
)
from course_lib.tasks import Draw, run_checks
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import RANDOM, CheckFailed
from course_lib.tasks.trained import ELSEWHERE
from tests.assignments.mistaken import mistaken

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "01")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)


def test_a_receptive_field_is_what_a_gradient_reaches():
    layers = torch.tensor([[3, 2], [5, 1], [3, 3], [3, 1]])
    net = nn.Sequential(*(nn.Conv2d(1, 1, kernel, stride, bias=False) for kernel, stride in layers.tolist()))
    side = int(TABLES["receptive_field"].reference(layers))
    image = torch.randn(1, 1, side + 9, side + 9, requires_grad=True)
    net(image)[0, 0, 0, 0].backward()
    seen = (image.grad[0, 0] != 0).nonzero()
    assert (seen.max(dim=0).values - seen.min(dim=0).values + 1).tolist() == [side, side]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("case", [0, 2])
def test_the_norm_is_that_of_torch(training, case):
    x, mean, variance, weight, bias = (each.double() for each in TABLES["batch_norm"].cases[case].inputs(Draw(0))[:5])
    expected = nn.functional.batch_norm(x, mean.clone(), variance.clone(), weight, bias, training, eps=1e-5)
    found = TABLES["batch_norm"].reference(x, mean, variance, weight, bias, training)
    torch.testing.assert_close(found, expected)


def test_the_mean_of_a_class_activation_map_is_the_logit_without_its_bias():
    table = TABLES["class_activation_map"]
    feature_maps, weight, labels = table.cases[0].inputs(Draw(0))
    whole = mistaken(table, "negative sums kept", "not scaled")(feature_maps, weight, labels).mean(dim=(1, 2))
    torch.testing.assert_close(whole, (feature_maps.mean(dim=(2, 3)) * weight[labels]).sum(dim=1))


def test_the_script_of_the_notebook_is_that_of_the_grader():
    names = {}
    for cell in NOTEBOOK.cells:
        if cell.id in ("setup", "script"):
            exec(cell.source, names)
    theirs, ours = names["Script"](seed=0), Script(Draw(0))
    for count, new in ((400, False), (PER_CHARACTER * NEW, True)):
        (pixels, labels), (own_pixels, own_labels) = theirs.images(count, new=new), ours.images(count, new=new)
        assert torch.equal(pixels, own_pixels) and torch.equal(labels, own_labels)
        assert pixels.shape == (count, 16, 16) and 0.1 < pixels.mean() < 0.5
        classes = NEW if new else KNOWN
        assert labels.bincount().tolist() == [count // classes] * classes


def test_no_two_characters_have_the_same_shapes():
    characters = Script(Draw(0)).characters
    assert len(characters.unique(dim=0)) == KNOWN + NEW == len(characters)
    assert {*characters[KNOWN:].unique().tolist()} <= {*characters[:KNOWN].unique().tolist()}


class Says(nn.Module):
    """Logits made of images by a function."""

    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def forward(self, images):
        return self.logits(images[:, 4, :NEW])


@pytest.mark.parametrize(
    ("logits", "told"),
    [
        (lambda x: x + torch.rand_like(x), RANDOM),
        (lambda x: x - x.mean(0), NEIGHBOURS.misconception),
        (lambda x: x + torch.arange(len(x))[:, None] % 3 * torch.arange(NEW), NEIGHBOURS.misconception),
    ],
)
def test_chance_and_neighbours_are_told(logits, told):
    shown = Script(Draw(0)).images(48, new=True)
    with pytest.raises(CheckFailed) as fault:
        accuracy(ModuleProbe(Says(logits)), *shown)
    assert fault.value.finding.misconception == told
    assert 0 <= accuracy(ModuleProbe(Says(lambda x: x)), *shown) <= 1


class Shapes(nn.Module):
    """Knows which shapes each new character has, of the seed 0; says so with this probability, trained or built in."""

    def __init__(self, certain, *, trained=True):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(NEW)) if trained else 1.0
        self.certain, self.known = certain, Script(Draw(0))

    def forward(self, images):
        drawn = Script(Draw(0))
        drawn.images(4000, new=False), drawn.images(PER_CHARACTER * NEW, new=True)
        asked = [drawn.images(204, new=True), drawn.images(600, new=True)]
        pixels, labels = (torch.cat(parts) for parts in zip(*asked, strict=True))
        nearest = torch.cdist(images.flatten(1), pixels.flatten(1)).argmin(dim=1)
        right = (10 * nearest % 97 < 97 * self.certain).long()
        return nn.functional.one_hot((labels[nearest] + 1 - right) % NEW, NEW).float() * self.scale


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (Shapes(0.9), []),
        (Shapes(0.45), [NO_TRANSFER.misconception]),
        (Shapes(0.05), [NOT_LEARNED.misconception]),
        (Shapes(0.9, trained=False), [ELSEWHERE]),
    ],
)
def test_an_accuracy_is_told_by_its_thresholds(model, told):
    check = classifies("upper", 1, above=0.76)
    report = run_checks(lambda *given: model, [check], asks=TABLES["train"].asks)
    assert report.misconceptions == told
