from dataclasses import replace

import pytest

from course_lib.bench.race import Race
from course_lib.bench.table import Row, Section, geometric_mean, print_table, row


def test_a_row_says_the_typical_times_and_their_ratio():
    made = row("x", Race(seconds={"ours": [1.0, 2.0, 9.0], "theirs": [2.0, 2.0, 3.0]}), target=1.0)
    assert (made.ours, made.theirs, made.ratio) == (2000.0, 2000.0, 1.0) and made.reached
    assert not replace(made, ratio=1.01).reached and replace(made, ratio=9.0, target=None).reached


def test_the_geometric_mean_of_opposite_ratios_is_one():
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0) and geometric_mean([0.8, 0.8]) == pytest.approx(0.8)


def rows(*ratios):
    def made():
        yield from (Row(what=f"row {ratio}", ours=ratio, theirs=1.0, ratio=ratio, target=1.0) for ratio in ratios)

    return made


@pytest.mark.parametrize(
    ("ratios", "code", "verdict"),
    [
        ([0.8, 0.8], 0, "Every target was reached."),
        ([0.5, 1.1], 1, "1 target(s) missed."),
        ([0.9, 0.95], 1, "1 target(s) missed."),  # the mean
    ],
)
def test_the_benchmark_fails_where_a_target_is_missed(ratios, code, verdict, capsys):
    sections = Section(title="Models", rows=rows(*ratios), mean=0.85), Section(title="Others", rows=rows(1.0))
    assert print_table(sections) == code
    printed = capsys.readouterr().out
    assert verdict in printed and printed.count("row ") == 3 and printed.count("geometric mean") == 1
    assert ("MISSED" in printed) == (max(ratios) > 1)
