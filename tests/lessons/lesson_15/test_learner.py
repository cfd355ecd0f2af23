"""The data and scores that lesson 15 gives to the learner's models."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.ctc import collapse
from course_lib.functional.language import corrupt_spans
from course_lib.lessons.lesson_15 import learner
from course_lib.lessons.lesson_15.recipes import speech, text_to_text
from course_lib.training.vision import seed_of_step


@pytest.mark.parametrize(
    ("dropped", "spans"), [([], []), ([True], [(0, 1)]), ([False, True, True, False, True], [(1, 3), (4, 5)])]
)
def test_spans_are_runs(dropped, spans):
    assert learner.spans_of(dropped) == spans


def by_spans(ids, spans, first_sentinel):
    """The learner's span corruption by that of the library."""
    dropped = torch.zeros(len(ids), dtype=torch.bool)
    for first, end in spans:
        dropped[first:end] = True
    pair = corrupt_spans(torch.tensor(ids), dropped, first_sentinel=first_sentinel)
    return pair.source.tolist(), pair.target.tolist()


def test_text_with_gaps_names_source_target_and_what_the_model_generates():
    text = learner.with_gaps(by_spans, count=1)
    lines = [line for line in text.splitlines() if line[0] != " "]
    assert [line.split()[0] for line in lines] == ["source", "target", "T5"]
    assert text.count("<extra_7>") >= 2


def test_the_answers_of_a_model_without_a_cache_are_those_of_the_recipe():
    model, asked = load_trained("text_to_text").model, learner.unseen("who", 8)
    sources = [one.source for one in asked]
    assert learner.generated(model, sources) == text_to_text.written(model, sources)
    correct = [learner.in_words(one.target) for one in asked]
    right = sum(a == b for a, b in zip(learner.generated(model, sources), correct, strict=True))
    assert learner.exact(model, "who", 8) == pytest.approx(100 * right / 8)
    assert "who:" in learner.answering("who")(model)


def test_examples_are_padded_tokens_that_can_be_chosen_by_row():
    data = learner.examples("negate", 50)
    assert len({len(part) for part in data}) == 1 and len(data.source) == 50
    source, source_valid, target, target_valid = (part[torch.tensor([3, 7])] for part in data)
    assert source.shape == source_valid.shape and target_valid.any(dim=1).all()


def test_melodies_of_the_page_are_no_test_melodies_and_each_step_has_new_ones():
    assert seed_of_step(learner.SEED, 5000) < min(speech.HELD_OUT.values())
    first, second = (learner.melodies(4, step).frames for step in (0, 1))
    assert first.shape != second.shape or not torch.equal(first, second)


def test_transcripts_are_those_of_greedy_decoding():
    model, melodies = load_trained("tones").model, learner.new_melodies(20)
    assert learner.transcripts(model, melodies, collapse) == speech.labels_of(model, melodies)
    assert learner.errors(model, melodies) < 5
    assert learner.hearing()(model).axes
