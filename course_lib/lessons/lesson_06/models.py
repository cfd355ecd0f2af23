"""Lesson 06: the trained translators that the learner's own class opens."""

from torch import Tensor, nn

from course_lib.classroom.opening import Shipped, copy_weights
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_06.tasks import TASKS
from course_lib.training.translation import encode_pairs, splits

NAMES = {f"{side}.{block}.mlp": f"{side}.{block}.ffn" for side in ("encoder", "decoder") for block in range(8)}


def sizes_of(model: nn.Module) -> dict[str, int]:
    """The arguments of the learner's class for a Transformer of the library."""
    config = model.config
    return {
        "source_vocab": config.vocab_size[0],
        "target_vocab": config.vocab_size[1],
        "dim": config.dim,
        "depth": config.depth,
        "num_heads": config.num_heads,
        "mlp_dim": config.mlp_dim,
        "pre_norm": config.pre_norm,
    }


def opened(checkpoint: str) -> nn.Module:
    """A trained translator as the class of the solution, which has the methods that the learner's has, too."""
    ours = load_trained(checkpoint).model.eval()
    mine = TASKS["transformer"].module(**sizes_of(ours)).eval()
    copy_weights(ours, mine, NAMES)
    mine.sizes = sizes_of(ours)
    return mine


def sizes(model: nn.Module) -> dict[str, int]:
    """The arguments of the learner's class."""
    return model.sizes


def some_pairs() -> tuple[Tensor, Tensor, Tensor]:
    """Test sentences of several lengths, which of their words are real, and the previous words of their French."""
    source, valid, target, _ = encode_pairs(splits().test[:32])
    return source, valid, target[:, :-1]


MODELS = {"transformer": Shipped(model=lambda: opened("translator"), sizes=sizes, inputs=some_pairs)}
