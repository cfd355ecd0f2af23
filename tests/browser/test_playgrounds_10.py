"""Lesson 10's playgrounds on the page: votes by click with Python's reward and policy, and what tokens are paid."""

import random

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.classroom.widgets.script import bundle
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_10 import learner, playground, taste
from course_lib.lessons.lesson_10.tasks import TASKS
from tests.browser.live_playground import check_axe, check_it_fits, move, played

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def labeller():
    return playground.labeller(learner.before().model)


@pytest.fixture(scope="module")
def pairs():
    return tuple(taste.Answered.of(learner.before().model).pairs)


def states(labeller, pairs):
    draw, friend = random.Random(10), labeller.steps["votes"][1]
    wills = taste.voted(pairs, lambda text: text.count("will"), 20)
    yield labeller.state()
    yield labeller.state(votes=wills, prompt="our young")
    yield labeller.state(votes=wills, beta=0.05)
    yield labeller.state(votes=friend, beta=0.01)
    for count in (1, 5, 80):
        votes = "".join(draw.choice("aab=") for _ in range(count))
        yield labeller.state(votes=votes, prompt=draw.choice(taste.PROMPTS), beta=10 ** draw.uniform(-1.5, 0.5))


def test_the_page_learns_writes_and_judges_as_python_does(browser, labeller, pairs):
    page, reached, all_states = browser.new_page(), np.zeros(3, bool), list(states(labeller, pairs))
    page.add_script_tag(content=bundle("labeller"))
    found = page.evaluate(
        """([config, states]) => states.map((state) => {
          const its = tasteOf(state, config), goals = tasteGoals.map((goal) => goal(state, its, config));
          return { weights: [...its.weights], kl: its.kl, goals, words: tasteWords(state, config) };
        })""",
        [labeller._page_config(), all_states],
    )
    for state, here in zip(all_states, found, strict=True):
        weights = taste.learned(state["votes"], pairs)
        np.testing.assert_allclose(here["weights"], weights, rtol=0, atol=2e-3)
        assert here["words"] == labeller.alt(state)
        assert here["goals"] == [goal(state) for goal in labeller.goals]
        reached |= here["goals"]
    assert reached.all()


def test_each_click_is_a_vote_teaches_a_word_and_can_be_taken_back(browser, labeller):
    with played(browser, labeller, kernel=True) as here:
        sentences, weights = here.page.locator(".play-vote"), here.page.locator(".play-weights li")
        expect(here.page.get_by_text("Pair 1 of 80")).to_be_visible()
        expect(weights).to_have_count(0)
        sentences.first.click()
        expect(here.page.get_by_text("Pair 2 of 80")).to_be_visible()
        expect(weights).to_have_count(10)
        sentences.last.focus()
        here.page.keyboard.press("Enter")
        here.page.get_by_role("button", name="No difference").click()
        expect(here.page.get_by_text("2 votes, KL")).to_be_visible()
        here.page.get_by_role("button", name="One back").click()
        expect(here.page.get_by_text("Pair 3 of 80")).to_be_visible()
        here.page.get_by_role("button", name="20 votes of a friend").click()
        expect(here.page.locator(".play-said")).to_contain_text("20 votes. Of your last 8 votes it foresaw")
        assert here.reached() == 0  # they are not the learner's own
        here.page.get_by_role("slider", name="β").press("Home")
        assert here.reached() == 1 and here.told() == [{"touched": True}, {"reached": [False, False, True]}]
        here.page.get_by_role("button", name="Start again").click()
        expect(here.page.get_by_text("nothing yet")).to_be_visible()


def test_it_fits_and_axe_finds_nothing(browser, labeller):
    check_it_fits(browser, labeller)
    check_axe(browser, labeller)


# ------------------------------------------------------------------------------------------ the reward of a token


@pytest.fixture(scope="module")
def paid():
    tuned, reward = load_trained("demonstrated").model, load_trained("kindness").model
    parts = learner.Parts(*(TASKS[name].reference for name in ("token_rewards", "gae")))
    policy = load_trained("aligned").model
    points = [learner.measure(one, tuned, reward) for one in (tuned, policy)]
    short = {"weights": policy.state_dict(), "critic": reward.state_dict(), "points": points}
    far = short | {"points": [*short["points"], short["points"][-1] | {"KL": 20.0, "reward": 5.0}]}
    return playground.paid(tuned, reward, short, far, parts)


def test_rewards_and_advantages_are_those_of_python(browser, paid):
    page, draw = browser.new_page(), random.Random(10)
    page.add_script_tag(content=bundle("paid"))
    asked = [{"beta": 10 ** draw.uniform(-4, 0), "trace": draw.choice([0, 0.3, 0.95, 1])} for _ in range(8)]
    found = page.evaluate(
        """([{ answers }, asked]) => asked.map((state) => {
          const worth = Object.values(answers).map((answer) => tokenWorth(answer, state.beta, state.trace));
          return { all: worth.flatMap(({ rewards, advantages }) => [...rewards, ...advantages]),
            goals: paidGoals.map((goal) => goal(state, worth)) };
        })""",
        [paid._page_config(), asked],
    )
    for one, here in zip(asked, found, strict=True):
        np.testing.assert_allclose(here["all"], paid.answers["worth"](one), rtol=0, atol=1e-4)
        assert here["goals"] == [goal(paid.state(**one)) for goal in paid.goals]
    worth = [{"rewards": rewards, "advantages": []} for rewards in ([1.0, 1.0], [1.0, 2.0])]
    assert page.evaluate("(worth) => paidGoals[0]({}, worth)", worth)


@pytest.mark.parametrize("kernel", [False, True])
def test_a_point_of_the_training_is_dragged_and_goals_wait_for_the_end(browser, paid, kernel):
    with played(browser, paid, kernel=kernel) as here:
        expect(here.page.get_by_text("Score of the reward model").first).to_be_visible()
        here.page.locator(".play-choice").get_by_text("without", exact=True).click()
        expect(here.page.get_by_text("Measured 3 of 3: reward 5.0")).to_be_visible()
        move(here, here.page.locator(".play-dot"), (-400, 60))
        expect(here.page.get_by_text("of 3: reward")).not_to_contain_text("Measured 3")
        here.page.mouse.up()
        here.page.locator(".play-point").press("PageUp")
        expect(here.page.get_by_text("Measured 3 of 3")).to_be_visible()
        here.page.get_by_role("slider", name="λ").press("Home")
        expect(here.page.locator(".play-goals li.reached")).to_have_count(1)


def test_the_table_fits_and_axe_finds_nothing(browser, paid):
    check_it_fits(browser, paid)
    check_axe(browser, paid)
