import ast
import json

import pytest

from course_lib.classroom.source import essence, show_source
from course_lib.functional.attention import attention_weights
from course_lib.layers.transformer import MultiHeadAttention
from course_lib.models import seq2seq


def test_the_source_shown_is_the_one_that_runs_and_says_where_it_stands(page):
    show_source(attention_weights)
    assert page[0]["text/plain"].startswith("# course_lib.functional.attention\ndef attention_weights(q, k")
    assert "return masked_softmax(scores, mask)" in page[0]["text/plain"]
    assert "the whole file: course_lib/functional/attention.py)" in page[0]["text/html"]


def test_docstring_and_types_are_folded_away_and_lines_are_never_broken(page):
    show_source(attention_weights)
    bare, whole = page[0]["text/html"].split("<details><summary>with docstring and types</summary>")
    assert "Float" not in bare and "Float" in whole and attention_weights.__doc__.split()[0] in whole
    assert bare.count("white-space:pre;") == whole.count("white-space:pre;") == 1


def test_a_method_is_shown_without_its_indentation_and_a_module_whole(capsys):
    show_source(seq2seq.Seq2Seq.encode, seq2seq)
    shown = capsys.readouterr().out
    assert "# course_lib.models.seq2seq\ndef encode(self" in shown
    assert "class Seq2Seq(" in shown


def test_comments_nested_functions_and_long_heads_stay_readable():
    source = '''\
class Counter:
    """Counts."""

    step: int = 1

    @property
    def name(self) -> str:
        """Its name."""
        # why
        def inner(x: int) -> int:
            """Not shown."""
            return x
        return inner(self)  # here

    def wide(self, one_long_argument, yet_another_argument: int = 2, *, third="x", the_fourth: int = 4) -> None:
        """Only a docstring."""
'''
    assert (
        essence(source)
        == '''\
class Counter:
    step: int = 1

    @property
    def name(self):
        # why
        def inner(x):
            return x
        return inner(self)  # here

    def wide(
        self, one_long_argument, yet_another_argument=2, *, third='x', the_fourth=4
    ):
        """Only a docstring."""'''
    )


def test_what_is_left_of_a_real_class_is_the_same_program(capsys):
    show_source(MultiHeadAttention)
    tree = ast.parse(capsys.readouterr().out)
    assert [node.name for node in tree.body[0].body if isinstance(node, ast.FunctionDef)] == [
        name for name, value in vars(MultiHeadAttention).items() if callable(value)
    ]


def test_what_has_no_python_source_is_refused_with_advice():
    with pytest.raises(ValueError, match="give a function, a class or a module"):
        show_source(json.dumps.__class__)
