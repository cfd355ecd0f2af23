import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from course_lib.data.scenes import DigitScenes
from course_lib.functional import segmentation


def scipy_components(labels, connectivity):
    """Areas of each label apart, numbered together by their first pixels."""
    structure = np.ones((3, 3)) if connectivity == 8 else None
    result, firsts = np.zeros(labels.shape, dtype=int), []
    for label in np.unique(labels[labels != 0]):
        areas, count = ndimage.label(labels == label, structure)
        firsts += [(int(np.flatnonzero(areas == i)[0]), areas == i) for i in range(1, count + 1)]
    for number, (_, area) in enumerate(sorted(firsts, key=lambda pair: pair[0]), start=1):
        result[area] = number
    return result


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**16), st.integers(1, 12), st.integers(1, 12), st.sampled_from([4, 8]), st.integers(2, 4))
def test_components_equal_scipy_s(seed, height, width, connectivity, classes):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (3, height, width), generator=generator)
    ours = segmentation.connected_components(labels, connectivity=connectivity)
    assert np.array_equal(ours.numpy(), np.stack([scipy_components(each, connectivity) for each in labels.numpy()]))


def test_a_long_snake_is_one_component_and_corners_do_not_connect():
    snake = torch.zeros(1, 41, 41, dtype=torch.long)
    snake[:, ::2] = snake[:, 1::4, -1] = snake[:, 3::4, 0] = 1  # there and back, row by row
    assert torch.equal(segmentation.connected_components(snake), snake)
    assert segmentation.connected_components(torch.tensor([[[0, 3], [3, 0]]])).tolist() == [[[0, 1], [2, 0]]]


def test_a_box_ends_just_behind_its_mask():
    masks = torch.zeros(3, 5, 6, dtype=torch.bool)
    masks[0, 1:3, 2:6] = masks[1, 4, 0] = masks[2] = True
    assert segmentation.mask_boxes(masks).tolist() == [[2, 1, 6, 3], [0, 4, 1, 5], [0, 0, 6, 5]]
    assert segmentation.mask_boxes(masks[:0]).shape == (0, 4)


def squares(*places, size=2, classes=None, scores=None):
    """Things of size x size pixels with their upper left corners at these places of an 8 x 8 image."""
    masks = torch.zeros(len(places), 8, 8, dtype=torch.bool)
    for mask, (row, column) in zip(masks, places, strict=True):
        mask[row : row + size, column : column + size] = True
    return segmentation.Instances(
        masks=masks,
        classes=torch.tensor(classes or [1] * len(places), dtype=torch.long),
        scores=torch.tensor(scores or [1.0] * len(places), dtype=torch.float32),
    )


def test_overlap_is_intersection_over_union():
    overlap = segmentation.mask_iou(squares((0, 0), (4, 4)).masks, squares((0, 1), (4, 4), (6, 0)).masks)
    assert overlap.tolist() == [pytest.approx([1 / 3, 0, 0]), pytest.approx([0, 1, 0])]
    assert segmentation.mask_iou(torch.zeros(1, 2, 2).bool(), torch.zeros(1, 2, 2).bool()).item() == 0


def test_a_second_guess_at_the_same_thing_is_wrong_and_the_surer_one_comes_first():
    true = squares((0, 0), (4, 4))
    guesses = squares((0, 0), (0, 0), (4, 4), scores=[0.5, 0.9, 0.1])
    assert segmentation.match_instances(guesses, true).tolist() == [False, True, True]


def test_a_guess_must_name_the_class_and_overlap_enough():
    true = squares((0, 0), size=4, classes=[3])
    assert not segmentation.match_instances(squares((0, 0), size=4, classes=[4]), true).any()
    half = squares((0, 0), size=3, classes=[3])  # 9 of 16 pixels
    assert (
        segmentation.match_instances(half, true, threshold=9 / 16).all()
        and not segmentation.match_instances(half, true, threshold=0.57).any()
    )
    assert not segmentation.match_instances(half, squares()).any() and segmentation.match_instances(
        squares(), true
    ).shape == (0,)


def test_a_vote_of_the_pixels_names_each_area_and_small_ones_are_left_out():
    logits = torch.zeros(2, 4, 5, 6)
    logits[:, 0] = 1  # background
    logits[0, 2, 0, :3], logits[0, 3, 0, 3] = 3, 9  # three pixels for class 2 beside one that is surer of class 3
    logits[0, 1, 3:, 4:] = 5
    logits[0, 3, 4, 0] = 5  # a single pixel
    first, second = segmentation.find_instances(logits, smallest=2)
    assert len(second) == 0 and first.classes.tolist() == [2, 1]
    assert segmentation.mask_boxes(first.masks).tolist() == [[0, 0, 4, 1], [4, 3, 6, 5]]
    shares = logits[0].softmax(dim=0)
    expected = [shares[2, 0, :4].mean().item(), shares[1, 3, 4].item()]
    assert first.scores.tolist() == pytest.approx(expected)
    assert segmentation.find_instances(logits)[0].classes.tolist() == [2, 1, 3]


def test_things_that_touch_are_one_thing():
    logits = torch.zeros(1, 3, 4, 4)
    logits[0, 1, :, :2], logits[0, 2, :, 2:] = 5, 4
    (found,) = segmentation.find_instances(logits)
    assert len(found) == 1 and found.classes.tolist() == [1]


def test_the_true_things_of_scenes_have_their_masks_classes_and_boxes():
    scenes = DigitScenes(split="test", size=48, digits=(1, 3), clutter=0.0).batch(20, seed=0)
    for index, image in enumerate(segmentation.true_instances(scenes.instances, scenes.semantic, 11)):
        seen = scenes.boxes[index, :, 2] > 0
        assert image.classes.tolist() == (scenes.labels[index, seen] + 1).tolist()
        assert segmentation.mask_boxes(image.masks).tolist() == scenes.boxes[index, seen].tolist()
        for mask, class_id in zip(image.masks, image.classes, strict=True):
            assert (scenes.semantic[index][mask] == class_id).all()


def brute_force_area(right, count):
    """Of right and wrong guesses, from the surest down: each step of recall at the best precision from there on."""
    points = [(sum(right[:n]) / count, sum(right[:n]) / n) for n in range(1, len(right) + 1)]
    area, before = 0.0, 0.0
    for recall, _ in points:
        if recall > before:
            area += (recall - before) * max(p for r, p in points if r >= recall)
            before = recall
    return area


@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), max_size=12), st.integers(0, 5))
def test_average_precision_equals_the_area_by_brute_force(right, missed):
    count = sum(right) + missed
    places = [(0, 0)] if count else []
    true = [squares(*places) for _ in range(count)]
    hit = iter(range(count))
    predicted = [squares() for _ in range(count)]
    wrong = []
    for rank, is_right in enumerate(right):  # one guess per image, so that ranks run over images
        score = [1 - rank / 100]
        if is_right:
            predicted[next(hit)] = squares((0, 0), scores=score)
        else:
            wrong.append(squares((4, 4), scores=score))
    areas = segmentation.average_precision(predicted + wrong, true + [squares()] * len(wrong))
    assert areas == ({1: pytest.approx(brute_force_area(right, count))} if count else {})


def test_classes_have_their_own_areas_and_one_that_is_true_nowhere_has_none():
    true = [squares((0, 0), (4, 4), classes=[2, 5])]
    guess = squares((0, 0), (4, 4), (0, 4), classes=[2, 7, 2], scores=[0.6, 0.9, 0.8])
    assert segmentation.average_precision([guess], true) == {2: pytest.approx(1 / 2), 5: 0}
    assert segmentation.average_precision([], []) == {}
