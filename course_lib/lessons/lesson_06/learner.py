"""Lesson 06: a translator built of the learner's block, taught by their schedule and loss, and their beam search."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.classroom.markup import to_html
from course_lib.generation.protocol import LanguageModel
from course_lib.layers.transformer import TransformerBlock
from course_lib.lessons.lesson_06.recipes import translator
from course_lib.lessons.lesson_06.transformer import stream_words
from course_lib.models.transformer import Transformer
from course_lib.training.progress import Progress, using

SETTINGS = translator.TransformerSettings(steps=1000, pre_norm=True)


def build(settings: translator.TransformerSettings, block: Callable) -> Transformer:
    """A fresh translator, in all of whose blocks `block` puts norm, sublayer and residual path together."""
    model = translator.build(settings)
    for layer in model.encoder:
        layer.forward = partial(encode, layer, block)
    for layer in model.decoder:
        layer.residual = partial(one_sublayer, block)
    return model


def encode(layer: TransformerBlock, block: Callable, x: Tensor, **given: Any) -> Tensor:
    """The encoder's layer, put together by `block`."""
    return block(x, [partial(layer.attn, **given), layer.ffn], [layer.norm1, layer.norm2])


def one_sublayer(block: Callable, x: Tensor, norm: nn.Module, sublayer: Callable) -> Tensor:
    """A block of one sublayer: the library's decoder calls for its three one at a time."""
    return block(x, [sublayer], [norm])


def train(
    model: Transformer, settings: translator.TransformerSettings, rate: Callable, loss: Callable, progress: Progress
) -> None:
    """Trains as `train_transformer` does, by another schedule and loss."""

    def translation_loss(model: Transformer, batch: tuple[Tensor, ...], *, smoothing: float) -> Tensor:
        source, source_valid, target, target_valid = batch
        logits = model(source, target[:, :-1], source_valid=source_valid)
        return loss(logits, target[:, 1:], smoothing, target_valid[:, 1:])

    def factor(step: int, steps: int, warmup: int) -> float:
        return rate(step + 1, settings.dim, warmup) / translator.peak(settings)

    with using(lambda title: progress):
        translator.train_transformer(settings, model=model, loss=translation_loss, schedule=factor)


def shows(english: str) -> Callable[[Transformer], str]:
    """What the model makes of one sentence, for the display of a training."""
    return lambda model: to_html(f"{english}\n\n**{' '.join(stream_words(model, english)) or '(nothing yet)'}**")


@torch.inference_mode()
def search(
    step: Callable[..., Tensor],
    model: LanguageModel,
    *,
    start_id: int,
    end_id: int,
    num_beams: int,
    max_new_tokens: int,
    penalty: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Beam search for one sentence with a learner's `step`: the words of each beam, (N, T), and its score, best first.

    Unlike the library's, it keeps a beam that has ended in the beam. Padding, behind the end, is 0.
    """
    tokens = torch.full((num_beams, 1), start_id)
    lengths, ended = torch.zeros(num_beams, dtype=torch.long), torch.zeros(num_beams, dtype=torch.bool)
    totals = torch.full((num_beams,), -math.inf)
    totals[0] = 0.0  # at first all beams are alike
    cache = model.new_cache(1 + max_new_tokens)
    log_probs = model.next_logits(tokens[:1], cache).log_softmax(dim=-1).expand(num_beams, -1)
    cache.select(torch.zeros(num_beams, dtype=torch.long))
    for _ in range(max_new_tokens):
        beam, word = step(totals, lengths, ended, log_probs, penalty).unbind(dim=1)
        totals = totals[beam] + log_probs[beam, word].masked_fill(ended[beam], 0.0)
        lengths, tokens = lengths[beam] + ~ended[beam], torch.cat([tokens[beam], word[:, None]], dim=1)
        ended = ended[beam] | (word == end_id)
        if ended.all():
            break
        cache.select(beam)
        log_probs = model.next_logits(word[:, None], cache).log_softmax(dim=-1)
    return tokens[:, 1:], totals / lengths**penalty
