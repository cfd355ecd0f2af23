import json

import pytest

from course_lib.classroom.source import show_source
from course_lib.functional.attention import attention_weights
from course_lib.models import seq2seq


def test_the_source_shown_is_the_one_that_runs(capsys):
    show_source(attention_weights)
    shown = capsys.readouterr().out
    assert shown.startswith("# course_lib.functional.attention\ndef attention_weights(")
    assert "return masked_softmax(scores, mask)" in shown


def test_a_method_is_shown_without_its_indentation_and_a_module_whole(capsys):
    show_source(seq2seq.Seq2Seq.encode, seq2seq)
    shown = capsys.readouterr().out
    assert "# course_lib.models.seq2seq\ndef encode(self" in shown
    assert "class LuongDecoder(Decoder)" in shown


def test_what_has_no_python_source_is_refused_with_advice():
    with pytest.raises(ValueError, match="give a function, a class or a module"):
        show_source(json.dumps.__class__)
