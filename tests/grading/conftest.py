"""One zygote for all grading tests of a process: starting it takes seconds, a box of its own some hundredths."""

from pathlib import Path

import pytest

from course_lib.grading.sandbox import Zygote
from tests.grading.courses import make_course

HIDDEN = Path(pytest.__file__).parent  # stands for an instructor's folder that lies among Python's libraries


def pytest_itemcollected(item):
    """Whoever asks for the zygote needs what it is made with."""
    if "zygote" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.needs("sandbox"))


@pytest.fixture(scope="session")
def zygote():
    with Zygote(hidden=[HIDDEN]) as zygote:
        yield zygote


@pytest.fixture
def box(zygote):
    with zygote.box() as box:
        yield box


@pytest.fixture
def folders(tmp_path):
    """A released course directory."""
    return make_course(tmp_path / "course")
