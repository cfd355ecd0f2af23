"""Safetensors files: read without trust, and written whole or not at all.

A safetensors file is a JSON header and raw numbers, so reading one never runs code. Other files are not opened.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

FLOATS = ("F64", "F32", "F16", "BF16")  # converted into the model's own type
DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip
SIGNS_OF_PICKLE = {b"PK": "a zip archive, as torch.save writes them", b"\x80": "a pickle"}
BUFFER_BYTES = 2**30  # tables that a model computes for itself, such as position codes
MODULES = 200  # and ten for each tensor: more than any model of ours has


class Spec(NamedTuple):
    """What a header says of a tensor."""

    shape: tuple[int, ...]
    dtype: str


class TensorFile:
    """An open safetensors file."""

    def __init__(self, path: Path, handle: safe_open):
        self.path, self._handle = path, handle
        self.metadata: dict[str, str] = handle.metadata() or {}
        slices = {name: handle.get_slice(name) for name in handle.keys()}
        self.specs = {name: Spec(tuple(part.get_shape()), str(part.get_dtype())) for name, part in slices.items()}

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """A tensor of the file in memory of its own."""
        with translated_errors(self.path):
            return self._handle.get_tensor(name).to(dtype, copy=True)


@contextmanager
def open_tensors(path: Path) -> Iterator[TensorFile]:
    """Opens a safetensors file.

    Raises FileNotFoundError if there is none, and ValueError if it is something else or damaged.
    """
    refuse_other_kinds(path)
    with translated_errors(path):
        handle = safe_open(path, framework="pt").__enter__()
    try:
        with translated_errors(path):
            file = TensorFile(path, handle)
        yield file
    finally:
        handle.__exit__(None, None, None)


def refuse_other_kinds(path: Path) -> None:
    """Raises an error unless the path is a regular file that may be safetensors."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if not path.is_file():
        raise ValueError(f"{path} is not a file.")
    with path.open("rb") as file:
        start = file.read(8)
    for sign, kind in SIGNS_OF_PICKLE.items():
        if start.startswith(sign) and int.from_bytes(start, "little") > path.stat().st_size:
            raise ValueError(f"{path} is not a safetensors file but {kind}: it could run code, and is not opened.")


@contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    """Inside, what safetensors says of a damaged file becomes a ValueError."""
    try:
        yield
    except SafetensorError as error:
        raise ValueError(f"{path} is not a whole safetensors file: {error}.") from error


def problem(name: str, found: Spec, expected: Tensor, *, why: str = "", exact: bool = False) -> str | None:
    """What is wrong with a tensor in a file, if anything: its shape, or a type that cannot become the model's.

    Any floating-point type can become another, unless the type must be `exact`.
    """
    shape = tuple(expected.shape)
    if found.shape != shape:
        return f"{name} must have the shape {shape}{why}, found {found.shape}"
    if DTYPES.get(found.dtype) == expected.dtype:
        return None
    if expected.is_floating_point() and not exact:
        return None if found.dtype in FLOATS else f"{name} must be one of {', '.join(FLOATS)}, found {found.dtype}"
    return f"{name} must be {str(expected.dtype).removeprefix('torch.')}, found {found.dtype}"


def complain(path: Path, problems: list[str], most: int = 6) -> None:
    """Raises ValueError with the problems, if there are any."""
    if problems:
        more = [f"and {len(problems) - most} more"] if len(problems) > most else []
        listed = "\n  ".join(problems[:most] + more)
        raise ValueError(f"{path} does not fit:\n  {listed}")


def skeleton(build: Callable[[], nn.Module], num_tensors: int) -> nn.Module:
    """The model that `build` makes, without memory for any tensor (on the meta device), to compare with a file.

    Raises ValueError if it would have far more parts than the file has tensors, or compute huge tables.
    """
    limit, count, this_thread = MODULES + 10 * num_tensors, 0, threading.get_ident()

    def limited(module: nn.Module, name: str, submodule: nn.Module | None) -> None:
        nonlocal count
        count += threading.get_ident() == this_thread
        if count > limit:
            raise ValueError(f"its settings ask for a model of more than {limit} parts, for {num_tensors} tensors")

    hook = nn.modules.module.register_module_module_registration_hook(limited)
    try:
        with torch.device("meta"):
            model = build()
    finally:
        hook.remove()
    stored = model.state_dict()
    computed = sum(buffer.nbytes for name, buffer in model.named_buffers() if name not in stored)
    if computed > BUFFER_BYTES:
        raise ValueError(f"its settings ask for tables of {computed / 2**30:.0f} GiB")
    return model


def filled(build: Callable[[], nn.Module], tensors: Mapping[str, Tensor]) -> nn.Module:
    """The model that `build` makes, with these tensors in the place of all its own; none is drawn at random first.

    Names with the same tensor object stay tied.
    """
    this_thread = threading.get_ident()

    def without_memory(module: nn.Module, name: str, parameter: nn.Parameter) -> nn.Parameter | None:
        if threading.get_ident() != this_thread or parameter is None or parameter.is_meta:
            return None
        return nn.Parameter(parameter.to("meta"), requires_grad=parameter.requires_grad)

    hook = nn.modules.module.register_module_parameter_registration_hook(without_memory)
    try:
        model = build()
    finally:
        hook.remove()
    made: dict[int, nn.Parameter] = {}
    state: dict[str, Tensor] = dict(tensors)
    for name, parameter in model.named_parameters(remove_duplicate=False):
        tensor = tensors[name]
        state[name] = made.setdefault(id(tensor), nn.Parameter(tensor, requires_grad=parameter.requires_grad))
    model.load_state_dict(state, assign=True)
    return model.to(memory_format=torch.channels_last).eval()  # of convolutions' weights: faster in this order


def tied_groups(model: nn.Module) -> dict[tuple[str, ...], Tensor]:
    """Every tensor of the model once, by all names it has there."""
    groups: dict[int, tuple[list[str], Tensor]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        groups.setdefault(id(tensor), ([], tensor))[0].append(name)
    return {tuple(names): tensor for names, tensor in groups.values()}


def serialised(tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> bytes:
    """The bytes of a safetensors file; each tensor is copied, so that views and transposes are stored as they look."""
    copies = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()
    }
    return to_bytes(copies, metadata={"format": "pt"} | metadata)


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Writes files beside their places, forces them to the disk, and only then gives them their names, in this order.

    An interruption leaves the old files whole.
    """
    drafts = {path: path.with_name(f".{path.name}.part") for path in contents}
    try:
        for path, content in contents.items():
            with drafts[path].open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path, draft in drafts.items():
            os.replace(draft, path)
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
