"""What answers the judge's questions with a student's code; it knows no check and no answer.

`python -m course_lib.grading.boxed.worker PORT TOKEN` is a box without walls, for students who are trusted; those with
walls are forked by `zygote`.
"""

import ast
import gc
import hashlib
import importlib
import io
import itertools
import linecache
import os
import random
import re
import signal
import socket
import sys
import traceback
import types
import unittest.mock
from collections.abc import Sequence
from typing import Any

import einops
import einops.layers.torch
import numpy as np
import torch
import torch.utils.data
from torch import Tensor, nn

from .wire import Handle, WireError, arrays_in, pack, receive

TOO_LARGE = "TooLarge"  # in place of the name of an error
CUT_OFF = "CutOff"
CHANGED = "ChangesInput"
MOST_WORDS = 400  # characters of an error's own
SEED = 0
CELL = "<cell "
TELLING = 60  # parts of a source's syntax tree: about four lines
DEFINED = bool, int, float, str, types.ModuleType  # what stays of a cell that has stopped, beside what can be called
TIMED = re.compile(r"^([ \t]*(?:\w[\w, \t]*=[ \t]*)?)%time[ \t]+(?=\S)", re.MULTILINE)
ONLY_JUPYTER = re.compile(  # whole lines: not `!= b` or `% b` of a longer expression, not words with a question mark
    r"^([ \t]*)(?:\w[\w, \t]*=[ \t]*)?(?:%%?[A-Za-z].*|!(?!=).*|\?.*|[\w.*]+\?\??[ \t;\r]*)$", re.MULTILINE
)


class Box:
    """A student's names and the values that were kept, and what can be done with them."""

    def __init__(self) -> None:
        # classes and dataclasses look their module up, and find there what a notebook would have
        self.module = types.ModuleType("__main__")
        sys.modules["__main__"] = self.module
        vars(self.module).update(display=lambda *values, **_: print(*values), get_ipython=unittest.mock.MagicMock())
        self.kept: list[Any] = []
        self.cells = 0

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request; whatever the student's code raises is told in its own words."""
        own = {"load": self.load, "call": self.call, "state": self.state, "gradients": self.gradients}
        own |= {"uses": uses, "fingerprints": fingerprints}
        try:
            return own[request.pop("operation")](**request)
        except BaseException as error:
            return {"error": told(error)}

    def load(self, *, source: str, definitions: bool = False) -> dict[str, Any]:
        """Runs a cell, or only its definitions. One that stops gives back the memory that it has taken."""
        self.cells += 1
        name, names = f"{CELL}{self.cells}>", vars(self.module)
        source, before = as_python(source), dict(names)
        linecache.cache[name] = len(source), None, source.splitlines(True), name  # where `inspect` looks for it
        code = defined(ast.parse(source, name)) if definitions else source
        try:
            exec(compile(code, name, "exec", dont_inherit=True), names)
        except BaseException as error:
            reply = {"error": told(error)}
            for name in [name for name, value in names.items() if before.get(name) is not value]:
                if not callable(names[name]) and not isinstance(names[name], DEFINED):
                    del names[name]
            del error, before
            gc.collect()
            return reply
        return {"value": None}

    def call(self, *, target: str | Handle, keep: bool, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Calls a function; one that overwrites an array or a list that it was given gives no result."""
        given = list(arrays_in([args, kwargs]))
        before = [array.clone() if isinstance(array, Tensor) else array.copy() for array in given]
        handed = self.unpack([args, kwargs])
        result = self.find(target)(*handed[0], **handed[1])
        if not all(map(same, before, given)) or not untouched([args, kwargs], handed):
            return {"error": {"kind": CHANGED}}
        return {"value": self.keep(result) if keep else result}

    def state(self, *, handle: Handle, new: dict[str, Tensor] | None) -> dict[str, Any]:
        """A module's parameters and buffers by name; names and shapes of `new` ones must be the module's own."""
        module = self.unpack(handle)
        if new is not None:
            nn.Module.load_state_dict(module, new, strict=True)
        return {"value": dict(nn.Module.state_dict(module))}

    def gradients(
        self, *, target: str | Handle, args: list[Any], kwargs: dict[str, Any], output_gradient: Tensor
    ) -> dict[str, Any]:
        """Gradients with respect to the positional arguments and, of a module, the parameters."""
        args, function = self.unpack(args), self.find(target)
        real = [isinstance(value, Tensor) and value.is_floating_point() for value in args]
        args = [value.detach().requires_grad_() if one else value for value, one in zip(args, real, strict=True)]
        named = dict(nn.Module.named_parameters(function)) if isinstance(function, nn.Module) else {}
        named = {name: value for name, value in named.items() if value.requires_grad}
        try:
            output = function(*args, **self.unpack(kwargs))
        except RuntimeError as error:
            if "call numpy()" in str(error):  # torch refuses it where gradients are wanted
                return {"error": {"kind": CUT_OFF}}
            raise
        if not isinstance(output, Tensor) or not output.requires_grad:
            return {"error": {"kind": CUT_OFF}}
        wanted = [*itertools.compress(args, real), *named.values()]
        found = iter(torch.autograd.grad(output, wanted, output_gradient, allow_unused=True))
        inputs = [next(found) if one else None for one in real]
        parameters = {name: part for name, part in zip(named, found, strict=True) if part is not None}
        return {"value": {"inputs": inputs, "parameters": parameters}}

    def find(self, target: str | Handle) -> Any:
        if isinstance(target, str) and target not in vars(self.module):
            raise NameError(f"name '{target}' is not defined")
        return vars(self.module)[target] if isinstance(target, str) else self.unpack(target)

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


def as_python(source: str) -> str:
    """The cell as it is without JupyterLab: `%time f()` is `f()`; other magics, `!pip` and `x?` do nothing."""
    try:
        compile(source, "cell", "exec", dont_inherit=True)
    except SyntaxError:
        return ONLY_JUPYTER.sub(r"\1pass", TIMED.sub(r"\1", source))
    return source


def defined(tree: ast.Module) -> ast.Module:
    """What of a cell takes no time: imports, functions, classes, and values that are given without a call."""
    definitions = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

    def quick(node: ast.stmt) -> bool:
        calls = any(isinstance(part, ast.Call) for part in ast.walk(node))
        return isinstance(node, definitions) or (isinstance(node, ast.Assign | ast.AnnAssign) and not calls)

    return ast.Module([node for node in tree.body if quick(node)], tree.type_ignores)


def uses(*, sources: list[str], names: list[Sequence[str]]) -> dict[str, Any]:
    """For each source the first line that uses one of its names, as [name, line, text]; None where none does.

    A name counts as an attribute (`F.softmax`), in an import, and bare where the source does not define it.
    """
    return {"value": [first_use(as_python(source), some) for source, some in zip(sources, names, strict=True)]}


def first_use(source: str, names: Sequence[str]) -> list[Any] | None:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # running it says what is wrong with it
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    defined |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    defined |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    for node in nodes:
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
        if isinstance(node, ast.alias):
            name = node.name.split(".")[-1]
        if name in names and not (isinstance(node, ast.Name) and name in defined):
            return [name, node.lineno, source.splitlines()[node.lineno - 1].strip()]  # type: ignore[attr-defined]
    return None


def fingerprints(*, sources: list[str]) -> dict[str, Any]:
    """Of each source a hash that names, comments, annotations and the order of its parts do not change.

    It is "" for a source so short that two people may well write it alike.
    """
    return {"value": [fingerprint(as_python(source)) for source in sources]}


def fingerprint(source: str) -> str:
    try:
        tree = ast.parse(source)
        if sum(1 for _ in ast.walk(tree)) < TELLING:
            return ""
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        said = [node for node in tree.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
        parts = sorted(without_names(node, defined) for node in tree.body if node not in said)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def without_names(part: ast.stmt, defined: set[str]) -> str:
    """A statement's structure: what it names itself is numbered, docstrings and annotations are gone."""
    bound = {node.arg for node in ast.walk(part) if isinstance(node, ast.arg)} | defined
    bound |= {node.id for node in ast.walk(part) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    numbers: dict[str, str] = {}
    for node in ast.walk(part):
        for field in ("id", "arg", "name"):
            if (name := getattr(node, field, None)) in bound:
                setattr(node, field, numbers.setdefault(name, "_" if name in defined else f"_{len(numbers)}"))
        for field in {"annotation", "returns"} & {*node._fields}:
            setattr(node, field, None)
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            del node.body[0]
    return ast.dump(part)


def told(error: BaseException) -> dict[str, Any]:
    """An error in its own words, cut off, with the student's line; what its class could compute is caught."""
    try:
        calls = list(traceback.walk_tb(error.__traceback__))
        frames = [call for call in calls if in_cell(call[0])]
        line = ""
        if frames:
            frame, number = frames[-1]
            text = linecache.getline(frame.f_code.co_filename, number).strip()
            line = f" in line {number - frame.f_code.co_firstlineno + 1}" + (f", `{text}`" if text else "")
        words = str(error).strip().split("\n")[0]
        return {
            "kind": type(error).__name__[:40],
            "words": words[:MOST_WORDS],
            "line": line[:MOST_WORDS],
            "entered": bool(frames),
            "unwritten": isinstance(error, NotImplementedError) and in_cell(calls[-1][0]),
        }
    except BaseException:
        return {"kind": "Error"}


def in_cell(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename.startswith(CELL)


def same(old: Tensor | np.ndarray, new: Tensor | np.ndarray) -> bool:
    old, new = (torch.as_tensor(array) for array in (old, new))
    return old.shape == new.shape and bool(((old == new) | (old.isnan() & new.isnan())).all())


def untouched(old: Any, new: Any) -> bool:
    """Whether lists, at any depth, hold what they held; of arrays only whether they are still the same ones."""
    if isinstance(old, list | tuple):
        return type(old) is type(new) and len(old) == len(new) and all(map(untouched, old, new))
    if isinstance(old, dict):
        return type(old) is type(new) and old.keys() == new.keys() and all(untouched(old[key], new[key]) for key in old)
    plain = isinstance(old, int | float | str) and type(old) is type(new)
    return isinstance(old, Handle) or old is new or (plain and old == new)


def one_process(loader: type) -> None:
    """A DataLoader works without processes of its own here: they would wait for each other for ever."""
    usual = loader.__init__
    gone = ("num_workers", "prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")

    def init(self: Any, *args: Any, **options: Any) -> None:
        usual(self, *args[:5], **{name: value for name, value in options.items() if name not in gone})

    loader.__init__ = init


def serve(line: socket.socket, *, most: int) -> None:
    """Answers requests until there are no more; an answer has at most `most` bytes of tensors."""
    random.seed(SEED)
    box, file = Box(), line.makefile("rb")
    while file.peek(1):  # nothing more comes when the judge is gone
        request = receive(file.read)
        if request == {"operation": "end"} and hasattr(os, "fork"):
            break
        if request == {"operation": "fork"}:  # a copy answers from here on; when it has ended, this process goes on
            child = os.fork() if hasattr(os, "fork") else 0  # on Windows there is no copy
            if child == 0:
                torch.set_num_threads(1)  # threads of the library have not come along
                line.sendall(pack({"value": None}))
                continue
            os.waitpid(child, 0)
        if request["operation"] in ("end", "fork"):
            line.sendall(pack({"ended": True}))
            continue
        reply = box.answer(request)
        try:
            frame = pack(reply, most=most)
        except WireError:
            frame = pack({"error": {"kind": TOO_LARGE}})
        except BaseException as error:  # a value with code of the student's in it
            frame = pack({"error": told(error)})
        line.sendall(frame)
    os._exit(0)


def preload() -> None:
    """Loads and tries once what boxes use: torch's compiler, too, which the first optimizer imports."""
    torch.set_num_threads(1)
    one_process(torch.utils.data.DataLoader)
    usual = sys.modules["__main__"]
    box, model = Box(), nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    optimizer = torch.optim.Adam(model.parameters())
    nn.functional.cross_entropy(model(torch.ones(3, 2)), torch.zeros(3, dtype=torch.long)).backward()
    optimizer.step()
    importlib.import_module("torch._dynamo")
    box.load(source="import torch\ndef f(x): return x.softmax(dim=-1) + 1")
    reply = box.call(target="f", keep=False, args=[torch.ones(2)], kwargs={})
    receive(io.BytesIO(pack(reply)).read)
    einops.rearrange(torch.ones(2, 4), "a (b c) -> a b c", b=2)
    sys.modules["__main__"] = usual
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    gc.collect()
    gc.freeze()  # a collection in a box would copy the pages that it shares with us


def main(port: str, token: str, most: str) -> None:
    """A box without walls, which talks through a socket of this machine."""
    preload()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the judge
    line = socket.create_connection(("127.0.0.1", int(port)))
    line.sendall(token.encode())
    serve(line, most=int(most))


if __name__ == "__main__":
    main(*sys.argv[1:])
