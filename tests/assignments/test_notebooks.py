"""The cells of the notebooks make what the grader makes, and print what their texts say."""

import re

import pytest
import torch
import torch.nn.functional as F

from course_lib.data.digits import CleanDigits
from course_lib.data.signs import Script as Signs
from course_lib.functional.scaling import fit_scaling_law
from course_lib.functional.segmentation import mean_iou
from course_lib.layers.patches import patchify
from course_lib.lessons.lesson_01 import assignment as of_01
from course_lib.lessons.lesson_02 import assignment as of_02
from course_lib.lessons.lesson_03 import assignment as of_03
from course_lib.lessons.lesson_04 import assignment as of_04
from course_lib.lessons.lesson_07 import assignment as of_07
from course_lib.lessons.lesson_08 import assignment as of_08
from course_lib.lessons.lesson_09 import assignment as of_09
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
from tests.assignments.delivered import cells, printed, read


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def same(these, those):
    torch.testing.assert_close(these, those, atol=0, rtol=0)


# what the notebook and the grader make -----------------------------------------------------------------------


def test_01_the_script_of_the_notebook_is_that_of_the_grader():
    theirs, ours = cells("01", "setup", "script")["Script"](seed=0), of_01.Script(Draw(0))
    for count, new in ((400, False), (of_01.PER_CHARACTER * of_01.NEW, True)):
        pixels, labels = theirs.images(count, new=new)
        same((pixels, labels), ours.images(count, new=new))
        assert pixels.shape == (count, 16, 16) and 0.1 < pixels.mean() < 0.5
        classes = of_01.NEW if new else of_01.KNOWN
        assert labels.bincount().tolist() == [count // classes] * classes


def test_01_no_two_characters_have_the_same_shapes():
    characters, known = of_01.Script(Draw(0)).characters, of_01.KNOWN
    assert len(characters.unique(dim=0)) == known + of_01.NEW == len(characters)
    assert {*characters[known:].unique().tolist()} <= {*characters[:known].unique().tolist()}


def test_02_the_script_of_the_notebook_is_that_of_the_grader():
    theirs, ours = cells("02", "setup", "script")["Script"](seed=0), Signs(of_02.KINDS, Draw(0).generator)
    same(theirs.signs, ours.signs)
    for pixels, labels in (theirs.pictures(500), of_02.some(ours, Draw(1), 500)):
        assert pixels.shape == (500, 16, 16) and labels.unique().tolist() == list(range(of_02.KINDS))
        assert 0.03 < pixels.mean() < 0.3 and 0.2 < pixels.std() < 0.6


def test_03_the_languages_of_the_notebook_are_those_of_the_grader():
    theirs, ours = cells("03", "setup", "languages")["Languages"](0), of_03.Languages(Draw(0))
    for made, drawn in ((theirs, (4_000, 15)), (ours, (Draw(1), 4_000))):
        words, spoken = made.words(*drawn)
        assert words.shape == (4_000, 15) and spoken.unique().tolist() == [0, 1, 2, 3]
        likely = made.probs[spoken[:, None], words[:, :-1], words[:, 1:]].log().mean()
        other = made.probs[(spoken[:, None] + 1) % 4, words[:, :-1], words[:, 1:]].log().mean()
        assert likely > other + 1  # nats a letter


@pytest.mark.parametrize("marker", [8, 3])
def test_04_the_rows_of_the_notebook_are_those_of_the_grader(marker):
    theirs = cells("04", "setup", "messages")["messages"](2_000, 30, seed=0, marker=marker)
    for rows, answers in (theirs, of_04.messages(Draw(0), 2_000, marker=marker)):
        place = (rows == marker).int().argmax(dim=1)
        assert ((rows == marker).sum(dim=1) == 1).all() and place.max() == 14 and place.min() == 0
        same(rows[torch.arange(2_000), place + 1], answers)
        assert answers.unique().tolist() == [symbol for symbol in range(9) if symbol != marker]


def test_07_the_cells_of_the_notebook_are_what_the_grader_has():
    names = cells("07", "setup", "guess", "language")
    E, tokens = torch.randn(7, 3), torch.randint(7, (2, 5))
    same(names["guess"](tokens, E), of_07.guess(tokens, E))
    for speak in (names["language"](seed=3), of_07.language(Draw(3).generator)):
        tokens, tags = speak(5000, 8)
        pairs = torch.zeros(60, 4).index_put((tokens, tags), torch.ones(()), accumulate=True)
        follows = torch.zeros(4, 4).index_put((tags[:, :-1], tags[:, 1:]), torch.ones(()), accumulate=True)
        assert sorted((pairs > 0).sum(dim=1).tolist()) == 50 * [1] + 10 * [2]
        torch.testing.assert_close(follows.amax(dim=1) / follows.sum(dim=1), torch.full((4,), 0.925), atol=0.02, rtol=0)


def test_08_the_language_of_the_notebook_has_as_many_bits_as_that_of_the_grader():
    theirs, ours = cells("08", "setup", "language")["Language"](seed=1), of_08.Language(Draw(1))
    for text in (theirs.text(20_000), ours.text(Draw(2), 20_000)):
        assert text.shape == (20_000,) and set(text.tolist()) == set(range(9))
        counts = torch.zeros(81, 9).index_put((text[:-2] * 9 + text[1:-1], text[2:]), torch.ones(()), accumulate=True)
        before = counts.sum(1, keepdim=True)
        bits = -(counts * (counts / before.clamp(min=1)).clamp(min=1e-9).log2()).sum() / before.sum()
        assert 1.0 < bits < 1.4  # "that one needs about 1.2"


def test_09_the_family_of_the_notebook_is_that_of_the_grader():
    names, (N, D) = cells("09", "setup", "family"), of_09.large()
    torch.testing.assert_close(names["large"](), (N, D))
    torch.testing.assert_close(names["Family"](seed=3).train(N, D), of_09.Family(Draw(3)).train(N, D))


def test_10_the_program_of_the_notebook_is_that_of_the_grader():
    names = cells("10", "setup", "program", "look-at-some")
    shown = names["targets"]
    prompts, answers = torch.randint(10, (200,)), torch.randint(10, (200, 3))
    same(names["accepts"](shown, prompts, answers), of_10.accepts(shown, prompts, answers))
    assert of_10.LOWEST <= shown.min() and shown.max() <= of_10.HIGHEST
    assert "accepted" in printed("10", "look-at-some", names)


def test_11_a_secret_is_one_numbering_of_the_positions_for_all_splits():
    numbers = Draw(3)(16).argsort()
    for split in ("train", "test"):
        pixels, labels = CleanDigits(split=split, size=20, scale=(0.6, 0.85), rotation=15.0, shift=0.1).batch(20, 3)
        found = of_11.digits_in_pieces(split, 20, secret=3)
        in_order = found.patches[torch.arange(20)[:, None], found.positions.argsort(dim=1)]
        same(in_order[:, numbers], patchify(pixels, 5))
        same(found.labels, labels)
        same(found.first(10).patches, found.patches[:, :10])
        assert (found.positions[0] != found.positions[1]).any()


@pytest.mark.parametrize("distances", [(1, 1, 1, 1), (2, 1, 1, 2), (1, 2, 1, 1)])
def test_12_the_boards_of_the_notebook_follow_the_rule_of_the_grader(distances):
    theirs = cells("12", "setup", "boards")["make_boards"](40, seed=3, distances=distances)
    (boards, lit), (up, down, left, right) = of_12.make_boards(Draw(3), 40, distances=distances), distances
    same(theirs, (boards, lit))
    for row, column in ((0, 0), (3, 4), (11, 7)):
        lamps = [(row + up, column), (row - down, column), (row, column + left), (row, column - right)]
        seen = sum(boards[:, i, j] for i, j in lamps if 0 <= i < 12 and 0 <= j < 12)
        same(lit[:, row, column], (seen > 0).long())
    assert 0.15 < boards.float().mean() < 0.25


def test_13_the_fabrics_of_the_notebook_are_those_of_the_grader():
    names = cells("13", "setup", "fabrics", "train")
    theirs, ours = names["Fabrics"](seed=1), of_13.Fabrics(Draw(2))
    for waves in (theirs.waves, ours.waves):
        assert waves.shape == (6, 2, 2) and torch.equal(waves[:, 0], waves[:, 1].roll(-1, dims=0))
        assert len(waves[:, 0].unique(dim=0)) == 6 and waves[..., 0].unique().tolist() == [1, 2]
    theirs.waves, theirs.random = ours.waves, Draw(3).generator
    images, labels = ours.images(Draw(3), 4_000)
    same(theirs.images(4_000), (images, labels))
    assert images.shape == (4_000, 16, 16)
    assert abs(images.mean()) < 0.01 and abs(images.var() - 1 - 1 / 16) < 0.03  # as the notebook says
    masked = Draw(0)(3, 16) > 0
    same(names["hidden_pixels"](masked), of_13.hidden_pixels(masked))


def test_14_the_images_of_the_notebook_are_those_of_the_grader():
    names = cells("14", "setup", "ddim_step", "drawings", "train")
    images, labels = names["drawings"](40, 96, seed=3)
    same((images, labels), of_14.drawings(40, 96, seeded(3)))
    assert images.shape == (40, 1, 96, 96) and labels.unique().tolist() == [0, 1, 2]
    same(names["near_borders"](labels), of_14.near_borders(labels))
    other = labels.roll(1, dims=0)
    assert names["mean_iou"](other, labels, 3) == pytest.approx(mean_iou(other, labels, 3))


def test_15_the_recordings_of_the_notebook_are_those_of_the_grader():
    theirs, ours = cells("15", "setup", "occupation", "code", "train")["Code"](seed=3), of_15.Code(seeded(3))
    same(theirs.vectors, ours.vectors)
    for T in (48, 96):
        same(theirs.recordings(40, T), ours.recordings(40, T))
    frames, symbols, lengths = ours.recordings(200, 96)
    assert frames.shape == (200, 96, 8) and symbols.shape == (200, 12) and {4, 12} <= set(lengths.tolist())
    assert torch.equal((symbols > 0).sum(dim=1), lengths) and symbols.max() == 6


def test_16_the_road_of_the_notebook_is_that_of_the_grader():
    names, shape = cells("16", "setup", "road"), of_16.road_shape(seeded(0))
    theirs, ours = names["Road"](shape), of_16.Road(shape)
    starts = theirs.start(20, seeded(1))
    same(starts, ours.start(20, seeded(1)))
    expert = names["Expert"](theirs, 20 * 30)
    for push in (0.0, 0.5):
        run = names["drive"](theirs, expert.ask, starts, 15, push, seeded(2))
        same(run, of_16.drive(ours, ours.expert, starts, 15, push, seeded(2)))
    with pytest.raises(ValueError, match="no further question"):
        expert.ask(starts)


def test_17_the_bars_of_the_notebook_are_those_of_the_grader():
    theirs, ours = cells("17", "setup", "dispatch", "bars", "train")["Bars"](3), of_17.Bars(seeded(3))
    same((theirs.order, theirs.probs), (ours.order, ours.probs))
    images = ours.images(50)
    same(theirs.images(50), images)
    torch.testing.assert_close(theirs.log_prob(images), ours.log_prob(images))
    torch.testing.assert_close(ours.log_prob(of_17.states(16)).exp().sum(), torch.tensor(1.0))


# what a cell prints, and what the text says of it ------------------------------------------------------------


def test_14_the_cells_below_the_step_and_the_images_show_what_the_text_says():
    names, answer = cells("14", "setup", "ddim_step", "drawings", "train"), read("14").sources["in-your-own-words"]
    shown = [float(line.split()[-1]) for line in printed("14", "try-ddim", names).splitlines()]
    assert len(shown) == 5 and max(shown[:2]) < 0.01 and 0.2 < shown[3] < 0.3 and shown[4] > 0.98
    assert [number for number in shown if f"{number:.3f}" not in answer] == []
    assert "images (300, 1, 64, 64) labels (300, 64, 64)" in printed("14", "look-at-one", names)


def test_15_the_cells_below_the_fractions_and_the_recordings_show_what_the_text_says():
    names = cells("15", "setup", "occupation", "code", "train")
    lines = printed("15", "try-occupation", names).splitlines()
    blanks = [float(re.search(r"blank +([\d.]+)", line)[1]) for line in lines]
    assert len(blanks) == 12 and blanks[::4] == [33.3] * 3 and blanks[3] < blanks[7] < blanks[11]
    answer = read("15").sources["in-your-own-words"]
    assert [number for number in blanks[3::4] if f"{number:.1f}" not in answer] == []
    assert len(printed("15", "look-at-some", names).splitlines()) == 2


@pytest.mark.parametrize("name", ["stitch", "implicit_q"])
def test_16_the_table_leads_to_the_goal_where_no_trajectory_of_the_data_does(name):
    names = cells("16", "setup", "stitch", "implicit_q", "try-room", "road")
    lines = printed("16", f"try-{name}", names).splitlines()[:5]
    found = [pair for line in lines for pair in re.findall(r"(\d+) \((\d+|-)\)", line)]
    assert [int(steps) for steps, _ in found] == [8 - row - column for row in range(5) for column in range(5)]
    unknown = sum(best == "-" for _, best in found)
    assert unknown == 10 and f"From {unknown} of the 24 squares" in read("16").sources["in-your-own-words"]


def test_16_the_cell_below_the_road_shows_what_the_text_says_of_the_expert():
    names = cells("16", "setup", "stitch", "implicit_q", "try-room", "road")
    last = printed("16", "look-at-one", names).splitlines()[-1]
    assert "600 steps: 0.99 stay" in last and "The expert itself keeps 99 %" in read("16").sources["train-how"]


def test_17_the_cells_below_the_experts_and_the_bars_show_what_the_texts_say():
    names, texts = cells("17", "setup", "dispatch", "bars", "train"), read("17").sources
    numbers = re.findall(r"factor (\S+):\s+(\S+) % of first and\s+(\S+) %", printed("17", "try-dispatch", names))
    assert [factor for factor, *_ in numbers] == ["1.00", "1.25", "2.00"] * 2
    shown = {number for _, *both in numbers for number in both} - {"0.0"}
    assert [number for number in shown if f"{number} %" not in texts["in-your-own-words"]] == []
    missing = float(printed("17", "look-at-some", names).split()[-1])
    assert 3.9 <= missing <= 4.3 and "independent pixels miss 3.9 to 4.3 nats" in texts["train-how"]


# how hard the tasks are --------------------------------------------------------------------------------------


def bought(plan, seed):
    """Runs of a plan, and the mean relative error of the library's law for the larger ones."""
    assert of_09.planned(plan) == [] and of_09.NOISE == 0.0025
    family, (N, D) = of_09.Family(Draw(seed)), of_09.large()
    law = fit_scaling_law(*plan.T, family.train(*plan.T), delta=5e-3)
    return float((law(N, D) / family.train(N, D) - 1).abs().mean())


def by_ratio(plan, seed, study):
    family, (N, D) = of_09.Family(Draw(seed)), of_09.large()
    said = study(of_09.BUDGET, *plan.T, family.train(*plan.T), N, D)
    return float((said / family.train(N, D) - 1).abs().mean())


def test_09_a_plan_that_varies_size_and_text_foretells_what_a_fixed_ratio_does_not():
    study = cells("09", "setup", "study")["study"]
    none, (N, D) = torch.zeros(0).double(), of_09.large()
    plan = study(of_09.BUDGET, none, none, none, N, D)
    assert 6 * plan.prod(dim=1).sum() > 0.5 * of_09.BUDGET
    sizes = torch.logspace(4, 5.6, 12).double()
    noise = torch.linspace(-0.01, 0.01, 12).double().exp()  # so that the two can be told apart at all
    order = torch.randperm(12, generator=seeded(0))
    fixed = torch.stack([sizes, 30 * sizes * noise[order]], dim=1)
    assert max(bought(plan, seed) for seed in range(4)) < 0.016
    assert max(by_ratio(fixed, seed, study) for seed in range(4)) > 0.02


def test_12_the_secret_distances_are_never_those_of_the_notebook():
    drawn = {of_12.secret_distances(Draw(seed)) for seed in range(200)}
    assert {distances.count(2) for distances in drawn} == {1, 2} and len(drawn) == 10


def best_without(part, distances, side=of_12.SIDE):
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


@pytest.mark.parametrize(
    "distances", [(2, 1, 1, 1), (1, 2, 1, 1), (2, 2, 1, 1), (1, 1, 2, 2), (2, 1, 1, 2), (1, 2, 2, 1)]
)
def test_12_the_thresholds_tell_apart_networks_without_shift_without_mask_and_with_both(distances):
    assert best_without("shift", distances) < 0.93 - 0.02
    assert 0.93 + 0.01 < best_without("mask", distances) < 0.985 - 0.02
    assert best_without("mask", distances, side=20) < 0.985 - 0.01


def test_12_each_position_is_in_one_region():
    assert (torch.stack(of_12.regions(12, (1, 2, 1, 1))).sum(dim=0) == 1).all()
    edge, border, inside = of_12.regions(12, (1, 1, 1, 1))
    assert [int(region.sum()) for region in (edge, border, inside)] == [44, 64, 36]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_13_neither_pixels_nor_an_untrained_network_reach_the_threshold_of_the_probe(seed):
    torch.manual_seed(seed)
    model = ModuleProbe(cells("13", "setup", "fabrics", "train")["Autoencoder"]().eval())
    draw, fabrics = Draw(seed), of_13.Fabrics(Draw(seed))
    (known, labels), (new, targets) = fabrics.images(draw, of_13.LABELLED), fabrics.images(draw, 1_000)
    assert of_13.probe_accuracy(known.flatten(1), labels, new.flatten(1), targets) < 0.4
    known, new = of_13.features(model, known), of_13.features(model, new)
    assert of_13.probe_accuracy(known, labels, new, targets) < 0.75


def test_13_no_wave_alone_names_the_fabric():
    waves = of_13.Fabrics(Draw(0)).waves.flatten(0, 1)
    assert (waves[:, None] == waves).all(-1).sum(dim=1).tolist() == [2] * 12


def test_14_pixels_near_a_border_are_two_pixels_or_less_away_from_it():
    labels = F.pad(torch.full((1, 1, 6), 2), (6, 0))
    assert of_14.near_borders(labels)[0, 0].nonzero().flatten().tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize("seed", range(3))
def test_16_the_expert_stays_on_the_road_and_a_car_that_goes_straight_on_does_not(seed):
    random = seeded(seed)
    road = of_16.Road(of_16.road_shape(random))
    assert of_16.drive(road, road.expert, road.start(100, random), 600, 0.5, random)[2].float().mean() > 0.95
    straight = of_16.drive(road, lambda states: torch.ones(len(states)).long(), road.start(100, random), 60)[2]
    assert not straight.any()
