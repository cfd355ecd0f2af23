"""Assignment 13: its references are what the library does, and its cells are what the grader has."""

import math

import nbformat
import pytest
import torch
from torch import nn
from torch.nn.functional import one_hot

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_13.assignment import (
    LABELLED,
    Fabrics,
    errors,
    features,
    hidden_pixels,
    probe_accuracy,
    probed,
    reconstructs,
)
from course_lib.models.mae import MAE, MAEConfig
from course_lib.models.vit import ViTConfig
from course_lib.tasks import Draw, run_checks
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import RANDOM, CheckFailed
from course_lib.tasks.wrong import ignored
from tests.assignments.mistaken import passed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "13")
LOADED = load(FILES)
TABLES = {table.name: table for table in LOADED.assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)


@pytest.fixture(scope="module")
def cells():
    """What the notebook's own cells define, with the reference of the training."""
    names = {}
    for cell in NOTEBOOK.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") in ("setup", "fabrics", "train"):
            exec(cell.source, names)
    return names


def test_a_reconstruction_is_that_of_the_library():
    encoder = ViTConfig(
        image_size=28, patch_size=4, in_channels=1, num_classes=None, pool="mean", dim=16, depth=1, num_heads=2
    )
    model = MAE(MAEConfig(encoder=encoder, decoder_dim=8, decoder_depth=1, decoder_num_heads=2, decoder_mlp_dim=16))
    image, noise = Draw(0)(2, 1, 28, 28), Draw(1)(2, 49)
    predicted, masked = model(image, noise)
    found = TABLES["reconstruct"].reference(image, predicted, masked, 4)
    torch.testing.assert_close(found, model.reconstruct(image, noise))


def test_the_probe_has_the_least_error_with_its_penalty():
    draw = Draw(0)
    known, labels = draw(12, 3).double(), draw.integers(0, 2, 12)
    scores = TABLES["probe_scores"].reference(known, labels, known, 2, 1.5)
    z = (known - known.mean(0)) / (known.var(0, correction=0) + 1e-6).sqrt()
    # the penalty as three more examples, whose targets are 0; the constant belongs to the twelve real ones alone
    rows = torch.cat([torch.cat([z, torch.ones(12, 1)], 1), torch.eye(3, 4) * 1.5**0.5])
    targets = torch.cat([one_hot(labels, 2).double(), torch.zeros(3, 2)])
    torch.testing.assert_close(scores, rows[:12] @ torch.linalg.lstsq(rows, targets).solution)


def test_the_probe_of_the_grader_is_ridge_regression():
    draw = Draw(0)
    known, labels, new = draw(60, 9) + 2, draw.integers(0, 6, 60), 2 * draw(40, 9)
    answers = TABLES["probe_scores"].reference(known, labels, new, 6, 10.0).argmax(1)
    assert probe_accuracy(known, labels, new, answers) == 1


def test_a_histogram_knows_the_orientation_of_a_wave_and_neither_its_contrast_nor_its_brightness():
    row, column = torch.meshgrid(torch.arange(24) / 24, torch.arange(24) / 24, indexing="ij")
    hog = TABLES["hog_target"].reference
    for angle, k in ((0.1, 0), (0.9, 1), (1.7, 2), (2.5, 3), (3.3, 0)):
        wave = (20 * (column * math.cos(angle) + row * math.sin(angle))).cos()[None]
        inside = hog(wave, 4, 4).view(6, 6, 4)[1:-1, 1:-1]  # at the edge, gradients are one-sided
        assert (inside.argmax(dim=-1) == k).all() and inside[..., k].min() > 0.95
        torch.testing.assert_close(hog(3 * wave - 1, 4, 4), hog(wave, 4, 4), atol=1e-3, rtol=0)


def test_the_loss_of_several_masks_is_that_of_a_loop():
    for case in TABLES["teacher_loss"].cases:
        blocks, predicted, masked, K = case.inputs(Draw(4))
        errors = []
        for b in range(len(predicted)):
            # torch's instance norm wants the features before the patches
            top = [nn.functional.instance_norm(block[b].T[None])[0].T for block in blocks[len(blocks) - K :]]
            mean = sum(top) / K
            for m, n in masked[b].nonzero().tolist():
                variance, middle = torch.var_mean(mean[n], correction=0)
                target = (mean[n] - middle) / (variance + 1e-5).sqrt()
                errors += (predicted[b, m, n] - target).square().tolist()
        found = TABLES["teacher_loss"].reference(blocks, predicted, masked, K)
        assert found.item() == pytest.approx(sum(errors) / len(errors), rel=1e-4)


def test_each_frequency_is_a_wave_of_its_own():
    H, W, reference = 6, 7, TABLES["frequency_loss"].reference
    row, column = torch.arange(H)[:, None] / H, torch.arange(W) / W
    for u, v in ((0, 0), (0, 3), (2, -1), (-2, 2), (1, 3), (3, -3)):
        wave = (2 * math.pi * (u * row + v * column)).cos()[None, None]
        zero, distance = torch.zeros_like(wave), math.hypot(u, v)
        # only the frequencies (u, v) and (-u, -v) of a wave are not 0, and they are on the same side of each border
        assert reference(wave, zero, distance + 0.01, True).item() == pytest.approx(0, abs=1e-6)
        assert reference(wave, zero, distance + 0.01, False).item() > 0.1
        assert reference(wave, zero, distance - 0.01, True).item() > 0.1
        if distance:
            assert reference(wave, zero, distance - 0.01, False).item() == pytest.approx(0, abs=1e-6)


def test_without_a_visible_frequency_the_loss_is_the_mean_over_the_whole_transform():
    image, predicted = Draw(0)(3, 2, 5, 4), Draw(1)(3, 2, 5, 4)
    wanted = (torch.fft.fft2(image - predicted).abs() / 20**0.5).mean(dim=(1, 2, 3))
    torch.testing.assert_close(TABLES["frequency_loss"].reference(image, predicted, 9.0, False), wanted)


def test_the_discriminant_ranks_classes_by_their_probability():
    for case in TABLES["discriminant_scores"].cases:
        features, labels, new, num_classes, shrinkage = case.inputs(Draw(4))
        classes = [features[labels == c] for c in range(num_classes)]
        covariance = sum((of - of.mean(0)).T @ (of - of.mean(0)) for of in classes) / len(features)
        mean_variance = covariance.diagonal().mean()
        covariance = covariance.lerp(mean_variance * torch.eye(len(covariance)), shrinkage)
        normal = [torch.distributions.MultivariateNormal(of.mean(0), covariance) for of in classes]
        joint = torch.stack(
            [p.log_prob(new) + math.log(len(of) / len(features)) for p, of in zip(normal, classes, strict=True)], 1
        )
        found = TABLES["discriminant_scores"].reference(features, labels, new, num_classes, shrinkage)
        torch.testing.assert_close(found.softmax(1), joint.softmax(1), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.cases])
def test_no_argument_can_be_ignored(name):
    assert list(ignored(TABLES[name])) == []


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("hog_target", "nothing added before the square root"),
        ("hog_target", "patches counted down the columns"),
        ("teacher_loss", "nothing added to the variance"),
        ("reconstruct", "patches counted down the columns"),
        ("reconstruct", "channels not last"),
        ("frequency_loss", "the border is low"),
        ("frequency_loss", "nothing hidden"),
        ("probe_scores", "nothing added to the variance"),
    ],
)
def test_a_mistake_that_the_example_does_not_show_costs_part_of_the_points(name, mistake):
    table = TABLES[name]
    right = passed(table, mistake)
    assert table.points / 5 <= sum(check.points for check in right) < table.points


# the fabrics -------------------------------------------------------------------------------------------------


def test_the_fabrics_of_the_notebook_are_those_of_the_grader(cells):
    theirs, ours = cells["Fabrics"](seed=1), Fabrics(Draw(2))
    for waves in (theirs.waves, ours.waves):
        assert waves.shape == (6, 2, 2) and torch.equal(waves[:, 0], waves[:, 1].roll(-1, dims=0))
        assert len(waves[:, 0].unique(dim=0)) == 6 and waves[..., 0].unique().tolist() == [1, 2]
    theirs.waves, theirs.random = ours.waves, Draw(3).generator
    images, labels = ours.images(Draw(3), 4_000)
    same, too = theirs.images(4_000)
    assert torch.equal(images, same) and torch.equal(labels, too) and images.shape == (4_000, 16, 16)
    assert abs(images.mean()) < 0.01 and abs(images.var() - 1 - 1 / 16) < 0.03  # as the notebook says
    masked = Draw(0)(3, 16) > 0
    assert torch.equal(cells["hidden_pixels"](masked), hidden_pixels(masked))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_neither_pixels_nor_an_untrained_network_reach_the_threshold_of_the_probe(cells, seed):
    torch.manual_seed(seed)
    model, draw, fabrics = ModuleProbe(cells["Autoencoder"]().eval()), Draw(seed), Fabrics(Draw(seed))
    (known, labels), (new, targets) = fabrics.images(draw, LABELLED), fabrics.images(draw, 1_000)
    assert probe_accuracy(known.flatten(1), labels, new.flatten(1), targets) < 0.4
    assert probe_accuracy(features(model, known), labels, features(model, new), targets) < 0.75


def test_no_wave_alone_names_the_fabric():
    waves = Fabrics(Draw(0)).waves.flatten(0, 1)
    assert (waves[:, None] == waves).all(-1).sum(dim=1).tolist() == [2] * 12


# answers -----------------------------------------------------------------------------------------------------


class Says(nn.Module):
    """A reconstruction and features made by functions, times trained numbers: many, one, or none."""

    def __init__(self, reconstructs, features, numbers=600):
        super().__init__()
        self.reconstructs, self.features = reconstructs, features
        self.scale = nn.Parameter(torch.ones(numbers) / numbers) if numbers else torch.ones(1)

    def forward(self, images, masked=None):
        found = self.features(images) if masked is None else self.reconstructs(images, masked)
        return found * self.scale.sum()


def zeros(images, masked):
    return 0 * images


def spectrum(images):
    """The energies of all waves, which no training has found."""
    return torch.fft.rfft2(images)[:, :, :4].abs().flatten(1)


ERROR, ACCURACY = reconstructs("any", 1, below=0.5), probed("any", 1, above=0.7)


def told(check, reconstructs=zeros, features=spectrum, numbers=600):
    return run_checks(lambda images: Says(reconstructs, features, numbers), [check], asks="images").misconceptions


@pytest.mark.parametrize(
    ("reconstructs", "finding"),
    [
        (zeros, "not learned"),
        (lambda images, masked: images, "hidden pixels are used"),
        (lambda images, masked: torch.rand(images.shape), RANDOM),
        (lambda images, masked: zeros(images, masked).squeeze(0), "wrong shape"),
        (lambda images, masked: zeros(images, masked) + masked.sum(), "result depends on the other images"),
    ],
)
def test_a_reconstruction_without_a_training_earns_nothing_and_is_told_why(reconstructs, finding):
    assert told(ERROR, reconstructs) == [finding]


@pytest.mark.parametrize(
    ("found", "finding"),
    [
        (lambda images: images.flatten(1), "not learned"),
        (lambda images: spectrum(images) - spectrum(images).mean(), "result depends on the other images"),
        (lambda images: images, "wrong shape"),
        (lambda images: images.flatten(1).repeat(1, 2), "wrong shape"),
        (lambda images: spectrum(images) + torch.rand(1), RANDOM),
    ],
)
def test_features_without_a_training_earn_nothing_and_are_told_why(found, finding):
    assert told(ACCURACY, features=found) == [finding]


@pytest.mark.parametrize("numbers", [0, 1])
def test_a_spectrum_is_no_network(numbers):
    assert told(ACCURACY, numbers=numbers) == ["not learned by its parameters"]


def test_a_model_whose_dropout_is_left_on_is_told_that_it_depends_on_chance():
    class Noisy(nn.Dropout):
        def forward(self, images, masked=None):
            return super().forward(torch.ones_like(images)) - 1

    images = Fabrics(Draw(0)).images(Draw(1), 500)[0]
    with pytest.raises(CheckFailed) as fault:
        errors(ModuleProbe(Noisy()), images[:9], 8, Draw(2))
    assert fault.value.finding.misconception == RANDOM
    assert errors(ModuleProbe(Noisy().eval()), images, 8, Draw(2))[0] > 0.9
