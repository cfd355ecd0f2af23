"""The judge's end of a box: whatever comes out of it is looked at before it is believed. No sandbox is needed."""

import os
import tempfile
import time

import numpy as np
import pytest
import torch

from course_lib.grading import sandbox
from course_lib.grading.boxed.wire import Handle, WireError, pack
from course_lib.grading.boxed.worker import CUT_OFF, OWN_ERROR, TOO_LARGE
from course_lib.grading.lines import PolledLine
from course_lib.grading.sandbox import Box, BoxEnded, Limits, StudentError

pytestmark = pytest.mark.needs("linux")  # elsewhere a box is talked to by threads


def stream(content):
    file = tempfile.TemporaryFile(buffering=0)
    file.write(content)
    file.seek(0)
    return file


class ScriptedBody:
    """A box that answers what a test wants, frame by frame, and then closes its pipes."""

    def __init__(self, *replies, log=b"", reason="exit", limits=None):
        frames = [reply if isinstance(reply, bytes) else pack(reply) for reply in replies]
        self.requests, self.replies, self.log = stream(b""), stream(b"".join(frames)), stream(log)
        self.line = PolledLine(self.requests, self.replies, self.log, limits or Limits())
        self.reason, self.ended = reason, []

    def end(self, *, seconds=0):
        self.ended.append(seconds)
        return self.reason


def box_that_says(*replies, **more):
    return Box(ScriptedBody(*replies, **more))


def ends(box, reason, ask):
    with pytest.raises(BoxEnded) as ended:
        ask(box)
    assert ended.value.reason == box.ended == reason


MEANINGLESS = {
    "nothing": None,
    "a list": [],
    "an empty dictionary": {},
    "another key": {"other": 1},
    "an error that is no text": {"error": 7},
    "an error with a value": {"error": "ValueError", "value": 1},
    "a value with more": {"value": 1, "more": 2},
    "changes alone": {"changed": {}},
    "no frame": b"\xff" * 20,
    "half a frame's length": pack({"value": 1})[:4] + b"\xff\xff\xff\xff",
}


@pytest.mark.parametrize("reply", MEANINGLESS.values(), ids=MEANINGLESS)
def test_a_reply_that_means_nothing_ends_the_box(reply):
    ends(box_that_says(reply), "protocol", lambda box: box.call("f"))


def test_a_reply_above_the_limit_is_not_read():
    limits = Limits(reply_bytes=1000)
    assert len(box_that_says({"value": torch.zeros(250)}, limits=limits).call("f")) == 250
    ends(box_that_says({"value": torch.zeros(251)}, limits=limits), "protocol", lambda box: box.call("f"))


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("ValueError", "ValueError"),
        ("EinopsError", "EinopsError"),
        (TOO_LARGE, TOO_LARGE),
        (CUT_OFF, CUT_OFF),
        ("the hidden input is 42", OWN_ERROR),
        ("ValueError: 42", OWN_ERROR),
    ],
)
def test_kinds_of_errors_are_those_that_we_know(said, kind):
    with pytest.raises(StudentError) as error:
        box_that_says({"error": said}).call("f")
    assert error.value.kind == kind
    assert box_that_says({"error": said}).load("x") == kind


@pytest.mark.parametrize("reply", [1, None, torch.ones(1), [Handle(0)]])
def test_what_shall_stay_in_the_box_comes_back_as_a_handle_only(reply):
    assert box_that_says({"value": Handle(3)}).call("f", keep=True) == Handle(3)
    ends(box_that_says({"value": reply}), "protocol", lambda box: box.call("f", keep=True))


# arrays that were overwritten -------------------------------------------------------------------------------


def given():
    """The arguments of a call: arrays number 0 and 1, and a tensor in a dictionary, number 2."""
    return torch.zeros(2), np.zeros(2, dtype=np.float32), {"x": torch.zeros(2)}


@pytest.mark.parametrize(
    "changed",
    [
        {3: torch.ones(2)},
        {-1: torch.ones(2)},
        {"0": torch.ones(2)},
        {0: np.ones(2, dtype=np.float32)},
        {0: torch.ones(2, dtype=torch.float64)},
        {0: 1.0},
        {0: None},
        {1: torch.ones(2)},
        {1: np.ones(2)},
        {1: np.ones(3, dtype=np.float32)},
        {1: np.ones((), dtype=np.float32)},
        {1: 1.0},
        {2: [torch.ones(2)]},
    ],
    ids=str,
)
def test_a_change_that_cannot_be_ends_the_box_and_changes_nothing(changed):
    tensor, array, named = given()
    ends(box_that_says({"value": 1, "changed": changed}), "protocol", lambda box: box.call("f", tensor, array, **named))
    assert tensor.tolist() == array.tolist() == named["x"].tolist() == [0, 0]


def test_changes_reach_the_arrays_themselves_also_under_other_names():
    tensor, array, named = given()
    weight = torch.nn.Parameter(torch.zeros(2))
    views = tensor[:], array[:], weight.detach()
    changed = {0: torch.ones(2), 1: np.ones(2, dtype=np.float32), 2: weight.detach() + 1, 3: torch.ones(3)}
    box_that_says({"value": 1, "changed": changed}).call("f", tensor, array, weight, **named)
    assert all(view.tolist() == [1, 1] for view in views) and named["x"].shape == (3,)


@pytest.mark.parametrize("changed", [None, 7, [torch.ones(2)]])
def test_what_is_no_list_of_changes_changes_nothing(changed):
    tensor = torch.zeros(2)
    assert box_that_says({"value": 1, "changed": changed}).call("f", tensor) == 1
    assert tensor.tolist() == [0, 0]


# modules ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, [torch.ones(1)], {"a": 1}, {1: torch.ones(1)}, {"a": np.ones(1)}])
def test_parameters_are_tensors_with_names(value):
    assert box_that_says({"value": {"a": torch.ones(1)}}).parameters(Handle(0)).keys() == {"a"}
    with pytest.raises(StudentError) as error:
        box_that_says({"value": value}).parameters(Handle(0))
    assert error.value.kind == OWN_ERROR


X = torch.zeros(2)


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"inputs": [X, None]},
        {"inputs": (X, None), "parameters": {}},
        {"inputs": [X], "parameters": {}},
        {"inputs": [X, None, None], "parameters": {}},
        {"inputs": [torch.zeros(3), None], "parameters": {}},
        {"inputs": [np.zeros(2), None], "parameters": {}},
        {"inputs": [X, X], "parameters": {}},
        {"inputs": [X, None], "parameters": {"a": 1}},
        {"inputs": [X, None], "parameters": [X]},
    ],
    ids=str,
)
def test_gradients_have_the_shapes_of_what_they_are_with_respect_to(value):
    right = {"inputs": [X, None], "parameters": {"a": X}}
    found = box_that_says({"value": right}).gradients("f", X, 3, output_gradient=X)
    assert torch.equal(found.inputs[0], X) and found.inputs[1] is None and found.parameters.keys() == {"a"}
    with pytest.raises(StudentError) as error:
        box_that_says({"value": value}).gradients("f", X, 3, output_gradient=X)
    assert error.value.kind == OWN_ERROR


# ends -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["exit", "memory", "cpu", "processes", "protocol"])
def test_a_box_that_closes_its_pipes_is_waited_for_and_says_why_it_ended(reason):
    box = box_that_says(reason=reason)
    ends(box, reason, lambda box: box.call("f"))
    assert box._body.ended == [sandbox.GRACE]


def test_a_box_that_is_ended_is_not_waited_for():
    box = box_that_says(None, reason="exit")
    ends(box, "protocol", lambda box: box.call("f"))
    assert box._body.ended == [0]


def test_a_box_that_does_not_answer_is_ended_in_time():
    body = ScriptedBody()
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as replies, open(writing, "wb", buffering=0):
        body.line = PolledLine(body.requests, replies, body.log, Limits())
        start = time.monotonic()
        ends(Box(body), "time", lambda box: box.call("f", seconds=0.05))
        assert time.monotonic() - start < 2 and body.ended == [0]


def test_a_box_that_has_ended_is_asked_nothing_and_says_the_same_for_ever():
    box = box_that_says({"value": 1}, None, {"value": 1})
    assert box.call("f") == 1
    ends(box, "protocol", lambda box: box.call("f"))
    asked = box._body.requests.tell()
    for again in (
        lambda box: box.call("f"),
        lambda box: box.load("x"),
        lambda box: box.parameters(Handle(0)),
        lambda box: box.set_parameters(Handle(0), {}),
        lambda box: box.gradients("f", output_gradient=X),
    ):
        ends(box, "protocol", again)
    assert box._body.requests.tell() == asked and len(box._body.ended) == 1


def test_closing_ends_a_box_once_and_closes_its_pipes():
    with box_that_says() as box:
        body = box._body
    box.close()
    assert body.ended == [0] and box.ended == "closed"
    assert body.requests.closed and body.replies.closed and body.log.closed


def test_an_argument_that_cannot_be_sent_is_the_judges_own_fault():
    box = box_that_says({"value": 1})
    with pytest.raises(WireError):
        box.call("f", object())
    assert box.ended is None


def test_of_what_is_printed_the_beginning_is_kept():
    box = box_that_says(log=b"x" * 200_000, limits=Limits(log_bytes=70_000))
    box.close()
    assert box.log == b"x" * 70_000
