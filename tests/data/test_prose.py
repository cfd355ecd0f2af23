import lzma

import pytest

from course_lib.data.files import data_path
from course_lib.data.prose import ALPHABET, SPLITS, ProseSplits, prose_splits
from course_lib.data.prose.build import SOURCES, docstrings, is_prose, split_of, windows, without_repeats
from course_lib.data.prose.corpus import parse, serialize
from course_lib.data.prose.markup import paragraphs


@pytest.fixture(scope="module")
def splits():
    return prose_splits()


def test_the_corpus_has_the_promised_size(splits):
    sizes = {split: len(splits.text(split)) for split in SPLITS}
    assert 1_900_000 < sizes["train"] < 2_500_000
    assert 100_000 < sizes["validation"] < 200_000 and 100_000 < sizes["test"] < 200_000


def test_every_paragraph_is_prose_in_the_alphabet(splits):
    for split in SPLITS:
        assert set(splits.text(split)) <= ALPHABET | {"\n"}
    every = [paragraph for document in splits.test for paragraph in document.split("\n")]
    assert all(is_prose(paragraph) for paragraph in every)


def test_no_run_of_eight_words_of_one_split_is_in_another(splits):
    found = {
        split: {w for document in getattr(splits, split) for line in document.split("\n") for w in windows(line)}
        for split in SPLITS
    }
    assert len(found["test"]) > 10_000
    assert found["test"].isdisjoint(found["train"] | found["validation"])
    assert found["validation"].isdisjoint(found["train"])


def test_a_split_s_text_is_its_documents_one_paragraph_a_line(splits):
    assert splits.text("test").startswith(splits.test[0] + "\n" + splits.test[1] + "\n")
    with pytest.raises(ValueError, match="'dev'"):
        splits.text("dev")


def test_file_and_readme_name_every_source():
    lines = lzma.decompress(data_path("prose", "prose.txt.xz").read_bytes()).decode("ascii").splitlines()
    named = [line.removeprefix("# ").split() for line in lines[1 : 1 + len(SOURCES)]]
    assert [name for name, *_ in named] == [source.package for source in SOURCES]
    readme = data_path("prose", "README.md").read_text(encoding="utf-8")
    licences = data_path("prose", "LICENSES.txt").read_text(encoding="utf-8").lower()
    for name, version, *_ in named:
        assert f"| {name} | {version} |" in readme
        assert f"\n{name} {version}\n" in licences


@pytest.mark.parametrize(
    "content", [b"", b"not an archive", lzma.compress(b"another text\n"), lzma.compress(b"cut")[:-9]]
)
def test_a_damaged_file_is_refused_with_the_way_out(monkeypatch, tmp_path, content):
    (tmp_path / "prose").mkdir()
    (tmp_path / "prose" / "prose.txt.xz").write_bytes(content)
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="is damaged .*git restore data"):
        prose_splits()


def test_a_missing_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="prose/prose.txt.xz"):
        prose_splits()


def test_parse_takes_back_what_serialize_wrote():
    splits = ProseSplits(train=("One.\nTwo.", "Three."), validation=(), test=("Four.",))
    assert parse(serialize(splits, "Prose", "numpy 1.0 (BSD)")) == splits


# --------------------------------------------------------------------------------------------- the recipe

DOCSTRING = """Sum of the elements along an axis.

The *sum* of an empty array is the neutral element 0, see
:func:`~numpy.add.reduce` and ``numpy.prod`` [1]_.

Parameters
----------
a : array_like
    Elements to sum. They may be numbers
    of any kind.
b : int, see Notes
    Another one.

.. note:: dropped
   with what belongs to it

.. warning::
   This may overflow.

- a list item that goes
  over two lines

The code that follows is hidden::

    not_prose(at, all)

>>> total = sum([1, 2])

Args:
    x (int): hidden as well

References
----------
.. [1] Nobody reads
This is hidden until the next heading.

Notes
-----
Arithmetic is modular.
"""


def test_paragraphs_are_the_running_text_without_marks():
    assert list(paragraphs(DOCSTRING)) == [
        "Sum of the elements along an axis.",
        "The sum of an empty array is the neutral element 0, see reduce and numpy.prod.",
        "Elements to sum. They may be numbers of any kind.",
        "Another one.",
        "This may overflow.",
        "Arithmetic is modular.",
    ]


GOOD = "The sum of an empty array is the neutral element of addition, so that it does not depend on the order of terms."


@pytest.mark.parametrize(
    "bad",
    [
        "It is too short.",
        GOOD.lower(),
        GOOD.rstrip("."),
        GOOD.replace("array", "\u00e9array"),
        GOOD.replace("neutral element", "x = f(a, b) + g_h(c)"),
        GOOD + " It is licensed under the terms of this package.",
        GOOD + " Everyone should remember (because otherwise nothing would.",
        "Numpy arrays, floats, integers, complex numbers, strings, objects, tuples, lists, records is all.",
        "Whether the sum of an empty array is the neutral element of addition, as it should be in all of the cases.",
    ],
)
def test_what_is_no_prose_is_left_out(bad):
    assert is_prose(GOOD)
    assert not is_prose(bad)


def test_docstrings_come_from_definitions_and_from_calls_that_document():
    code = (
        '"""Module."""\nclass A:\n    """Class."""\n    def f(self):\n        """Method."""\n        return "no"\n'
        'add_newdoc("numpy", "add", """\n    Adds.\n\n    All of it.\n    """)\nprint("no\\n\\nno")\n'
    )
    assert sorted(docstrings(code)) == ["Adds.\n\nAll of it.", "Class.", "Method.", "Module."]


def test_a_module_s_split_depends_on_its_name_alone():
    splits = [split_of(f"numpy/{i}.py") for i in range(2000)]
    assert 60 < splits.count("test") < 140 and 60 < splits.count("validation") < 140
    assert split_of("numpy/numpy/_core/fromnumeric.py") == "train"


def test_repeats_are_dropped_inside_a_split_and_across_splits():
    words = [f"{a}{b}" for a in "abcdefghij" for b in "abcdefghij"]
    first, second, third = (" ".join(words[i : i + 20]) for i in (0, 30, 60))
    nearly_first = first + " z"
    sharing_one_window = " ".join(words[80:90] + words[30:38] + words[90:99])
    splits = without_repeats(
        {"test": [[first, nearly_first], [second]], "validation": [[first]], "train": [[sharing_one_window, third]]}
    )
    assert splits == ProseSplits(test=(first, second), validation=(), train=(third,))
