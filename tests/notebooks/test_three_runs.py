"""A lesson gives the same text in three runs in a row: the stored one, the one here and nbval's.

The build that stored the notebook was the first run, the fresh kernel here is the second, and nbval, which the same
test command sends over the folder `notebooks`, is the third; each is compared with the stored text. Three fresh
runs one after the other: python -m course_lib.authoring.notebooks check --runs 3 05
"""

import pytest

from course_lib.authoring.notebooks import check_notebook
from tests.notebooks.stored import LESSONS


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_fresh_run_gives_the_stored_text(path):
    assert check_notebook(path) == []
