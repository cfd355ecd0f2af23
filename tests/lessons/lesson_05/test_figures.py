"""Lesson 05: the figures and results, and the reader of neighbours."""

import numpy as np
import pytest
import torch

from course_lib.lessons.lesson_05 import figures, neighbours, results


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_the_bottleneck_draws_arrows_only_for_weights_that_count():
    weights = np.eye(4)[[0, 2, 1, 3]]
    fig = figures.bottleneck("the red car .".split(), "la voiture rouge .".split(), weights)
    left, right = (sum("Arrow" in type(patch).__name__ for patch in axes.patches) for axes in fig.axes)
    assert (left, right) == (8, 4)  # four in and four out; one for each link


def test_the_mechanism_shows_the_numbers_of_one_query():
    keys, values = 2 * torch.eye(2), 4 * torch.eye(2)
    scores = torch.tensor([1.0, 0.0])
    fig = figures.mechanism(["one", "two"], torch.tensor([1.0, 0.0]), keys, scores, scores.softmax(dim=0), values)
    assert {"0.731", "0.269", "(2, 0)", "(2.92, 1.08)", "query q = (1, 0)"} <= set(texts(fig.axes[0]))


def test_the_query_meets_every_key_and_each_weight_its_value():
    keys, scores = torch.eye(4), torch.tensor([1.0, 0.0, 2.0, 1.0])
    axes = figures.mechanism(list("abcd"), keys[0], keys, scores, scores.softmax(dim=0), keys[:, :2]).axes[0]
    places = {sign: [text.get_position() for text in axes.texts if text.get_text() == sign] for sign in "abcd·×"}
    rows = [places[letter][0][1] for letter in "abcd"]
    assert all([y for _, y in places[sign]] == rows for sign in "·×")
    (upwards,) = (line for line in axes.lines if len({*line.get_xdata()}) < len(line.get_xdata()))  # from the query
    assert max(upwards.get_ydata()) == max(rows) and min(upwards.get_ydata()) < min(rows)
    assert {x for x, _ in places["·"]} == set(upwards.get_xdata())


def test_lengths_are_drawn_for_each_variant_and_the_prediction_stands_at_the_longest():
    fixed, attention = np.array([[80.0, 10.0], [90.0, 20.0]]), np.array([[99.0, 97.0], [97.0, 95.0]])
    axes = figures.lengths(["1 to 7", "20 to 30"], fixed, attention, [98, 96], predicted=40).axes[0]
    drawn = [line.get_ydata().tolist() for line in axes.lines]
    assert drawn == [[85.0, 15.0], [98.0, 96.0], [98, 96], [40]]
    assert axes.lines[-1].get_xdata().tolist() == [1] and "your prediction" in texts(axes)
    assert "your prediction" not in texts(figures.lengths(["a", "b"], fixed, attention, [98, 96]).axes[0])


def test_a_head_is_named_by_the_side_it_attends_to():
    left, right = torch.diag(torch.ones(3), -1), torch.diag(torch.ones(3), 1)
    fig = figures.heads("a b c d".split(), torch.stack([right, left]), {1: [13.0], 2: [0.4]})
    titles = [axes.get_title("left") for axes in fig.axes[1:3]]
    assert titles == ["Head 1: right", "Head 2: left"]


def test_the_cost_marks_where_the_terms_and_the_counted_lines_cross():
    curves = {"attention": [4, 16], "recurrent": [6, 12], "convolution": [3, 6], "local": [1, 2]}
    axes = figures.cost([2, 4], curves, d=2, crossing=3.0).axes[-1]
    assert [line.get_xdata()[0] for line in axes.lines[4:]] == [2, 3.0]
    assert [line.get_ydata().tolist() for line in axes.lines[:4]] == list(curves.values())
    assert len({line.get_color() for line in axes.lines[:4]}) == 4


def test_the_root_is_drawn_with_bands_and_a_row_for_each_kind_of_training():
    gradient = {True: [(0.5, 0.7, 1.0)] * 2, False: [(0.1, 1.0, 3.0), (1e-9, 1e-3, 9.0)]}
    matrix = {True: np.array([(0.1, 0.3, 0.2), (1, 1, 1)]), False: np.array([(2.0, 1.0, 3.0), (9, 8, 7)])}
    matrix = {divided: [*rows] for divided, rows in matrix.items()}
    bleu = {"divided": [98.0, 97.0], "not divided": [88.0]}
    left, middle, right = figures.root([4, 1024], gradient, matrix, bleu, 30).axes
    assert [line.get_ydata().tolist() for line in left.lines[:2]] == [[0.7, 0.7], [1.0, 1e-3]]
    assert [line.get_ydata().tolist() for line in middle.lines[:2]] == [[0.2, 1.0], [2.0, 8.0]]  # medians
    assert [line.get_xdata()[0] for line in right.lines] == [98.0, 88.0, 61]  # a low prediction stands at the edge


def test_the_largest_gradients_have_their_share_of_the_squares():
    assert results.share_of_largest(np.ones(40)) == pytest.approx(0.05)
    assert results.share_of_largest(np.array([3.0] + [1.0] * 19)) == pytest.approx(9 / 28)


def test_at_width_one_the_division_changes_no_gradient_and_at_16_it_makes_the_one_of_the_matrix_smaller():
    for measured in (results.query_gradients, results.gradient_at_matrix):
        assert np.array_equal(measured(1, divided=True), measured(1, divided=False))
    assert (results.gradient_at_matrix(16, divided=True) < results.gradient_at_matrix(16, divided=False) / 2).all()


class Oracle(neighbours.NeighbourReader):
    """Names the words at the given offsets, from the words themselves."""

    def __init__(self, offsets):
        super().__init__(300, 2, 1, offsets)
        self.offsets = offsets

    def forward(self, words):
        return [torch.nn.functional.one_hot(words.roll(-offset, dims=1), 300).float() for offset in self.offsets]


def test_a_reader_that_names_the_right_neighbours_scores_one():
    words = neighbours.sentences()[2][:50]
    assert neighbours.accuracy(Oracle((-1, +1)), words, (-1, +1)) == 1.0
    assert neighbours.accuracy(Oracle((-1, -1)), words, (-1, +1)) < 0.7


def test_training_is_reproducible():
    settings = {"task": "both neighbours", "num_heads": 2, "learning_rate": 0.02, "seed": 1, "steps": 3}
    first, second = (neighbours.train_reader(**settings) for _ in range(2))
    pairs = zip(first.model.parameters(), second.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs) and first.test == second.test


def test_one_head_learns_to_find_one_neighbour():
    result = neighbours.train_reader(task="left only", num_heads=1, learning_rate=0.04, seed=0, steps=250)
    assert result.test > 0.9


def test_where_the_heads_look_are_shares_for_each_word():
    model = neighbours.NeighbourReader(len(neighbours.vocabularies()[0]), 4, 2, (-1,))
    weights = neighbours.look(model, "the minister signs".split())
    assert weights.shape == (2, 3, 3)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 3))
