"""What one plays with in lesson 15: a walker that gets the return it is asked for."""

from functools import lru_cache

from matplotlib.figure import Figure

from course_lib.classroom.widgets import Choice, Explorer, Goal, Slider
from course_lib.data.mazes import Walks
from course_lib.lessons.lesson_15 import figures, learner
from course_lib.lessons.lesson_15.recipes import control
from course_lib.models.decision_transformer import DecisionTransformer
from course_lib.viz.style import figure

PAIRS = {f"pair {number}": number - 1 for number in range(1, 8)}


def walker(model: DecisionTransformer) -> Explorer:
    """Ask for a return, and see the walk: the likeliest action at each step."""

    @lru_cache(maxsize=64)  # to draw, to say and to judge
    def walk_of(asked: float, pair: int) -> Walks:
        return learner.walk(model, asked, pair=pair)

    def walk(state) -> Walks:
        return walk_of(float(state["asked"]), int(state["pair"]))

    def words(state) -> str:
        its = walk(state)
        end = "at the goal" if its.reached[0] else "not at the goal"
        return f"Asked for {state['asked']:.0f}, it got {float(its.returns[0]):.0f}, and ended {end}."

    def picture(state) -> Figure:
        fig, axes = figure(3.6, 3.4)
        its = walk(state)
        figures.draw_walk(axes, control.maze(), its, 0, f"got {float(its.returns[0]):.0f}")
        return fig

    return Explorer(
        name="walker",
        title="Ask for a return",
        controls=[
            Slider(name="asked", label="return asked for", low=-40, high=0, step=1, value=-10),
            Choice(name="pair", label="start and goal", options=PAIRS),
        ],
        draw=picture,
        alt=words,
        beside=True,
        goals=(
            Goal("asked for a long walk, it takes 20 steps or more and arrives",
                 lambda state: bool(walk(state).reached[0]) and float(walk(state).returns[0]) <= -20),
            Goal("it does not reach the goal", lambda state: not walk(state).reached[0]),
            Goal("asked for more than any walk can give (above -10), it still goes the best way",
                 lambda state: state["asked"] > -10 and float(walk(state).returns[0]) == -10),
        ),
        steps={"asked": (-10, -22, -34)},
    )  # fmt: skip
