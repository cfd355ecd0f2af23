"""Lesson 10's playgrounds on the page: votes by click with Python's reward and policy, and what tokens are paid."""

import random

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.lessons.lesson_10 import learner, taste
from tests.browser.explorers import explorer
from tests.browser.played import computed, judged_as_in_python

pytestmark = pytest.mark.needs("chromium")


def votes(labeller, pairs):
    draw, friend = random.Random(10), labeller.steps["votes"][1]
    wills = taste.voted(pairs, lambda text: text.count("will"), 20)
    yield labeller.state()
    yield labeller.state(votes=wills, prompt="our young")
    yield labeller.state(votes=wills, beta=0.05)
    yield labeller.state(votes=friend, beta=0.01)
    for count in (1, 5, 80):
        given = "".join(draw.choice("aab=") for _ in range(count))
        yield labeller.state(votes=given, prompt=draw.choice(taste.PROMPTS), beta=10 ** draw.uniform(-1.5, 0.5))


def test_the_page_learns_writes_and_judges_as_python_does(blank):
    labeller, pairs = explorer("labeller"), tuple(taste.Answered.of(learner.before().model).pairs)
    states = list(votes(labeller, pairs))
    found = computed(
        blank, labeller, states,
        """([states, config]) => states.map((state) => {
          const its = tasteOf(state, config), goals = tasteGoals.map((goal) => goal(state, its, config));
          return { weights: [...its.weights], goals, words: tasteWords(state, config) };
        })""",
    )  # fmt: skip
    assert judged_as_in_python(labeller, states, found).all()
    for state, here in zip(states, found, strict=True):
        np.testing.assert_allclose(here["weights"], taste.learned(state["votes"], pairs), rtol=0, atol=2e-3)


def test_each_click_is_a_vote_teaches_a_word_and_can_be_taken_back(play):
    here = play(explorer("labeller"), kernel=True)
    here.shows("Pair 1 of 80")
    here.counts(".play-weights li", 0)
    here.click_on(".play-vote")
    here.shows("Pair 2 of 80")
    here.counts(".play-weights li", 10)
    here.page.locator(".play-vote").last.press("Enter")
    here.press("No difference")
    here.shows("2 votes, KL")
    here.press("One back")
    here.shows("Pair 3 of 80")
    here.press("20 votes of a friend")
    here.says("20 votes. Of your last 8 votes it foresaw")
    assert here.reached() == 0  # they are not the learner's own
    here.keys("β", "Home")
    assert here.reached() == 1 and here.told() == [{"touched": True}, {"reached": [False, False, True]}]
    here.press("Start again")
    here.shows("nothing yet")


# ------------------------------------------------------------------------------------------ the reward of a token


def test_rewards_and_advantages_are_those_of_python(blank):
    paid, draw = explorer("paid"), random.Random(10)
    asked = [{"beta": 10 ** draw.uniform(-4, 0), "trace": draw.choice([0, 0.3, 0.95, 1])} for _ in range(8)]
    found = computed(
        blank, paid, asked,
        """([asked, { answers }]) => asked.map((state) => {
          const worth = Object.values(answers).map((answer) => tokenWorth(answer, state.beta, state.trace));
          return { all: worth.flatMap(({ rewards, advantages }) => [...rewards, ...advantages]),
            goals: paidGoals.map((goal) => goal(state, worth)) };
        })""",
    )  # fmt: skip
    for one, here in zip(asked, found, strict=True):
        np.testing.assert_allclose(here["all"], paid.answers["worth"](one), rtol=0, atol=1e-4)
        assert here["goals"] == [goal(paid.state(**one)) for goal in paid.goals]
    worth = [{"rewards": rewards, "advantages": []} for rewards in ([1.0, 1.0], [1.0, 2.0])]
    assert blank.evaluate("(worth) => paidGoals[0]({}, worth)", worth)


@pytest.mark.parametrize("kernel", [False, True])
def test_a_point_of_the_training_is_dragged_and_goals_wait_for_the_end(play, kernel):
    here = play(explorer("paid"), kernel=kernel)
    here.shows("Score of the reward model")
    here.choose("without")
    here.shows("Measured 3 of 3: reward 5.0")
    here.drag(here.page.locator(".play-dot"), (-400, 60))
    expect(here.page.get_by_text("of 3: reward")).not_to_contain_text("Measured 3")
    here.page.mouse.up()
    here.page.locator(".play-point").press("PageUp")
    here.shows("Measured 3 of 3")
    here.keys("λ", "Home")
    here.has_reached(1)
    here.keys("β", "Home")  # a penalty of nothing leaves the score alone
    score = here.note.inner_text().split(";")[0].split()[-1]
    here.notes(f"with penalty {score}")
