import pytest
import torch

from course_lib.classroom.widgets.votes import told_apart
from course_lib.data.checkpoints import load_trained
from course_lib.generation.stepwise import log_probs
from course_lib.lessons.lesson_08.tasks import TASKS as OF_LESSON_08
from course_lib.lessons.lesson_10 import learner, playground, recipes, results, taste
from course_lib.lessons.lesson_10.tasks import TASKS
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.training import preference
from course_lib.training.preference import PPOConfig
from tests.lessons.common import reached

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
    old, scores, valid = new - 0.3 * torch.randn_like(new), torch.randn(len(new)), answers.valid
    shown = recipes.as_answers([tuple("the rich farmer helps .".split()), tuple("he will help him .".split())])
    gpt, mask = learner.library(tuned), torch.nn.functional.pad(shown.valid, (shown.prompt.shape[1], 0))
    clipped = preference.clipped_objective(new, old, old, clip=0.2, valid=valid)
    paid = preference.penalised_rewards(scores, new, old, beta=0.1, valid=valid)
    gae = preference.advantages(new, torch.nn.functional.pad(old, (0, 1)), discount=0.8, trace=0.9)
    for found, expected in (
        (SOLUTION["clipped"](new[valid], old[valid], old[valid], 0.2), clipped),
        (SOLUTION["token_rewards"](scores, new, old, valid, 0.1), paid),
        (SOLUTION["gae"](new, old, 0.9, 0.8), gae),
        (SOLUTION["sft_loss"](gpt(shown.whole), shown.whole, mask), preference.demonstration_loss(gpt, shown)),
    ):
        torch.testing.assert_close(found, expected)
    assert PPOConfig().clip == 0.2


def test_the_reference_has_no_distance_from_itself_and_checks_are_fractions(tuned):
    reward = load_trained("kindness").model
    point = learner.measure(tuned, tuned, reward)
    assert abs(point["KL"]) < 1e-4 and 0.8 < point["grammatical"] < 0.95
    found = learner.checked(tuned, 100)
    assert found["both"] <= min(found["eight words"], found["grammatical"]) and found["different sentences"] > 0.5


def test_eight_words_are_counted_with_the_full_stop():
    texts = ("the rich farmer helps my good friend .", "the rich farmer helps my rich good friend .")
    answers = recipes.as_answers([tuple(text.split()) for text in texts])
    assert learner.eight_words(answers).tolist() == [True, False]


def test_kind_and_unkind_words_of_the_answer_are_marked_and_grammar_is_checked():
    painted = learner.painted("the good farmer helps a strange student .".split())
    assert painted.count("solid") == 1 and painted.count("dotted") == 1 and "✓" in painted
    assert "✗" in learner.painted("the farmer good good .".split())


def test_the_line_between_two_penalties():
    near, far = {"KL": 1.0, "true goal": 2.0}, {"KL": 3.0, "true goal": 6.0}
    assert results.between({"KL": 2.0}, near, far) == 4.0


GOOD = tuple("the rich farmer helps a famous student .".split())
BAD = tuple("the strange farmer never helps a student .".split())
WORDS = tuple("the rich good farmer farmer helps .".split())


@pytest.fixture(scope="module")
def policy():
    torch.manual_seed(0)
    return GPT(GPTConfig(vocab_size=len(recipes.words()), context_length=16, dim=16, depth=1, num_heads=2)).eval()


def test_texts_are_prompts_with_answers_and_back_again():
    answers = recipes.as_answers([GOOD, BAD])
    assert recipes.texts_of(answers) == [GOOD, BAD]
    assert answers.prompt.shape == (2, 2) and answers.valid.sum(dim=1).tolist() == [len(GOOD) - 1, len(BAD) - 1]


def test_kindness_counts_words_of_the_answer_and_no_grammar():
    answers = recipes.as_answers([GOOD, BAD, WORDS])
    assert recipes.kindness(answers).tolist() == [2, 0, 2]  # never takes one away; prompts do not count
    assert recipes.grammatical(answers).tolist() == [True, True, False]
    assert not recipes.KIND & recipes.UNKIND and {*recipes.KIND, *recipes.UNKIND} <= {*recipes.words()}


def test_labellers_choose_the_kinder_answer_and_with_noise_now_and_then_the_other(policy):
    for noise, wrong in ((0.0, (0, 0)), (0.6, (0.2, 0.4))):
        pair = recipes.compared(policy, 300, noise, seed=1)
        gap = recipes.kindness(pair.chosen) - recipes.kindness(pair.rejected)
        assert len(gap) == 300 and (gap != 0).all() and torch.equal(pair.chosen.prompt, pair.rejected.prompt)
        assert wrong[0] <= (gap < 0).float().mean() <= wrong[1]


def test_variants_share_their_first_stages():
    assert len({recipes.start_of(settings) for settings in recipes.POLICIES.values()}) == 1
    assert recipes.start_of(recipes.SETTINGS) != recipes.start_of(recipes.replace(recipes.SETTINGS, seed=1))


def test_held_out_prompts_are_of_sentences_that_were_not_read():
    train = {*recipes.sentences()["train"]}
    assert not train & {*recipes.sentences()["test"]} and len(recipes.sentences()["validation"]) > 500


@pytest.fixture(scope="module")
def labeller():
    return playground.labeller(learner.before().model)


@pytest.fixture(scope="module")
def pairs():
    return tuple(taste.Answered.of(learner.before().model).pairs)


def will(text):
    return text.count("will")


def test_votes_for_a_word_teach_that_word_and_no_votes_nothing(pairs):
    votes = taste.voted(pairs, will, 12)
    assert taste.learned(votes, pairs).argmax() == taste.recipes.words().index("will") + 1
    assert not taste.learned("", pairs).any() and not taste.learned(taste.NEITHER * 5, pairs).any()
    assert sum(taste.foreseen(votes, pairs)[-8:]) >= 7


def test_a_friend_votes_until_he_has_chosen_so_often_and_leaves_the_rest_alone(pairs):
    votes = taste.voted(pairs, will, 12)
    assert told_apart(votes) == 12 and votes[-1] != taste.NEITHER
    for vote, (one, other) in zip(votes, pairs, strict=False):
        more = will(one) - will(other)
        assert vote == (taste.FIRST if more > 0 else taste.SECOND if more < 0 else taste.NEITHER)


def test_the_policy_is_the_best_one_for_its_rewards_and_its_kl_is_right():
    texts = [("a", "b", "good"), ("a", "b", "old"), ("a", "b", "new")]
    weights = torch.zeros_like(taste.features(()))
    weights[taste.recipes.words().index("good") + 1] = 2.0
    policy = taste.write(texts, weights, beta=0.5)
    right = TASKS["best_policy"].reference(torch.full((3,), 1 / 3), torch.tensor([2.0, 0.0, 0.0]), 0.5)
    torch.testing.assert_close(policy.probabilities, right)
    assert policy.kl == pytest.approx(float((right * (3 * right).log()).sum()), abs=1e-5)
    assert taste.write(texts, torch.zeros_like(weights), beta=0.5).kl == pytest.approx(0, abs=1e-6)


def test_the_goals_can_be_reached_and_are_not_at_the_start(labeller, pairs):
    assert reached(labeller) == [False, False, False]
    votes = taste.voted(pairs, will, 20)
    assert reached(labeller, votes=votes, prompt="our young")[0]
    assert reached(labeller, votes=votes, prompt="the minister", beta=0.05)[1]
    assert reached(labeller, votes=labeller.steps["votes"][1], beta=0.01)[2]


def test_all_pairs_can_be_compared_and_then_it_says_so(labeller, pairs):
    assert "There are no more pairs" in labeller.frame(labeller.state(votes=taste.NEITHER * len(pairs))).html
    with pytest.raises(ValueError, match="votes of a, b and ="):
        labeller.state(votes="xyz")


def test_a_nat_has_its_price():
    tuned, reward = load_trained("demonstrated").model, load_trained("kindness").model
    parts = learner.Parts(*(TASKS[name].reference for name in ("token_rewards", "gae")))
    weights = load_trained("aligned").model.state_dict()
    course = {"weights": weights, "critic": reward.state_dict(), "points": [learner.measure(tuned, tuned, reward)]}
    paid = learner.paid(tuned, reward, course)
    assert len(paid.words) == len(paid.ratios) == len(paid.values) and paid.words[-1] == "<end>"
    explorer = playground.paid(tuned, reward, course, course, parts)
    assert f"The score of this answer is {paid.score:.1f}" in explorer.frame().html
    assert reached(explorer) == [False, False] and reached(explorer, trace=0.0) == [False, True]
