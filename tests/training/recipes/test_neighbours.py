import pytest
import torch

from course_lib.training.recipes import neighbours


class Oracle(neighbours.NeighbourReader):
    """Names the words at the given offsets, from the words themselves."""

    def __init__(self, offsets):
        super().__init__(300, 2, 1, offsets)
        self.offsets = offsets

    def forward(self, words):
        return [torch.nn.functional.one_hot(words.roll(-offset, dims=1), 300).float() for offset in self.offsets]


def test_a_reader_that_names_the_right_neighbours_scores_one():
    words = neighbours.sentences()[2][:50]
    assert neighbours.share_right(Oracle((-1, +1)), words, (-1, +1)) == 1.0
    assert neighbours.share_right(Oracle((-1, -1)), words, (-1, +1)) < 0.7


def test_training_is_reproducible_and_the_recipe_is_kept():
    settings = {"task": "both neighbours", "num_heads": 2, "learning_rate": 0.02, "seed": 1, "steps": 3}
    first, second = (neighbours.train_reader(**settings) for _ in range(2))
    assert first == second and first.num_heads == 2 and 0 <= first.test <= 1


def test_one_head_learns_to_find_one_neighbour():
    result = neighbours.train_reader(task="left only", num_heads=1, learning_rate=0.04, seed=0, steps=250)
    assert result.test > 0.9


def test_the_rate_is_chosen_on_validation_and_reported_on_test():
    def result(rate, seed, validation, test):
        return neighbours.ReaderResult(
            task="left only", num_heads=1, learning_rate=rate, seed=seed, validation=validation, test=test
        )

    results = [result(0.1, 1, 0.8, 0.2), result(0.1, 0, 0.8, 0.3), result(0.2, 0, 0.9, 0.1), result(0.2, 1, 0.6, 0.9)]
    assert neighbours.best_rate(results) == {"left only": {1: [0.3, 0.2]}}


def test_an_unknown_task_is_refused():
    with pytest.raises(KeyError):
        neighbours.train_reader(task="right only", num_heads=1, learning_rate=0.1, seed=0, steps=1)
