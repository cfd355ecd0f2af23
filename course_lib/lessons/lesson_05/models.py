"""Lesson 05: the trained translator that the learner's own class opens."""

from torch import Tensor

from course_lib.classroom.opening import Shipped
from course_lib.data.checkpoints import load_trained
from course_lib.training.translation import encode_pairs, splits

GRU = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
NAMES = {
    "encoder.embed": "source_embed",
    "start": "initial_state",
    "decoder.embed": "target_embed",
    "decoder.W": "decoder.attention.W",
    "decoder.cell": "decoder.gru",
    "decoder.hidden": "readout.0",
    "decoder.out": "readout.2",
}
NAMES |= {f"encoder.gru.{part}_l0": f"encoder.cells.0.{part}" for part in GRU}
NAMES |= {f"encoder.gru.{part}_l0_reverse": f"encoder.cells.1.{part}" for part in GRU}


def sizes(model) -> dict[str, int]:
    """The arguments of the learner's class."""
    config = model.config
    return {"source_vocab": config.source_vocab, "target_vocab": config.target_vocab, "dim": config.embed_dim}


def some_pairs() -> tuple[Tensor, Tensor, Tensor]:
    """Test sentences of several lengths, which of their words are real, and the previous words of their French."""
    source, valid, target, _ = encode_pairs(splits().test[:32])
    return source, valid, target[:, :-1]


MODELS = {
    "seq2seq": Shipped(model=lambda: load_trained("attention").model, sizes=sizes, inputs=some_pairs, names=NAMES)
}
