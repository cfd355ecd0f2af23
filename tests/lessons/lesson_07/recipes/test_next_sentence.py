import pytest
import torch

from course_lib.lessons.lesson_07.recipes import next_sentence as task
from course_lib.models.bert import BERTConfig
from course_lib.models.bert_tasks import BERTForPreTraining


@pytest.fixture
def texts(monkeypatch):
    """Three short documents in place of the prose."""
    found = [["A cat sat.", "It slept."], ["The sum is even.", "So is it.", "The proof is short."], ["One.", "Two."]]
    monkeypatch.setattr(task, "documents", lambda split: found)
    task.consecutive.cache_clear()
    yield found
    task.consecutive.cache_clear()


def test_pairs_are_consecutive_and_others_come_from_another_document(texts):
    pairs = task.consecutive("train")
    assert len(pairs) == 4 and pairs[1:3] == [("The sum is even.", "So is it."), ("So is it.", "The proof is short.")]
    for seed in range(5):
        for (first, _), (same, other) in zip(pairs, task.others(pairs, "train", seed=seed), strict=True):
            own = next(text for text in texts if first in text)
            assert same == first and other not in own
    assert task.others(pairs, "train", seed=0) == task.others(pairs, "train", seed=0)


def test_a_row_has_both_sentences_each_with_its_segment_and_fits():
    row = task.rows([("The sum of the values is even.", "So it is."), ("word " * 90, "word " * 90)])
    tokens, segments, valid = row.values()
    start, end = task.tokenizer().encode("", start=True, end=True)
    assert tokens.shape[1] <= task.LENGTH and (tokens[:, 0] == start).all()
    ends = (tokens == end).nonzero()
    assert ends[:, 0].tolist() == [0, 0, 1, 1]
    first, last = ends[0, 1], ends[1, 1]
    assert (segments[0, : first + 1] == 0).all() and (segments[0, first + 1 : last + 1] == 1).all()
    assert valid[0].sum() == last + 1


def test_rare_common_words_count_more_and_the_order_of_the_sentences_does_not():
    rare, frequent = ("The eigenvalues are real.", "Sort eigenvalues."), ("The values are real.", "The end.")
    assert task.overlap(rare) > task.overlap(frequent) > task.overlap(("Nothing here.", "Something else.")) == 0
    assert task.overlap(rare) == pytest.approx(task.overlap(rare[::-1]))


def test_a_model_that_always_answers_the_same_has_half_of_the_pairs_right(monkeypatch):
    pairs = task.consecutive("validation")[:30]
    monkeypatch.setattr(task, "consecutive", lambda split: pairs)
    config = BERTConfig(vocab_size=3000, dim=8, depth=1, num_heads=2, mlp_dim=8, context_length=task.LENGTH)
    model = BERTForPreTraining(config).eval()
    for answer, fraction in ((task.NEXT, 1.0), (task.OTHER, 0.0)):
        with torch.no_grad():
            model.next_sentence.weight.zero_()
            model.next_sentence.bias.copy_(torch.eye(2)[answer])
        assert task.called_next(model, pairs) == fraction and task.accuracy(model, "validation") == 0.5
