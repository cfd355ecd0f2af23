"""What holds for every set: a seed gives the same on each call and machine; what cannot be is named."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.data.augmentations import Augmentation, random_crop
from course_lib.data.crops import PhotoCrops
from course_lib.data.digits import CleanDigits, handwritten_digits
from course_lib.data.icon_scenes import IconScenes
from course_lib.data.icons import icons
from course_lib.data.labelled import draw, gender_splits, minimal_pair_splits, tagging_splits
from course_lib.data.mazes import KINDS, Maze, carve, demonstrate, rollout
from course_lib.data.photographs import photograph
from course_lib.data.scenes import DigitScenes
from course_lib.data.sequences import first_symbol
from course_lib.data.signs import Script
from course_lib.data.tones import Tones
from course_lib.data.translation import combinations_of_split, translation_splits

ROUNDING = 3e-4  # by which other machines may differ
MAZE = carve(4, loops=3)
CORRIDOR = Maze(torch.zeros(1, 4, dtype=torch.bool))


def seeded(seed):
    return torch.Generator().manual_seed(seed)


IMAGES = {
    CleanDigits: {},
    PhotoCrops: {},
    DigitScenes: {"digits": (1, 3), "clutter": (0.2, 1.0), "size": 48},
    IconScenes: {"size": 32},
}


@pytest.mark.parametrize("source", IMAGES)
def test_images_are_the_same_on_every_call_and_in_a_longer_batch(source):
    settings = {"split": "train"} | IMAGES[source]
    first, again, longer = (source(**settings).batch(count, 3) for count in (9, 9, 400))  # 400: drawn in parts
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert all(torch.equal(a, b[:9]) and len(b) == 400 for a, b in zip(first, longer, strict=True))
    for other in (source(**settings).batch(9, 4), source(**settings | {"split": "test"}).batch(9, 3)):
        assert all((a != b).any() for a, b in zip(first.pixels, other.pixels, strict=True))


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: first_symbol(9, 5, seed=seed),
        lambda seed: Tones().batch(5, seed),
        lambda seed: (carve(5, seed=seed).walls,),
        *(lambda seed, kind=kind: demonstrate(MAZE, kind, MAZE.pairs(6), length=15, seed=seed)[2:3] for kind in KINDS),
        lambda seed: (Script(3, seeded(seed)).signs,),
        lambda seed: (Script(3, seeded(0)).pictures(torch.arange(3), seeded(seed)),),
    ],
    ids=["sequences", "tones", "mazes", *KINDS, "scripts", "pictures of signs"],
)
def test_a_seed_gives_the_same_numbers_and_another_seed_others(make):
    state = torch.get_rng_state()
    first, again, other = (make(seed) for seed in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("make", [tagging_splits, minimal_pair_splits, gender_splits, translation_splits])
def test_the_seed_decides_and_test_sentences_do_not_depend_on_other_sizes(make):
    one = make(train=8, validation=8, test=16)
    assert one == make(train=8, validation=8, test=16)
    assert one.test == make(train=16, validation=0, test=16).test
    other = make(train=8, validation=8, test=16, seed=1)
    assert one.train != other.train and one.test != other.test
    assert [len(one.train), len(one.validation), len(one.test)] == [8, 8, 16]


# labels, and the mean of each quarter of each image and channel
MADE_BEFORE = [
    (
        lambda: CleanDigits(split="test", size=32).batch(3, 7),
        [1, 6, 8],
        [0.2537, 0.0384, 0.107, 0.4144, 0.2122, 0.2759, 0.2608, 0.3014, 0.2329, 0.1589, 0.2255, 0.2171],
    ),
    (
        lambda: PhotoCrops(split="test").batch(3, 7),
        [0, 9, 0],
        [0.4939, 0.6121, 0.5659, 0.4735, 0.4342, 0.4218, 0.4595, 0.4043, 0.7408, 0.6908, 0.4139, 0.7043],
    ),
    (
        lambda: DigitScenes(split="validation", digits=(1, 2), clutter=(0.2, 1.0)).batch(3, 7),
        [[5, 4], [0, 0], [5, 8]],
        [0.556, 0.4329, 0.4981, 0.4008, 0.2612, 0.294, 0.4722, 0.2904, 0.3759, 0.4938, 0.4762, 0.589],
    ),
    (
        lambda: DigitScenes(split="train", colour=True, size=48).batch(1, 7),
        [[3]],
        [0.6506, 0.5755, 0.5954, 0.6757, 0.4846, 0.4038, 0.4425, 0.5364, 0.4689, 0.4043, 0.4972, 0.534],
    ),
]


@pytest.mark.parametrize(("make", "labels", "expected"), MADE_BEFORE)
def test_images_are_the_same_on_every_machine(make, labels, expected):
    made = make()
    assert made.labels.tolist() == labels
    quarters = F.adaptive_avg_pool2d(made.pixels, 2).flatten()
    torch.testing.assert_close(quarters, torch.tensor(expected), atol=ROUNDING, rtol=0)


@pytest.mark.parametrize("source", [PhotoCrops, DigitScenes])
@pytest.mark.parametrize(("size", "colour"), [(32, False), (48, True), (64, False)])
def test_images_come_in_sizes_grey_and_coloured(source, size, colour):
    pixels = source(split="validation", size=size, colour=colour).batch(20, 0).pixels
    assert pixels.shape == (20, 3 if colour else 1, size, size)
    assert pixels.min() >= 0 and pixels.max() <= 1 and pixels.std() > 0.1


@pytest.mark.parametrize("read", [lambda: photograph("grass"), lambda: handwritten_digits("test").pixels])
def test_what_was_read_may_be_changed_without_harm_to_the_next(read):
    read().zero_()
    assert read().mean() > 0.1


IMAGE = torch.rand(1, 3, 8, 8)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: random_crop(IMAGE, seeded(0), area=(0.5, 1.5)), "0 < low <= high <= 1"),
        (lambda: random_crop(IMAGE, seeded(0), aspect=(2.0, 1.0)), "aspect 0 < low <= high"),
        (lambda: Augmentation(flip=1.5), "flip must be from 0 \\(off\\) to 1, got 1.5"),
        (lambda: Augmentation(crop=1.0), "crop must be from 0 \\(off\\) to 0.99"),
        (lambda: Augmentation(rotation=-1.0), "rotation must be from 0 \\(off\\) to 180"),
        (lambda: photograph("moon"), "no photograph 'moon'.*astronaut"),
        (lambda: photograph("grass", size=0), "1 pixel or more"),
        (lambda: CleanDigits(split="dev"), "split must be one of train, validation, test"),
        (lambda: CleanDigits(split="train", size=4), "8 pixels or more"),
        (lambda: CleanDigits(split="train", classes=(3, 3)), "different digits"),
        (lambda: CleanDigits(split="train", classes=(10,)), "different digits from 0 to 9"),
        (lambda: CleanDigits(split="train", scale=(0.9, 0.5)), "0 < low <= high <= 1"),
        (lambda: CleanDigits(split="train", rotation=-1.0), "from 0 to 180 degrees"),
        (lambda: CleanDigits(split="train", shift=-0.1), "slant and shift must be 0 or more"),
        (lambda: CleanDigits(split="train").batch(0, 0), "1 image or more"),
        (lambda: PhotoCrops(split="dev"), "split must be one of"),
        (lambda: PhotoCrops(split="train", size=4), "8 pixels or more"),
        (lambda: PhotoCrops(split="train", size=96), "needs 86 pixels of a photograph, and a tile has 60"),
        (lambda: PhotoCrops(split="train", zoom=(1.5, 1.0)), "0 < low <= high"),
        (lambda: PhotoCrops(split="train", brightness=1.0), "brightness must be from 0 to below 1"),
        (lambda: PhotoCrops(split="train", contrast=-0.1), "contrast must be from 0 to below 1"),
        (lambda: DigitScenes(split="dev"), "split must be one of"),
        (lambda: DigitScenes(split="train", size=200), "at most 192 pixels"),
        (lambda: DigitScenes(split="train", digits=(2, 1)), "1 <= fewest <= most, got \\(2, 1\\)"),
        (lambda: DigitScenes(split="train", digits=(0, 1)), "1 <= fewest"),
        (lambda: DigitScenes(split="train", clutter=1.5), "a number from 0 to 1"),
        (lambda: DigitScenes(split="train", clutter=(0.7, 0.2)), "low before high"),
        (lambda: DigitScenes(split="train", contrast=0.6), "from 0 to 0.5"),
        (lambda: DigitScenes(split="train", noise=-0.1), "noise must be 0 or more"),
        (lambda: icons("dev"), "'dev'"),
        (lambda: IconScenes(split="dev"), "split must be one of"),
        (lambda: IconScenes(split="train", size=8), "size must be from 16"),
        (lambda: IconScenes(split="train", things=(2, 1)), "things must be fewest and most"),
        (lambda: IconScenes(split="train", clutter=2.0), "clutter must be"),
        (lambda: IconScenes(split="train", scale=(0.9, 0.5)), "scale must be"),
        (lambda: IconScenes(split="train", categories=("birds",)), "categories must be among"),
        (lambda: IconScenes(split="train", names=("dragonfly of Mars",)), "names must be among"),
        (lambda: IconScenes(split="train", names=("rocket",), categories=("faces",)), "has no icon"),
        (lambda: first_symbol(0, 5), "count=0"),
        (lambda: first_symbol(3, 0), "length=0"),
        (lambda: first_symbol(3, 5, num_symbols=1), "num_symbols=1"),
        (lambda: first_symbol(3, 5, noise=1.5), "got 1.5"),
        (lambda: Tones(num_tones=(3, 2)), r"num_tones must be .* got \(3, 2\)"),
        (lambda: Tones(length=(7, 9)), r"length must be .* 8 <= least .* got \(7, 9\)"),
        (lambda: Tones(gap=(-1, 2)), r"got \(-1, 2\)"),
        (lambda: Tones(noise=-0.1), "got -0.1 and 0.3"),
        (lambda: Tones().batch(0, 0), "count=0"),
        (lambda: Tones().melody(["C", "H"]), r"C, D, E, .* got \['C', 'H'\]"),
        (lambda: Tones().melody([]), r"got \[\]"),
        (lambda: Maze(torch.ones(3, 3, dtype=torch.bool)), r"\(3, 3\) walls"),
        (lambda: Maze(torch.tensor([[False, False, True, False]])), "cell 2 cannot be reached"),
        (lambda: CORRIDOR.pairs(7), "no two cells are 7 steps apart; the most is 3"),
        (lambda: carve(1), "got 1"),
        (lambda: carve(2, loops=2), "loops must be 0 to 1, .* got 2"),
        (lambda: demonstrate(CORRIDOR, "thief", CORRIDOR.pairs(1), length=3), "expert, detour, wanderer, got 'thief'"),
        (lambda: rollout(CORRIDOR, print, CORRIDOR.pairs(1), length=0), "got 0"),
        (lambda: tagging_splits(language="german"), "'german'"),
        (lambda: tagging_splits(train=-1), "-1"),
        (lambda: gender_splits(seed=-2), "seed -2"),
        (lambda: minimal_pair_splits(kinds=()), r"got \(\)"),
        (lambda: minimal_pair_splits(kinds=("tense",)), "tense"),
        (lambda: minimal_pair_splits(kinds=("gender",), language="english"), "in english"),
        (lambda: draw([1, 2], 3, seed=0), "0 to 2 of 2 examples, got 3"),
        (lambda: translation_splits(train=-1), "negative size"),
        (lambda: translation_splits(seed=-1), "the seed must be 0 or more, got -1"),
        (lambda: translation_splits(max_clauses=0), "max_clauses must be 1 to 3, got 0"),
        (lambda: translation_splits(max_clauses=4), "max_clauses must be 1 to 3, got 4"),
        (lambda: combinations_of_split("dev"), "got 'dev'"),
    ],
)
def test_what_cannot_be_is_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()
