"""The tiny course, its zygote, and a secret in every place that an attack might read."""

import os
import secrets

import pytest

from course_lib.grading.sandbox import Zygote
from tests.grading.attacks.course import TinyCourse


@pytest.fixture(scope="package")
def secret():
    """Stands in the hidden checks, the environment, the key, the gradebook and another student's submission."""
    return f"secret-{secrets.token_hex(16)}"


@pytest.fixture(scope="package")
def course(tmp_path_factory, secret):
    os.environ["COURSE_TEST_SECRET"] = secret  # before the zygote starts, which must not pass it on
    try:
        with Zygote() as zygote:
            yield TinyCourse(tmp_path_factory.mktemp("course"), secret=secret, zygote=zygote)
    finally:
        del os.environ["COURSE_TEST_SECRET"]
