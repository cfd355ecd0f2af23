"""One zygote for all grading tests of a process: starting it takes seconds, a box of its own some hundredths."""

import pytest

from course_lib.grading.sandbox import Zygote


@pytest.fixture(scope="session")
def zygote():
    with Zygote() as zygote:
        yield zygote


@pytest.fixture
def box(zygote):
    with zygote.box() as box:
        yield box
