"""Results are kept for the next sitting, by the code, the data and the settings that made them."""

import dataclasses
import linecache
import os
import types

import pytest
import torch
from torch import nn

from course_lib.classroom import Page, kept
from course_lib.classroom.output import WIDGET_VIEW
from course_lib.classroom.using import Learners
from course_lib.functional.attention import attention
from course_lib.layers.transformer import MultiHeadAttention

CALLS = []


def compute(**settings):
    CALLS.append(settings)
    return {"sum": torch.arange(3), "settings": sorted(settings)}


@pytest.fixture(autouse=True)
def no_calls_yet():
    CALLS.clear()


@pytest.fixture
def lesson(page):
    return Page("06")


def files(home):
    return sorted((home / "kept" / "06").glob("*"))


def typed(source, name="f"):
    """A function as if a learner had typed it into a cell."""
    place = f"<cell {hash(source)}>"
    linecache.cache[place] = (len(source), None, source.splitlines(True), place)
    cell = types.ModuleType("__main__")
    exec(compile(source, place, "exec"), cell.__dict__)
    return cell.__dict__[name]


def test_the_second_sitting_computes_nothing(lesson, home):
    first = lesson.keep("runs", compute, steps=3)
    again = Page("06").keep("runs", compute, steps=3)
    assert len(CALLS) == 1 and torch.equal(first["sum"], again["sum"]) and len(files(home)) == 1


def test_the_stored_text_is_the_same_in_both_sittings(lesson, page, stored):
    lesson.keep("runs", compute)
    lesson.keep("runs", compute)
    first, second = stored()
    assert first == second and WIDGET_VIEW not in page[0] and WIDGET_VIEW in page[1]
    assert first["text/plain"] == "runs is kept in your folder, so that a second sitting goes on at once."


def test_train_anew_forgets_the_file_and_says_what_to_do(lesson, home, monkeypatch):
    built = []
    monkeypatch.setattr(kept.widgets, "VBox", lambda parts: built.append(parts) or nn_box(parts))
    lesson.keep("runs", compute)
    lesson.keep("runs", compute)
    said, anew = built[-1]
    assert "kept from an earlier sitting (" in said.value
    anew.click()
    assert "run this cell again" in said.value and files(home) == []
    lesson.keep("runs", compute)
    assert len(CALLS) == 2


def nn_box(parts):
    return types.SimpleNamespace(model_id="box", children=parts)


def test_other_settings_take_the_place_of_the_older_ones(lesson, home):
    lesson.keep("runs", compute, steps=3)
    lesson.keep("runs-long", compute, steps=3)
    lesson.keep("runs", compute, steps=4)
    assert len(CALLS) == 3 and len(files(home)) == 2


@pytest.mark.parametrize("damage", [b"", b"no zip file", None])
def test_a_damaged_file_is_computed_anew(lesson, home, damage):
    lesson.keep("runs", compute)
    (path,) = files(home)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content if damage is None else damage)
    assert lesson.keep("runs", compute)["sum"].tolist() == [0, 1, 2] and len(CALLS) == 2
    lesson.keep("runs", compute)
    assert len(CALLS) == 2


def test_what_cannot_be_kept_is_still_returned(lesson, home):
    made = lesson.keep("runs", lambda: lambda: 3)
    assert made() == 3 and files(home) == []


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_no_error(lesson, home):
    home.mkdir(mode=0o500)
    assert lesson.keep("runs", compute)["settings"] == []


def test_a_model_that_holds_the_learners_function_is_kept(lesson):
    model = nn.Linear(2, 2)
    model.attend = Learners("06", "double", lambda x: x + x)
    lesson.keep("model", lambda: model)
    again = lesson.keep("model", lambda: model)
    assert again is not model and again.attend is model.attend


@dataclasses.dataclass
class Config:
    dim: int = 4


class Plain:
    def __init__(self, size):
        self.size = size

    def doubled(self):
        return 2 * self.size


def with_attend(attend):
    torch.manual_seed(0)
    return MultiHeadAttention(4, 2, attend=attend)


A, B, MODEL = [1], [2], nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        ("1", 1),
        ([1, 2], [2, 1]),
        ((1,), [1]),
        ({"a": 1}, {"b": 1}),
        ({1, 2}, {1, 3}),
        ([A, B, A], [A, B, B]),
        (Plain(1).doubled, Plain(2).doubled),
        (with_attend(attention), with_attend(lambda q, k, v, **options: v)),
        (
            typed("class f:\n    def go(self):\n        return 1\n"),
            typed("class f:\n    def go(self):\n        return 2\n"),
        ),
        ([["a"], "b"], [["a", "b"]]),
        (torch.zeros(2), torch.zeros(2, 1)),
        (torch.zeros(2), torch.tensor([0.0, 1.0])),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (Config(), Config(dim=5)),
        (Plain(1), Plain(2)),
        (MODEL, nn.Linear(2, 2)),
        (typed("def f(x):\n    return x + 1\n"), typed("def f(x):\n    return x + 2\n")),
        (typed("a = 1\ndef f(x):\n    return x + a\n"), typed("a = 2\ndef f(x):\n    return x + a\n")),
        (
            typed("def g(x):\n    return x\ndef f(x):\n    return g(x)\n"),
            typed("def g(x):\n    return -x\ndef f(x):\n    return g(x)\n"),
        ),
        (attention, typed("def f(x):\n    return x\n")),
    ],
)
def test_a_setting_counts_by_what_it_holds(one, other):
    assert kept.digest(compute, {"x": one}) != kept.digest(compute, {"x": other})


@pytest.mark.parametrize(
    "make",
    [
        lambda: {"b": {3, 1, 2}, "a": None},
        lambda: [Config(), Plain(3)],
        lambda: torch.arange(4),
        lambda: with_attend(attention),
        lambda: Learners("06", "f", typed("import torch\ndef f(x):\n    return torch.exp(x) + f(x)\n")),
    ],
)
def test_equal_settings_count_as_the_same(make):
    assert kept.digest(compute, {"x": make()}) == kept.digest(compute, {"x": make()})


def test_the_code_of_the_course_behind_a_function_counts(monkeypatch):
    before, sources = kept.digest(attention, {}), kept.course_sources

    def edited(names):
        return {
            name: source + "# edited" * ("masks" in name or "attention" in name)
            for name, source in sources(names).items()
        }

    assert "course_lib.functional.attention" in sources(["course_lib.models.seq2seq"])
    monkeypatch.setattr(kept, "course_sources", edited)
    assert kept.digest(attention, {}) != before
    assert kept.digest(compute, {"attend": attention}) != kept.digest(compute, {})


def test_a_setting_without_a_value_of_its_own_is_refused(lesson):
    with pytest.raises(ValueError, match="only its address tells"):
        lesson.keep("runs", compute, thing=object())
