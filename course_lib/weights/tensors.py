"""Safetensors files: read without trust, and written whole or not at all.

A safetensors file is a JSON header and raw numbers, so reading one never runs code. Other files are not opened.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

FLOATS = ("F64", "F32", "F16", "BF16")  # converted into the model's own type
DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip
SIGNS_OF_PICKLE = {b"PK": "a zip archive, as torch.save writes them", b"\x80": "a pickle"}
SIGN_OF_GIT_LFS = b"version https://git-lfs"
SAID_OF_CUT_FILES = ("header too small", "invalid header length", "not fully covered")  # by safetensors
BUFFER_BYTES = 2**30  # tables that a model computes for itself, such as position codes
WEIGHTS = 200  # and ten for each tensor of a file: more than any model of ours makes


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
        start = file.read(len(SIGN_OF_GIT_LFS))
    if start == SIGN_OF_GIT_LFS:
        raise ValueError(
            f"{path} is not the weights but a pointer to them, as git clones large files without git-lfs: install it "
            "and run `git lfs pull` in the folder."
        )
    for sign, kind in SIGNS_OF_PICKLE.items():
        if start.startswith(sign) and int.from_bytes(start[:8], "little") > path.stat().st_size:
            raise ValueError(f"{path} is not a safetensors file but {kind}: it could run code, and is not opened.")


@contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    """Inside, what safetensors says of a damaged file becomes a ValueError."""
    try:
        yield
    except SafetensorError as error:
        cut = any(sign in str(error) for sign in SAID_OF_CUT_FILES)
        advice = " It seems to be cut off: download it again." if cut else ""
        raise ValueError(f"{path} is not a whole safetensors file: {error}.{advice}") from error


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


class Outline(TorchFunctionMode):
    """Inside, in this thread alone, weights are on the meta device: they take no memory and are not drawn at random.

    Raises ValueError as soon as there are far more of them than a file has tensors.
    """

    def __init__(self, num_tensors: int):
        super().__init__()
        self.num_tensors, self.limit, self.count = num_tensors, WEIGHTS + 10 * num_tensors, 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in (torch.empty, torch.randn, torch.zeros):  # by which all layers make their weights
            self.count += 1
            if self.count > self.limit:
                limits = f"more than {self.limit} parts, for {self.num_tensors} tensors"
                raise ValueError(f"its settings ask for a model of {limits}")
            kwargs = kwargs | {"device": "meta"}
        return function(*args, **kwargs)


def skeleton(build: Callable[[], nn.Module], num_tensors: int) -> nn.Module:
    """The model that `build` makes, without memory for any tensor, to compare with a file.

    Raises ValueError if it would have far more parts than the file has tensors, or compute huge tables.
    """
    with torch.device("meta"), Outline(num_tensors):
        model = build()
    stored = model.state_dict()
    computed = sum(buffer.nbytes for name, buffer in model.named_buffers() if name not in stored)
    if computed > BUFFER_BYTES:
        raise ValueError(f"its settings ask for tables of {computed / 2**30:.0f} GiB")
    return model


def filled(build: Callable[[], nn.Module], tensors: Mapping[str, Tensor]) -> nn.Module:
    """The model that `build` makes, with these tensors in the place of its own; what it computes, it has computed.

    Tied tensors are under the first of their names, and stay tied.
    """
    with Outline(len(tensors)):
        model = build()
    state: dict[str, Tensor] = {}
    for names, own in tied_groups(model).items():
        tensor = tensors[names[0]]
        state |= dict.fromkeys(names, nn.Parameter(tensor) if isinstance(own, nn.Parameter) else tensor)
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
