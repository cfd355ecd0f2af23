"""Lesson 03: the trained recogniser that the learner's own class opens."""

from torch import Tensor

from course_lib.classroom.opening import Shipped
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_03.recipes import names

NAMES = {  # of the learner's parts in the library's recurrent models
    "embed": "token_embed",
    "rnn.ih.weight": "rnn.cells.0.weight_ih",
    "rnn.ih.bias": "rnn.cells.0.bias_ih",
    "rnn.hh.weight": "rnn.cells.0.weight_hh",
    "rnn.hh.bias": "rnn.cells.0.bias_hh",
}


def sizes(model) -> dict[str, int]:
    """The arguments of the learner's class."""
    config = model.config
    return {
        "vocab_size": config.vocab_size,
        "num_classes": config.num_classes,
        "embed_dim": config.embed_dim,
        "hidden_dim": config.hidden_dim,
    }


def some_names() -> tuple[Tensor]:
    """The first eight letters of test names that have so many, (B, 8)."""
    ids, valid, _ = names.examples("test")
    return (ids[valid.sum(dim=1) >= 8][:64, :8],)


MODELS = {
    "recogniser": Shipped(
        model=lambda: load_trained("names").model,
        sizes=sizes,
        inputs=some_names,
        names=NAMES,
    )
}
