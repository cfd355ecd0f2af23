"""Values between the judge and a box: a tree of JSON, and beside it the tensors as safetensors; never pickle.

A frame is two lengths, the JSON, the safetensors. Whatever else arrives is a WireError: the other end may be hostile.
"""

import json
import math
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

LENGTHS = struct.Struct("<II")
MOST_TREE = 1 << 20  # bytes of JSON
MOST_BODY = 1 << 28  # bytes of tensors
MOST_NODES, MOST_DEPTH, MOST_AXES = 20_000, 12, 32
LARGEST = 1 << 63
KINDS = {torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool, torch.uint8}
KINDS |= {torch.int8, torch.int16, torch.int32, torch.int64}


class WireError(Exception):
    """What arrived is no frame of ours, or a value cannot be sent."""


@dataclass(frozen=True)
class Handle:
    """Stands for a value that stays in the box."""

    number: int


class Unknown:
    """Stands for a value of a type that does not cross the wire; what arrives is of a class with that type's name."""


def arrays_in(value: Any) -> Iterator[Tensor | np.ndarray]:
    """The tensors and arrays in a value, in the order in which they cross the wire."""
    if isinstance(value, Tensor | np.ndarray):
        yield value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for part in parts:
        yield from arrays_in(part)


def crosses(tensor: Tensor) -> bool:
    """Whether a tensor is of a kind that can be sent."""
    return tensor.dtype in KINDS and tensor.layout == torch.strided and tensor.dim() <= MOST_AXES


def pack(value: Any, *, most: int = MOST_BODY, strict: bool = False) -> bytes:
    """A value as one frame. Raises WireError if it is too large or, if `strict`, holds what cannot be sent."""
    packer = _Packer(strict)
    head = json.dumps(packer.tree(value, 0)).encode()
    body = save(packer.tensors) if packer.tensors else b""
    if len(head) > MOST_TREE or len(body) > most:
        raise WireError(f"a value of {len(head)} and {len(body)} bytes is too large")
    return LENGTHS.pack(len(head), len(body)) + head + body


def receive(read: Callable[[int], bytes], *, most: int = MOST_BODY) -> Any:
    """The value of the next frame; `read(n)` gives the next n bytes. Raises WireError for anything else."""
    head, body = LENGTHS.unpack(read(LENGTHS.size))
    if head > MOST_TREE or body > most + MOST_TREE:
        raise WireError(f"a frame of {head} and {body} bytes")
    tree, data = read(head), read(body)
    try:
        return _Unpacker(load(data) if data else {}).value(json.loads(tree), 0)
    except WireError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, SafetensorError, RuntimeError) as problem:
        raise WireError(f"no frame of ours: {type(problem).__name__}") from None


class _Packer:
    def __init__(self, strict: bool):
        self.strict, self.nodes, self.tensors = strict, 0, {}

    def tree(self, part: Any, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > MOST_NODES or depth > MOST_DEPTH:
            raise WireError(f"more than {MOST_NODES} parts, or nested more than {MOST_DEPTH} deep")
        if isinstance(part, np.bool_ | np.integer | np.floating) and part.dtype.itemsize <= 8:
            part = part.item()  # a number of NumPy's is a number
        kind = type(part)
        if part is None or kind is bool or (kind is int and abs(part) < LARGEST):
            return part
        if kind is str:
            return part.encode("utf-8", errors="replace").decode()
        if kind is float:
            return part if math.isfinite(part) else {"float": str(part)}
        if kind is Handle:
            return {"handle": part.number}
        if isinstance(part, Tensor) and crosses(part):
            return {"tensor": self.keep(part.detach().as_subclass(Tensor).cpu().resolve_conj().resolve_neg())}
        if isinstance(part, np.ndarray) and part.dtype.kind in "fiub" and part.dtype.itemsize <= 8:
            whole = np.array(part, dtype=part.dtype.newbyteorder("="))
            return {"array": self.keep(torch.from_numpy(whole))}
        if isinstance(part, list | tuple):
            inner = [self.tree(one, depth + 1) for one in part]
            return {"tuple": inner} if isinstance(part, tuple) else inner
        if isinstance(part, dict) and all(type(key) in (str, int) for key in part):
            return {"dict": [[self.tree(key, depth), self.tree(one, depth + 1)] for key, one in part.items()]}
        if self.strict:
            raise WireError(f"a value of type {kind.__name__} cannot be sent")
        return {"unknown": kind.__name__[:40]}

    def keep(self, tensor: Tensor) -> str:
        name = str(len(self.tensors))
        self.tensors[name] = tensor.clone(memory_format=torch.contiguous_format)
        return name


class _Unpacker:
    def __init__(self, tensors: dict[str, Tensor]):
        self.tensors, self.nodes = tensors, 0

    def value(self, tree: Any, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > MOST_NODES or depth > MOST_DEPTH:
            raise WireError(f"more than {MOST_NODES} parts, or nested more than {MOST_DEPTH} deep")
        if isinstance(tree, list):
            return [self.value(part, depth + 1) for part in tree]
        if isinstance(tree, str):
            return tree.encode("utf-8").decode()  # JSON may hold half a character: a ValueError
        if isinstance(tree, int) and not abs(tree) < LARGEST:
            raise WireError("a number that is too large")
        if not isinstance(tree, dict):
            return tree
        ((kind, part),) = tree.items()
        match kind:
            case "tuple":
                return tuple(self.value(one, depth + 1) for one in part)
            case "dict":
                if all(type(key) in (str, int) for key, _ in part):
                    return {self.value(key, depth): self.value(one, depth + 1) for key, one in part}
            case "tensor":
                return self.take(part)
            case "array":
                return self.take(part).numpy()
            case "float" if part in ("nan", "inf", "-inf"):
                return float(part)
            case "handle" if type(part) is int and 0 <= part < LARGEST:
                return Handle(part)
            case "unknown":
                return type(part if re.fullmatch(r"\w{1,40}", part) else "object", (Unknown,), {})()
        raise WireError("a part that means nothing")

    def take(self, name: str) -> Tensor:
        tensor = self.tensors.pop(name)  # each once
        if not crosses(tensor):
            raise WireError("a tensor of a kind that does not cross the wire")
        if tensor.dtype == torch.bool and tensor.numel() and tensor.view(torch.uint8).max() > 1:
            raise WireError("a truth value that is neither true nor false")
        return tensor.clone()  # which owns its memory, as a tensor in a notebook does
