"""Lesson 00, Start here: its one exercise, softmax by its formula; large numbers are a surprise of lesson 05."""

from course_lib.tasks import Task
from course_lib.tasks.attention import FORMULA, SOFTMAX_MISTAKES, TORCHS_SOFTMAX, softmax

TASKS = {
    "softmax": Task(
        name="softmax",
        title="Softmax",
        asks="x",
        reference=softmax,
        cases=(FORMULA,),
        mistakes=SOFTMAX_MISTAKES,
        forbids=TORCHS_SOFTMAX,
        minutes=5,
        text="Turn scores into shares: $\\mathrm{softmax}(x)_i = \\exp x_i \\,/\\, \\sum_j \\exp x_j$, along the last "
        "axis of `x`. The result has the shape of `x`. Write it with `exp` and `sum`, without PyTorch's own.",
        hints=(
            "What must be done to a row of numbers so that it sums to one? Read the formula from its denominator.",
            "Over which axis does the sum run? Along a row, the last one: `dim=-1`.",
            "`powers = x.exp()`, and `powers.sum(dim=-1, keepdim=True)` keeps the axis: the division fits each row.",
        ),
        solution="""
def my_softmax(x):
    powers = x.exp()
    return powers / powers.sum(dim=-1, keepdim=True)
""",
    )
}
