"""Values between the judge and the box: a JSON tree, then raw array bytes; never pickle.

A frame is two lengths (header, body), the header, the body. The header is JSON that describes the value; arrays and
long texts lie in the body in the order of the header. Whoever receives trusts nothing: each limit is checked there.
"""

import builtins
import json
import math
import struct
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

MOST_HEADER = 1 << 18  # bytes
MOST_BODY = 1 << 28  # bytes, unless the receiver allows less
MOST_NODES = 20_000  # values in a tree
MOST_DEPTH = 12
MOST_AXES = 16
MOST_INTEGER = 1 << 63
SHORT_TEXT = 256  # characters; a longer text goes into the body
MOST_KEY = 256  # characters of a dictionary's key

LENGTHS = struct.Struct("<II")
TENSOR_TYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
        *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool),
    )
}
ARRAY_TYPES: dict[str, np.dtype] = {name: np.dtype(name) for name in TENSOR_TYPES if name != "bfloat16"}
TYPE_NAMES = frozenset(  # a closed list: the name of a type could carry a message to whoever reads the report
    [name for name, value in vars(builtins).items() if isinstance(value, type)]
    + [value.__name__ for value in vars(types).values() if isinstance(value, type)]
    + ["Linear", "Module", "Parameter", "Tensor", "ndarray"]
)
NAMELESS = "object of another type"


class WireError(Exception):
    """What arrived is no frame of ours, or a value is too large for one."""


@dataclass(frozen=True)
class Unknown:
    """Stands for a value of a type that does not cross the wire."""

    type_name: str


@dataclass(frozen=True)
class Handle:
    """Stands for a value that stays in the box."""

    number: int


def send(write: Callable[[bytes], object], value: Any, *, most: int = MOST_BODY) -> None:
    """Writes a value as one frame: tensors lose their history, values of other types become `Unknown`.

    Raises WireError, with nothing written, if it is too large: more than `most` bytes of arrays and texts.
    """
    write(pack(value, most=most))


def pack(value: Any, *, most: int = MOST_BODY, strict: bool = False) -> bytes:
    """A value as one frame. Raises WireError if it is too large or, if `strict`, where it would become `Unknown`."""
    body: list[bytes] = []
    header = json.dumps(_Packer(body, strict).tree(value, 0), allow_nan=False, separators=(",", ":")).encode()
    size = sum(map(len, body))
    if len(header) > MOST_HEADER or size > most:
        raise WireError(f"a value of {len(header)} + {size} bytes is too large: {MOST_HEADER} + {most} bytes at most")
    return b"".join([LENGTHS.pack(len(header), size), header, *body])


def receive(read_exactly: Callable[[int], bytes], *, most: int = MOST_BODY) -> Any:
    """The value of the next frame; `read_exactly(n)` returns the next n bytes or raises EOFError.

    Raises WireError if what comes is no frame, breaks a limit, or has a body of more than `most` bytes.
    """
    header_length, body_length = LENGTHS.unpack(read_exactly(LENGTHS.size))
    if header_length > MOST_HEADER or body_length > most:
        raise WireError(f"a frame of {header_length} + {body_length} bytes")
    header, body = read_exactly(header_length), read_exactly(body_length)
    try:
        tree = json.loads(
            header.decode("utf-8"),
            object_pairs_hook=_plain_object,
            parse_constant=_refuse,
            parse_int=_integer,
            parse_float=_fraction,
        )
    except (ValueError, RecursionError) as problem:
        raise WireError(f"the header is no JSON: {type(problem).__name__}") from None
    unpacker = _Unpacker(memoryview(body))
    value = unpacker.value(tree, 0)
    if unpacker.rest:
        raise WireError("the body is longer than the header says")
    return value


def arrays_in(value: Any) -> Iterator[Tensor | np.ndarray]:
    """The tensors and arrays in a value, in the order in which they cross the wire."""
    if isinstance(value, Tensor | np.ndarray):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from arrays_in(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from arrays_in(part)


class _Packer:
    """Turns a value into a JSON tree; arrays and long texts are appended to the body."""

    def __init__(self, body: list[bytes], strict: bool):
        self.body, self.strict = body, strict
        self.nodes = 0

    def tree(self, value: Any, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > MOST_NODES or depth > MOST_DEPTH:
            raise WireError(f"a value of more than {MOST_NODES} parts, or nested more than {MOST_DEPTH} deep")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if abs(value) < MOST_INTEGER else self.unknown("int")
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if kind is str:
            return self.text(value)
        if kind is Handle:
            return {"handle": value.number}
        if kind is Unknown:
            return self.unknown(value.type_name)
        if isinstance(value, Tensor):
            return self.tensor(value)
        if isinstance(value, np.ndarray | np.generic):
            return self.array(np.asarray(value))
        if isinstance(value, list):
            return [self.tree(part, depth + 1) for part in value]
        if isinstance(value, tuple):
            return {"tuple": [self.tree(part, depth + 1) for part in value]}
        if isinstance(value, dict) and all(_is_key(key) for key in value):
            return {"dict": [[key, self.tree(part, depth + 1)] for key, part in value.items()]}
        return self.unknown(kind.__name__)

    def unknown(self, type_name: str) -> Any:
        if self.strict:
            raise WireError(f"a value of type {type_name} cannot be sent")
        return {"unknown": type_name if type_name in TYPE_NAMES else NAMELESS}

    def text(self, text: str) -> Any:
        data = text.encode("utf-8", errors="replace")
        if len(text) <= SHORT_TEXT:
            return data.decode("utf-8")
        self.body.append(data)
        return {"text": len(data)}

    def tensor(self, tensor: Tensor) -> Any:
        name = str(tensor.dtype).removeprefix("torch.")
        if name not in TENSOR_TYPES or tensor.layout != torch.strided or tensor.dim() > MOST_AXES:
            return self.unknown("Tensor")
        plain = tensor.detach().as_subclass(Tensor).cpu().resolve_conj().resolve_neg()
        plain = plain.clone(memory_format=torch.contiguous_format)  # contiguous() keeps odd strides of axes of length 1
        self.body.append(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
        return {"tensor": name, "shape": list(plain.shape)}

    def array(self, array: np.ndarray) -> Any:
        if array.dtype.name not in ARRAY_TYPES or array.ndim > MOST_AXES:
            return self.unknown("ndarray")
        self.body.append(array.astype(ARRAY_TYPES[array.dtype.name], copy=False).tobytes())
        return {"array": array.dtype.name, "shape": list(array.shape)}


class _Unpacker:
    """Turns a JSON tree and a body back into a value; raises WireError where they do not fit."""

    def __init__(self, body: memoryview):
        self.rest = body
        self.nodes = 0

    def value(self, tree: Any, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > MOST_NODES or depth > MOST_DEPTH:
            raise WireError(f"more than {MOST_NODES} parts, or nested more than {MOST_DEPTH} deep")
        if tree is None or type(tree) in (bool, int, float):
            return tree
        if type(tree) is str:
            return _encodable(tree, SHORT_TEXT)
        if type(tree) is list:
            return [self.value(part, depth + 1) for part in tree]
        match tree:
            case {"tuple": list(parts), **rest} if not rest:
                return tuple(self.value(part, depth + 1) for part in parts)
            case {"dict": list(pairs), **rest} if not rest:
                return self.dictionary(pairs, depth)
            case {"tensor": str(name), "shape": list(shape), **rest} if not rest and name in TENSOR_TYPES:
                return self.tensor(TENSOR_TYPES[name], shape)
            case {"array": str(name), "shape": list(shape), **rest} if not rest and name in ARRAY_TYPES:
                return self.array(ARRAY_TYPES[name], shape)
            case {"text": length, **rest} if not rest:
                return _encodable(self.take(_count(length)), None)
            case {"float": "nan" | "inf" | "-inf" as name, **rest} if not rest:
                return float(name)
            case {"handle": number, **rest} if not rest:
                return Handle(_count(number))
            case {"unknown": str(name), **rest} if not rest:
                return Unknown(name if name in TYPE_NAMES else NAMELESS)
        raise WireError("a part of the header that means nothing")

    def take(self, length: int) -> memoryview:
        if length > len(self.rest):
            raise WireError("the body is shorter than the header says")
        data, self.rest = self.rest[:length], self.rest[length:]
        return data

    def dictionary(self, pairs: list[Any], depth: int) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for pair in pairs:
            if type(pair) is not list or len(pair) != 2 or not _is_key(pair[0]) or pair[0] in result:
                raise WireError("a dictionary with something other than keys and values, or with a key twice")
            key = _encodable(pair[0], MOST_KEY) if type(pair[0]) is str else pair[0]
            result[key] = self.value(pair[1], depth + 1)
        return result

    def tensor(self, dtype: torch.dtype, shape: list[Any]) -> Tensor:
        data = self.numbers(shape, dtype.itemsize, truth=dtype == torch.bool)
        if not data:
            return torch.empty(shape, dtype=dtype)
        borrowed = torch.frombuffer(bytearray(data), dtype=dtype)
        return borrowed.clone().reshape(shape)  # the clone owns its memory, as a tensor in a notebook does

    def array(self, dtype: np.dtype, shape: list[Any]) -> np.ndarray:
        data = bytearray(self.numbers(shape, dtype.itemsize, truth=dtype == np.bool_))
        return np.frombuffer(data, dtype=dtype).reshape(shape)

    def numbers(self, shape: list[Any], itemsize: int, *, truth: bool) -> memoryview:
        """The bytes of an array; as truth values they may be 0 and 1 only, since others confuse the library."""
        if len(shape) > MOST_AXES:
            raise WireError(f"an array with {len(shape)} axes")
        lengths = [_count(length) for length in shape]
        # without its empty axes too, an array must be of a size that a library can count
        if math.prod(filter(None, lengths)) * itemsize > MOST_BODY:
            raise WireError("an array of too many numbers")
        data = self.take(math.prod(lengths) * itemsize)
        if truth and len(data) and np.frombuffer(data, dtype=np.uint8).max() > 1:
            raise WireError("a truth value that is neither true nor false")
        return data


def _is_key(key: Any) -> bool:
    return (type(key) is str and len(key) <= MOST_KEY) or (type(key) is int and abs(key) < MOST_INTEGER)


def _count(number: Any) -> int:
    if type(number) is not int or not 0 <= number <= MOST_BODY:
        raise WireError("a length that is none")
    return number


def _encodable(data: str | memoryview, most: int | None) -> str:
    """A text that can be written to a file again: JSON may hold halves of characters."""
    try:
        text = data.encode("utf-8").decode("utf-8") if isinstance(data, str) else str(data, "utf-8")
    except UnicodeError:
        raise WireError("a text that is not UTF-8") from None
    if most is not None and len(text) > most:
        raise WireError(f"a text of {len(text)} characters in the header")
    return text


def _plain_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key twice")
    return result


def _integer(digits: str) -> int:
    if len(digits) > 20 or abs(number := int(digits)) >= MOST_INTEGER:
        raise ValueError("an integer of more than 64 bits")
    return number


def _fraction(digits: str) -> float:
    if len(digits) > 40 or not math.isfinite(number := float(digits)):
        raise ValueError("a number that no float of ours is written as")
    return number


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
