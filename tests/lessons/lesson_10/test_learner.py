"""The learner's models are opened, sampled and measured like the library's."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.generation.stepwise import log_probs
from course_lib.lessons.lesson_08.tasks import TASKS as OF_LESSON_08
from course_lib.lessons.lesson_10 import learner, recipes, results
from course_lib.lessons.lesson_10.tasks import TASKS
from course_lib.training import preference
from course_lib.training.preference import PPOConfig

SOLUTION = {name: task.module or task.reference for name, task in TASKS.items()}


@pytest.fixture(scope="module")
def tuned():
    return learner.opened("demonstrated", OF_LESSON_08["gpt"].module)


@pytest.fixture(scope="module")
def answers(tuned):
    torch.manual_seed(0)
    return learner.sample(tuned, learner.held_out(20))


def test_her_model_becomes_the_library_s_and_both_find_answers_equally_probable(tuned, answers):
    ours = learner.library(tuned)
    assert learner.library(ours) is ours
    with torch.no_grad():
        mine = learner.log_probs(tuned, answers)
    torch.testing.assert_close(mine, log_probs(ours, answers.prompt, answers.tokens), atol=1e-4, rtol=1e-4)


def test_an_answer_ends_with_its_end_token_or_at_the_longest(answers):
    for row, valid in zip(answers.tokens.tolist(), answers.valid.tolist(), strict=True):
        length = sum(valid)
        assert valid == [True] * length + [False] * (len(valid) - length)
        assert learner.END not in row[: length - 1] and (row[length - 1] == learner.END or length == len(row))


def test_a_demonstration_is_printed_with_its_mask_and_its_end_token_is_scored():
    one = recipes.as_answers([("she", "will", "give", "books", ".")])
    mask = torch.cat([torch.zeros(2, dtype=torch.bool), one.valid[0]])
    words, bits = learner.tokens_and_mask(one.whole[0], mask).splitlines()
    assert words.split() == ["token", "she", "will", "give", "books", ".", "<end>", "<end>", "<end>"]
    assert bits.split() == ["mask", *"00111100"]
    assert [words.index("give"), words.index("<end>")] == [bits.index("1"), bits.rindex("1")]


def test_the_solutions_are_what_the_library_computes(tuned, answers):
    new = learner.log_probs(tuned, answers).detach()
    old, scores = new - 0.3 * torch.randn_like(new), torch.randn(len(new))
    valid = answers.valid
    torch.testing.assert_close(
        SOLUTION["clipped"](new[valid], old[valid], old[valid], 0.2),
        preference.clipped_objective(new, old, old, clip=0.2, valid=valid),
    )
    torch.testing.assert_close(
        SOLUTION["token_rewards"](scores, new, old, valid, 0.1),
        preference.penalised_rewards(scores, new, old, beta=0.1, valid=valid),
    )
    values = torch.nn.functional.pad(old, (0, 1))
    torch.testing.assert_close(
        SOLUTION["gae"](new, old, 0.9, 0.8), preference.advantages(new, values, discount=0.8, trace=0.9)
    )
    shown = recipes.as_answers([tuple("the rich farmer helps .".split()), tuple("he will help him .".split())])
    gpt = learner.library(tuned)
    mask = torch.nn.functional.pad(shown.valid, (shown.prompt.shape[1], 0))
    torch.testing.assert_close(
        SOLUTION["sft_loss"](gpt(shown.whole), shown.whole, mask), preference.demonstration_loss(gpt, shown)
    )
    assert PPOConfig().clip == 0.2


def test_the_reference_has_no_distance_from_itself_and_checks_are_fractions(tuned):
    reward = load_trained("kindness").model
    point = learner.measure(tuned, tuned, reward)
    assert abs(point["KL"]) < 1e-4 and 0.8 < point["grammatical"] < 0.95
    found = learner.checked(tuned, 100)
    assert found["both"] <= min(found["eight words"], found["grammatical"]) and found["different sentences"] > 0.5


def test_eight_words_are_counted_with_the_full_stop():
    texts = ("the rich farmer helps my good friend .", "the rich farmer helps my rich good friend .")
    eight, nine = (tuple(text.split()) for text in texts)
    assert learner.eight_words(recipes.as_answers([eight, nine])).tolist() == [True, False]


def test_kind_and_unkind_words_of_the_answer_are_marked_and_grammar_is_checked():
    painted = learner.painted("the good farmer helps a strange student .".split())
    assert painted.count("solid") == 1 and painted.count("dotted") == 1 and "✓" in painted
    assert "✗" in learner.painted("the farmer good good .".split())


def test_the_line_between_two_penalties():
    near, far = {"KL": 1.0, "true goal": 2.0}, {"KL": 3.0, "true goal": 6.0}
    assert results.between({"KL": 2.0}, near, far) == 4.0
