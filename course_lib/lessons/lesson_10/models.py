"""Lesson 10: the trained reward model that the learner's own class opens."""

from torch import Tensor, nn

from course_lib.classroom.opening import Shipped
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_08.models import MODELS as OF_LESSON_08
from course_lib.lessons.lesson_08.tasks import TASKS as GPT_PARTS
from course_lib.lessons.lesson_10 import recipes

NAMES = {"backbone.head": "head", "backbone.pos_embed.weight": "backbone.pos_embed.table"}


def sizes(model: nn.Module) -> dict[str, nn.Module]:
    """The argument of the learner's class: a GPT of lesson 08 in the sizes of ours, whose weights do not matter."""
    return {"gpt": GPT_PARTS["gpt"].module(**OF_LESSON_08["gpt"].sizes(model))}


def some_sentences() -> tuple[Tensor, Tensor]:
    """Test sentences of several lengths, padded, and which of their tokens are real."""
    answers = recipes.as_answers(recipes.sentences()["test"][:32])
    return answers.whole, answers.whole_valid


MODELS = {
    "reward_model": Shipped(
        model=lambda: load_trained("kindness").model, sizes=sizes, inputs=some_sentences, names=NAMES
    )
}
