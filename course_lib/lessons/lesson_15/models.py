"""Lesson 15: the trained T5 and Conformer that the learner's own classes open."""

import torch
from torch import Tensor, nn

from course_lib.classroom.opening import Shipped, copy_weights
from course_lib.data.checkpoints import load_trained
from course_lib.data.tones import Melodies
from course_lib.lessons.lesson_15.recipes import speech, text_to_text
from course_lib.lessons.lesson_15.tasks import TASKS
from course_lib.models.conformer import Conformer
from course_lib.models.t5 import T5

MOST_BLOCKS = 24  # of a stack, in the released models
FEW = 8  # sentences or melodies
BLOCK = {  # the learner's names in every block -> the library's
    "attn_norm": "norm1",
    "attn.out_proj": "attn.o_proj",
    "up_proj": "ffn.up_proj",
    "down_proj": "ffn.down_proj",
}
NAMES = {
    f"{side}.{block}.{hers}": f"{side}.{block}.{ours}"
    for side, others in (
        ("encoder", {"ffn_norm": "norm2"}),
        ("decoder", {"cross_norm": "norm2", "cross_attn.out_proj": "cross_attn.o_proj", "ffn_norm": "norm3"}),
    )
    for block in range(MOST_BLOCKS)
    for hers, ours in (BLOCK | others).items()
} | {f"{side}_bias.table.weight": f"{side}_bias.table" for side in ("encoder", "decoder")}


def sizes_of_t5(model: T5) -> dict[str, int]:
    """The arguments of the learner's class for a T5 of the library, whose two stacks are of one depth."""
    names = ("vocab_size", "dim", "num_heads", "head_dim", "mlp_dim", "num_buckets", "max_distance")
    return {name: getattr(model.config, name) for name in names} | {"depth": len(model.encoder)}


def opened(ours: T5) -> nn.Module:
    """A T5 of the library as the class of the solution, which is called like the learner's."""
    sizes = sizes_of_t5(ours)
    mine = TASKS["t5"].module(**sizes).eval()
    copy_weights(ours, mine, NAMES)
    mine.sizes = sizes
    return mine


def some_sentences() -> tuple[Tensor, Tensor, Tensor]:
    """Sources of all tasks, the previous tokens of their targets, and which tokens of the sources are real."""
    sentences = text_to_text.sentences("test", FEW)
    batch = text_to_text.as_batch(
        [one for task in text_to_text.TASKS for one in text_to_text.examples(task, sentences)]
    )
    previous = torch.cat([torch.zeros_like(batch.target[:, :1]), batch.target[:, :-1]], dim=1)
    return batch.source, previous, batch.source_valid


def sizes_of_conformer(model: Conformer) -> dict[str, int]:
    """The arguments of the learner's class for a Conformer of the library."""
    names = ("frame_dim", "num_classes", "dim", "depth", "num_heads", "mlp_dim", "kernel_size")
    return {name: getattr(model.config, name) for name in names}


def some_melodies() -> tuple[Tensor, Tensor]:
    """Frames of unseen melodies of several lengths, and which of them are real."""
    melodies: Melodies = speech.TONES.batch(FEW, speech.HELD_OUT["test"])
    return melodies.frames, melodies.valid


def shipped_t5(name: str) -> Shipped:
    """A trained T5 by the name of its checkpoint."""
    return Shipped(
        model=lambda: opened(load_trained(name).model), sizes=lambda model: model.sizes, inputs=some_sentences
    )


MODELS = {
    "t5": shipped_t5("text_to_text"),
    "gaps": shipped_t5("gaps"),
    "conformer": Shipped(
        model=lambda: load_trained("tones").model,
        sizes=sizes_of_conformer,
        inputs=some_melodies,
    ),
}
