"""What lesson 10's labellers look at, what they do not, and what they are shown."""

import pytest
import torch

from course_lib.lessons.lesson_10 import recipes as task
from course_lib.models.gpt import GPT, GPTConfig

GOOD = tuple("the rich farmer helps a famous student .".split())
BAD = tuple("the strange farmer never helps a student .".split())
WORDS = tuple("the rich good farmer farmer helps .".split())


@pytest.fixture(scope="module")
def policy():
    torch.manual_seed(0)
    return GPT(GPTConfig(vocab_size=len(task.words()), context_length=16, dim=16, depth=1, num_heads=2)).eval()


def test_texts_are_prompts_with_answers_and_back_again():
    answers = task.as_answers([GOOD, BAD])
    assert task.texts_of(answers) == [GOOD, BAD]
    assert answers.prompt.shape == (2, 2) and answers.valid.sum(dim=1).tolist() == [len(GOOD) - 1, len(BAD) - 1]


def test_kindness_counts_words_of_the_answer_and_no_grammar():
    answers = task.as_answers([GOOD, BAD, WORDS])
    assert task.kindness(answers).tolist() == [2, 0, 2]  # never takes one away; prompts do not count
    assert task.grammatical(answers).tolist() == [True, True, False]
    assert not task.KIND & task.UNKIND and {*task.KIND, *task.UNKIND} <= {*task.words()}


def test_labellers_choose_the_kinder_answer_and_with_noise_now_and_then_the_other(policy):
    for noise, wrong in ((0.0, (0, 0)), (0.6, (0.2, 0.4))):
        pair = task.compared(policy, 300, noise, seed=1)
        gap = task.kindness(pair.chosen) - task.kindness(pair.rejected)
        assert len(gap) == 300 and (gap != 0).all() and torch.equal(pair.chosen.prompt, pair.rejected.prompt)
        assert wrong[0] <= (gap < 0).float().mean() <= wrong[1]


def test_variants_share_their_first_stages():
    assert len({task.start_of(settings) for settings in task.POLICIES.values()}) == 1
    assert task.start_of(task.SETTINGS) != task.start_of(task.replace(task.SETTINGS, seed=1))


def test_held_out_prompts_are_of_sentences_that_were_not_read():
    train = {*task.sentences()["train"]}
    assert not train & {*task.sentences()["test"]} and len(task.sentences()["validation"]) > 500
