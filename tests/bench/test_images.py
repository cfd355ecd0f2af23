import pytest
import torch

from course_lib.bench import images as bench_images
from course_lib.bench.images import SOURCES, agree, main, rows
from course_lib.bench.table import Row
from course_lib.data.crops import PhotoCrops


def test_every_source_is_measured_beside_its_twin():
    made = list(rows(count=16, seconds=0))
    assert [row.what for row in made] == list(SOURCES)
    assert all(row.ours > 0 and row.theirs > 0 and row.ratio > 0 and row.target == 0.5 for row in made)


def test_a_race_between_different_images_is_off():
    source = PhotoCrops(split="train")
    agree(source.batch(1, 0), source.batch(5, 0))
    with pytest.raises(RuntimeError, match="the images are others"):
        agree(source.batch(1, 0), source.batch(5, 1))


@pytest.mark.parametrize(("ratio", "code"), [(0.5, 0), (0.51, 1)])
def test_the_exit_code_says_whether_whole_batches_gain_enough(monkeypatch, ratio, code):
    made = Row(what="small", ours=1.0, theirs=2.0, ratio=ratio, target=bench_images.TARGET)
    monkeypatch.setattr(bench_images, "rows", lambda: iter([made]))
    threads = torch.get_num_threads()
    assert main() == code and torch.get_num_threads() == threads
