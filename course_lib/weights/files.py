"""Folders in the layout of the official releases: config.json beside model.safetensors.

`from_pretrained` opens one in our models, `save_pretrained` writes one that Hugging Face's classes open. Each family's
names there are a table in a module of its own (`weights/gpt2.py`, ...), imported when it is needed. Where a layout has
no config.json (torchvision's), the tensors' names and shapes say what the model is.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.weights.hub import fetch_released, is_name
from course_lib.weights.layout import Entry, Layout, entries
from course_lib.weights.preprocessor import PREPROCESSOR, as_normalisation, as_preprocessor
from course_lib.weights.tensors import (
    DTYPES,
    TensorFile,
    complain,
    filled,
    open_tensors,
    problem,
    serialised,
    skeleton,
    write_files,
)

CONFIG, WEIGHTS, PICKLED = "config.json", "model.safetensors", "pytorch_model.bin"
INDEX = f"{WEIGHTS}.index.json"
JSON_BYTES = 50_000_000  # the largest index is a few megabytes long

FAMILIES = {  # by model_type: the module of its table, and those of its models
    "bert": ("course_lib.weights.bert", "course_lib.models.bert", "course_lib.models.bert_tasks"),
    "decision_transformer": ("course_lib.weights.decision_transformer", "course_lib.models.decision_transformer"),
    "gpt2": ("course_lib.weights.gpt2", "course_lib.models.gpt"),
    "llama": ("course_lib.weights.llama", "course_lib.models.llama"),
    "marian": ("course_lib.weights.marian", "course_lib.models.marian"),
    "resnet": ("course_lib.weights.resnet", "course_lib.models.resnet"),
    "swin": ("course_lib.weights.swin", "course_lib.models.swin"),
    "t5": ("course_lib.weights.t5", "course_lib.models.t5"),
    "vit": ("course_lib.weights.vit", "course_lib.models.vit"),
    "vit_mae": ("course_lib.weights.vit_mae", "course_lib.models.mae"),
}
IMAGES = ("resnet", "swin", "vit", "vit_mae")  # the families whose pixels are normalised
BARE = {"torchvision": ("course_lib.weights.torchvision_resnet", "course_lib.models.resnet")}  # without config.json


def from_pretrained(folder: Path | str, *, revision: str | None = None) -> nn.Module:
    """Opens a folder with config.json and model.safetensors (or its shards): our model, ready for use.

    config.json's `model_type` and `architectures` say which; without `architectures` it is the bare model, which
    returns features. A folder without config.json, or the path of a single .safetensors file, must be in a layout that
    has none: torchvision's of ResNet. Weights of 16 or 64 bits become 32-bit floats; NaN stays NaN. The model is in
    evaluation mode. What a model of images expects of pixels, its `normalisation`, comes from preprocessor_config.json;
    it is None without that file, and has to be set before `accuracy` and `predictions` take the model.

    A text that is no folder here may be a released name: "gpt2", "bert-base-uncased", "t5-small", "resnet-50" and
    "vit-base-patch16-224" are pinned to a commit; "gpt2-medium", "opus-mt-en-fr", "swin-tiny-patch4-window7-224",
    "vit-mae-base" and any other OWNER/NAME are not, and come as `revision` says, or as they are today. They are fetched
    once, by the package huggingface_hub, into its cache.

    Raises FileNotFoundError for a missing folder or file, and ValueError, saying what is unknown, missing or misshapen,
    for anything that is not such a checkpoint, and for a `revision` of a folder. Nothing in the folder is ever run.
    """
    name, folder = folder, Path(folder)
    if not folder.is_dir() and not folder.is_file():
        if not isinstance(name, str) or not is_name(name):
            raise FileNotFoundError(f"There is no folder {folder}, nor is this the name of a released model.")
        folder = fetch_released(
            name,
            revision=revision,
            shards=lambda index: read_index(index).values(),
            beside=lambda path: [PREPROCESSOR] if read_json(path).get("model_type") in IMAGES else [],
        )
    elif revision is not None:
        raise ValueError(f"{folder} is a folder here, which has no revision {revision!r}: leave it out.")
    path = folder / CONFIG
    bare = folder.is_file() or (not path.exists() and (folder / WEIGHTS).is_file())
    if not bare:
        layout, architecture, config = known_family(path)
    with open_checkpoint(folder) as files:
        found = {name: file for file in files for name in file.specs}
        if bare:
            layout, architecture, config = known_names(found, folder)
        names = frozenset(map(layout.canonical, found))

        def build() -> nn.Module:
            return layout.build(layout.read_settings(config), architecture, names)

        try:
            outline = skeleton(build, len(found))
        except (ValueError, TypeError, RuntimeError, OverflowError) as error:
            raise ValueError(f"{folder if bare else path} describes no model that we have: {error}.") from error
        expected = entries(layout, outline, architecture)
        sources = matched(layout, expected, found, {} if bare else layout.sizes(config), folder)
        tensors: dict[str, Tensor] = {}
        for name, entry in expected.items():
            tensors |= entry.read(read_copies(sources[name], entry) if sources[name] else filling(layout, name, entry))
        for name, (ours, part) in layout.added.items():
            if name in found:
                tensors[ours] = tensors[ours] + part(found[name].read(name, tensors[ours].dtype))
        model = filled(build, tensors)
        complain(folder, differences(layout, model, found))
    if hasattr(model, "normalisation"):
        said = folder / PREPROCESSOR
        model.normalisation = as_normalisation(read_json(said), said) if said.is_file() else None
    return model


def save_pretrained(model: nn.Module, folder: Path | str, *, layout: str | None = None) -> None:
    """Writes config.json and model.safetensors, which `from_pretrained` and Hugging Face's classes open.

    Beside a model of images preprocessor_config.json says its normalisation, if it knows it.
    With `layout="torchvision"` it writes model.safetensors alone, with torchvision's names, for
    `load_state_dict(safetensors.torch.load_file(...))` of torchvision's model.
    The folder is made if need be. An interruption leaves an older checkpoint whole.
    Raises ValueError for a model that the layout cannot hold, or if config.json of another layout is in the folder.
    """
    folder, kind = Path(folder), type(model)
    candidates = FAMILIES if layout is None else BARE
    possible = {name: table for name, (table, *models) in candidates.items() if kind.__module__ in models}
    if layout is None and not possible:
        raise ValueError(
            f"{kind.__name__} has no official layout; those of {', '.join(FAMILIES)} are known. "
            "Save it with course_lib.weights.own."
        )
    if layout is not None and layout not in possible:
        known = ", ".join(map(repr, possible)) or "None"
        raise ValueError(f"{kind.__name__} has no layout {layout!r}: {known} is possible here.")
    if layout is not None and (folder / CONFIG).exists():
        raise ValueError(f"{folder} holds {CONFIG}, which the layout {layout!r} does not have: choose another folder.")
    table: Layout = import_module(possible[layout or next(iter(possible))]).LAYOUT
    architecture, ours = table.describe(model)
    tensors = {name: entry.theirs() for name, entry in entries(table, model, architecture).items()}
    prefix = "" if architecture == table.architectures[0] else table.prefix
    tensors |= {prefix + name: tensor for name, tensor in {**table.computed(model), **table.unused(model)}.items()}
    tensors |= {copy: tensors[name] for name, copy in table.copies.items() if name in tensors}
    contents = {folder / WEIGHTS: serialised(tensors, {})}
    if layout is None:
        config = {"model_type": table.model_type, "architectures": [architecture], "dtype": "float32"}
        config |= table.write_settings(ours) | table.special_tokens(model.config)
        contents[folder / CONFIG] = as_json(config)
        if said := as_preprocessor(model, config.get("num_channels", 1)):
            contents[folder / PREPROCESSOR] = as_json(said)
    folder.mkdir(parents=True, exist_ok=True)
    write_files(contents)
    if folder / PREPROCESSOR not in contents:  # of another model that lay here
        (folder / PREPROCESSOR).unlink(missing_ok=True)


def as_json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, sort_keys=True) + "\n").encode()


def known_names(found: Mapping[str, TensorFile], path: Path) -> tuple[Layout, str, dict[str, Any]]:
    """Layout, architecture and settings that the tensors' names and shapes tell.

    Raises FileNotFoundError if they do not, since config.json is missing then.
    """
    specs = {name: file.specs[name] for name, file in found.items()}
    for table, *_ in BARE.values():
        layout: Layout = import_module(table).LAYOUT
        try:
            config = layout.read_off(specs)
        except ValueError as error:
            raise ValueError(f"{path} does not fit: {error}.") from error
        if config is not None:
            return layout, config["architectures"][0], config
    raise FileNotFoundError(
        f"There is no {CONFIG} beside the tensors of {path}, and their names are not those of a layout without it: "
        f"{', '.join(BARE)}."
    )


def filling(layout: Layout, name: str, entry: Entry) -> Tensor:
    """What stands for a tensor that a checkpoint may lack."""
    theirs = entry.theirs()
    value = next(value for pattern, value in layout.absent if re.search(pattern, name))
    return torch.full(theirs.shape, value, dtype=theirs.dtype)


def known_family(path: Path) -> tuple[Layout, str, dict[str, Any]]:
    """Layout, architecture and settings that a config.json names. Raises ValueError if we do not have them."""
    config = read_json(path)
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        what = "has no model_type" if model_type is None else f"says model_type={str(model_type)[:80]!r}"
        raise ValueError(f"{path} {what}; the families that we open are {', '.join(FAMILIES)}.")
    layout: Layout = import_module(FAMILIES[model_type][0]).LAYOUT
    named = config.get("architectures")
    named = list(layout.architectures[:1]) if named in (None, []) else named
    if not isinstance(named, list) or named[0] not in layout.architectures:
        known = ", ".join(layout.architectures)
        raise ValueError(f"{path} says architectures={str(named)[:80]}; those that we open are {known}.")
    return layout, named[0], config


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises FileNotFoundError without it, and ValueError if it is something else."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if not path.is_file() or path.stat().st_size > JSON_BYTES:
        raise ValueError(f"{path} is not a JSON file of at most {JSON_BYTES // 10**6} MB.")
    try:
        content = json.loads(path.read_bytes().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object, found {type(content).__name__}.")
    return content


@contextmanager
def open_checkpoint(folder: Path) -> Iterator[list[TensorFile]]:
    """The folder's safetensors file, or its shards; or the file itself."""
    if folder.is_file() and folder.suffix in (".pth", ".pt"):
        raise ValueError(
            f"{folder} is pickled: it can run code, and is not opened. Rewrite a ResNet of torchvision's by "
            f"course_lib.weights.torchvision_resnet.convert({folder.name!r}, folder)."
        )
    whole, places = folder if folder.is_file() else folder / WEIGHTS, {}
    if not whole.exists() and (folder / INDEX).exists():
        places = read_index(folder / INDEX)
    elif not whole.exists() and (folder / PICKLED).exists():
        raise FileNotFoundError(
            f"{folder} has {PICKLED} but no {WEIGHTS}. The former can run code, and is not opened. Convert it "
            "where you trust it: transformers.AutoModel.from_pretrained(folder).save_pretrained(folder)."
        )
    with ExitStack() as stack:
        paths = [folder / name for name in sorted(set(places.values()))] or [whole]
        files = {path.name: stack.enter_context(open_tensors(path)) for path in paths}
        if places:
            said, held = set(places.items()), {(tensor, name) for name in files for tensor in files[name].specs}
            problems = [f"{tensor} is not in {name}" for tensor, name in sorted(said - held)]
            problems += [f"{tensor} is in {name}, which the index does not say" for tensor, name in sorted(held - said)]
            complain(folder / INDEX, problems)
        yield list(files.values())


def read_index(path: Path) -> dict[str, str]:
    """The file of each tensor. Raises ValueError if the index does not say, or names a file outside its folder."""
    places = read_json(path).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise ValueError(f"{path} has no weight_map.")
    for name in places.values():
        if not isinstance(name, str) or not re.fullmatch(r"[\w-][\w.-]*\.safetensors", name):
            raise ValueError(f"{path} names a shard {str(name)[:80]!r}: it must be a .safetensors file beside it.")
    return places


def differences(layout: Layout, model: nn.Module, found: dict[str, TensorFile]) -> list[str]:
    """Which tensors of a checkpoint are not what the model computes in their place."""
    problems, computed = [], layout.computed(model)
    for stored, file in found.items():
        ours = computed.get(layout.canonical(stored))
        if ours is not None:
            said = problem(stored, file.specs[stored], ours)
            if not said and not torch.allclose(file.read(stored, ours.dtype), ours, rtol=0, atol=1e-2):  # of 16 bits
                said = f"{stored} is not the fixed table that the model computes in its place"
            problems += [said] if said else []
    return problems


Source = tuple[TensorFile, str]


def matched(
    layout: Layout, expected: dict[str, Entry], found: dict[str, TensorFile], sizes: dict[str, Any], folder: Path
) -> dict[str, list[Source]]:
    """Where each expected tensor is in the files: more than one place if tied weights are stored twice.

    Raises ValueError that names what is missing, unknown, misshapen or of the wrong type.
    """
    full_names = {layout.canonical(name): name for name in expected}
    sources: dict[str, list[Source]] = {name: [] for name in expected}
    missing, problems = [], []
    for stored, file in found.items():
        name = layout.canonical(stored)
        if name not in full_names:
            name = next((new for old, to in layout.aliases if (new := re.sub(old, to, name)) in full_names), name)
        if name in full_names:
            sources[full_names[name]].append((file, stored))
        elif not any(re.search(pattern, name) for pattern in layout.ignored):
            problems.append(f"{stored} is unknown")
    for name, entry in expected.items():
        theirs = entry.theirs()
        if not sources[name] and not any(re.search(pattern, name) for pattern, _ in layout.absent):
            missing.append(f"{name} {tuple(theirs.shape)} is missing")
        for file, stored in sources[name]:
            spec = file.specs[stored]
            why = reason(spec.shape, tuple(theirs.shape), sizes)
            if said := problem(stored, spec, theirs, why=why):
                problems.append(said)
    complain(folder, missing + problems)
    return sources


def reason(found: tuple[int, ...], expected: tuple[int, ...], sizes: dict[str, Any]) -> str:
    """Which of config.json's sizes a tensor contradicts, as far as one can see."""
    wrong = {want for have, want in zip(found, expected, strict=False) if have != want}
    keys = [f"{key}={size}" for key, size in sizes.items() if wrong & set(size if isinstance(size, list) else [size])]
    return f" by config.json's {' or '.join(keys)}" if keys else ""


def read_copies(sources: list[Source], entry: Entry) -> Tensor:
    """A tensor that a checkpoint holds once, or several times for tied weights.

    Raises ValueError if the copies differ: then the weights are not tied.
    """
    tensors = [file.read(name, DTYPES[file.specs[name].dtype]) for file, name in sources]
    for (_, name), tensor in zip(sources[1:], tensors[1:], strict=True):
        if not torch.equal(tensor.nan_to_num(), tensors[0].nan_to_num()):
            raise ValueError(f"{name} and {sources[0][1]} must be equal, since config.json ties them, but they differ.")
    return tensors[0].to(entry.ours[0].dtype)
