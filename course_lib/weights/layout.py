"""What a family's table is made of: the names, tensors and settings of an official checkpoint, and ours for them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from course_lib.weights.tensors import Spec, tied_groups

MOST = 10**8  # no size in a config.json that we know of is larger
MOST_STAGES = 100  # nor is a list of them longer
REQUIRED = object()  # in place of a setting's default: it has none


class Transform(NamedTuple):
    """How one official tensor becomes ours, and back."""

    read: Callable[[Tensor], Tensor]
    write: Callable[[Tensor], Tensor]


AS_IT_IS = Transform(lambda tensor: tensor, lambda tensor: tensor)
CONV1D = Transform(
    *2 * [lambda tensor: tensor.T if tensor.ndim == 2 else tensor]
)  # (in, out) where Linear has (out, in)
ONE_ROW = Transform(lambda tensor: tensor[0], lambda tensor: tensor[None])  # (1, n) where ours is (n,)

Row = tuple[str, str] | tuple[str, str, Transform]
Setting = tuple[str, str, Callable[[str, Any], Any] | Mapping[Any, Any], Any]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """An official layout, as tables and two small functions.

    A row of `settings` is (their key in config.json, our name, what it takes, default), read in both directions. What
    it takes is a function such as `integer`, or a mapping of their values to ours: the first that fits is written. The
    default stands for a missing key or a null; if it is None, so is ours, which is not written. `{encoder,decoder}_x`
    are two keys, and ours is a pair.

    A row of `backbone` or `heads` is (their module, our module) or (their module, our module, transform), read in both
    directions: `#` stands for a number, and what follows (`.weight`) is kept. The first row that fits a name of ours
    counts. `{a,b}` on both sides are several rows in one. Where it is on our side alone, as in `attn.{q,k,v}_proj`,
    their tensor holds ours one after the other along its first axis (after the transform).

    `build` makes our model of settings by our names, the architecture, and the tensors' names without the prefix;
    `describe` gives the architecture and the settings back. Both raise ValueError for what the other side has not.
    """

    model_type: str  # of config.json
    architectures: tuple[str, ...]  # of config.json; the first is the bare model, which returns features
    build: Callable[[dict[str, Any], str, frozenset[str]], nn.Module]
    describe: Callable[[nn.Module], tuple[str, Mapping[str, Any]]]
    settings: Sequence[Setting]
    fixed: Mapping[str, Any] = field(default_factory=dict)  # settings of which we have one value only
    special_tokens: Callable[[Any], Mapping[str, int]] = lambda config: {}  # ids for config.json, which ours has not
    backbone: Sequence[Row]
    heads: Sequence[Row] = ()
    prefix: str = ""  # before their backbone's names where there is a head; optional in a file
    our_prefix: str = ""  # before our backbone's names where there is a head
    options: Callable[[nn.Module], Sequence[Row]] | None = None  # our model -> more rows, which depend on its settings
    shared: Mapping[str, str] = field(default_factory=dict)  # their name -> the one it has when several parts share it
    copies: Mapping[str, str] = field(default_factory=dict)  # their name -> another, where it is written once more
    aliases: Sequence[tuple[str, str]] = ()  # (regex, replacement): other names for the same tensor, old or tied
    computed: Callable[[nn.Module], Mapping[str, Tensor]] = lambda model: {}  # our model -> theirs that it computes
    ignored: Sequence[str] = ()  # regexes: tensors that a file may hold and we do not need
    added: Mapping[str, tuple[str, Callable[[Tensor], Tensor]]] = field(default_factory=dict)  # theirs that we have not
    # -> the tensor of ours that takes it over, and what of theirs is added to it
    unused: Callable[[nn.Module], Mapping[str, Tensor]] = lambda model: {}  # our model -> theirs, written beside
    absent: Sequence[tuple[str, float]] = ()  # (regex, value): tensors that a file may lack, and what stands for them
    read_off: Callable[[Mapping[str, Spec]], dict[str, Any] | None] | None = None  # names and shapes of tensors -> what
    # config.json would say, in a layout that has none; None if they are another layout's

    def canonical(self, name: str) -> str:
        """Their name without the prefix, which files of the same model have or have not."""
        return name.removeprefix(self.prefix)

    def read_settings(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """What a config.json says, by our names. Raises ValueError, naming key and value, for what we do not take."""
        for key, only in self.fixed.items():
            given = config.get(key)
            if given is not None and (given != only or isinstance(given, bool) != isinstance(only, bool)):
                raise ValueError(f"{key} is {shortened(given)}, and we have only {only!r}")
        classes = config.get("id2label")  # config.json may name the classes one by one
        if classes is not None and not (isinstance(classes, dict) and classes):
            raise ValueError(f"id2label must name the classes, got {shortened(classes)}")
        config = config if classes is None else {**config, "num_labels": len(classes)}
        ours: dict[str, Any] = {}
        for theirs, name, takes, default in self.settings:
            values = tuple(taken(takes, key, config.get(key), default) for key in alternatives(theirs))
            ours[name] = values if len(values) > 1 else values[0]
        return ours

    def write_settings(self, ours: Mapping[str, Any]) -> dict[str, Any]:
        """The config.json of settings by our names. Raises ValueError for a value that it has no word for."""
        config = dict(self.fixed)
        for theirs, name, takes, _ in self.settings:
            if ours.get(name) is None:
                continue
            keys = alternatives(theirs)
            for key, value in zip(keys, ours[name] if len(keys) > 1 else [ours[name]], strict=True):
                words = [value] if callable(takes) else [word for word, each in takes.items() if each == value]
                if not words:
                    known = ", ".join(map(str, dict.fromkeys(takes.values())))
                    raise ValueError(f"{self.model_type}'s layout has no {name} {value!r}, only {known}")
                config[key] = words[0]
        return config

    def sizes(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The sizes, and lists of them, that a config.json names."""
        sizes = [theirs for theirs, _, takes, _ in self.settings if takes in (integer, integers, pixels)]
        return {key: config[key] for theirs in sizes for key in alternatives(theirs) if config.get(key) is not None}


def taken(takes: Callable[[str, Any], Any] | Mapping[Any, Any], key: str, value: Any, default: Any) -> Any:
    """Ours for the value of a key in config.json. Raises ValueError for one that the setting does not take."""
    value = default if value is None else value
    if value is REQUIRED:
        raise ValueError(f"{key} is missing")
    if value is None or callable(takes):
        return value if value is None else takes(key, value)
    for theirs, ours in takes.items():
        if type(theirs) is type(value) and theirs == value:
            return ours
    raise ValueError(f"{key} is {shortened(value)}, and we have only {', '.join(map(repr, takes))}")


def integer(key: str, value: Any) -> int:
    """A whole number, such as a size."""
    if type(value) is not int or not 1 <= value <= MOST:
        raise ValueError(f"{key} must be a whole number from 1 to {MOST}, got {shortened(value)}")
    return value


def integers(key: str, value: Any) -> tuple[int, ...]:
    """A list of whole numbers, such as the size of each stage."""
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MOST_STAGES:
        raise ValueError(f"{key} must be a list of 1 to {MOST_STAGES} whole numbers, got {shortened(value)}")
    return tuple(integer(f"{key}[{i}]", each) for i, each in enumerate(value))


def pixels(key: str, value: Any) -> int | tuple[int, int]:
    """The side of a square image, or its height and width."""
    if not isinstance(value, list | tuple):
        return integer(key, value)
    if len(value) != 2:
        raise ValueError(f"{key} must be a number of pixels or two of them, got {shortened(value)}")
    return integer(key, value[0]), integer(key, value[1])


def number(key: str, value: Any, *, at_most: float = 1.0) -> float:
    """A number, such as a probability."""
    if type(value) not in (int, float) or not 0 <= value <= at_most:
        raise ValueError(f"{key} must be a number from 0 to {at_most:g}, got {shortened(value)}")
    return float(value)


FLAG = {True: True, False: False}
ACTIVATIONS = {  # official name -> ours
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}


@dataclass(kw_only=True)
class Entry:
    """One official tensor and the tensors of ours that it holds."""

    ours: list[Tensor]  # in the order in which they are joined
    our_names: list[str]  # of each of them, one of several if they are tied
    transform: Transform

    def theirs(self) -> Tensor:
        """Our tensors as the official one; on the meta device only its shape is worked out."""
        joined = self.ours[0] if len(self.ours) == 1 else torch.cat(self.ours)
        return self.transform.write(joined)

    def read(self, theirs: Tensor) -> dict[str, Tensor]:
        """The official tensor as ours, by our names."""
        tensor = self.transform.read(theirs)
        parts = tensor.split([len(part) for part in self.ours]) if len(self.ours) > 1 else [tensor]
        return {name: part.contiguous() for name, part in zip(self.our_names, parts, strict=True)}


def entries(layout: Layout, model: nn.Module, architecture: str) -> dict[str, Entry]:
    """The official tensors that hold this model, by their names as they are written.

    Raises ValueError if the table does not know a tensor of the model.
    """
    headed = architecture != layout.architectures[0]
    if layout.options is not None:
        layout = replace(layout, backbone=(*layout.options(model), *layout.backbone))
    result: dict[str, Entry] = {}
    for our_names, tensor in tied_groups(model).items():
        found = [their_name(layout, name, headed) for name in our_names]
        name, part, transform = found[0]
        if len(found) > 1:
            names = [layout.canonical(other) for other, _, _ in found]
            prefix = layout.prefix if headed else ""
            name = next((prefix + layout.shared[other] for other in names if other in layout.shared), name)
        entry = result.setdefault(name, Entry(ours=[], our_names=[], transform=transform))
        if len(entry.ours) != part:
            raise ValueError(
                f"the table of {layout.model_type} puts two tensors into {name!r}, such as {our_names[0]!r}"
            )
        entry.ours.append(tensor)
        entry.our_names.append(our_names[0])
    return result


def their_name(layout: Layout, our_name: str, headed: bool) -> tuple[str, int, Transform]:
    """The official name for a tensor of ours, its place in there, and the transform between them.

    Raises ValueError if no row fits.
    """
    inner = our_name.removeprefix(layout.our_prefix) if headed else our_name
    for rows, name, prefix in (
        (layout.heads if headed else (), our_name, ""),
        (layout.backbone, inner, layout.prefix if headed else ""),
    ):
        for theirs, ours, *transform in rows:
            places = alternatives(theirs)
            for i, alternative in enumerate(alternatives(ours)):
                match = re.fullmatch(re.escape(alternative).replace(r"\#", r"(\d+)") + r"(\..+)?", name)
                if match:
                    *numbers, rest = match.groups()
                    place, part = (theirs, i) if len(places) == 1 else (places[i], 0)
                    filled = place.replace("#", "{}").format(*numbers)
                    return prefix + filled + (rest or ""), part, transform[0] if transform else AS_IT_IS
    raise ValueError(f"the table of {layout.model_type} has no row for {our_name!r}")


def alternatives(template: str) -> list[str]:
    """`{q,k,v}_proj` -> q_proj, k_proj, v_proj; a template without braces stands for itself."""
    pieces = re.split(r"\{(.+?)\}", template)
    choices = [piece.split(",") if odd % 2 else [piece] for odd, piece in enumerate(pieces)]
    return ["".join(choice) for choice in product(*choices)]


def shortened(value: Any) -> str:
    """A value as an error message shows it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
