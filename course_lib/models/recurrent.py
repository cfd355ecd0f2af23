"""What recurrent networks are used for: one to many, many to one, many to many, and a language of characters.

Karpathy, "The unreasonable effectiveness of recurrent neural networks", 2015 (the four patterns; character models).
Sutskever, Martens & Hinton, "Generating text with recurrent neural networks", ICML 2011. Vinyals, Toshev, Bengio &
Erhan, "Show and tell: a neural image caption generator", CVPR 2015, arXiv 1411.4555 (one to many).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.functional.recurrent import LSTMState, State
from course_lib.layers.cache import RecurrentCache, check_left_padded
from course_lib.layers.recurrent import GRU, LSTM, RNN, RecurrentLayer
from course_lib.layers.sizes import plain_integers
from course_lib.layers.transformer import TokenEmbedding

LAYERS: dict[str, type[RecurrentLayer]] = {"rnn": RNN, "lstm": LSTM, "gru": GRU}


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """What all four models have; raises ValueError for an unknown `cell`, or gate biases without an LSTM."""

    vocab_size: int  # symbols
    cell: str = "lstm"  # "rnn", "lstm" or "gru"
    embed_dim: int | None = None  # None: one-hot vectors, so that W_ih is the table
    hidden_dim: int = 128
    num_layers: int = 1
    bidirectional: bool = False
    dropout: float = 0.0  # of a layer's outputs, on the way to the next layer and to the head
    forget_bias: float | None = None  # where the LSTM's starts; about ln T to remember T steps
    input_bias: float | None = None

    def __post_init__(self):
        plain_integers(self)
        if self.cell not in LAYERS:
            raise ValueError(f"cell must be one of {', '.join(LAYERS)}, got {self.cell!r}")
        if self.cell != "lstm" and (self.forget_bias, self.input_bias) != (None, None):
            raise ValueError(f"only an LSTM has forget_bias and input_bias, cell is {self.cell!r}")


@dataclass(frozen=True, kw_only=True)
class SequenceClassifierConfig(RecurrentConfig):
    num_classes: int  # of a sequence, or of each symbol


@dataclass(frozen=True, kw_only=True)
class SequenceGeneratorConfig(RecurrentConfig):
    condition_dim: int  # numbers that describe what is to be written


class RecurrentModel(nn.Module):
    """Symbols become vectors, a recurrent layer reads them, a linear head says something of its states."""

    def __init__(self, config: RecurrentConfig, num_outputs: int):
        super().__init__()
        self.config = config
        if config.embed_dim is None:
            self.token_embed = TokenEmbedding.from_pretrained(torch.eye(config.vocab_size), freeze=True)
        else:
            self.token_embed = TokenEmbedding(config.vocab_size, config.embed_dim)
        biases = {"forget_bias": config.forget_bias, "input_bias": config.input_bias} if config.cell == "lstm" else {}
        sizes = {"num_layers": config.num_layers, "bidirectional": config.bidirectional, "dropout": config.dropout}
        self.rnn = LAYERS[config.cell](self.token_embed.embedding_dim, config.hidden_dim, **sizes, **biases)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(self.rnn.output_dim, num_outputs)

    def embed(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T E"]:
        return self.token_embed(tokens)

    def encode(
        self, x: Float[Tensor, "B T E"], state: State | None = None, *, valid: Bool[Tensor, "B T"] | None = None
    ) -> tuple[Float[Tensor, "B T H"], State]:
        """The last layer's states at each vector, and the final states of all layers; `valid` as in the layer."""
        return self.rnn(x, state, valid=valid)

    def features(
        self, tokens: Int[Tensor, "B T"], *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T H"]:
        """The last layer's states at each symbol."""
        return self.encode(self.embed(tokens), valid=valid)[0]


class WritingModel(RecurrentModel):
    """p(x) = prod_t p(x_t | x_<t), where all that is known of x_<t is one state. Raises ValueError if bidirectional."""

    def __init__(self, config: RecurrentConfig):
        if config.bidirectional:
            raise ValueError("a model that writes cannot read what it has not yet written: bidirectional must be False")
        super().__init__(config, config.vocab_size)

    def read_on(
        self, tokens: Int[Tensor, "B T"], state: State | None = None, *, valid: Bool[Tensor, "B T"] | None = None
    ) -> tuple[Float[Tensor, "B T V"], State]:
        """The logits of each next symbol, and the state to go on from with the next part of the text."""
        states, final = self.encode(self.embed(tokens), state, valid=valid)
        return self.head(self.dropout(states)), final

    def next_logits(
        self, tokens: Int[Tensor, "B T"], cache: RecurrentCache, *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B V"]:
        """Reads `tokens` (`valid`: the real ones, padding at the left) and returns the logits of the next one.

        Raises ValueError for a row that ends in padding.
        """
        check_left_padded(valid)
        states, state = self.encode(self.embed(tokens), cache.state, valid=valid)
        cache.advance(state, tokens.shape[1])
        return self.head(states[:, -1])


class CharacterLM(WritingModel):
    """A language model whose symbols are characters (or bytes), Sutskever et al. 2011."""

    def forward(
        self, tokens: Int[Tensor, "B T"], *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T V"]:
        """The logits of each next symbol, from the zero state; see `read_on` for a text in parts."""
        return self.read_on(tokens, valid=valid)[0]

    def new_cache(self, max_length: int) -> RecurrentCache:
        """The state before the first symbol; it needs no more room for a longer text."""
        return RecurrentCache(max_length)


class SequenceClassifier(RecurrentModel):
    """Many to one: the class of a whole sequence, from the final states of the last layer."""

    def __init__(self, config: SequenceClassifierConfig):
        super().__init__(config, config.num_classes)

    def forward(self, tokens: Int[Tensor, "B T"], *, valid: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B C"]:
        _, state = self.encode(self.embed(tokens), valid=valid)
        h = state.h if isinstance(state, LSTMState) else state
        last = rearrange(h[-self.rnn.num_directions :], "direction b h -> b (direction h)")
        return self.head(self.dropout(last))


class SequenceTagger(RecurrentModel):
    """Many to many, aligned: a tag for each symbol, from its state; with `bidirectional` it knows both sides."""

    def __init__(self, config: SequenceClassifierConfig):
        super().__init__(config, config.num_classes)

    def forward(
        self, tokens: Int[Tensor, "B T"], *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T C"]:
        return self.head(self.dropout(self.features(tokens, valid=valid)))


class SequenceGenerator(WritingModel):
    """One to many: writes about a vector v, as a caption is written about an image.

    Differs from Vinyals et al. 2015, eqs. (10)-(12), where v is the first input: here v makes the first states of all
    layers, each tanh(W v + b).
    """

    def __init__(self, config: SequenceGeneratorConfig):
        super().__init__(config)
        parts = 2 if config.cell == "lstm" else 1
        self.initial_state = nn.Linear(config.condition_dim, parts * config.num_layers * config.hidden_dim)

    def start(self, condition: Float[Tensor, "B C"]) -> State:
        """The states that stand for `condition`, before the first symbol."""
        sizes = {"l": self.config.num_layers, "h": self.config.hidden_dim}
        states = rearrange(self.initial_state(condition).tanh(), "b (part l h) -> part l b h", **sizes)
        return LSTMState(*states) if self.config.cell == "lstm" else states[0]

    def forward(
        self, condition: Float[Tensor, "B C"], tokens: Int[Tensor, "B T"], *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T V"]:
        """Teacher forcing: the logits of each next symbol; `tokens` begin with the start symbol."""
        return self.read_on(tokens, self.start(condition), valid=valid)[0]

    def given(self, condition: Float[Tensor, "B C"]) -> "Conditioned":
        """This model with its vector: a language model for the generators."""
        return Conditioned(self, self.start(condition))


class Conditioned(NamedTuple):
    """A generator that knows what to write about."""

    model: SequenceGenerator
    state: State

    def new_cache(self, max_length: int) -> RecurrentCache:
        return RecurrentCache(max_length, self.state)

    def next_logits(
        self, tokens: Int[Tensor, "B T"], cache: RecurrentCache, *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B V"]:
        return self.model.next_logits(tokens, cache, valid=valid)
