import numpy as np
import pytest
import torch

from course_lib.functional.metrics import bleu_by_length
from course_lib.functional.positions import sinusoidal_positions
from course_lib.viz import attention as figures
from course_lib.viz.style import GREY, PALETTE

SOURCE, TARGET = ["the", "red", "car", "."], ["la", "voiture", "rouge", "."]
GOLD = [(0, 0), (1, 2), (2, 1), (3, 3)]


def weights(rows=4, columns=4):
    return torch.full((rows, columns), 0.05) + 0.8 * torch.eye(rows, columns)


def test_alignment_map_puts_the_weights_words_and_gold_links_where_they_belong():
    fig = figures.alignment_map(weights(), SOURCE, TARGET, gold=GOLD)
    axes = fig.axes[0]
    np.testing.assert_allclose(axes.images[0].get_array(), weights())
    assert [label.get_text() for label in axes.get_xticklabels()] == SOURCE
    assert [label.get_text() for label in axes.get_yticklabels()] == TARGET
    rings = axes.lines[0].get_xydata()
    assert sorted(map(tuple, rings.astype(int).tolist())) == sorted(GOLD)  # x: source word, y: target word


def test_word_links_draws_every_link_and_the_crossing_ones_strong():
    fig = figures.word_links(SOURCE, TARGET, GOLD)
    drawn = {tuple(map(int, line.get_xdata())): line.get_color() for line in fig.axes[0].lines}
    assert drawn == {
        (0, 0): GREY,
        (1, 2): PALETTE["vermilion"],
        (2, 1): PALETTE["vermilion"],
        (3, 3): GREY,
    }


def test_bottleneck_diagram_draws_arrows_only_for_weights_that_count():
    ideal = np.zeros((4, 4))
    for i, j in GOLD:
        ideal[j, i] = 1.0
    fig = figures.bottleneck_diagram(SOURCE, TARGET, ideal)
    left, right = (sum("Arrow" in type(patch).__name__ for patch in axes.patches) for axes in fig.axes)
    assert (left, right) == (8, 4)  # four in and four out; one for each link


def test_scores_by_length_draws_the_mean_and_the_spread_of_the_seeds():
    reference = [["a", "b", "c", "d", "e"]] * 2
    perfect = bleu_by_length(reference, reference, [3, 9], [1, 5, 10])
    poor = bleu_by_length([["a", "b", "c", "d", "x"]] * 2, reference, [3, 9], [1, 5, 10])
    fig = figures.scores_by_length({"model": [perfect, poor]})
    axes = fig.axes[0]
    low, high = poor[0].bleu.score, 100.0
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [(low + high) / 2] * 2)
    band = axes.collections[0].get_paths()[0].get_extents()
    assert band.ymin == pytest.approx(low) and band.ymax == pytest.approx(high)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1-4\n(1)", "5-9\n(1)"]


def test_training_curves_draw_one_line_a_run_and_one_label_a_model():
    losses = [np.linspace(3, 1, 50), np.linspace(4, 1, 50)]
    clock = [np.linspace(0, 5, 50)] * 2
    fig = figures.training_curves({"a": losses}, {"a": clock})
    axes = fig.axes[0]
    assert len(axes.lines) == 2 and len(axes.get_legend().get_texts()) == 1
    assert axes.lines[0].get_ydata()[0] == pytest.approx(losses[0][:20].mean())
    assert axes.lines[0].get_xdata()[0] == pytest.approx(clock[0][19])


def test_saturation_curves_keep_the_three_measures_apart():
    fig = figures.saturation_curves([4, 16], {"raw": [4, 16]}, {"raw": [0.4, 0.7]}, {"raw": [0.3, 0.1]})
    assert [list(axes.lines[0].get_ydata()) for axes in fig.axes] == [[4, 16], [0.4, 0.7], [0.3, 0.1]]


def test_position_figure_shows_the_codes_and_their_cosine_similarity():
    codes = sinusoidal_positions(6, 8)
    fig = figures.position_figure(codes)
    np.testing.assert_allclose(fig.axes[0].images[0].get_array(), codes)
    similarity = torch.nn.functional.cosine_similarity(codes[:, None], codes[None], dim=-1)
    np.testing.assert_allclose(fig.axes[1].images[0].get_array(), similarity, atol=1e-6)


def test_similarity_by_distance_begins_each_curve_at_its_own_position():
    fig = figures.similarity_by_distance(sinusoidal_positions(12, 8), [0, 4])
    first, second = (line.get_ydata() for line in fig.axes[0].lines[:2])
    assert len(first) == 8 and first[0] == pytest.approx(1.0)
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_mixing_patterns_share_a_convolution_s_weights_along_diagonals():
    fig = figures.mixing_patterns(length=6, window=1)
    convolution, dense, attention, local = (axes.images[0].get_array() for axes in fig.axes)
    assert len(set(np.diagonal(convolution, 1).tolist())) == 1 and convolution.mask[0, 2]
    assert len(set(dense.ravel().tolist())) == 36
    np.testing.assert_allclose(attention.sum(axis=1), 1)
    np.testing.assert_allclose(local.sum(axis=1), 1)
    assert local[0, 2] == 0


def test_cost_curves_write_the_fitted_slope_into_the_legend():
    fig = figures.cost_curves([1, 2, 4], {"bytes": {"layer": [1, 4, 16]}}, {"bytes": {"layer": 2.04}})
    assert fig.axes[0].get_legend().get_texts()[0].get_text() == "layer: n^2.0"


def test_heads_figure_draws_means_and_single_seeds():
    fig = figures.heads_figure({"task": {1: [0.5, 0.7], 2: [1.0, 1.0]}})
    axes = fig.axes[0]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [60, 100])
    np.testing.assert_allclose(axes.lines[1].get_ydata(), [50, 70])


def test_head_maps_draw_one_panel_a_head():
    fig = figures.head_maps(torch.stack([weights(), weights() / 2]), SOURCE, ["first", "second"])
    np.testing.assert_allclose(fig.axes[1].images[0].get_array(), weights() / 2)
    assert fig.axes[0].get_title(loc="left") == "first" or fig.axes[0].get_title() == "first"


def test_titles_of_the_costs_are_broken_where_a_bracket_opens():
    quantities = ("operations (forward and backward)", "bytes kept for the backward pass")
    curves = {quantity: {"layer": [1, 4, 16]} for quantity in quantities}
    fig = figures.cost_curves([1, 2, 4], curves, dict.fromkeys(curves, {"layer": 2.0}))
    titles = [axes.get_title() or axes.get_title(loc="left") for axes in fig.axes]
    assert titles == ["operations\n(forward and backward)", "bytes kept for the\nbackward pass"]


@pytest.mark.parametrize("words", [4, 14])
def test_figures_of_sentences_fit_a_slide(words):
    sentence, links = [f"word{i}" for i in range(words)], [(i, i) for i in range(words)]
    for fig in (
        figures.word_links(sentence, sentence, links),
        figures.alignment_map(weights(words, words), sentence, sentence, gold=links),
    ):
        width, height = fig.get_size_inches() * fig.dpi
        assert width <= 1200 and height <= 620
