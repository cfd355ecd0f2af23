"""The box for one character after the other."""

import pytest

from course_lib.classroom.widgets import Explorer, Keys


def keys(**options):
    return Keys(name="typed", label="Next", **{"most": 3, "again": "Another"} | options)


def hears(control, *messages):
    """What the learner's page sends, and what comes of it: the rounds, and what is said in the end."""
    heard = []
    box, _ = control.build(heard.append)
    for message in messages:
        box._handle_custom_msg(message, [])
    return heard, box.said


def character(letter):
    return {"character": letter}


def test_characters_gather_in_rounds_of_a_certain_length():
    typed = [character(letter) for letter in "abcd"]
    heard, _ = hears(keys(), *typed, {"again": True}, character(" "))
    assert heard == [("a",), ("ab",), ("abc",), ("abc", ""), ("abc", " ")]


def test_a_new_round_begins_only_after_a_character():
    heard, _ = hears(keys(), {"again": True}, {"again": True})
    assert set(heard) == {("",)}


def test_what_came_of_a_character_is_said():
    control = keys(answer=lambda rounds: f"{len(rounds[-1])} so far")
    assert hears(control)[1] == "0 so far"
    assert hears(control, character("a"), character("b"))[1] == "2 so far"


def test_back_to_the_start_is_said_too():
    heard = []
    box, put = keys(answer=lambda rounds: f"{len(rounds[-1])} so far").build(heard.append)
    box._handle_custom_msg(character("a"), [])
    put(("",))
    assert heard == [("a",), ("",)] and box.said == "0 so far" and box.rounds == ("",)


def test_a_state_says_its_round_in_words():
    assert keys().words(("",)) == "nothing typed yet"
    assert keys().words(("ab", "c")) == "round 2, typed “c”"


@pytest.mark.parametrize("value", [(), ("abcd",), (1,)])
def test_rounds_that_nobody_can_type_are_refused(value):
    explorer = Explorer(name="x", title="x", controls=[keys()], draw=lambda state: "", alt=lambda state: "x")
    with pytest.raises(ValueError, match="Next takes rounds of at most 3 characters"):
        explorer.state(typed=value)
