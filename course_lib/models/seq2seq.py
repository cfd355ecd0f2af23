"""Translation with recurrent networks: one fixed context vector, and two ways to attend.

Cho et al., "Learning phrase representations using RNN encoder-decoder", EMNLP 2014, arXiv 1406.1078.
Bahdanau et al., "Neural machine translation by jointly learning to align and translate", ICLR 2015, arXiv 1409.0473.
Luong et al., "Effective approaches to attention-based neural machine translation", EMNLP 2015, arXiv 1508.04025.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.layers.recurrent import GRU, AdditiveAttention, GRUCell, LuongAttention
from course_lib.layers.sizes import plain_integers
from course_lib.layers.transformer import TokenEmbedding

SCORES = ("additive", "dot", "general", "scaled")


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig:
    """`attention`: "none" (one fixed vector), or a score, "additive" (Bahdanau), "dot", "general" (Luong), "scaled"."""

    source_vocab: int  # words
    target_vocab: int  # words
    attention: str = "additive"
    looks_first: bool | None = None  # as Bahdanau's decoder, not as Luong's; None: by the paper of the score
    embed_dim: int = 64
    encoder_dim: int = 64  # of each direction: an annotation h_j has twice as many numbers
    hidden_dim: int = 64  # of the decoder state s_i
    start_id: int = 1  # <s>, the word before the first
    end_id: int = 2  # </s>

    def __post_init__(self):
        plain_integers(self)
        if self.attention not in ("none", *SCORES):
            raise ValueError(f"attention must be one of none, {', '.join(SCORES)}, got {self.attention!r}")
        if self.looks_first is None:
            object.__setattr__(self, "looks_first", self.attention in ("additive", "scaled"))


class Source(NamedTuple):
    """What the encoder tells the decoder about a sentence of T_k words."""

    annotations: Float[Tensor, "B T_k D_k"]  # h_j, one for each word
    summary: Float[Tensor, "B D_k"]  # the last state of both directions: the fixed context vector
    valid: Bool[Tensor, "B T_k"]  # real words
    projected: Float[Tensor, "B T_k A"] | None = None  # U_a h_j, for a decoder that scores with it


class Decoded(NamedTuple):
    """What a decoder makes of T_q words; `weights` is None where there is no attention."""

    features: Float[Tensor, "B T_q F"]
    weights: Float[Tensor, "B T_q T_k"] | None
    state: Float[Tensor, "B H"]  # s after the last of the words


class FixedContextDecoder(nn.Module):
    """s_i = GRU(s_{i-1}, [y_{i-1}; c]) with one vector c for the whole sentence, Cho et al. 2014, section 2.2.

    c does not depend on the state, so all steps of a known target run in one call.
    """

    def __init__(self, embed_dim: int, source_dim: int, hidden_dim: int):
        super().__init__()
        self.gru = GRU(embed_dim + source_dim, hidden_dim)
        self.feature_dim = hidden_dim + embed_dim + source_dim

    def forward(self, words: Float[Tensor, "B T_q E"], source: Source, state: Float[Tensor, "B H"]) -> Decoded:
        context = source.summary[:, None].expand(-1, words.shape[1], -1)
        states, last = self.gru(torch.cat([words, context], dim=-1), state[None])
        return Decoded(torch.cat([states, words, context], dim=-1), None, last[0])


class BahdanauDecoder(nn.Module):
    """c_i = attention(s_{i-1}, h); s_i = GRU(s_{i-1}, [y_{i-1}; c_i]), Bahdanau et al. 2015, eqs. (4)-(6).

    It looks first. The context of a step needs the state before it: the words must be taken one after the other.
    """

    def __init__(self, embed_dim: int, source_dim: int, hidden_dim: int, attention: nn.Module):
        super().__init__()
        self.attention = attention
        self.gru = GRUCell(embed_dim + source_dim, hidden_dim)
        self.feature_dim = hidden_dim + embed_dim + source_dim

    def forward(self, words: Float[Tensor, "B T_q E"], source: Source, state: Float[Tensor, "B H"]) -> Decoded:
        known = {"mask": source.valid[:, None]}
        if source.projected is not None:
            known["projected_keys"] = source.projected
        steps = []
        for word in words.unbind(dim=1):
            context, weights = self.attention(state[:, None], source.annotations, **known)
            state = self.gru(torch.cat([word, context[:, 0]], dim=-1), state)
            steps.append((state[:, None], context, weights))
        states, contexts, weights = (torch.cat(parts, dim=1) for parts in zip(*steps, strict=True))
        return Decoded(torch.cat([states, words, contexts], dim=-1), weights, state)


class LuongDecoder(nn.Module):
    """s_i = GRU(s_{i-1}, y_{i-1}); c_i = attention(s_i, h), Luong et al. 2015, section 3.1.

    It looks afterwards: attention does not feed the recurrence, so both run over all words of a known target at once.
    Differs from the paper in one GRU where it has four LSTMs, and in no input feeding (section 3.3).
    """

    def __init__(self, embed_dim: int, source_dim: int, hidden_dim: int, attention: nn.Module):
        super().__init__()
        self.gru = GRU(embed_dim, hidden_dim)
        self.attention = attention
        self.feature_dim = hidden_dim + source_dim

    def forward(self, words: Float[Tensor, "B T_q E"], source: Source, state: Float[Tensor, "B H"]) -> Decoded:
        states, last = self.gru(words, state[None])
        contexts, weights = self.attention(states, source.annotations, mask=source.valid[:, None])
        return Decoded(torch.cat([states, contexts], dim=-1), weights, last[0])


def make_decoder(config: Seq2SeqConfig, source_dim: int) -> nn.Module:
    sizes = config.embed_dim, source_dim, config.hidden_dim
    if config.attention == "none":
        return FixedContextDecoder(*sizes)
    if config.attention == "additive":
        attention = AdditiveAttention(config.hidden_dim, source_dim, config.hidden_dim)
    else:
        attention = LuongAttention(config.hidden_dim, source_dim, score=config.attention)
    return (BahdanauDecoder if config.looks_first else LuongDecoder)(*sizes, attention)


class Seq2Seq(nn.Module):
    """p(y | x) = prod_i p(y_i | y_<i, x): an encoder that reads x, a decoder that writes y word by word.

    The decoder starts from s_0 = tanh(W_s c), and its features f_i become logits by W_o tanh(W_f f_i).
    Differs from Bahdanau et al. 2015 in the tanh layer before the logits (theirs is a maxout), and in s_0, which here
    sees both directions of the encoder (theirs: the backward one).
    """

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        self.config = config
        source_dim = 2 * config.encoder_dim
        self.source_embed = TokenEmbedding(config.source_vocab, config.embed_dim)
        self.encoder = GRU(config.embed_dim, config.encoder_dim, bidirectional=True)
        self.initial_state = nn.Linear(source_dim, config.hidden_dim)
        self.target_embed = TokenEmbedding(config.target_vocab, config.embed_dim)
        self.decoder = make_decoder(config, source_dim)
        self.readout = nn.Sequential(
            nn.Linear(self.decoder.feature_dim, config.hidden_dim),
            nn.Tanh(),
            nn.Linear(config.hidden_dim, config.target_vocab),
        )

    def embed(self, source: Int[Tensor, "B T_k"]) -> Float[Tensor, "B T_k E"]:
        return self.source_embed(source)

    def encode(self, x: Float[Tensor, "B T_k E"], valid: Bool[Tensor, "B T_k"]) -> Source:
        """The sentence read from both ends: h_j = [forward h_j; backward h_j], Bahdanau et al. 2015, section 3.2."""
        annotations, last = self.encoder(x, valid=valid)
        projected = self.decoder.attention.project_keys(annotations) if self.config.attention == "additive" else None
        return Source(annotations, rearrange(last, "direction b h -> b (direction h)"), valid, projected)

    def start(self, source: Source) -> Float[Tensor, "B H"]:  # s_0
        return self.initial_state(source.summary).tanh()

    def forward(
        self, source: Int[Tensor, "B T_k"], valid: Bool[Tensor, "B T_k"], target_in: Int[Tensor, "B T_q"]
    ) -> Float[Tensor, "B T_q V"]:
        """Teacher forcing: the logits of y_1 ... y_n, given `target_in` = <s>, y_1 ... y_{n-1}."""
        return self.readout(self.features(source, valid, target_in))

    def features(
        self, source: Int[Tensor, "B T_k"], valid: Bool[Tensor, "B T_k"], target_in: Int[Tensor, "B T_q"]
    ) -> Float[Tensor, "B T_q F"]:
        """What the logits are made of; arguments as in `forward`."""
        encoded = self.encode(self.embed(source), valid)
        return self.decoder(self.target_embed(target_in), encoded, self.start(encoded)).features

    @torch.no_grad()
    def greedy_decode(
        self, source: Int[Tensor, "B T_k"], valid: Bool[Tensor, "B T_k"], *, max_length: int = 60
    ) -> tuple[Int[Tensor, "B T_q"], Float[Tensor, "B T_q T_k"] | None]:
        """Writes the most probable next word until every sentence has its end sign, or `max_length` words.

        What follows a row's end sign means nothing. Returns the words and, with attention, the weights.
        """
        encoded = self.encode(self.embed(source), valid)
        word = torch.full((len(source),), self.config.start_id, device=source.device)
        ended = torch.zeros(len(source), dtype=torch.bool, device=source.device)
        words, weights, state = [], [], self.start(encoded)
        while len(words) < max_length and not ended.all():
            decoded = self.decoder(self.target_embed(word[:, None]), encoded, state)
            state, word = decoded.state, self.readout(decoded.features[:, 0]).argmax(dim=-1)
            ended = ended | (word == self.config.end_id)
            words.append(word)
            weights.append(decoded.weights)
        return torch.stack(words, dim=1), None if weights[0] is None else torch.cat(weights, dim=1)
