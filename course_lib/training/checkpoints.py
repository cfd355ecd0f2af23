"""Checkpoints that survive a kill at any moment.

A checkpoint is a folder: `last.pt` (all that a run needs to go on), `previous.pt` (the one before, in case
`last.pt` is damaged) and `best.pt` (the weights that validated best, for use elsewhere). A file is written
under another name, forced to the disk and then renamed, so a reader sees the old file or the new one, never
half of it. On request the weights of the last few checkpoints are kept, too (`weights-00000800.pt`), to
be averaged. Files are read with `weights_only=True`: opening a checkpoint runs no code from it.
"""

import io
import os
import pickle
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

LAST, PREVIOUS, BEST, DAMAGED = "last.pt", "previous.pt", "best.pt", "damaged.pt"

# What zipfile and torch.load raise for damaged files: it depends on which byte is wrong.
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    pickle.UnpicklingError,
    RuntimeError,
    ValueError,
    LookupError,
    EOFError,
    OSError,
)


class DamagedCheckpoint(ValueError):
    """A checkpoint file cannot be read."""


def save(folder: Path, state: dict[str, Any]) -> None:
    """Makes `state` (plain containers and tensors) the folder's last checkpoint and keeps the one before."""
    written = _write(folder / LAST, state)
    if (folder / LAST).exists():
        os.replace(folder / LAST, folder / PREVIOUS)
    _rename(written, folder / LAST)


def keep_weights(folder: Path, state: dict[str, Any], count: int) -> None:
    """Keeps the weights after a step, and of those kept before only the latest, so that there are `count`."""
    name = f"weights-{state['step']:08d}.pt"
    write(folder / name, state)
    for path in kept_weights(folder)[:-count]:
        path.unlink()


def kept_weights(folder: Path) -> list[Path]:
    """The files that `keep_weights` has written, earliest step first."""
    return sorted(folder.glob("weights-*.pt"), key=lambda path: int(path.stem.split("-")[1]))


def load(folder: Path) -> dict[str, Any] | None:
    """The folder's last readable checkpoint, or None if it has none.

    If the last one is damaged, it is set aside with a warning and the previous one is taken. Raises
    DamagedCheckpoint (a ValueError) if checkpoints exist but none can be read.
    """
    damage = []
    for name in (LAST, PREVIOUS):
        path = folder / name
        if not path.exists():
            continue
        try:
            state = read(path)
        except DamagedCheckpoint as error:
            damage.append(str(error))
            continue
        if damage:
            # Left in place, the damaged file would push the good one out at the next save.
            os.replace(folder / LAST, folder / DAMAGED)
            warnings.warn(f"{damage[0]} Going on from {path.name}, the checkpoint before it.", stacklevel=2)
        return state
    if damage:
        raise DamagedCheckpoint(f"{' '.join(damage)} Delete the folder to start this training afresh.")
    return None


def load_best(folder: Path, model: nn.Module) -> dict[str, Any]:
    """Puts the weights of `best.pt` into `model`; returns their step and validation value.

    Raises FileNotFoundError without such a file, and ValueError if it is damaged or made for another model.
    """
    state = read(Path(folder) / BEST)
    check_same_model(state["weights"], model, Path(folder) / BEST)
    model.load_state_dict(state["weights"])
    return {"step": state["step"], "value": state["value"]}


def read(path: Path) -> dict[str, Any]:
    """One checkpoint file, its tensors on the CPU. Raises DamagedCheckpoint if it cannot be read."""
    content = io.BytesIO(path.read_bytes())  # in two steps: a disk that cannot be read is not a damaged file
    try:
        changed_part = zipfile.ZipFile(content).testzip()  # torch.load itself compares no checksums
        if changed_part is not None:
            raise zipfile.BadZipFile(f"wrong checksum of {changed_part}")
        content.seek(0)
        return torch.load(content, map_location="cpu", weights_only=True)
    except UNREADABLE as error:
        message = f"The checkpoint {path} cannot be read: it is damaged or not one of ours."
        raise DamagedCheckpoint(message) from error


def check_same_model(weights: dict[str, Tensor], model: nn.Module, source: Path) -> None:
    """Raises ValueError, naming a difference, unless `weights` fit `model` in names, shapes and types."""
    expected = model.state_dict()
    advice = "Give the same model as before, or another checkpoint folder."
    for name in dict.fromkeys([*expected, *weights]):
        if name not in weights or name not in expected:
            holder = "the model" if name in expected else "the checkpoint"
            raise ValueError(f"{source} was made by another model: only {holder} has {name!r}. {advice}")
    for name, tensor in expected.items():
        saved = weights[name]
        if saved.shape != tensor.shape or saved.dtype != tensor.dtype:
            raise ValueError(
                f"{source} was made by another model: {name!r} is {tuple(saved.shape)} {saved.dtype} there, "
                f"{tuple(tensor.shape)} {tensor.dtype} here. {advice}"
            )


def check_same_settings(saved: dict[str, Any], now: dict[str, Any], source: Path) -> None:
    """Raises ValueError, naming each difference, unless a run goes on with the settings it began with."""
    different = [
        f"{name}={saved.get(name)!r} then, {now.get(name)!r} now"
        for name in dict.fromkeys([*saved, *now])
        if saved.get(name) != now.get(name)
    ]
    if different:
        more = [f"and {len(different) - 4} more"] if len(different) > 4 else []
        raise ValueError(
            f"{source} was begun with other settings ({'; '.join(different[:4] + more)}). "
            f"Go on with the same ones, or choose another checkpoint folder."
        )


def write(path: Path, content: Any) -> None:
    """`torch.save` that leaves the whole file or none."""
    _rename(_write(path, content), path)


def _write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    with open(partial, "wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())
    return partial


def _rename(written: Path, path: Path) -> None:
    os.replace(written, path)
    if os.name == "posix":  # a rename is on the disk once its folder is; Windows cannot open a folder
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
