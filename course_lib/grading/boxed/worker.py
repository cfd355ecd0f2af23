"""What answers the judge's questions with a student's code; it knows no check and no answer.

`python -m boxed.worker LIMITS` is a box without walls, for students who are trusted; `zygote` makes those with walls.
"""

import bdb
import builtins
import io
import json
import linecache
import os
import random
import sys
import types
from collections.abc import Callable
from typing import Any, BinaryIO, NoReturn

import einops
import numpy as np
import torch
from torch import Tensor, nn

from .limits import Limits, limit_process
from .wire import Handle, WireError, arrays_in, pack, receive

ERROR_NAMES: dict[type, str] = {
    kind: kind.__name__.lstrip("_")
    for kind in (
        *vars(builtins).values(),
        bdb.BdbQuit,
        einops.EinopsError,
        np.linalg.LinAlgError,
        torch.linalg.LinAlgError,
    )
    if isinstance(kind, type) and issubclass(kind, BaseException)
}
OWN_ERROR = "an error of its own"
TOO_LARGE = "an answer that is too large"
CUT_OFF = "a result that no gradient can flow back from"
SEED = 0


class Box:
    """A student's names and the values that were kept, and what can be done with them."""

    def __init__(self) -> None:
        # classes and dataclasses look their module up, and find there what a notebook would have
        self.module = types.ModuleType("__main__")
        sys.modules["__main__"] = self.module
        self.kept: list[Any] = []
        self.cells = 0

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request; whatever the student's code raises becomes the name of an error."""
        operations: dict[str, Callable[..., Any]] = {
            "load": self.load,
            "call": self.call,
            "parameters": self.parameters,
            "set_parameters": self.set_parameters,
            "gradients": self.gradients,
        }
        try:
            return operations[request.pop("operation")](**request)
        except BaseException as error:
            return {"error": error_name(error)}

    def load(self, *, source: str) -> dict[str, Any]:
        """Runs a cell."""
        self.cells += 1
        name = f"<cell {self.cells}>"
        linecache.cache[name] = len(source), None, source.splitlines(True), name  # where `inspect` looks for it
        exec(compile(source, name, "exec", dont_inherit=True), vars(self.module))
        return {"value": None}

    def call(
        self, *, target: str | Handle, method: str | None, keep: bool, args: list[Any], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """Calls a function; beside its result go the arrays among its arguments that it has changed."""
        given = list(arrays_in([args, kwargs]))
        before = [copy(array) for array in given]
        result = self.find(target, method)(*self.unpack(args), **self.unpack(kwargs))
        changed = {index: new for index, (old, new) in enumerate(zip(before, given, strict=True)) if not same(old, new)}
        return {"value": self.keep(result) if keep else result, "changed": changed}

    def parameters(self, *, handle: Handle) -> dict[str, Any]:
        """A module's parameters and buffers by name."""
        return {"value": dict(nn.Module.state_dict(self.unpack(handle)))}

    def set_parameters(self, *, handle: Handle, values: dict[str, Tensor]) -> dict[str, Any]:
        """Names and shapes must be the module's own."""
        nn.Module.load_state_dict(self.unpack(handle), values, strict=True)
        return {"value": None}

    def gradients(
        self, *, target: str | Handle, args: list[Any], kwargs: dict[str, Any], output_gradient: Tensor
    ) -> dict[str, Any]:
        """Gradients with respect to the positional arguments and, of a module, the parameters."""
        args, function = self.unpack(args), self.find(target, None)
        inputs = {index: value for index, value in enumerate(args) if isinstance(value, Tensor) and is_real(value)}
        for index in inputs:
            inputs[index] = args[index] = args[index].detach().requires_grad_()
        named = dict(nn.Module.named_parameters(function)) if isinstance(function, nn.Module) else {}
        named = {name: value for name, value in named.items() if value.requires_grad}
        wanted = [*inputs.values(), *named.values()]
        try:
            output = function(*args, **self.unpack(kwargs))
        except RuntimeError as error:
            if "call numpy()" in str(error):  # torch refuses it where gradients are wanted
                return {"error": CUT_OFF}
            raise
        if isinstance(output, Tensor) and not output.requires_grad:
            return {"error": CUT_OFF}
        found = torch.autograd.grad(output, wanted, output_gradient, allow_unused=True)
        by_input = dict(zip(inputs, found, strict=False))
        by_name = zip(named, found[len(inputs) :], strict=True)
        return {
            "value": {
                "inputs": [by_input.get(index) for index in range(len(args))],
                "parameters": {name: gradient for name, gradient in by_name if gradient is not None},
            }
        }

    def find(self, target: str | Handle, method: str | None) -> Any:
        if isinstance(target, Handle):
            found = self.unpack(target)
        elif target in vars(self.module):
            found = vars(self.module)[target]
        else:
            raise NameError(target)
        return found if method is None else getattr(found, method)

    def keep(self, value: Any) -> Handle:
        self.kept.append(value)
        return Handle(len(self.kept) - 1)

    def unpack(self, value: Any) -> Any:
        """The value with what was kept in place of the handles."""
        if isinstance(value, Handle):
            return self.kept[value.number]
        if isinstance(value, list | tuple):
            return type(value)(self.unpack(part) for part in value)
        if isinstance(value, dict):
            return {key: self.unpack(part) for key, part in value.items()}
        return value


def error_name(error: BaseException) -> str:
    """The name of an error of Python, torch or einops; never its message, nor anything that it could compute."""
    try:
        return ERROR_NAMES.get(type(error), OWN_ERROR)
    except BaseException:  # a class can have a hostile hash
        return OWN_ERROR


def copy(array: Tensor | np.ndarray) -> Tensor | np.ndarray:
    return array.clone() if isinstance(array, Tensor) else array.copy()


def same(old: Tensor | np.ndarray, new: Tensor | np.ndarray) -> bool:
    if isinstance(old, Tensor):
        return old.shape == new.shape and torch.equal(old, new)
    return np.array_equal(old, new)


def is_real(value: Tensor) -> bool:
    return value.is_floating_point()


def serve(requests: BinaryIO, replies: BinaryIO, *, most: int) -> NoReturn:
    """Answers requests until there are no more; an answer has at most `most` bytes of arrays and texts."""
    random.seed(SEED)  # Python draws a new seed in each forked process
    box = Box()
    read, write = reader(requests), writer(replies)
    while True:
        try:
            request = receive(read)
        except EOFError:
            os._exit(0)
        reply = box.answer(request)
        for stream in (sys.stdout, sys.stderr):
            flush(stream)
        try:
            frame = pack(reply, most=most)
        except WireError:
            frame = pack({"error": TOO_LARGE})
        except BaseException as error:  # a value with code of the student's in it
            frame = pack({"error": error_name(error)})
        write(frame)


def flush(stream: Any) -> None:
    try:
        stream.flush()
    except BaseException:  # closed or replaced by the student
        pass


def reader(stream: BinaryIO) -> Callable[[int], bytes]:
    """A function that reads exactly so many bytes, or raises EOFError."""

    def read_exactly(count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = stream.read(min(count - len(data), 1 << 20))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    return read_exactly


def writer(stream: BinaryIO) -> Callable[[bytes], None]:
    """A function that writes all bytes."""

    def write_all(data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[stream.write(rest) :]

    return write_all


def settle() -> None:
    """One thread, and the seeds from which every box starts."""
    torch.set_num_threads(1)
    np.random.seed(SEED)
    torch.manual_seed(SEED)


def run_plain(limits: Limits) -> NoReturn:
    """Serves by standard input and output; what the student prints goes to standard error."""
    requests, replies = io.FileIO(os.dup(0)), io.FileIO(os.dup(1), "w")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    if sys.platform == "linux":  # others count address space that is only reserved
        limit_process(limits, own_user=False)
    settle()
    serve(requests, replies, most=limits.reply_bytes)


if __name__ == "__main__":
    run_plain(Limits(**json.loads(sys.argv[1])))
