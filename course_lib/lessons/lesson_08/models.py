"""Lesson 08: the trained GPT that the learner's own class opens, or a released one of the same architecture."""

from torch import Tensor

from course_lib.classroom.opening import Shipped
from course_lib.data.checkpoints import load_trained
from course_lib.training.language_models import tokenized_dictionary

SIZES = ("vocab_size", "context_length", "dim", "depth", "num_heads")
READ = 48  # tokens of the text on which both models are compared


def some_text() -> tuple[Tensor]:
    """The beginning of the test text, (1, T)."""
    return (tokenized_dictionary(2048).ids["test"][None, :READ],)


MODELS = {
    "gpt": Shipped(
        model=lambda: load_trained("dictionary").model,
        sizes=lambda model: {name: getattr(model.config, name) for name in SIZES},
        inputs=some_text,
        names={"pos_embed.weight": "pos_embed.table"},  # an nn.Embedding calls its table so
    )
}
