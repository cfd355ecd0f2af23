"""docs/scale.md's way to grade on several machines does what `course grade` does."""

import re
from pathlib import Path

import pytest

from course_lib.grading.gradebook import scores
from tests.grading.courses import GOOD, NAME, submit

pytestmark = pytest.mark.needs("sandbox")
PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
ADDRESS = "tcp://10.0.0.1:8786"


def recipe():
    """The block of the page that grades."""
    (found,) = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8").partition("## Grading")[2], re.M | re.S
    )
    return found


def test_the_recipe_grades_on_the_workers_of_a_dask_cluster(folders, monkeypatch):
    from distributed import LocalCluster

    for student, double in (("ada", GOOD["double"]), ("bob", "def double(x):\n    return x"), ("cy", "def double(:")):
        submit(folders, student, **GOOD | {"double": double})
    monkeypatch.setenv("COURSE_ASSIGNMENTS", str(folders.root))
    with LocalCluster(processes=True, n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        script = recipe().replace(ADDRESS, cluster.scheduler_address).replace('"05"', f'"{NAME}"')
        assert script.count(cluster.scheduler_address) == 1 and f'"{NAME}"' in script
        exec(compile(script, "recipe", "exec"), {})
    assert {row.student: row.total for row in scores(folders.gradebook, NAME)} == {"ada": 5.0, "bob": 3.0, "cy": 3.0}
