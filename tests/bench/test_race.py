import pytest

from course_lib.bench import race as module
from course_lib.bench.race import Race, is_clear, race


def nothing():
    pass


def test_the_ratio_is_that_of_typical_rounds(monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(clock) ** 2)
    result = race({"ours": nothing, "theirs": nothing, "default": nothing}, fewest=4, most=4)
    assert result.rounds == 4
    # readings 0, 1, 4, 9, ...: the odd rounds begin with ours, the even ones end with it
    times = [(2 * start + 1) for start in range(0, 24, 2)]
    ours, theirs = [times[i] for i in (0, 5, 6, 11)], [times[i] for i in (1, 4, 7, 10)]
    assert result.median("ours") == (ours[1] + ours[2]) / 2 and result.median("theirs") == (theirs[1] + theirs[2]) / 2
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    assert result.ratio("ours", "theirs") == (ratios[1] + ratios[2]) / 2


@pytest.mark.parametrize(("seconds", "clear", "rounds"), [(99, True, 3), (99, False, 7), (-1, False, 3)])
def test_a_race_ends_when_it_is_clear_or_its_time_is_over(seconds, clear, rounds, monkeypatch):
    monkeypatch.setattr(module, "is_clear", lambda *_: clear)
    assert race({"ours": nothing, "theirs": nothing}, fewest=3, most=7, seconds=seconds).rounds == rounds


def test_a_race_is_clear_when_a_coin_would_hardly_give_its_outcome():
    assert is_clear([1.0] * 21, [2.0] * 21) and is_clear([2.0] * 21, [1.0] * 21)
    assert is_clear([1.0] * 18 + [3.0] * 3, [2.0] * 21)
    assert not is_clear([1.0] * 17 + [3.0] * 4, [2.0] * 21)
    assert not is_clear([1.0, 3.0] * 10, [2.0] * 20)


def test_variants_warm_up_before_they_are_timed():
    calls = []
    result = race({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, fewest=1, most=2, warm_up=3)
    assert calls == ["a"] * 3 + ["b"] * 3 + ["a", "b", "b", "a"]
    assert result.rounds == 2 and Race(seconds=result.seconds) == result
