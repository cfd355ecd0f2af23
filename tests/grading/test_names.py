"""Names in cells, found without running them."""

import pytest

from course_lib.grading.names import defined, missing, needs, used

DEFINES = """
import torch.nn as nn, os.path
from math import sqrt as root
a, (b, *c) = 1, (2, 3)
for d in []: pass
def e(f):
    global g
    g = h = f
class K:
    inside = 1
if (m := 1): pass
"""


def test_what_a_cell_defines_is_what_it_binds_outside_of_functions_and_classes():
    assert defined(DEFINES) == set("abcdegKm") | {"nn", "os", "root"}


def test_what_a_cell_uses_is_what_it_reads_and_does_not_bind():
    assert used("def f(x, *y, z=default, **k):\n    w = [u for u in x]\n    return w, y, z, k, other.part") == {
        "default",
        "other",
    }
    assert used("try:\n    f()\nexcept E as e:\n    print(e)\nf = 1") == {"E", "print"}
    assert used("class A(Base):\n    size = 1\n    def g(self):\n        return size, __class__") == {"Base", "size"}
    assert used("match v:\n    case [x, *rest] | {'k': x, **rest}:\n        x, rest") == {"v"}


def test_missing_is_what_neither_python_nor_a_cell_before_defines():
    cells = [
        "import torch",
        "def f(x):\n    return torch.exp(x)",
        "def g(x):\n    return len(f(x)) + h(x) + a + __name__",
    ]
    assert missing(cells) == ["a", "h"] and missing([*cells, "h"]) == ["h"]
    assert missing(["from math import *", "sin(1)"]) == []


def test_a_cell_needs_what_defines_its_names_directly_or_through_others():
    cells = [
        "def early():\n    return late()",
        "alone = 1",
        "def late():\n    return 2",
        "early()",
        "def",
        "alone = 2",
    ]
    assert needs(cells) == [[], [], [], [0, 2], [], []]
    assert needs([cells[0], "from math import *", cells[2], "1"]) == [[], [0], [0, 1], [0, 1, 2]]


@pytest.mark.parametrize("text", ["def", "\0", "(" * 500, "-" * 50_000 + "1", "a" + ".a" * 40_000, "f(" * 90])
def test_what_is_no_python_has_no_names(text):
    assert defined(text) == used(text) == set()


def test_names_are_found_at_any_depth():
    text = "".join("    " * depth + f"def f{depth}():\n" for depth in range(90)) + "    " * 90 + "return deep"
    assert used(text) == {"deep"}
