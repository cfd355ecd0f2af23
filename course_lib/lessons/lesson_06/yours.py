"""Lesson 06: a translator that is built of the learner's block and learns by the learner's schedule and loss."""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from course_lib.classroom.markup import to_html
from course_lib.lessons.lesson_06.recipes import translator
from course_lib.lessons.lesson_06.transformer import stream_words
from course_lib.models.transformer import Transformer
from course_lib.training.progress import Progress, using

SETTINGS = translator.TransformerSettings(steps=1000, pre_norm=True)


def build(settings: translator.TransformerSettings, block: Callable) -> Transformer:
    """A fresh translator, in all of whose blocks `block` puts norm, sublayer and residual path together."""
    model = translator.build(settings)
    for layer in (*model.encoder, *model.decoder):
        layer.residual = partial(one_sublayer, block)
    return model


def one_sublayer(block: Callable, x: Tensor, norm: nn.Module, sublayer: Callable) -> Tensor:
    """A block of one sublayer: the library's blocks call for theirs one at a time."""
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
