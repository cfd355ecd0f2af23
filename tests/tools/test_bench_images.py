import pytest

from course_lib.data.crops import PhotoCrops
from course_lib.tools import bench_images
from course_lib.tools.bench_images import SOURCES, Rate, agree, main, measure


def test_every_source_is_measured_beside_its_twin():
    rates = list(measure(count=16, seconds=0))
    assert [rate.what for rate in rates] == list(SOURCES)
    assert all(rate.ours > 0 and rate.one_by_one > 0 and rate.ratio > 0 for rate in rates)
    for rate in rates:
        assert rate.target == (None if "48" in rate.what or "64" in rate.what else 5000)


def test_a_race_between_different_images_is_off():
    source = PhotoCrops(split="train")
    agree(source.batch(1, 0), source.batch(5, 0))
    with pytest.raises(RuntimeError, match="the images are others"):
        agree(source.batch(1, 0), source.batch(5, 1))


@pytest.mark.parametrize(("ours", "code"), [(5000.0, 0), (4999.0, 1)])
def test_the_exit_code_says_whether_small_images_come_fast_enough(monkeypatch, capsys, ours, code):
    rates = [
        Rate(what="small", ours=ours, one_by_one=100.0, ratio=0.02, target=5000),
        Rate(what="large", ours=10.0, one_by_one=1.0, ratio=0.1, target=None),
    ]
    monkeypatch.setattr(bench_images, "measure", lambda: iter(rates))
    assert main() == code
    assert ("DO NOT" in capsys.readouterr().out) == (code == 1)
