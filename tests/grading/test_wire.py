"""What crosses the wall is what was sent, and whatever else arrives is refused."""

import io
import json
import struct

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from course_lib.grading.boxed.wire import LENGTHS, Handle, Unknown, WireError, arrays_in, pack, receive

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
PLAIN = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | TEXT
VALUES = st.recursive(
    PLAIN | st.builds(Handle, st.integers(0, 99)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(TEXT | st.integers(-9, 9), inner, max_size=4)
    ),
    max_leaves=20,
)


def across(value, **options):
    return receive(io.BytesIO(pack(value, **options)).read)


@given(VALUES)
@settings(max_examples=100, deadline=None)
def test_plain_values_arrive_as_they_are(value):
    assert across(value) == value


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (2, 0, 3)])
def test_tensors_and_arrays_arrive_with_type_and_shape(kind, shape):
    sent = torch.arange(torch.Size(shape).numel()).view(shape).to(getattr(torch, kind))
    found = across({"x": [sent, sent.mT if sent.dim() > 1 else sent]})["x"][0]
    assert found.dtype == sent.dtype and found.shape == sent.shape and torch.equal(found, sent)
    if kind != "bfloat16":
        array = across(sent.numpy())
        assert isinstance(array, np.ndarray) and array.dtype == sent.numpy().dtype and array.shape == shape


@pytest.mark.parametrize("number", [np.float64(0.5), np.float32(0.5), np.int64(3), np.uint8(3), np.bool_(True)])
def test_a_number_of_numpys_arrives_as_a_number(number):
    found = across((["a"], number))[1]
    assert found == number and type(found) in (float, int, bool)


def test_what_cannot_cross_arrives_as_a_stranger_with_its_name():
    class Odd:
        pass

    for value, name in ((Odd(), "Odd"), (torch.ones(2).to_sparse(), "Tensor"), (1 << 70, "int"), (1j, "complex")):
        found = across([value])[0]
        assert isinstance(found, Unknown) and type(found).__name__ == name
        with pytest.raises(WireError, match=f"a value of type {name} cannot be sent"):
            pack([value], strict=True)
    assert str(across(float("nan"))) == "nan" and across(float("-inf")) == float("-inf")


def test_arrays_are_found_in_their_order():
    a, b, c = torch.ones(1), np.ones(2), torch.ones(3)
    assert [len(array) for array in arrays_in([a, {"k": (b, 1)}, [c]])] == [1, 2, 3]


@pytest.mark.parametrize("value", [[0] * 30_000, torch.zeros(1000), "x" * (2 << 20)])
def test_what_is_too_large_is_not_sent(value):
    with pytest.raises(WireError):
        pack(value, most=1000)


def frame(tree, tensors=None, body=None):
    head = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
    body = (save(tensors) if tensors else b"") if body is None else body
    return LENGTHS.pack(len(head), len(body)) + head + body


NOT_BOOLEAN = save({"0": torch.zeros(2, dtype=torch.bool)})[:-2] + b"\x02\x03"


ODD = [{"odd": 1}, {"tuple": 3}, {"dict": [["a"]]}, {"dict": [[[1], 2]]}, {"float": "1e9"}, {"handle": -1}, 1 << 80]
ODD += [{"handle": True}, {"tensor": "0"}, [[0] * 200] * 200, b"{", b'"\\ud800"', b"[" * 5000 + b"]" * 5000]


@pytest.mark.parametrize(
    "data",
    [
        *map(frame, ODD),
        *(b"\xff" * 99, LENGTHS.pack(1 << 30, 0), struct.pack("<II", 10, 1 << 31)),
        frame([{"tensor": "0"}] * 2, {"0": torch.ones(2)}),  # one tensor twice
        *(frame({"tensor": "0"}, body=body) for body in (b"x" * 50, NOT_BOOLEAN)),
        frame({"tensor": "0"}, {"0": torch.zeros(2, dtype=torch.complex64)}),
    ],
)
def test_a_frame_that_is_none_is_refused(data):
    with pytest.raises((WireError, struct.error)):
        receive(io.BytesIO(data).read)
