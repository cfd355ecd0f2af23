"""A sentence whose words can be hidden."""

import ipywidgets

from course_lib.classroom.widgets.blanks import Blanks, Word
from tests.classroom.widgets.test_explorer import parts


def cut(text):
    if "(" in text:
        raise ValueError("No parentheses, please.")
    return [Word(None if "?" in word else word.strip("[]"), hidden=word.startswith("[")) for word in text.split()]


def join(words):
    return " ".join(f"[{word.text or '?'}]" if word.hidden else word.text for word in words)


def built(most=30):
    heard = []
    control = Blanks(
        name="text", label="Text", value="the [cat] sees", vocabulary=["cat"], cut=cut, join=join, most=most
    )
    box, _ = control.build(heard.append)
    return (*box.children[:2], heard, box)


def test_a_click_hides_a_word_and_shows_it_again():
    text, row, heard, box = built()
    chips = row.children[1:]
    assert [chip.description for chip in chips if chip.value] == ["cat"]
    chips[0].value = True
    chips[1].value = False
    assert heard == ["[the] [cat] sees", "[the] cat sees"] and text.value == heard[-1]
    assert [chip.tooltip for chip in chips] == ["Show “the”", "Hide “cat”", "Hide “sees”"]
    assert len(parts(box, ipywidgets.Text)) == 1


def test_the_buttons_stay_where_they_are_when_the_words_change():
    text, row, _, _ = built()
    before = row.children[1:]
    text.value = "a dog [?] it often"
    assert row.children[1:4] == before and [chip.description for chip in row.children[3:5]] == ["?", "it"]
    assert row.children[3].disabled and not row.children[4].disabled
    text.value = "a dog"
    assert row.children[1:] == before[:2]


def test_a_text_that_cannot_be_cut_has_no_buttons_and_a_long_one_not_more_than_agreed():
    text, row, heard, _ = built(most=4)
    text.value = "(a"
    assert len(row.children) == 1 and heard == ["(a"]
    text.value = "a b c d e f"
    assert [chip.description for chip in row.children[1:]] == ["a", "b", "c", "d"]
