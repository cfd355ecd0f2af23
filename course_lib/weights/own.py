"""Our own checkpoints: one safetensors file that says which model it holds, and with which config.

The header's metadata carry, as JSON, the model's class, the arguments of its constructor and whatever is to be kept
beside it (`extra`: a vocabulary, scores). A class is looked up among those in `course_lib.models` and nowhere else.
"""

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, get_args, get_type_hints

import torch
from torch import Tensor, nn

from course_lib import models
from course_lib.functional.images import Normalisation
from course_lib.weights.tensors import (
    FLOATS,
    complain,
    filled,
    open_tensors,
    problem,
    serialised,
    skeleton,
    tied_groups,
    write_files,
)

MODEL, ARGUMENTS, EXTRA = "course.model", "course.arguments", "course.extra"  # keys of the metadata
NORMALISATION = "course.normalisation"  # of a model of images that expects others than its class; {}: nobody knows


def save(model: nn.Module, path: Path | str, *, extra: Mapping[str, Any] | None = None) -> None:
    """Writes the model and `extra` (plain values) as one file, whole or not at all.

    Weights that 16 bits hold exactly, all of them, are written as float16: half the bytes, and `load` gives the same.

    Each argument of the model's constructor must be an attribute of the same name: a config of plain values, or a plain
    value. A switch may also be the part that it adds, or None.
    Raises ValueError for a model outside course_lib.models, or if something is not plain.
    """
    name = f"{type(model).__module__}.{type(model).__qualname__}"
    constructor_of(name)
    metadata = {MODEL: name, ARGUMENTS: plain_json(arguments_of(model)), EXTRA: plain_json(dict(extra or {}))}
    if "normalisation" in vars(model):
        metadata[NORMALISATION] = plain_json(asdict(model.normalisation) if model.normalisation else {})
    tensors = {names[0]: tensor for names, tensor in tied_groups(model).items()}
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_files({path: serialised(in_half(tensors), metadata)})


def load(path: Path | str) -> nn.Module:
    """The model in a file that `save` wrote, in evaluation mode.

    Raises FileNotFoundError if there is none, and ValueError, saying what is wrong, for any other file.
    """
    path = Path(path)
    with open_tensors(path) as file:
        name, arguments = metadata_text(file.metadata, MODEL, path), metadata_json(file.metadata, ARGUMENTS, path)
        try:
            constructor = constructor_of(name)

            def build() -> nn.Module:
                return constructor(**with_configs(constructor, arguments))

            outline = skeleton(build, len(file.specs))
        except Exception as error:  # whatever a constructor says of arguments that somebody changed
            raise ValueError(f"{path} describes no model that we have: {error}") from error
        expected = {names[0]: tensor for names, tensor in tied_groups(outline).items()}
        half = {spec.dtype for spec in file.specs.values()} & {*FLOATS} == {"F16"}  # as `in_half` writes them
        problems = [f"{name} is missing" for name in expected if name not in file.specs]
        for name, spec in file.specs.items():
            said = problem(name, spec, expected[name], exact=not half) if name in expected else f"{name} is unknown"
            problems += [said] if said else []
        complain(path, problems)
        tensors = {name: file.read(name, tensor.dtype) for name, tensor in expected.items()}
        said = metadata_json(file.metadata, NORMALISATION, path) if NORMALISATION in file.metadata else None
    model = filled(build, tensors)
    if said is not None:
        model.normalisation = as_hinted(said, Normalisation) if said else None
    return model


def in_half(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Single-precision weights in half precision, if no number of them changes; else as they are."""
    single = {name: tensor for name, tensor in tensors.items() if tensor.dtype == torch.float32}
    halves = {name: tensor.half() for name, tensor in single.items()}
    same = all(torch.equal(half.float(), single[name]) for name, half in halves.items())
    return tensors | halves if same else tensors


def load_extra(path: Path | str) -> dict[str, Any]:
    """What was kept beside the model. Raises errors as `load` does."""
    path = Path(path)
    with open_tensors(path) as file:
        return metadata_json(file.metadata, EXTRA, path)


def constructor_of(name: str) -> type[nn.Module]:
    """The model class of this full name. Raises ValueError unless it is one of course_lib.models."""
    module, _, qualname = name.rpartition(".")
    if module not in model_modules():
        raise ValueError(f"{name!r} is not a model of course_lib.models")
    known = import_module(module)
    found = vars(known).get(qualname)
    if not inspect.isclass(found) or not issubclass(found, nn.Module) or found.__module__ != module:
        raise ValueError(f"{module} has no model {qualname!r}")
    return found


@lru_cache(maxsize=1)
def model_modules() -> frozenset[str]:
    """The full names of all modules in course_lib.models."""
    return frozenset(f"{models.__name__}.{found.name}" for found in iter_modules(models.__path__))


def arguments_of(model: nn.Module) -> dict[str, Any]:
    """The arguments that made the model, out of its attributes; configs become dicts."""
    arguments = {}
    for name, parameter in inspect.signature(type(model)).parameters.items():
        if not hasattr(model, name):
            raise ValueError(f"{type(model).__name__} must keep its argument {name!r} as an attribute to be saved")
        value = getattr(model, name)
        if isinstance(parameter.default, bool) and not isinstance(value, bool):
            value = value is not None
        arguments[name] = asdict(value) if is_dataclass(value) else value
    return arguments


def with_configs(constructor: type[nn.Module], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with dicts made into the configs that the constructor's signature asks for."""
    hints = get_type_hints(constructor.__init__)
    return {name: as_hinted(value, hints.get(name)) for name, value in arguments.items()}


def as_hinted(value: Any, hint: Any) -> Any:
    """A dict as the config that the hint names, with the configs inside it; anything else with tuples for lists."""
    configs = [kind for kind in (hint, *get_args(hint)) if is_dataclass(kind)]  # of `Config | OtherConfig | None`, too
    if not configs or not isinstance(value, dict):
        return tuples(value)
    config = next((kind for kind in configs if value.keys() <= {field.name for field in fields(kind)}), configs[0])
    hints = get_type_hints(config)
    return config(**{name: as_hinted(item, hints.get(name)) for name, item in value.items()})


def tuples(value: Any) -> Any:
    """Lists as the tuples that they were before JSON."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def plain_json(value: dict[str, Any]) -> str:
    """The value as JSON. Raises ValueError if it would not come back equal, but for tuples, which become lists."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"only plain values (numbers, text, lists, dicts) can be kept: {error}") from error
    if json.loads(text) != lists(value):
        raise ValueError("only plain values with text as keys can be kept: some would come back changed")
    return text


def lists(value: Any) -> Any:
    """Tuples as lists, at every depth."""
    if isinstance(value, dict):
        return {key: lists(item) for key, item in value.items()}
    return [lists(item) for item in value] if isinstance(value, (list, tuple)) else value


def metadata_text(metadata: dict[str, str], key: str, path: Path) -> str:
    """A text of the metadata. Raises ValueError if it is missing."""
    if key not in metadata:
        raise ValueError(f"{path} is not a checkpoint of this course: its metadata lack {key!r}.")
    return metadata[key]


def metadata_json(metadata: dict[str, str], key: str, path: Path) -> dict[str, Any]:
    """An object of the metadata. Raises ValueError if it is missing or something else."""
    try:
        value = json.loads(metadata_text(metadata, key, path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {key!r} in its metadata is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} is damaged: {key!r} in its metadata is not a JSON object.")
    return value
