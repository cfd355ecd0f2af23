"""BERT: an encoder that learns a language by filling gaps, and then a task from a few labels.

Devlin et al., "BERT: pre-training of deep bidirectional Transformers for language understanding", arXiv 1810.04805.

The layer that names hidden words (Devlin et al. 2019, arXiv 1810.04805, section 3.1, task 1).
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear

from course_lib.layers.attention import MultiHeadAttention
from course_lib.layers.transformer import ACTIVATIONS, EncoderBlock, FeedForward, LearnedPositions, normal_weights

Tokens = Int[Tensor, "B T"]  # ids; as `segments` the number of a token's sentence, 0 or 1
Where = Bool[Tensor, "B T"]  # as `valid` True at real tokens, as `masked` True at those to be filled in


@dataclass(frozen=True, kw_only=True)
class BERTConfig:
    """BERT-base by default, section 3."""

    vocab_size: int = 30_522  # WordPiece tokens
    dim: int = 768  # H
    depth: int = 12  # L, blocks
    num_heads: int = 12  # A
    mlp_dim: int = 3072  # 4 H
    context_length: int = 512  # tokens
    num_segments: int = 2  # sentence A, sentence B
    activation: str = "gelu"  # the exact one; "gelu_tanh" is an approximation, 1e-3 away
    norm_eps: float = 1e-12  # of LayerNorm; PyTorch's own is 1e-5
    dropout: float = 0.1  # of embeddings, attention weights, sublayers and a classifier's input, appendix A.2
    tied: bool = True  # the masked-LM head compares with the token embedding, not with a matrix of its own
    num_labels: int = 2  # of a classifier


class BERT(nn.Module):
    """Tokens to features: the sum of three embeddings, figure 2, then post-norm encoder blocks, section 3.

    `pooler` adds the layer that `pool` needs. Weights start from N(0, 0.02^2), which the released code cuts at 0.04.
    Raises ValueError for sizes that do not fit together and, when called, for more than `context_length` tokens.
    """

    def __init__(self, config: BERTConfig, *, pooler: bool = True):
        super().__init__()
        self.config = config
        norm = partial(nn.LayerNorm, config.dim, eps=config.norm_eps)
        self.token_embed = nn.Embedding(config.vocab_size, config.dim)
        self.segment_embed = nn.Embedding(config.num_segments, config.dim)
        self.pos_embed = LearnedPositions(config.dim, config.context_length)
        self.norm, self.dropout = norm(), nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(
            EncoderBlock(
                MultiHeadAttention(config.dim, config.num_heads, dropout=config.dropout),
                FeedForward(config.dim, config.mlp_dim, activation=config.activation),
                norm,
                pre_norm=False,
                dropout=config.dropout,
            )
            for _ in range(config.depth)
        )
        self.pooler = nn.Linear(config.dim, config.dim) if pooler else None
        normal_weights(self)

    def forward(
        self, tokens: Tokens, *, segments: Tokens | None = None, valid: Where | None = None
    ) -> Float[Tensor, "B T D"]:
        """The features of every token; without `segments` all belong to sentence A."""
        x, mask = self.embed(tokens, segments), None if valid is None else valid[:, None, None, :]
        for block in self.blocks:
            x = block(x, mask=mask)
        return x

    def embed(self, tokens: Tokens, segments: Tokens | None = None) -> Float[Tensor, "B T D"]:
        """Token, segment and position embedding of each token: their normalised sum."""
        segment = self.segment_embed.weight[0] if segments is None else self.segment_embed(segments)
        return self.dropout(self.norm(self.pos_embed(self.token_embed(tokens) + segment)))

    def pool(self, features: Float[Tensor, "B T D"]) -> Float[Tensor, "B D"]:
        """tanh(W h_[CLS] + b): the first token stands for the whole sequence.

        Raises ValueError if the model has no pooler.
        """
        if self.pooler is None:
            raise ValueError("this BERT has no pooler, its head looks at single tokens: build it with pooler=True")
        return self.pooler(features[:, 0]).tanh()

    @torch.no_grad()
    def attention_maps(
        self, tokens: Tokens, *, segments: Tokens | None = None, valid: Where | None = None
    ) -> Float[Tensor, "B L H T T"]:
        """The weights of every head in every block, to be looked at; arguments as in `forward`."""
        x, mask, maps = self.embed(tokens, segments), None if valid is None else valid[:, None, None, :], []
        for block in self.blocks:
            maps.append(block.attn.weights(x, mask=mask))
            x = block(x, mask=mask)
        return torch.stack(maps, dim=1)


class PreTrainingLogits(NamedTuple):
    """What both tasks of the pre-training predict."""

    words: Float[Tensor, "*N V"]
    next_sentence: Float[Tensor, "B 2"]  # 0: B follows A, 1: it does not


class BERTForMaskedLM(nn.Module):
    """What the masked tokens were: p(w_i | all that is around it), section 3.1, task 1."""

    def __init__(self, config: BERTConfig):
        super().__init__()
        self.config, self.bert = config, BERT(config, pooler=False)
        self.head = MaskedLMHead(config.dim, config.vocab_size, config.activation, config.norm_eps, tied=config.tied)

    def forward(
        self, tokens: Tokens, *, segments: Tokens | None = None, valid: Where | None = None, masked: Where | None = None
    ) -> Float[Tensor, "*N V"]:
        """Logits (B, T, V), or (N, V) of the N `masked` tokens: the loss needs no others."""
        features = self.bert(tokens, segments=segments, valid=valid)
        return self.head(features if masked is None else features[masked], self.bert.token_embed.weight)


class BERTForPreTraining(nn.Module):
    """Both tasks of section 3.1: what the masked tokens were, and whether sentence B follows sentence A."""

    def __init__(self, config: BERTConfig):
        super().__init__()
        self.config, self.bert = config, BERT(config)
        self.head = MaskedLMHead(config.dim, config.vocab_size, config.activation, config.norm_eps, tied=config.tied)
        self.next_sentence = normal_weights(nn.Linear(config.dim, 2))

    def forward(
        self, tokens: Tokens, *, segments: Tokens | None = None, valid: Where | None = None, masked: Where | None = None
    ) -> PreTrainingLogits:
        """Arguments as in `BERTForMaskedLM`."""
        features = self.bert(tokens, segments=segments, valid=valid)
        words = self.head(features if masked is None else features[masked], self.bert.token_embed.weight)
        return PreTrainingLogits(words, self.next_sentence(self.bert.pool(features)))


class BERTForNextSentence(nn.Module):
    """Section 3.1, task 2, alone: class 0 if sentence B follows A, otherwise class 1."""

    def __init__(self, config: BERTConfig):
        super().__init__()
        self.config, self.bert = config, BERT(config)
        self.next_sentence = normal_weights(nn.Linear(config.dim, 2))

    def forward(
        self, tokens: Tokens, *, segments: Tokens | None = None, valid: Where | None = None
    ) -> Float[Tensor, "B 2"]:
        return self.next_sentence(self.bert.pool(self.bert(tokens, segments=segments, valid=valid)))


class BERTForSequenceClassification(nn.Module):
    """The logits of `num_labels` classes for a sentence or a pair of them, section 4.1, figure 4 (a) and (b)."""

    def __init__(self, config: BERTConfig):
        super().__init__()
        self.config, self.bert, self.dropout = config, BERT(config), nn.Dropout(config.dropout)
        self.classifier = normal_weights(nn.Linear(config.dim, config.num_labels))

    def forward(
        self, tokens: Tokens, *, segments: Tokens | None = None, valid: Where | None = None
    ) -> Float[Tensor, "B C"]:
        return self.classifier(self.dropout(self.bert.pool(self.bert(tokens, segments=segments, valid=valid))))


class BERTForTokenClassification(nn.Module):
    """The logits of `num_labels` classes for each token, such as its part of speech: figure 4 (d)."""

    def __init__(self, config: BERTConfig):
        super().__init__()
        self.config, self.bert, self.dropout = config, BERT(config, pooler=False), nn.Dropout(config.dropout)
        self.classifier = normal_weights(nn.Linear(config.dim, config.num_labels))

    def forward(
        self, tokens: Tokens, *, segments: Tokens | None = None, valid: Where | None = None
    ) -> Float[Tensor, "B T C"]:
        return self.classifier(self.dropout(self.bert(tokens, segments=segments, valid=valid)))


def bert_base(**overrides) -> BERT:
    """BERT-base, 110 M parameters, section 3."""
    return BERT(BERTConfig(**overrides))


def bert_large(**overrides) -> BERT:
    """BERT-large, 340 M parameters, section 3."""
    return BERT(BERTConfig(**{"dim": 1024, "depth": 24, "num_heads": 16, "mlp_dim": 4096} | overrides))


class MaskedLMHead(nn.Module):
    """logits = norm(act(W h + b)) E^T + c, with the transform W of the released code, which the paper leaves out.

    E is the token embedding, given with each call, or the head's own `decoder` where `tied` is False.
    """

    def __init__(self, dim: int, vocab_size: int, activation: str, norm_eps: float, *, tied: bool = True):
        super().__init__()
        self.activation = activation
        self.transform = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim, eps=norm_eps)
        self.decoder = None if tied else nn.Linear(dim, vocab_size)
        self.bias = nn.Parameter(torch.zeros(vocab_size)) if tied else None
        normal_weights(self)

    def forward(self, h: Float[Tensor, "*N D"], embedding: Float[Tensor, "V D"]) -> Float[Tensor, "*N V"]:
        h = self.norm(ACTIVATIONS[self.activation](self.transform(h)))
        return linear(h, embedding, self.bias) if self.decoder is None else self.decoder(h)

    def extra_repr(self) -> str:
        return f"activation={self.activation}"
