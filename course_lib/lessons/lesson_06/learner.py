"""Lesson 06: the learner's Transformer on sentences: its scores, its beams, and what is shown while it learns."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from course_lib.data.translation import SentencePair
from course_lib.functional.metrics import corpus_bleu
from course_lib.lessons.lesson_05.learner import batches, example, translate
from course_lib.lessons.lesson_06.models import opened
from course_lib.training.translation import encode_pairs

__all__ = [
    "batches",
    "bleu",
    "each_sentence",
    "example",
    "fresh",
    "gradient_norms",
    "opened",
    "residual_sizes",
    "translate",
]
DEPTHS = (1, 2, 4, 8)


def bleu(model: nn.Module, decode: Callable[..., Tensor], pairs: Sequence[SentencePair]) -> float:
    """BLEU of the translations that a decoding loop of the exercises makes."""
    said: list[list[str]] = []
    for start in range(0, len(pairs), 250):
        group = pairs[start : start + 250]
        said += translate(model, decode, [" ".join(pair.english) for pair in group], max_length=40)
    return corpus_bleu(said, [pair.french for pair in pairs]).score


def fresh(make: Callable[..., nn.Module], sizes: Mapping, seed: int, **changed: object) -> nn.Module:
    """An untrained model of the learner's class: Glorot's matrices, embeddings of standard deviation D^-0.5."""
    torch.manual_seed(seed)
    model = make(**sizes | changed)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    for table in (model.source_embed, model.target_embed):
        nn.init.normal_(table.weight, std=sizes["dim"] ** -0.5)
    return model


def gradient_norms(
    make: Callable[..., nn.Module], loss_of: Callable[..., Tensor], sizes: Mapping, pairs: Sequence[SentencePair]
) -> dict[str, dict[str, list[list[float]]]]:
    """The norms of gradients before any training: of the second matrix of the decoder's last and first MLP.

    By block ("last", "first"), placement of the norm, seed and depth.
    """
    batch, blocks = encode_pairs(pairs), {"last": -1, "first": 0}
    found: dict[str, dict[str, list[list[float]]]] = {block: {} for block in blocks}
    for name, pre_norm in {"post-norm": False, "pre-norm": True}.items():
        for seed in range(3):
            models = [fresh(make, sizes, seed, depth=depth, pre_norm=pre_norm) for depth in DEPTHS]
            for model in models:
                loss_of(model, *batch).backward()
            for block, index in blocks.items():
                row = [model.decoder[index].mlp.down_proj.weight.grad.norm().item() for model in models]
                found[block].setdefault(name, []).append(row)
    return found


@torch.no_grad()
def residual_sizes(
    make: Callable[..., nn.Module], sizes: Mapping, pairs: Sequence[SentencePair], depth: int = 8
) -> dict[str, list[float]]:
    """The root mean square of what the encoder's blocks return before any training, by placement of the norm."""
    source, valid, *_ = encode_pairs(pairs)
    found: dict[str, list[float]] = {}
    for name, pre_norm in {"post-norm": False, "pre-norm": True}.items():
        model, rows = fresh(make, sizes, 0, depth=depth, pre_norm=pre_norm), []
        for block in model.encoder:
            block.register_forward_hook(lambda _part, _given, made, rows=rows: rows.append(made[valid]))
        model.encode(source, valid)
        found[name] = [math.sqrt(made.square().mean().item()) for made in rows]
    return found


def each_sentence(search: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A decoding loop for a batch, made of one for a single sentence; shorter rows are filled with the end symbol."""

    def decode(model: nn.Module, source: Tensor, valid: Tensor, start: int, end: int, max_length: int) -> Tensor:
        rows = []
        for words, real in zip(source, valid, strict=True):
            length = int(real.sum())
            rows.append(search(model, words[None, :length], real[None, :length], start, end, max_length)[0])
        return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=end)

    return decode
