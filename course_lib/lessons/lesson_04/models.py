"""Lesson 04: the trained character model that the learner's own class opens."""

from torch import Tensor

from course_lib.classroom.opening import Shipped
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_03.models import NAMES
from course_lib.training.language_models import tokenized_prose

READ = 120  # characters of the text on which both models are compared


def sizes(model) -> dict[str, int]:
    """The arguments of the learner's class."""
    config = model.config
    return {"vocab_size": config.vocab_size, "embed_dim": config.embed_dim, "hidden_dim": config.hidden_dim}


def some_text() -> tuple[Tensor]:
    """The beginning of the test text, in four rows, (B, T)."""
    return (tokenized_prose().ids["test"][: 4 * READ].view(4, READ),)


MODELS = {
    "character_model": Shipped(
        model=lambda: load_trained("lstm_characters").model,
        sizes=sizes,
        inputs=some_text,
        names=NAMES,
    )
}
