"""Sizes of a model as plain integers, whatever kind of integer they were given as."""

import operator
from dataclasses import fields
from numbers import Integral
from typing import Any


def plain_integers(config: Any) -> None:
    """Makes Python's integers of NumPy's in a frozen config, whose own would overflow and cannot be saved as JSON."""
    for field in fields(config):
        object.__setattr__(config, field.name, _plain(getattr(config, field.name)))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return operator.index(value) if isinstance(value, Integral) and not isinstance(value, bool) else value
