"""The page with a learner's answers: as a plain file, and in two kernels."""

import re

import pytest

from tests.lessons.answered import alone, kernels, unsaid

DRIVER = """
torch.manual_seed(0)
names = torch.randint(1, 9, (64, 6))
valid = torch.arange(6) < torch.randint(2, 7, (64, 1))
labels = (names * valid == 3).any(dim=1).long()
losses = my_train(Recogniser(9, 2, 8, 32), [(names, valid, labels)] * 150, 0.01)
text = torch.arange(5000) % 7
pieces = text.view(5, -1).split(20, dim=1)
model = CharacterModel(7, 32)
my_train_text(model, [piece for piece in pieces for _ in range(3)], 0.01)
def draw(probs):
    return probs.argmax(dim=-1)
print(losses[0].item(), losses[-1].item(), my_generate(model, text[None, :4], 6, 0.5, draw)[0].tolist())
"""


def test_a_plain_file_of_the_solutions_trains_and_writes_without_the_course(tmp_path):
    solutions = "rnn recogniser train train_text generate"
    first, last, *written = alone(tmp_path, "03", solutions=solutions, cells="CharacterModel", driver=DRIVER, lines=130)
    assert float(first) == pytest.approx(0.69, abs=0.15) and float(last) < 0.1
    assert " ".join(written) == "[0, 1, 2, 3, 4, 5, 6, 0, 1, 2]"


def test_her_classes_open_the_trained_weights_and_train_in_a_second_kernel(tmp_path, monkeypatch):
    few = (("count=12", "count=1"), ("600 * 50", "5 * 50"))
    first, second = kernels(tmp_path, monkeypatch, "03", end='load_trained("rnn_characters")', shorter=few)
    both = "RNN Recogniser"
    assert not unsaid(first, "equal: True", passes=both, runs_on=both, opens="Recogniser")
    assert not unsaid(second, goes_on=both)
    assert float(re.search(r"first loss ([\d.]+)", second)[1]) == pytest.approx(2.48, abs=0.15)
    assert float(re.search(r"on one batch ([\d.]+)", second)[1]) < 0.1
