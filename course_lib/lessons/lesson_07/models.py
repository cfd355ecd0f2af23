"""Lesson 07: the trained models that the learner's own classes open; a released MiniLM is one of them."""

import torch
from torch import Tensor, nn

from course_lib.classroom.opening import Shipped
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_07.recipes.pretraining import encode
from course_lib.models.bert import BERT

SENTENCE = "the minister does not sign the famous law ."
SIZES = ("vocab_size", "context_length", "dim", "depth", "num_heads")


def sizes(model: nn.Module) -> dict[str, int]:
    """The arguments of the learner's classes."""
    return {name: getattr(model.config, name) for name in SIZES}


def a_sentence() -> tuple[Tensor]:
    """A sentence of the grammar, (1, T)."""
    return (torch.tensor([encode(SENTENCE.split()).ids]),)


def encoder() -> BERT:
    """The encoder of the shipped model, without its head."""
    return load_trained("bert").model.bert


def without_pooler(model: BERT) -> BERT:
    """A released encoder without the layer that reads [CLS]: the learner's heads have one of their own."""
    model.pooler = None
    return model


POSITIONS = {"pos_embed.weight": "pos_embed.table"}  # an nn.Embedding calls its table so
INSIDE = {f"bert.{hers}": f"bert.{ours}" for hers, ours in POSITIONS.items()}
HEAD = {name: f"head.{name}" for name in ("transform", "norm", "bias")}
MODELS = {
    "masked_lm": Shipped(model=lambda: load_trained("bert").model, sizes=sizes, inputs=a_sentence, names=INSIDE | HEAD),
    "encoder": Shipped(model=encoder, sizes=sizes, inputs=a_sentence, names=POSITIONS),
}
