"""Looking inside: the weights of every attention in a model, without a line about it in the model."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.layers.cache import KeysValues
from course_lib.layers.recurrent import AdditiveAttention, LuongAttention, identity_like
from course_lib.layers.transformer import MultiHeadAttention


class AttentionRecord(dict[str, list[Tensor]]):
    """The weights (B, H, T_q, T_k) of each call of each attention, by its name, such as "blocks.0.attn"."""

    def __init__(self):
        super().__init__()
        self.begins: dict[str, list[bool]] = {}  # of each call, whether it begins a pass or goes on with the one before

    def maps(self, part: str = "") -> Float[Tensor, "B L H T_q T_k"]:
        """Those of all L attentions whose name contains `part` (a regular expression), in the order of the layers.

        In a decoder that generates, the queries of the prompt are followed by one for each new token, and the weights
        of keys that were not there yet are 0: as in one pass over the whole text.
        Raises ValueError if there is none, if one ran in several passes, or if they are of several kinds or shapes:
        then `part` has to choose.
        """
        found = {name: self.joined(name) for name, calls in self.items() if calls and re.search(part, name)}
        if not found:
            raise ValueError(f"no attention ran whose name contains {part!r}; there are {', '.join(self) or 'none'}")
        if len({(re.sub(r"\d+", "#", name), weights.shape) for name, weights in found.items()}) > 1:
            listed = ", ".join(f"{name} {tuple(weights.shape)}" for name, weights in found.items())
            raise ValueError(f"several kinds of attention ran, name a part, as in maps('encoder'): {listed}")
        return torch.stack(list(found.values()), dim=1)

    def joined(self, name: str) -> Float[Tensor, "B H T_q T_k"]:
        """All queries of one attention, in one pass. Raises ValueError if there were several."""
        calls, passes = self[name], 1 + sum(self.begins[name][1:])
        if passes > 1:
            raise ValueError(
                f"{name} ran in {passes} passes while this recorded: record one pass, or take the weights of each call "
                f"from record[{name!r}]"
            )
        num_keys = max(weights.shape[-1] for weights in calls)
        return torch.cat([F.pad(weights, (0, num_keys - weights.shape[-1])) for weights in calls], dim=2)


@contextmanager
def record_attention(model: nn.Module) -> Iterator[AttentionRecord]:
    """Inside the `with` block each attention of `model` also notes its weights, without gradients and dropout.

        with record_attention(gpt) as record:
            gpt(tokens)
        record.maps()                       # (B, L, H, T, T)

    A Transformer has three kinds: `record.maps("encoder")`, `maps("cross_attn")`, `maps(r"decoder.*\\.attn")`. The
    windows of a Swin count as rows of the batch; recurrent translators have one layer and one head.
    """
    record, undo = AttentionRecord(), []
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention | AdditiveAttention | LuongAttention):
            record[name], record.begins[name] = [], []
            hook = noting_begins(record.begins[name])
            undo.append((module.register_forward_pre_hook(hook, with_kwargs=True), None))
        if isinstance(module, MultiHeadAttention):
            undo.append((module, module.attend))
            module.attend = noting(module.attend, record[name])
        elif isinstance(module, AdditiveAttention | LuongAttention):
            undo.append((module.register_forward_hook(note_second(record[name])), None))
    try:
        yield record
    finally:
        for place, attend in reversed(undo):
            place.remove() if attend is None else setattr(place, "attend", attend)


def noting(attend: Callable[..., Tensor], calls: list[Tensor]) -> Callable[..., Tensor]:
    """`attend`, which also writes its weights down: they are what it makes of the identity matrix as values."""
    silent = getattr(attend, "silent", attend)  # of a recorder around this one, which is to note the call itself alone

    def both(q: Tensor, k: Tensor, v: Tensor, *, dropout: float = 0.0, **arguments) -> Tensor:
        with torch.no_grad():
            calls.append(silent(q, k, identity_like(k), **arguments))
        return attend(q, k, v, dropout=dropout, **arguments)

    vars(both)["silent"] = silent
    return both


def noting_begins(begins: list[bool]) -> Callable:
    """A hook that notes of each call whether it begins a pass.

    One goes on if there is a past in its cache, or if it asks the keys of the call before again: those kept for a
    decoder that generates, or any by one query at a time.
    """
    asked = []  # the context of the call before

    def note(module: nn.Module, inputs: tuple, named: dict[str, Any]) -> None:
        cache, (x, *others) = named.get("cache"), inputs
        context = named.get("context", named.get("keys", others[0] if others else None))
        again = context is not None and asked[-1:] != [] and context is asked[-1]
        goes_on = again and (isinstance(context, KeysValues) or x.shape[1] == 1)
        begins.append(not (goes_on or (cache is not None and cache.length > 0)))
        asked[:] = [context]

    return note


def note_second(calls: list[Tensor]) -> Callable:
    """A hook for layers that return context vectors and weights (B, T_q, T_k)."""
    return lambda module, inputs, output: calls.append(output[1].detach()[:, None])
