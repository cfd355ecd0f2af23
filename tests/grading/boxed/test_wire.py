import io
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from course_lib.grading.boxed import wire
from course_lib.grading.boxed.wire import Handle, Unknown, WireError, arrays_in, pack, receive, send


def reading(data):
    """A function that reads exactly so many bytes of the data, and notes the most that it was asked for."""
    stream = io.BytesIO(data)

    def read_exactly(count):
        read_exactly.most = max(read_exactly.most, count)
        part = stream.read(count)
        if len(part) < count:
            raise EOFError
        return part

    read_exactly.most = 0
    return read_exactly


def frame(tree, body=b""):
    header = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
    return wire.LENGTHS.pack(len(header), len(body)) + header + body


def round_trip(value):
    written = []
    send(written.append, value)
    return receive(reading(b"".join(written)))


def equal(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape and same_bytes(a, b)
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    return type(a) is type(b) and (a == b or (a != a and b != b))


def same_bytes(a, b):
    a, b = (x.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8) for x in (a, b))
    return torch.equal(a, b)


shapes = st.lists(st.integers(0, 3), max_size=4)


@st.composite
def tensors(draw):
    shape = draw(shapes)
    size = math.prod(shape)
    dtype = draw(st.sampled_from(list(wire.TENSOR_TYPES.values())))
    if dtype == torch.bool:
        return torch.tensor(draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=dtype).reshape(shape)
    data = draw(st.binary(min_size=size * dtype.itemsize, max_size=size * dtype.itemsize))
    flat = torch.frombuffer(bytearray(data), dtype=dtype) if data else torch.empty(0, dtype=dtype)
    return flat.reshape(shape)


@st.composite
def arrays(draw):
    shape = draw(shapes)
    dtype = draw(st.sampled_from([dtype for dtype in wire.ARRAY_TYPES.values() if dtype != np.bool_]))
    data = draw(st.binary(min_size=math.prod(shape) * dtype.itemsize, max_size=math.prod(shape) * dtype.itemsize))
    return np.frombuffer(data, dtype=dtype).reshape(shape)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)
integers = st.integers(-(2**63) + 1, 2**63 - 1)
plain = st.none() | st.booleans() | integers | st.floats() | texts | st.builds(Handle, st.integers(0, 1000))
keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | integers
values = st.recursive(
    plain | tensors() | arrays(),
    lambda parts: (
        st.lists(parts, max_size=4) | st.lists(parts, max_size=4).map(tuple) | st.dictionaries(keys, parts, max_size=4)
    ),
    max_leaves=12,
)
WORDS = st.sampled_from(["tensor", "shape", "array", "tuple", "dict", "text", "float", "handle", "unknown"])
json_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(WORDS | texts, parts, max_size=3),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(values)
def test_what_is_sent_arrives(value):
    assert equal(value, round_trip(value))


@settings(max_examples=150, deadline=None)
@given(values, st.data())
def test_a_mangled_frame_is_refused_or_means_something_else(value, data):
    mangled = bytearray(pack(value))
    for _ in range(data.draw(st.integers(1, 4))):
        mangled[data.draw(st.integers(0, len(mangled) - 1))] = data.draw(st.integers(0, 255))
    try:
        receive(reading(bytes(mangled)))
    except (WireError, EOFError):
        pass


@settings(max_examples=150, deadline=None)
@given(json_trees, st.binary(max_size=40))
@example({"tensor": "float32", "shape": [2]}, b"12345678")
def test_no_header_makes_another_error_than_ours(tree, body):
    try:
        receive(reading(frame(tree, body)))
    except WireError:
        pass


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_noise_is_refused(data):
    with pytest.raises((WireError, EOFError)):
        receive(reading(b"\xff\xff" + data))


MALFORMED = {
    "nothing but brackets": b"[" * wire.MOST_HEADER,
    "too deep": [[[[[[[[[[[[[[1]]]]]]]]]]]]]],
    "too many parts": [0] * (wire.MOST_NODES + 1),
    "no JSON": b"{'a': 1}",
    "half a character": b'"\xff"',
    "half a surrogate pair": rb'"\ud800"',
    "a long text in the header": "x" * (wire.SHORT_TEXT + 1),
    "NaN": b"NaN",
    "infinity": b"-Infinity",
    "a float beyond all floats": b"1e999",
    "a float of many digits": b"0." + b"1" * 10_000,
    "an integer beyond 64 bits": 2**63,
    "an integer of many digits": b"9" * 5000,
    "a key twice": b'{"tensor": "float32", "tensor": "float32", "shape": [0]}',
    "an unknown mark": {"pickle": "gASVAA=="},
    "a mark too many": {"tensor": "float32", "shape": [0], "device": "cuda"},
    "no shape": {"tensor": "float32"},
    "an unknown dtype": {"tensor": "object", "shape": [0]},
    "numpy's object dtype": {"array": "object", "shape": [0]},
    "numpy's structures": {"array": "f4,O", "shape": [0]},
    "bfloat16 for numpy": {"array": "bfloat16", "shape": [0]},
    "a dtype that is no text": {"tensor": ["float32"], "shape": [0]},
    "a shape that is no list": {"tensor": "float32", "shape": 0},
    "a negative axis": {"tensor": "float32", "shape": [-1]},
    "two negative axes": {"tensor": "float32", "shape": [-2, -2]},
    "a float for an axis": {"tensor": "float32", "shape": [0.0]},
    "too many axes": {"tensor": "float32", "shape": [0] * (wire.MOST_AXES + 1)},
    "axes whose product overflows beside an empty one": {"tensor": "float32", "shape": [1 << 28, 1 << 28, 1 << 28, 0]},
    "more numbers than bytes": {"tensor": "float32", "shape": [3]},
    "a dictionary with a key twice": {"dict": [["a", 1], ["a", 2]]},
    "a dictionary with a truth value as key": {"dict": [[True, 1]]},
    "a dictionary with lone keys": {"dict": [["a"]]},
    "a dictionary with a text in place of a pair": {"dict": ["ab"]},
    "a dictionary with an object in place of a pair": {"dict": [{"a": 1, "b": 2}]},
    "a dictionary with a long key": {"dict": [["a" * (wire.MOST_KEY + 1), 1]]},
    "a dictionary with half a surrogate pair as key": rb'{"dict": [["\ud800", 1]]}',
    "a handle that is no number": {"handle": "0"},
    "a negative handle": {"handle": -1},
    "a handle beyond all that a box could keep": {"handle": wire.MOST_BODY + 1},
    "a float that is no name": {"float": "1.5"},
    "an unknown that is no name": {"unknown": 1},
    "a text of negative length": {"text": -1},
    "a text longer than the body": {"text": 9},
}


@pytest.mark.parametrize("tree", MALFORMED.values(), ids=MALFORMED)
def test_malformed_frames_are_refused(tree):
    with pytest.raises(WireError):
        receive(
            reading(frame(tree, b"\x00" * 8 if tree in (MALFORMED["more numbers than bytes"], {"text": 9}) else b""))
        )


MARKED = {
    "tuple": {"tuple": []},
    "dictionary": {"dict": []},
    "tensor": {"tensor": "float32", "shape": [0]},
    "array": {"array": "float32", "shape": [0]},
    "text": {"text": 0},
    "float": {"float": "nan"},
    "handle": {"handle": 0},
    "unknown": {"unknown": "int"},
}


@pytest.mark.parametrize("tree", MARKED.values(), ids=MARKED)
def test_beside_a_mark_stands_nothing_else(tree):
    receive(reading(frame(tree)))
    with pytest.raises(WireError, match="means nothing"):
        receive(reading(frame(tree | {"more": 1})))


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("limit", "make", "beyond"),
    [
        ("MOST_DEPTH", nested, None),
        ("MOST_NODES", lambda parts: [0] * (parts - 1), None),  # the list counts, too
        ("MOST_AXES", lambda axes: torch.zeros([1] * axes), Unknown("Tensor")),
        ("MOST_AXES", lambda axes: np.zeros([1] * axes), Unknown("ndarray")),
        ("MOST_KEY", lambda length: {"a" * length: 1}, Unknown("dict")),
        ("MOST_INTEGER", lambda number: {number - 1: 1}, Unknown("dict")),
        ("MOST_INTEGER", lambda number: {1 - number: 1}, Unknown("dict")),
    ],
    ids=["depth", "parts", "axes of a tensor", "axes of an array", "key", "large key", "small key"],
)
def test_both_ends_take_what_is_within_a_limit_and_nothing_beyond(monkeypatch, limit, make, beyond):
    most = getattr(wire, limit)
    assert equal(round_trip(make(most)), make(most))
    if beyond is None:
        with pytest.raises(WireError):
            pack(make(most + 1))
    else:
        assert round_trip(make(most + 1)) == beyond
    monkeypatch.setattr(wire, limit, most + 1)
    sent = pack(make(most + 1))
    monkeypatch.undo()
    with pytest.raises(WireError):
        receive(reading(sent))


@pytest.mark.parametrize("length", [True, 1.0, "1", [1], None])
def test_the_length_of_an_axis_is_a_whole_number(length):
    assert receive(reading(frame({"tensor": "uint8", "shape": [1]}, b"x"))).shape == (1,)
    with pytest.raises(WireError, match="length"):
        receive(reading(frame({"tensor": "uint8", "shape": [length]}, b"x")))


@pytest.mark.parametrize("kind", ["tensor", "array"])
def test_truth_values_are_true_or_false(kind):
    assert receive(reading(frame({kind: "bool", "shape": [2]}, b"\x00\x01"))).tolist() == [False, True]
    with pytest.raises(WireError, match="truth"):
        receive(reading(frame({kind: "bool", "shape": [2]}, b"\x00\x02")))


def test_a_body_that_the_header_does_not_use_up_is_refused():
    with pytest.raises(WireError, match="longer"):
        receive(reading(frame({"tensor": "uint8", "shape": [2]}, b"123")))


def test_a_text_in_the_body_must_be_one():
    assert receive(reading(frame({"text": 3}, "a\u00e9".encode()))) == "a\u00e9"
    with pytest.raises(WireError, match="UTF-8"):
        receive(reading(frame({"text": 1}, b"\xff")))


@pytest.mark.parametrize("lengths", [(wire.MOST_HEADER + 1, 0), (2, 1001), (2**32 - 1, 2**32 - 1)])
def test_a_frame_that_claims_to_be_large_is_not_even_read(lengths):
    read = reading(wire.LENGTHS.pack(*lengths) + b"{}")
    with pytest.raises(WireError):
        receive(read, most=1000)
    assert read.most == wire.LENGTHS.size


def test_a_header_of_brackets_takes_little_memory():
    import tracemalloc

    data = frame(b"[" + b"[]," * (wire.MOST_HEADER // 3 - 2) + b"1]")
    tracemalloc.start()
    with pytest.raises(WireError):
        receive(reading(data))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32e6  # bytes


def test_tensors_cross_whatever_their_layout():
    x = torch.arange(24.0).reshape(2, 3, 4)
    for tensor in (
        x.transpose(0, 2),
        x[:, ::2],
        x[0, 0, 0],
        x[:0],
        x[:1, ::3],
        x.flatten()[:2:2],
        x.expand(3, 2, 3, 4),
        torch.empty(0, 3),
    ):
        assert equal(tensor, round_trip(tensor))


def test_a_tensor_with_history_arrives_as_its_numbers():
    weight = torch.nn.Parameter(torch.ones(2))
    for tensor in (weight, weight * 2):
        arrived = round_trip(tensor)
        assert type(arrived) is torch.Tensor and not arrived.requires_grad and torch.equal(arrived, tensor.detach())


def test_conjugate_views_arrive_as_their_numbers():
    z = torch.tensor([1 + 2j])
    assert torch.equal(round_trip(z.conj()), torch.tensor([1 - 2j]))
    assert torch.equal(round_trip(z.conj().imag), torch.tensor([-2.0]))


def test_what_arrives_can_be_written_to():
    tensor, array = round_trip([torch.ones(2), np.ones(2)])
    tensor += 1
    array += 1
    assert tensor.tolist() == array.tolist() == [2, 2]
    assert tensor.resize_(3).shape == (3,)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_floats_that_json_does_not_know_arrive(number):
    assert equal(round_trip([number, {"a": number}]), [number, {"a": number}])


@pytest.mark.parametrize("text", ["a\ud800", "a\ud800" * 200], ids=["short", "long"])
def test_half_a_surrogate_pair_arrives_as_a_question_mark(text):
    assert round_trip(text) == text.replace("\ud800", "?")


def test_numbers_of_numpy_arrive_as_arrays_of_no_axes():
    arrived = round_trip(np.float64(1.5))
    assert isinstance(arrived, np.ndarray) and arrived.shape == () and float(arrived) == 1.5


def test_arrays_in_the_order_of_bytes_of_other_machines_arrive_as_their_numbers():
    assert round_trip(np.array([1.5, 2.5], dtype=">f8")).tolist() == [1.5, 2.5]


def kind(value):
    """For the names of tests, which must be the same in each process."""
    return type(value).__name__


class HostileNumber(int):
    def __abs__(self):
        raise SystemExit


class Hostile(str):
    __hash__ = str.__hash__

    def __eq__(self, other):
        raise SystemExit


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (object(), "object"),
        (len, "builtin_function_or_method"),
        (lambda: None, "function"),
        (torch.nn.Linear(1, 1), "Linear"),
        (10**30, "int"),
        ({1, 2}, "set"),
        (b"bytes", "bytes"),
        ({(1, 2): 3}, "dict"),
        ({True: 3}, "dict"),
        (Hostile("text"), wire.NAMELESS),
        (HostileNumber(1), wire.NAMELESS),
        (type("the_answer_is_42", (float,), {})(), wire.NAMELESS),
        (type("the_answer_is_42", (), {})(), wire.NAMELESS),
        (Unknown("the answer is 42"), wire.NAMELESS),
        (torch.ones(2).to_sparse(), "Tensor"),
        (np.array([object()]), "ndarray"),
    ],
    ids=kind,
)
def test_other_types_arrive_as_unknown_and_their_names_carry_no_message(value, name):
    assert round_trip(value) == Unknown(name)


@pytest.mark.parametrize(
    "value", [object(), 10**30, {(1, 2): 3}, torch.ones(2).to_sparse(), np.array(["text"])], ids=kind
)
def test_the_judge_cannot_send_what_would_arrive_as_unknown(value):
    with pytest.raises(WireError, match="cannot be sent"):
        pack([value], strict=True)


def test_a_forged_type_name_carries_no_message():
    assert receive(reading(frame({"unknown": "the answer is 42"}))) == Unknown(wire.NAMELESS)


def test_what_is_too_large_is_not_sent():
    written = []
    with pytest.raises(WireError):
        send(written.append, torch.zeros(1000), most=1000)
    endless = []
    endless.append(endless)
    for value in (endless, [0] * (wire.MOST_NODES + 1), ["x" * 200] * 2000):
        with pytest.raises(WireError):
            send(written.append, value)
    assert not written


def test_arrays_are_found_in_the_order_in_which_they_are_sent():
    a, b, c = torch.zeros(1), np.zeros(2), torch.zeros(3)
    assert [len(x) for x in arrays_in([(a, 1), {"k": b, "l": [c]}, None])] == [1, 2, 3]
