"""BERT: an encoder that learns a language by filling gaps, and then a task from a few labels.

Devlin et al., "BERT: pre-training of deep bidirectional Transformers for language understanding", arXiv 1810.04805.
"""

from dataclasses import dataclass
from functools import partial

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.functional.attention import key_mask
from course_lib.layers.transformer import (
    FeedForward,
    LearnedPositions,
    MultiHeadAttention,
    TokenEmbedding,
    TransformerBlock,
    check_sizes,
    normal_weights,
)

Tokens = Int[Tensor, "B T"]  # ids; as `segments` the number of a token's sentence, 0 or 1
Where = Bool[Tensor, "B T"]  # as `valid` True at real tokens, as `masked` True at those to be named


@dataclass(frozen=True, kw_only=True)
class BERTConfig:
    """BERT-base by default, section 3. Raises ValueError for a size below 1."""

    vocab_size: int = 30_522  # WordPiece tokens
    dim: int = 768  # H
    depth: int = 12  # L, blocks
    num_heads: int = 12  # A
    mlp_dim: int = 3072  # 4 H
    context_length: int = 512  # tokens
    num_segments: int = 2  # sentence A, sentence B
    activation: str = "gelu"  # the exact one; "gelu_tanh" is an approximation, 1e-3 away
    norm_eps: float = 1e-12  # of LayerNorm; PyTorch's own is 1e-5
    dropout: float = 0.1  # of embeddings and sublayers, appendix A.2
    attention_dropout: float | None = None  # of attention weights; None: as `dropout`
    classifier_dropout: float | None = None  # of a classifier's input; None: as `dropout`
    tied: bool = True  # the masked-LM head compares with the token embedding, not with a matrix of its own
    num_classes: int = 2  # of a classifier

    def __post_init__(self):
        check_sizes(self, "vocab_size", "dim", "depth", "num_heads", "mlp_dim")
        check_sizes(self, "context_length", "num_segments", "num_classes")


class BERT(nn.Module):
    """Tokens to features: the sum of three embeddings, figure 2, then post-norm encoder blocks, section 3.

    `pooler` adds the layer that `pool` needs. Weights start from N(0, 0.02^2), which the released code cuts at 0.04.
    Raises ValueError for sizes that do not fit together and, when called, for more than `context_length` tokens.
    """

    def __init__(self, config: BERTConfig, *, pooler: bool = True):
        super().__init__()
        self.config = config
        of_weights = config.dropout if config.attention_dropout is None else config.attention_dropout
        norm = partial(nn.LayerNorm, config.dim, eps=config.norm_eps)
        self.token_embed = TokenEmbedding(config.vocab_size, config.dim)
        self.segment_embed = TokenEmbedding(config.num_segments, config.dim)
        self.pos_embed = LearnedPositions(config.dim, config.context_length)
        self.norm, self.dropout = norm(), nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(
            TransformerBlock(
                MultiHeadAttention(config.dim, config.num_heads, dropout=of_weights),
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
        return self.encode(self.embed(tokens, segments), valid)

    features = forward

    def embed(self, tokens: Tokens, segments: Tokens | None = None) -> Float[Tensor, "B T D"]:
        """Token, segment and position embedding of each token: their normalised sum."""
        segment = self.segment_embed.weight[0] if segments is None else self.segment_embed(segments)
        return self.dropout(self.norm(self.pos_embed(self.token_embed(tokens) + segment)))

    def encode(self, x: Float[Tensor, "B T D"], valid: Where | None = None) -> Float[Tensor, "B T D"]:
        """Any vectors through all blocks, those of tokens or others in their place."""
        for block in self.blocks:
            x = block(x, mask=key_mask(valid))
        return x

    def pool(self, features: Float[Tensor, "B T D"]) -> Float[Tensor, "B D"]:
        """tanh(W h_[CLS] + b): the first token stands for the whole sequence.

        Raises ValueError if the model has no pooler.
        """
        if self.pooler is None:
            raise ValueError("this BERT has no pooler, its head looks at single tokens: build it with pooler=True")
        return self.pooler(features[:, 0]).tanh()


def bert_base(**overrides) -> BERT:
    """BERT-base, 110 M parameters, section 3."""
    return BERT(BERTConfig(**overrides))


def bert_large(**overrides) -> BERT:
    """BERT-large, 340 M parameters, section 3."""
    return BERT(BERTConfig(**{"dim": 1024, "depth": 24, "num_heads": 16, "mlp_dim": 4096} | overrides))
