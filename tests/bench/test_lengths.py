import pytest

from course_lib.bench import lengths
from course_lib.functional.cost import fit_slope


def test_softmax_costs_the_square_of_the_length_the_others_the_length():
    long = (128, 256, 512)
    counted = [lengths.operations(length) for length in long]
    slopes = {name: fit_slope(long, [each[name] for each in counted]) for name in lengths.KINDS}
    assert slopes == pytest.approx({"softmax": 2.0, "local": 1.0, "linear": 1.0})


def test_operations_of_a_token_are_those_of_the_formulas():
    d, w, length = lengths.WIDTH, lengths.WINDOW, 128
    found = {name: count / length for name, count in lengths.operations(length).items()}
    assert found["softmax"] == 4 * d * length
    assert found["local"] == 4 * d * 3 * w  # a block of w sees itself and w on either side
    assert found["linear"] == 2 * 32 * (d + d + 1) + 4 * d * (d + 1)  # within a block of 32; into and out of the sums


def test_cheap_attention_pays_only_from_some_length_on():
    assert {name: lengths.pays_from(name) for name in ("local", "linear")} == {"local": 64, "linear": 128}
    with pytest.raises(ValueError, match="even for 4096"):
        lengths.pays_from("softmax")
