"""One zygote for all grading tests of a process: starting it takes seconds, a box of its own some hundredths."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from course_lib.grading.sandbox import Zygote

HIDDEN = Path(pytest.__file__).parent  # stands for an instructor's folder that lies among Python's libraries


@pytest.fixture(scope="session")
def zygote():
    with ThreadPoolExecutor() as pool:  # it must outlive the thread that made it
        made = pool.submit(Zygote, hidden=[HIDDEN]).result()
    with made as zygote:
        yield zygote


@pytest.fixture(scope="session")
def kept_zygote(zygote):
    """In place of the class, for code that makes a zygote and closes it: always the one of all tests."""

    class Kept(Zygote):
        def __init__(self, **options):
            self.__dict__ = zygote.__dict__

        def close(self):
            pass

    return Kept


@pytest.fixture
def box(zygote):
    with zygote.box() as box:
        yield box
