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
