import pytest
import torch

from course_lib.lessons.lesson_05 import neighbours


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


def result(task, heads, seed, test, rate=0.1):
    return neighbours.ReaderResult(task=task, num_heads=heads, learning_rate=rate, seed=seed, validation=0.5, test=test)


def test_accuracies_are_sorted_by_task_heads_and_seed():
    results = [result("a", 2, 1, 0.4), result("a", 1, 0, 0.1), result("b", 1, 0, 0.2), result("a", 2, 0, 0.3)]
    assert neighbours.accuracy_by_heads(results) == {"a": {1: [0.1], 2: [0.3, 0.4]}, "b": {1: [0.2]}}


def test_results_of_several_learning_rates_are_not_mixed():
    with pytest.raises(ValueError, match=r"mix the learning rates \[0.1, 0.2\]"):
        neighbours.accuracy_by_heads([result("a", 1, 0, 0.1), result("a", 1, 0, 0.1, rate=0.2)])


def test_an_unknown_task_is_refused():
    with pytest.raises(KeyError):
        neighbours.train_reader(task="right only", num_heads=1, learning_rate=0.1, seed=0, steps=1)
