"""Looking inside: the weights of every attention in a model, without a line about it in the model."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.layers.recurrent import AdditiveAttention, LuongAttention, identity_like
from course_lib.layers.transformer import MultiHeadAttention


class AttentionRecord(dict[str, list[Tensor]]):
    """The weights (B, H, T_q, T_k) of each attention, by its name in the model, such as "blocks.0.attn"."""

    def maps(self, part: str = "") -> Float[Tensor, "B L H T_q T_k"]:
        """Those of all L attentions whose name contains `part` (a regular expression), in the order of the layers.

        One that was called for each word, as in a decoder that writes, has a query for each call.
        Raises ValueError if there is none, or they are of several kinds or shapes: then `part` has to choose.
        """
        found = {name: torch.cat(calls, dim=2) for name, calls in self.items() if calls and re.search(part, name)}
        if not found:
            raise ValueError(f"no attention ran whose name contains {part!r}; there are {', '.join(self) or 'none'}")
        if len({(re.sub(r"\d+", "#", name), weights.shape) for name, weights in found.items()}) > 1:
            listed = ", ".join(f"{name} {tuple(weights.shape)}" for name, weights in found.items())
            raise ValueError(f"several kinds of attention ran, name a part, as in maps('encoder'): {listed}")
        return torch.stack(list(found.values()), dim=1)


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
        if isinstance(module, MultiHeadAttention):
            record[name] = calls = []
            undo.append((module, module.attend))
            module.attend = noting(module.attend, calls)
        elif isinstance(module, AdditiveAttention | LuongAttention):
            record[name] = calls = []
            undo.append((module.register_forward_hook(note_second(calls)), None))
    try:
        yield record
    finally:
        for place, attend in undo:
            place.remove() if attend is None else setattr(place, "attend", attend)


def noting(attend: Callable[..., Tensor], calls: list[Tensor]) -> Callable[..., Tensor]:
    """`attend`, which also writes its weights down: they are what it makes of the identity matrix as values."""

    def both(q: Tensor, k: Tensor, v: Tensor, *, dropout: float = 0.0, **arguments) -> Tensor:
        with torch.no_grad():
            calls.append(attend(q, k, identity_like(k), **arguments))
        return attend(q, k, v, dropout=dropout, **arguments)

    return both


def note_second(calls: list[Tensor]) -> Callable:
    """A hook for layers that return context vectors and weights (B, T_q, T_k)."""
    return lambda module, inputs, output: calls.append(output[1].detach()[:, None])
