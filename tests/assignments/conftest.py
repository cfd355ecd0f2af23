"""One zygote for all assignments of a process."""

import pytest

from course_lib.grading.sandbox import Zygote


@pytest.fixture(scope="session")
def zygote():
    with Zygote() as zygote:
        yield zygote
