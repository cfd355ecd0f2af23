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


@pytest.fixture
def box(zygote):
    with zygote.box() as box:
        yield box
