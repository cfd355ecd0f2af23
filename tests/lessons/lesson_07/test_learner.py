"""The small tasks of lesson 07: their labels belong to their tokens."""

import re
from collections import Counter

import pytest
import torch

from course_lib.data.translation import translation_splits
from course_lib.lessons.lesson_07 import learner
from course_lib.lessons.lesson_07.recipes.few_labels import NOT_SCORED, genders, tagged_sentences
from course_lib.lessons.lesson_07.recipes.pretraining import vocabulary


def test_an_answer_is_the_subject_of_the_verb_in_question():
    tokens, segments, _ = learner.answers(20).asked.inputs
    words = [vocabulary().id_to_token(i) for i in tokens[0].tolist()]
    first, last = learner.answers(20).asked.labels[0].tolist()
    verb = words.index(words[1], 2)
    assert segments[0, first] == 1 and first <= last < verb
    assert all(words[i] not in (".", "[SEP]", words[1]) for i in range(first, last + 1))


@pytest.mark.parametrize("name", ["tags", "answers"])
def test_each_row_has_its_labels(name):
    task = learner.TASKS[name](10)
    tokens, segments, valid = task.given.inputs
    assert len(tokens) == len(segments) == len(valid) == len(task.given.labels) == 10
    inputs, labels = task.given.batches(3, size=4)[1]
    assert len(labels) == 4 and all(len(part) == 4 for part in inputs)


def test_special_tokens_and_padding_have_no_tag():
    (tokens, _, valid), labels = learner.tags(10).given
    scored = labels != NOT_SCORED
    assert not scored[~valid].any() and not scored[tokens <= vocabulary().mask_id].any() and scored.any()


def test_the_gender_of_17_subjects_is_asked_and_one_of_them_in_nearly_a_quarter():
    subjects = Counter(example.kind for example in genders().test)
    assert len(subjects) == 17 and 0.22 < subjects.most_common(1)[0][1] / subjects.total() < 0.25


def test_a_span_counts_only_if_both_ends_are_right():
    asked = learner.answers(10).asked

    def choose(found):
        return lambda *_: found

    class Model(torch.nn.Module):
        def forward(self, tokens, segments, valid):
            return torch.zeros(len(tokens), 2, tokens.shape[1])

    assert learner.accuracy(Model(), asked, choose(asked.labels)) == 100
    assert learner.accuracy(Model(), asked, choose(asked.labels + torch.tensor([0, 1]))) == 0


def test_about_one_english_training_sentence_in_a_hundred_has_a_noun_of_another_number_before_the_verb():
    """As the outcome of the test of agreement says: noun, preposition, noun of the other number, verb."""
    tag = {
        word: tag for s in tagged_sentences(language="english").train for word, tag in zip(s.words, s.tags, strict=True)
    }
    known = [text.english for text in translation_splits(train=4_000, validation=0, test=0).train]
    tags = (" ".join(tag.get(word, "X") for word in words) for words in known)
    between = re.compile(r"NOUN\|(\w)\S* ADP\S* (?:DET\S* |ADJ\S* )*NOUN\|(?!\1)\w\S* (?:ADV\S* )*(?:AUX|VERB)\S*")
    assert 0.5 < 100 * sum(between.search(text) is not None for text in tags) / len(known) < 2
