from dataclasses import replace

import pytest
import torch

from course_lib.lessons.lesson_07.recipes import next_sentence
from course_lib.lessons.lesson_07.recipes import parallel as task
from course_lib.lessons.lesson_07.recipes.pretraining import build, encode
from course_lib.models.bert import BERTConfig
from course_lib.models.bert_tasks import BERTForPreTraining


@pytest.fixture
def texts(monkeypatch):
    """Three short documents in place of the prose."""
    found = [["A cat sat.", "It slept."], ["The sum is even.", "So is it.", "The proof is short."], ["One.", "Two."]]
    monkeypatch.setattr(next_sentence, "documents", lambda split: found)
    next_sentence.consecutive.cache_clear()
    yield found
    next_sentence.consecutive.cache_clear()


def test_pairs_are_consecutive_and_others_come_from_another_document(texts):
    pairs = next_sentence.consecutive("train")
    assert len(pairs) == 4 and pairs[1:3] == [("The sum is even.", "So is it."), ("So is it.", "The proof is short.")]
    for seed in range(5):
        for (first, _), (same, other) in zip(pairs, next_sentence.others(pairs, "train", seed=seed), strict=True):
            own = next(text for text in texts if first in text)
            assert same == first and other not in own
    assert next_sentence.others(pairs, "train", seed=0) == next_sentence.others(pairs, "train", seed=0)


def test_a_row_has_both_sentences_each_with_its_segment_and_fits():
    row = next_sentence.rows([("The sum of the values is even.", "So it is."), ("word " * 90, "word " * 90)])
    tokens, segments, valid = row.values()
    start, end = next_sentence.tokenizer().encode("", start=True, end=True)
    assert tokens.shape[1] <= next_sentence.LENGTH and (tokens[:, 0] == start).all()
    ends = (tokens == end).nonzero()
    assert ends[:, 0].tolist() == [0, 0, 1, 1]
    first, last = ends[0, 1], ends[1, 1]
    assert (segments[0, : first + 1] == 0).all() and (segments[0, first + 1 : last + 1] == 1).all()
    assert valid[0].sum() == last + 1


def test_rare_common_words_count_more_and_the_order_of_the_sentences_does_not():
    overlap = next_sentence.overlap
    rare, frequent = ("The eigenvalues are real.", "Sort eigenvalues."), ("The values are real.", "The end.")
    assert overlap(rare) > overlap(frequent) > overlap(("Nothing here.", "Something else.")) == 0
    assert overlap(rare) == pytest.approx(overlap(rare[::-1]))


def test_a_model_that_always_answers_the_same_has_half_of_the_pairs_right(monkeypatch):
    pairs = next_sentence.consecutive("validation")[:30]
    monkeypatch.setattr(next_sentence, "consecutive", lambda split: pairs)
    config = BERTConfig(vocab_size=3000, dim=8, depth=1, num_heads=2, mlp_dim=8, context_length=next_sentence.LENGTH)
    model = BERTForPreTraining(config).eval()
    for answer, fraction in ((next_sentence.NEXT, 1.0), (next_sentence.OTHER, 0.0)):
        with torch.no_grad():
            model.next_sentence.weight.zero_()
            model.next_sentence.bias.copy_(torch.eye(2)[answer])
        assert (
            next_sentence.called_next(model, pairs) == fraction and next_sentence.accuracy(model, "validation") == 0.5
        )


TINY = task.ParallelSettings(dim=16, depth=1, num_heads=2, sentences=60, steps=3, batch_size=4)
ROWS = [(("the", "law", "signs"), ("la", "loi")), ((), ("la", "loi", "signe"))]


@pytest.fixture(scope="module")
def model():
    return build(replace(TINY, seed=5)).eval()


def test_both_variants_read_as_many_sentences_of_each_language_equally_often():
    read = {name: task.rows_to_read(replace(each, sentences=600)) for name, each in task.VARIANTS.items()}
    for rows in read.values():
        assert [sum(bool(row[side]) for row in rows) for side in (0, 1)] == [300, 300]
    passes = [each.steps * each.batch_size / len(read[name]) for name, each in task.VARIANTS.items()]
    assert passes[0] == pytest.approx(passes[1], rel=1e-3)


def test_half_of_the_rows_are_pairs_and_no_other_sentence_is_read_in_both_languages():
    pairs = task.translation_splits(train=60, validation=task.PAIRS, test=task.PAIRS, max_clauses=1).train
    translated = {pair.english: pair.french for pair in pairs}
    rows = task.rows_to_read(replace(TINY, parallel=True))
    both = [row for row in rows if all(row)]
    assert 2 * len(both) == len(rows) and all(translated[english] == french for english, french in both)
    for single in (task.rows_to_read(TINY), [row for row in rows if not all(row)]):
        english, french = ({row[side] for row in single if row[side]} for side in (0, 1))
        assert not {translated[words] for words in english} & french


def test_french_is_segment_one_and_what_a_row_lacks_is_padding():
    english, french = task.with_gaps(ROWS, seed=0)
    assert english.valid.sum(dim=1).tolist() == [5, 0] and french.valid.sum(dim=1).tolist() == [4, 5]
    assert (english.segments == 0).all() and (french.segments == 1).all()
    assert len(task.with_gaps(ROWS[1:], seed=0)) == 1


def test_positions_of_the_translation_count_from_zero(model):
    words = "la loi".split()
    ids = torch.tensor([encode(words).ids])
    beside, alone = task.with_gaps([(words, words)], seed=0), task.with_gaps([((), words)], seed=0)
    embedded = []
    hook = model.bert.norm.register_forward_hook(lambda module, inputs, output: embedded.append(output))
    task.features(model, [side._replace(tokens=ids) for side in beside])
    hook.remove()
    torch.testing.assert_close(embedded[1], model.bert.embed(ids, torch.ones(1, 4).long()))
    assert alone[0].segments.unique().tolist() == [1]


def test_hidden_words_are_scored_in_both_languages(model):
    sides = task.with_gaps(ROWS, seed=3)
    logits = model.logits(task.features(model, sides))
    original = torch.cat([side.tokens.masked_scatter(side.masked, side.hidden) for side in sides], dim=1)
    masked = torch.cat([side.masked for side in sides], dim=1)
    expected = torch.nn.functional.cross_entropy(logits[masked], original[masked])
    torch.testing.assert_close(task.gap_loss(model, sides), expected)


def test_a_gap_is_filled_alone_and_beside_a_translation(model):
    alone, beside = (task.fill_beside(model, "the [MASK] signs .", french) for french in ("", "la loi signe ."))
    assert len(alone) == len(beside) == 3 and alone[0][1] != beside[0][1]


def test_a_translation_is_found_where_its_vector_is_the_nearest(model, monkeypatch):
    pairs, vectors = task.held_out("validation")[:6], torch.eye(6)
    for french, share in ((vectors, 1), (vectors.roll(1, dims=0), 0)):
        told = iter([vectors, french])
        monkeypatch.setattr(task, "vectors", lambda model, sentences, language, told=told: next(told))
        assert task.translations_found(model, pairs) == share
