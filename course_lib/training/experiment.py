"""Which experiment a checkpoint folder belongs to: the model, the loss and the data, as text that can be compared."""

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from torch import Tensor, nn

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # of a function in memory: another in each process
PLAIN = (int, float, str, bytes, type(None))


def model_facts(model: nn.Module) -> dict[str, str]:
    """What each part of the model is and the fields of its config: weights alone do not tell the number of heads."""
    facts = {}
    for name, part in model.named_modules():
        place = f"model.{name}" if name else "model"
        facts[place] = ADDRESS.sub("", f"{type(part).__name__}({part.extra_repr()})")
        config = getattr(part, "config", None)
        if dataclasses.is_dataclass(config):
            for field in dataclasses.fields(config):
                facts[f"{place}.config.{field.name}"] = ADDRESS.sub("", repr(getattr(config, field.name)))
    return facts


def function_name(function: Callable) -> str:
    """The name of a loss, with the plain values that a partial fixes. One without a name has a digest of its code."""
    if isinstance(function, partial):
        fixed = [f"{name}={value!r}" for name, value in function.keywords.items() if isinstance(value, PLAIN)]
        return function_name(function.func) + (f"({', '.join(fixed)})" if fixed else "")
    name = getattr(function, "__qualname__", type(function).__qualname__).rpartition("<locals>.")[2]
    code = getattr(function, "__code__", None)
    if name != "<lambda>" or code is None:
        return name
    constants = [value for value in code.co_consts if isinstance(value, PLAIN)]
    return f"{name} {digest(repr((code.co_code, code.co_names, constants)).encode())}"


def batch_facts(batch: Any) -> str:
    """Whole numbers by a digest; of floats, whose last digits differ between machines, the mean and the spread."""
    return "; ".join(map(_described, _leaves(batch)))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]


def _leaves(batch: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        batch = [getattr(batch, field.name) for field in dataclasses.fields(batch)]
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    if isinstance(batch, tuple | list):
        for part in batch:
            yield from _leaves(part)
    else:
        yield batch


def _described(leaf: Any) -> str:
    if not isinstance(leaf, Tensor):
        return repr(leaf) if isinstance(leaf, int | str | None) else type(leaf).__name__
    kind = f"{str(leaf.dtype).removeprefix('torch.')} {tuple(leaf.shape)}"
    if not leaf.is_floating_point():
        return f"{kind} {digest(leaf.cpu().contiguous().numpy().tobytes())}"
    values = leaf.detach().double()
    spread = values.std(correction=0).item() if values.numel() else 0.0
    return f"{kind} mean {values.mean().item():.4g} spread {spread:.4g}"
