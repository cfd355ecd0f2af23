"""What is said of networks that students return: of chance, neighbours, shapes, and of what was not learned.

Each lesson adds its rows to two tables: REFUSED are networks of which nothing can be measured, JUDGED are answers whose
network is measured by a check.
"""

import functools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.data.signs import Script as Signs
from course_lib.functional.segmentation import mean_iou
from course_lib.lessons.lesson_01 import assignment as of_01
from course_lib.lessons.lesson_02 import assignment as of_02
from course_lib.lessons.lesson_03 import assignment as of_03
from course_lib.lessons.lesson_04 import assignment as of_04
from course_lib.lessons.lesson_08 import assignment as of_08
from course_lib.lessons.lesson_10 import assignment as of_10
from course_lib.lessons.lesson_11 import assignment as of_11
from course_lib.lessons.lesson_12 import assignment as of_12
from course_lib.lessons.lesson_13 import assignment as of_13
from course_lib.lessons.lesson_14 import assignment as of_14
from course_lib.lessons.lesson_15 import assignment as of_15
from course_lib.lessons.lesson_16 import assignment as of_16
from course_lib.lessons.lesson_17 import assignment as of_17
from course_lib.tasks import Draw
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import OTHER_PARAMETERS, RANDOM, WRONG_SHAPE
from course_lib.tasks.trained import ELSEWHERE
from tests.assignments.delivered import Says, cells, fault, table, told

REFUSED = []  # (who measures, what is measured, what is said)
JUDGED = []  # (assignment, checks, network or what makes one, what is said)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def dropped(rows):
    return F.dropout(rows, training=True)


# 01: a script ------------------------------------------------------------------------------------------------


def accuracy_01(logits):
    """The accuracy of logits that are made of a line of each image."""
    network = Says(lambda images: logits(images[:, 4, : of_01.NEW]))
    return of_01.accuracy(ModuleProbe(network), *of_01.Script(Draw(0)).images(48, new=True))


REFUSED += [
    (accuracy_01, lambda x: 1 + x + 0.02 * torch.rand_like(x), RANDOM),
    (accuracy_01, lambda x: x - x.mean(0), of_01.NEIGHBOURS),
    (accuracy_01, lambda x: x + torch.arange(len(x))[:, None] % 3 * torch.arange(of_01.NEW), of_01.NEIGHBOURS),
]


def shapes(certain, numbers=of_01.NEW):
    """A network that knows which shapes each new character has, of the seed 0, and says so with this probability."""

    def says(images):
        drawn = of_01.Script(Draw(0))
        drawn.images(4000, new=False), drawn.images(of_01.PER_CHARACTER * of_01.NEW, new=True)
        asked = [drawn.images(204, new=True), drawn.images(600, new=True)]
        pixels, labels = (torch.cat(parts) for parts in zip(*asked, strict=True))
        nearest = torch.cdist(images.flatten(1), pixels.flatten(1)).argmin(dim=1)
        right = (10 * nearest % 97 < 97 * certain).long()
        return F.one_hot((labels[nearest] + 1 - right) % of_01.NEW, of_01.NEW).float()

    return Says(says, numbers)


CHECKS_01 = [of_01.classifies("upper", 1, above=0.76)]
JUDGED += [
    ("01", CHECKS_01, shapes(0.9), []),
    ("01", CHECKS_01, shapes(0.45), [of_01.NO_TRANSFER]),
    ("01", CHECKS_01, shapes(0.05), [of_01.NOT_LEARNED]),
    ("01", CHECKS_01, shapes(0.9, numbers=0), [ELSEWHERE]),
]

# 02: signs ---------------------------------------------------------------------------------------------------


def features_02(says):
    return of_02.features(ModuleProbe(Says(says)), of_02.some(Signs(of_02.KINDS, Draw(0).generator), Draw(1), 50)[0])


REFUSED += [
    (features_02, lambda x: 1 + x[:, 0, :4] + 0.02 * torch.rand(len(x), 4), RANDOM),
    (features_02, lambda x: x[:, 0, :4] - x[:, 0, :4].mean(0), of_02.NEIGHBOURS),
    (features_02, lambda x: torch.ones(len(x), 4) + 1e-4 * x[:, 0, :4], of_02.COLLAPSED),
    (features_02, lambda x: x, WRONG_SHAPE),
]


def test_pixels_name_few_signs_and_the_signs_themselves_name_all():
    script, draw = Signs(of_02.KINDS, Draw(0).generator), Draw(1)
    kinds = torch.arange(of_02.KINDS).repeat(of_02.FEW)
    few, asked = (script.pictures(kinds, draw.generator), kinds), of_02.some(script, draw, 300)

    def found(pixels):  # how well each sign fits where it fits best
        return F.conv2d(pixels[:, None], script.signs[:, None] - script.signs.mean()).flatten(2).amax(dim=2)

    assert 0.05 < of_02.named(ModuleProbe(Says(lambda x: x.flatten(1))), few, asked) < 0.3
    assert of_02.named(ModuleProbe(Says(found)), few, asked) > 0.8


# 03: languages, 04: messages, 08: texts, 10: programs --------------------------------------------------------


def right_03(scores):
    network = Says(lambda words: scores(F.one_hot(words % 4, 4).float()))
    return of_03.right(ModuleProbe(network), *of_03.Languages(Draw(0)).words(Draw(1), 50), after=4)


def right_04(says):
    return of_04.right(ModuleProbe(Says(says)), *of_04.messages(Draw(0), 50, marker=8))


def scores_08(model):
    return of_08.scores(ModuleProbe(model), of_08.windows(torch.arange(990) % 9, 32)[0], Draw(0))


def accepted_10(says, target=12):
    return of_10.accepted(ModuleProbe(Says(says)), torch.full((10,), target))


GUESSES = nn.Embedding(9, 9)
REFUSED += [
    (right_03, lambda x: 1 + x + 0.02 * torch.rand_like(x), RANDOM),
    (right_03, lambda x: x.flip(1), of_03.READS_AHEAD),
    (right_03, lambda x: x.mean(1, keepdim=True).expand_as(x), of_03.READS_AHEAD),
    (right_04, lambda rows: 1 + 0.02 * torch.rand(len(rows), 9), RANDOM),
    (scores_08, nn.Sequential(GUESSES, nn.Dropout(0.5)), RANDOM),
    (accepted_10, lambda tokens: tokens.float(), WRONG_SHAPE),
]


class Looks(nn.Module):
    """A rule in code that looks for the marker of the notebook."""

    def __init__(self):
        super().__init__()
        self.head = nn.Embedding.from_pretrained(torch.eye(9), freeze=False)

    def forward(self, rows):
        return self.head(rows[torch.arange(len(rows)), (rows[:, :-1] == 8).int().argmax(dim=1) + 1])


JUDGED += [("04", table("04", "train").all_checks, Looks(), [of_04.NOT_LEARNED])]


def test_random_answers_are_accepted_one_time_in_twenty_and_one_answer_is_counted_once():
    assert 0.02 < accepted_10(lambda x: torch.zeros(*x.shape, 10))[0] < 0.12
    assert accepted_10(lambda x: 50.0 * F.one_hot(torch.full_like(x, 4), 10).float()) == (1.0, 1.0)


# 11: digits in pieces ----------------------------------------------------------------------------------------


class Answer(nn.Module):
    """Logits by a linear layer from what a function makes of patches and positions."""

    def __init__(self, seen, width, *more):
        super().__init__()
        self.seen, self.layers = seen, nn.Sequential(nn.Linear(width, 10), *more)

    def forward(self, patches, positions):
        return self.layers(self.seen(patches, positions))


def in_table(patches, positions):
    empty = torch.zeros(len(patches), 16, 25)
    return empty.scatter(1, positions[:, :, None].expand(-1, -1, 25), patches).flatten(1)


def bag(patches, positions):
    return patches.square().mean(dim=1)


@functools.cache
def pieces(split, count):
    return of_11.digits_in_pieces(split, count, secret=Draw(0).integers(0, 2**31, 1).item())


def known(*digits, fewest=1, numbers=10):
    """A network that is right for these digits, if so many of their patches are given at least; else always 0."""

    def key(patches):
        return patches[:, :10].sum(dim=1)

    def says(patches, positions):
        seen = pieces(*digits)
        nearest = torch.cdist(key(patches), key(seen.patches)).argmin(dim=1)
        labels = seen.labels[nearest] * (patches.shape[1] >= fewest)
        return F.one_hot(labels, 10) + 0.01 * positions[:, :1]

    return Says(says, numbers)


CHECKS_11 = [of_11.classifies("upper", 1, above=0.6, given=10)]
JUDGED += [
    ("11", CHECKS_11, Answer(bag, 25), [of_11.WITHOUT_POSITIONS]),
    ("11", CHECKS_11, Answer(in_table, 400, nn.Dropout(0.5)), [RANDOM]),
    ("11", CHECKS_11, Answer(in_table, 400, nn.Dropout(0.5)).eval(), [of_11.NOT_LEARNED]),
    ("11", CHECKS_11, Answer(in_table, 400, nn.BatchNorm1d(10)), [of_11.NEIGHBOURS]),
    ("11", CHECKS_11, Answer(lambda *given: bag(*given)[:, None], 25), [WRONG_SHAPE]),
    ("11", CHECKS_11, Answer(lambda patches, _: torch.zeros(len(patches), 25), 25), [of_11.NOT_LEARNED]),
    ("11", CHECKS_11, known("train", 4000), [of_11.MEMORISED]),
    ("11", CHECKS_11, known("test", 1000, fewest=16), [of_11.ONLY_COMPLETE]),
    ("11", CHECKS_11, known("test", 1000, numbers=0), [ELSEWHERE]),
    ("11", CHECKS_11, known("test", 1000), []),
]

# 12: boards --------------------------------------------------------------------------------------------------


def by_rule(boards, distances=(1, 1, 1, 1)):
    """The rule, with nothing learned."""
    up, down, left, right = distances
    padded, (H, W) = F.pad(boards, (2, 2, 2, 2)), boards.shape[1:]
    steps = ((2 + up, 2), (2 - down, 2), (2, 2 + left), (2, 2 - right))
    lamps = sum(padded[:, row : row + H, column : column + W] for row, column in steps)
    return torch.stack([lamps == 0, lamps > 0], dim=-1).float()


def searched(numbers):
    """The distances that explain the training boards: found by a search, without any training."""

    def train(boards, lit):
        every = [tuple(1 + int(bit) for bit in f"{number:04b}") for number in range(16)]
        found = max(every, key=lambda one: (by_rule(boards, one).argmax(-1) == lit).float().mean())
        return Says(lambda x: by_rule(x, found), numbers)

    return train


UNTRAINED = [
    (by_rule, of_12.OWN_RULE),
    (lambda boards: by_rule(boards).squeeze(0), WRONG_SHAPE),
    (lambda boards: 0 * by_rule(boards), of_12.NOT_LEARNED),
    (lambda boards: 1 + by_rule(boards) + 0.02 * torch.rand(1), RANDOM),
]
JUDGED += [("12", [check], Says(says, 300), [why]) for says, why in UNTRAINED for check in table("12", "train").scored]
JUDGED += [("12", [of_12.lights("any", 1, above=0.93)], searched(numbers), [ELSEWHERE]) for numbers in (0, 1)]

# 13: fabrics -------------------------------------------------------------------------------------------------


def zeros(images, masked):
    return 0 * images


def spectrum(images):
    """The energies of all waves, which no training has found."""
    return torch.fft.rfft2(images)[:, :, :4].abs().flatten(1)


def autoencoder(reconstructs=zeros, features=spectrum, numbers=600):
    def says(images, masked=None):
        return features(images) if masked is None else reconstructs(images, masked)

    return Says(says, numbers)


def errors_13(network, count=9):
    images = of_13.Fabrics(Draw(0)).images(Draw(1), 500)[0]
    return of_13.errors(ModuleProbe(network), images[:count], 8, Draw(2))


ERROR, ACCURACY = [of_13.reconstructs("any", 1, below=0.5)], [of_13.probed("any", 1, above=0.7)]
TOGETHER_13 = "result depends on the other images"
RECONSTRUCTIONS = [
    (zeros, "not learned"),
    (lambda images, masked: images, "hidden pixels are used"),
    (lambda images, masked: 1 + 0.02 * torch.rand(images.shape), RANDOM),
    (lambda images, masked: zeros(images, masked).squeeze(0), WRONG_SHAPE),
    (lambda images, masked: zeros(images, masked) + masked.sum(), TOGETHER_13),
]
FEATURES = [
    (lambda images: images.flatten(1), "not learned"),
    (lambda images: spectrum(images) - spectrum(images).mean(), TOGETHER_13),
    (lambda images: images, WRONG_SHAPE),
    (lambda images: images.flatten(1).repeat(1, 2), WRONG_SHAPE),
    (lambda images: 1 + spectrum(images) + 0.02 * torch.rand(1), RANDOM),
]
JUDGED += [("13", ERROR, autoencoder(reconstructs), [why]) for reconstructs, why in RECONSTRUCTIONS]
JUDGED += [("13", ACCURACY, autoencoder(features=features), [why]) for features, why in FEATURES]
JUDGED += [("13", ACCURACY, autoencoder(numbers=numbers), [ELSEWHERE]) for numbers in (0, 1)]  # a spectrum alone
REFUSED += [(errors_13, autoencoder(lambda images, masked: dropped(torch.ones_like(images)) - 1), RANDOM)]

# 14: outlines ------------------------------------------------------------------------------------------------

IMAGES, LABELS = of_14.drawings(12, 64, seeded(0))
MANY = of_14.drawings(60, 64, seeded(0))[1]


def labelled_14(network):
    return of_14.labelled(ModuleProbe(network), IMAGES)


def unet():
    torch.manual_seed(0)
    return cells("14", "setup", "ddim_step", "drawings", "train")["UNet"](1, 3, [4, 8])


class Squeezed(nn.Conv2d):
    """Loses the axis of a single image."""

    def forward(self, images):
        return super().forward(images).squeeze(0)


REFUSED += [
    (labelled_14, unet(), of_14.TOGETHER),  # in training mode
    (labelled_14, nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.Dropout()), RANDOM),
    (labelled_14, Squeezed(1, 3, 3, padding=1), WRONG_SHAPE),
]


def blocks(true, side):
    """The most frequent label of each block of pixels."""
    found = true.unfold(1, side, side).unfold(2, side, side).flatten(3).mode(dim=3).values
    return found.repeat_interleave(side, dim=1).repeat_interleave(side, dim=2)


@pytest.mark.parametrize(
    ("found", "near", "everywhere"),
    [
        (blocks(MANY, 4), of_14.COARSE, of_14.KINDS),
        (MANY.clamp(max=1), of_14.COARSE, of_14.KINDS),
        (torch.where(of_14.near_borders(MANY), MANY, 0), of_14.NO_CONTEXT, of_14.NO_CONTEXT),
        (torch.zeros_like(MANY), of_14.NOT_LEARNED, of_14.NOT_LEARNED),
        (MANY.roll(1, dims=0), of_14.NOT_LEARNED, of_14.NOT_LEARNED),
    ],
)
def test_labels_that_are_not_good_enough_are_told_why(found, near, everywhere):
    assert (of_14._why(found, MANY, borders=True), of_14._why(found, MANY)) == (near, everywhere)


def test_labels_in_blocks_of_four_pixels_are_not_good_enough_near_the_borders():
    best, near = blocks(MANY, 4), of_14.near_borders(MANY)
    assert mean_iou(best, MANY, 3) > 0.8 and of_14.inside_iou(best[near], MANY[near]) < 0.7


def test_what_is_inside_has_to_be_learned_not_computed(monkeypatch):
    answers = {}  # what an image's labels are, found without a training

    def known(count, size, random, drawings=of_14.drawings):
        images, labels = drawings(60, 64, random)
        answers.update({image.sum().item(): label for image, label in zip(images, labels, strict=True)})
        return images, labels

    def looked_up(images):
        return F.one_hot(torch.stack([answers[image.sum().item()] for image in images]), 3).movedim(-1, 1).float()

    monkeypatch.setattr(of_14, "drawings", known)
    task = table("14", "train")
    assert told(lambda images, labels: Says(looked_up), task.scored[:1], task) == [ELSEWHERE]


# 15: recordings ----------------------------------------------------------------------------------------------

RECORDINGS = of_15.Code(seeded(0)).recordings(12)
OTHERS = torch.randn(48, 8, generator=seeded(1))


class Shifted(nn.Module):
    """One convolution whose outputs see so many later frames."""

    def __init__(self, ahead, norm=None):
        super().__init__()
        self.conv, self.ahead, self.norm = nn.Conv1d(8, 7, ahead + 1), ahead, norm or nn.Identity()

    def forward(self, frames):
        return self.norm(self.conv(F.pad(frames.transpose(1, 2), (0, self.ahead)))).transpose(1, 2)


def transcribed_15(network):
    return of_15.transcribed(ModuleProbe(network), RECORDINGS[0], OTHERS)


def errors_15(says):
    return of_15.errors(ModuleProbe(Says(says)), RECORDINGS, OTHERS)


REFUSED += [
    (transcribed_15, Shifted(of_15.AHEAD + 1), of_15.TOO_LATE),
    (transcribed_15, nn.Sequential(Shifted(3), nn.Linear(7, 8), Shifted(2)), of_15.TOO_LATE),
    (transcribed_15, Shifted(2, nn.BatchNorm1d(7)), of_15.TOGETHER),
    (transcribed_15, nn.Sequential(nn.Linear(8, 7), nn.Dropout()), RANDOM),
    (errors_15, lambda frames: torch.tensor([9.0, *6 * [0.0]]).expand(*frames.shape[:2], 7), of_15.ONLY_BLANKS),
]


def test_what_the_vectors_are_has_to_be_learned_not_computed(monkeypatch):
    vectors = []

    class Known(of_15.Code):
        def __init__(self, generator):
            super().__init__(generator)
            vectors[:] = [self.vectors]

    def computed(frames):
        near = F.avg_pool1d(F.pad((frames @ vectors[0].T / 2.5).transpose(1, 2), (1, 1)), 3, 1).transpose(1, 2)
        return torch.cat([torch.full_like(near[..., :1], 1.2), near], dim=2)

    monkeypatch.setattr(of_15, "Code", Known)
    task = table("15", "train")
    assert told(lambda *_: Says(computed), task.scored[:1], task) == [ELSEWHERE]


# 16: the road ------------------------------------------------------------------------------------------------


def chosen_16(last):
    states = of_16.Road(of_16.road_shape(seeded(0))).start(40, seeded(1))
    return of_16.chosen(ModuleProbe(nn.Sequential(nn.Linear(4, 3), last)), states)


def the_expert_itself(states, actions, shape):
    return Says(lambda states: F.one_hot(of_16.Road(shape).expert(states), 3).float())


REFUSED += [(chosen_16, nn.Softmax(dim=0), of_16.TOGETHER), (chosen_16, nn.Dropout(), RANDOM)]
JUDGED += [("16", table("16", "train").scored[:1], the_expert_itself, [ELSEWHERE])]

# 17: machines ------------------------------------------------------------------------------------------------


class Machine(nn.Module):
    def __init__(self, hidden=4, visible=16):
        super().__init__()
        shapes = ((hidden, visible), (visible,), (hidden,))
        self.W, self.b, self.c = (nn.Parameter(torch.zeros(*shape)) for shape in shapes)


def machine_17(module):
    return of_17.machine(ModuleProbe(module))


REFUSED += [(machine_17, module, OTHER_PARAMETERS) for module in (Machine(13), Machine(4, 15), nn.Linear(16, 4))]


def test_a_machine_without_weights_is_as_good_as_independent_pixels():
    bars, module = of_17.Bars(seeded(0)), Machine(12)
    images = bars.images(1000)
    module.b.data.copy_(images.mean(dim=0).logit())
    found = of_17.measured(bars, images, *machine_17(module))
    assert found.missing == pytest.approx(found.independent, abs=0.01)
    assert of_17.why(found) == of_17.NOT_JOINED


@pytest.mark.parametrize(
    ("missing", "hidden", "finding"),
    [(2.4, 4, of_17.FEW_UNITS), (float("inf"), 12, of_17.NOT_JOINED), (1.3, 12, of_17.NOT_LEARNED)],
)
def test_what_is_said_of_a_machine_that_misses_too_much(missing, hidden, finding):
    assert of_17.why(of_17.Trained(missing=missing, independent=4.0, hidden=hidden)) == finding


# all of them -------------------------------------------------------------------------------------------------


def name_of(finding):
    return getattr(finding, "misconception", finding)


@pytest.mark.parametrize(("measure", "network", "finding"), REFUSED)
def test_a_network_of_which_nothing_can_be_measured_is_told_why(measure, network, finding):
    assert fault(lambda: measure(network)) == name_of(finding)


@pytest.mark.parametrize(("number", "checks", "network", "findings"), JUDGED)
def test_a_network_that_has_not_learned_is_told_why(number, checks, network, findings):
    answer = (lambda *given: network) if isinstance(network, nn.Module) else network
    assert told(answer, checks, table(number, "train")) == [name_of(finding) for finding in findings]


def test_networks_without_such_a_fault_are_measured():
    torch.manual_seed(0)
    assert 0 <= accuracy_01(lambda x: x) <= 1 and 0 <= right_03(lambda x: x.cumsum(1)) <= 1
    assert errors_13(autoencoder(zeros), count=500)[0] > 0.9
    assert scores_08(GUESSES).shape == (30, 32, 9)
    assert labelled_14(unet().eval()).shape == LABELS.shape
    assert len(transcribed_15(Shifted(of_15.AHEAD))) == 12
