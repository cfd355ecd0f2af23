"""What a family's table is made of: the names, tensors and settings of an official checkpoint, and ours for them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from course_lib.weights.tensors import Spec, tied_groups

MOST = 10**8  # no size in a config.json that we know of is larger
MOST_STAGES = 100  # nor is a list of them longer

ACTIVATIONS = {  # official name -> ours
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
OFFICIAL_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "silu": "silu"}


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


@dataclass(frozen=True, kw_only=True)
class Layout:
    """An official layout, as tables and two small functions.

    A row of `trunk` or `heads` is (their module, our module) or (their module, our module, transform), read in both
    directions: `#` stands for a number, and what follows (`.weight`) is kept. The first row that fits a name of ours
    counts. Where ours is `attn.{q,k,v}_proj`, their tensor holds ours one after the other along its first axis (after
    the transform).
    """

    model_type: str  # of config.json
    architectures: tuple[str, ...]  # of config.json; the first is the bare model, which returns features
    trunk: Sequence[Row]
    heads: Sequence[Row] = ()
    prefix: str = ""  # before their trunk's names where there is a head; optional in a file
    our_prefix: str = ""  # before our trunk's names where there is a head
    options: Callable[[nn.Module], Sequence[Row]] | None = None  # our model -> more rows, which depend on its settings
    shared: Mapping[str, str] = field(default_factory=dict)  # their name -> the one it has when several parts share it
    copies: Mapping[str, str] = field(default_factory=dict)  # their name -> another, where it is written once more
    aliases: Sequence[tuple[str, str]] = ()  # (regex, replacement): other names for the same tensor, old or tied
    computed: Callable[[nn.Module], Mapping[str, Tensor]] = lambda model: {}  # our model -> theirs that it computes
    ignored: Sequence[str] = ()  # regexes: tensors that a file may hold and we do not need
    absent: Sequence[tuple[str, float]] = ()  # (regex, value): tensors that a file may lack, and what stands for them
    build: Callable[["Settings", str], nn.Module]  # config.json and an architecture's name -> our model
    describe: Callable[[nn.Module], dict[str, Any]]  # our model -> config.json; "architectures" names one of the above
    read_off: Callable[[Mapping[str, Spec]], dict[str, Any] | None] | None = None  # names and shapes of tensors -> what
    # config.json would say, in a layout that has none; None if they are another layout's

    def canonical(self, name: str) -> str:
        """Their name without the prefix, which files of the same model have or have not."""
        return name.removeprefix(self.prefix)


@dataclass(kw_only=True)
class Entry:
    """One official tensor and the tensors of ours that it holds."""

    ours: list[Tensor]  # in the order in which they are joined
    our_names: list[list[str]]  # of each of them: several if they are tied
    transform: Transform

    def theirs(self) -> Tensor:
        """Our tensors as the official one; on the meta device only its shape is worked out."""
        joined = self.ours[0] if len(self.ours) == 1 else torch.cat(self.ours)
        return self.transform.write(joined)

    def read(self, theirs: Tensor) -> Iterator[tuple[list[str], Tensor]]:
        """The official tensor as ours, with their names."""
        parts = (
            self.transform.read(theirs).split([len(tensor) for tensor in self.ours])
            if len(self.ours) > 1
            else (self.transform.read(theirs),)
        )
        yield from zip(self.our_names, parts, strict=True)


def entries(layout: Layout, model: nn.Module, architecture: str) -> dict[str, Entry]:
    """The official tensors that hold this model, by their names as they are written.

    Raises ValueError if the table does not know a tensor of the model.
    """
    headed = architecture != layout.architectures[0]
    if layout.options is not None:
        layout = replace(layout, trunk=(*layout.options(model), *layout.trunk))
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
        entry.our_names.append(list(our_names))
    return result


def their_name(layout: Layout, our_name: str, headed: bool) -> tuple[str, int, Transform]:
    """The official name for a tensor of ours, its place in there, and the transform between them.

    Raises ValueError if no row fits.
    """
    inner = our_name.removeprefix(layout.our_prefix) if headed else our_name
    for rows, name, prefix in (
        (layout.heads if headed else (), our_name, ""),
        (layout.trunk, inner, layout.prefix if headed else ""),
    ):
        for theirs, ours, *transform in rows:
            for part, alternative in enumerate(alternatives(ours)):
                match = re.fullmatch(re.escape(alternative).replace(r"\#", r"(\d+)") + r"(\..+)?", name)
                if match:
                    *numbers, rest = match.groups()
                    filled = theirs.replace("#", "{}").format(*numbers)
                    return prefix + filled + (rest or ""), part, transform[0] if transform else AS_IT_IS
    raise ValueError(f"the table of {layout.model_type} has no row for {our_name!r}")


def alternatives(template: str) -> list[str]:
    """`{q,k,v}_proj` -> q_proj, k_proj, v_proj; a template without braces stands for itself."""
    pieces = re.split(r"\{(.+?)\}", template)
    choices = [piece.split(",") if odd % 2 else [piece] for odd, piece in enumerate(pieces)]
    return ["".join(choice) for choice in product(*choices)]


class Settings:
    """The settings in a config.json, each checked as it is asked for.

    `names` are the tensors in the checkpoint, without the layout's prefix. `sizes` gathers the whole numbers that were
    asked for. All methods raise ValueError, naming key and value, for a value that they do not take; a missing key or
    a null gives the default, and is an error where there is none.
    """

    def __init__(self, values: Mapping[str, Any], names: frozenset[str] = frozenset()):
        self.values, self.names = values, names
        self.sizes: dict[str, int] = {}

    def integer(self, key: str, default: int | None = None, *, at_least: int = 1, at_most: int = MOST) -> int:
        """A whole number, such as a size in units of its own."""
        value = self._value(key, default)
        if type(value) is not int or not at_least <= value <= at_most:
            raise ValueError(f"{key} must be a whole number from {at_least} to {at_most}, got {_short(value)}")
        self.sizes[key] = value
        return value

    def integers(
        self, key: str, default: Sequence[int] | None = None, *, at_least: int = 1, at_most: int = MOST
    ) -> tuple[int, ...]:
        """A list of whole numbers, such as the size of each stage."""
        values = self._value(key, default)
        if not isinstance(values, (list, tuple)) or not 1 <= len(values) <= MOST_STAGES:
            raise ValueError(f"{key} must be a list of 1 to {MOST_STAGES} whole numbers, got {_short(values)}")
        limits = {"at_least": at_least, "at_most": at_most}
        each = {f"{key}[{i}]": value for i, value in enumerate(values)}
        result = tuple(Settings(each).integer(name, **limits) for name in each)
        self.sizes |= {name: value for name, value in zip(each, result, strict=True)}
        return result

    def number(self, key: str, default: float | None = None, *, at_least: float = 0.0, at_most: float = 1.0) -> float:
        """A number, such as a probability."""
        value = self._value(key, default)
        if type(value) not in (int, float) or not at_least <= value <= at_most:
            raise ValueError(f"{key} must be a number from {at_least:g} to {at_most:g}, got {_short(value)}")
        return float(value)

    def flag(self, key: str, default: bool | None = None) -> bool:
        """True or false."""
        return self.choice(key, {True: True, False: False}, default)

    def choice(self, key: str, options: Mapping[Any, Any], default: Any = None) -> Any:
        """What `options` has for the value."""
        value = self._value(key, default)
        if not any(type(value) is type(option) and value == option for option in options):
            known = ", ".join(repr(option) for option in options)
            raise ValueError(f"{key} is {_short(value)}, and we have only {known}")
        return options[value]

    def only(self, **values: Any) -> None:
        """These options must be absent or have these values: we have no others."""
        for key, value in values.items():
            self.choice(key, {value: value}, value)

    def _value(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        if value is None and default is None:
            raise ValueError(f"{key} is missing")
        return default if value is None else value


def num_labels(settings: Settings) -> int:
    """How many classes a classifier has; config.json names them one by one, unless there are two."""
    names = settings.values.get("id2label")
    if names is None:
        return settings.integer("num_labels", 2)
    if not isinstance(names, dict) or not names:
        raise ValueError(f"id2label must name the classes, got {str(names)[:80]}")
    return len(names)


def label_names(count: int) -> dict[str, Any]:
    """What config.json says of so many classes, which have no names of their own here."""
    names = [f"LABEL_{i}" for i in range(count)]
    return {
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
    }


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
