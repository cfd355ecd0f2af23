"""ViLBERT: a text and a picture are read by two streams, and each asks the other.

Lu, Batra, Parikh & Lee, "ViLBERT: Pretraining task-agnostic visiolinguistic representations for vision-and-language
tasks", NeurIPS 2019, arXiv 1908.02265.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.functional.attention import key_mask
from course_lib.layers.transformer import (
    Block,
    FeedForward,
    MultiHeadAttention,
    TransformerBlock,
    check_sizes,
    normal_weights,
)
from course_lib.models.bert import BERT, BERTConfig

Valid = Bool[Tensor, "B T"]  # True at real tokens


@dataclass(frozen=True, kw_only=True)
class ViLBERTConfig:
    """The paper's model by default, section 3.1: BERT-base beside a stream of 1024 units with 8 heads.

    Raises ValueError for a size below 1, and for more pairs of layers than the text stream has blocks.
    """

    text: BERTConfig = field(default_factory=BERTConfig)
    region_dim: int = 2048  # of a region's features, of Faster R-CNN in the paper
    image_dim: int = 1024  # width of the image stream
    image_num_heads: int = 8
    image_mlp_dim: int = 1024
    co_depth: int = 6  # k, pairs of Co-TRM and TRM; the text has depth - k blocks of its own before
    joint_dim: int = 1024  # of h_IMG and h_CLS where they are multiplied

    def __post_init__(self):
        check_sizes(self, "region_dim", "image_dim", "image_num_heads", "image_mlp_dim", "co_depth", "joint_dim")
        if self.co_depth > self.text.depth:
            raise ValueError(f"co_depth={self.co_depth} is more than the {self.text.depth} blocks of the text stream")


class Streams(NamedTuple):
    """What the two streams hold at one depth."""

    text: Float[Tensor, "B T D"]  # the first is [CLS]
    image: Float[Tensor, "B R1 V"]  # the first is [IMG], the R regions follow


class CoAttentionBlock(Block):
    """One side of figure 2 (b): queries from its own stream, keys and values from the other; then a feed-forward."""

    def __init__(self, attn: MultiHeadAttention, ffn: FeedForward, *, norm_eps: float, dropout: float):
        super().__init__(pre_norm=False, dropout=dropout)
        dim = attn.q_proj.in_features
        self.norm1, self.attn = nn.LayerNorm(dim, eps=norm_eps), attn
        self.norm2, self.ffn = nn.LayerNorm(dim, eps=norm_eps), ffn

    def forward(
        self, x: Float[Tensor, "B T_q D"], other: Float[Tensor, "B T_k C"], *, mask: Tensor | None = None
    ) -> Float[Tensor, "B T_q D"]:
        x = self.norm1(x + self.dropout(self.attn(x, other, mask=mask)))
        return self.norm2(x + self.dropout(self.ffn(x)))


class CoLayer(nn.Module):
    """Co-TRM and TRM of both streams, figure 1: each attends to the other, both as they were, and then to itself."""

    def __init__(self, config: ViLBERTConfig):
        super().__init__()
        text, width, heads = config.text, config.image_dim, config.image_num_heads
        shared = {"norm_eps": text.norm_eps, "dropout": text.dropout}
        ask = partial(MultiHeadAttention, dropout=text.dropout)
        think = partial(FeedForward, width, config.image_mlp_dim, activation=text.activation)
        self.text_co = CoAttentionBlock(
            ask(text.dim, text.num_heads, context_dim=width),
            FeedForward(text.dim, text.mlp_dim, activation=text.activation),
            **shared,
        )
        self.image_co = CoAttentionBlock(ask(width, heads, context_dim=text.dim), think(), **shared)
        norm = partial(nn.LayerNorm, width, eps=text.norm_eps)
        self.image_block = TransformerBlock(ask(width, heads), think(), norm, pre_norm=False, dropout=text.dropout)

    def forward(self, x: Streams, text_block: TransformerBlock, mask: Tensor | None) -> Streams:
        """`text_block` is the text's own TRM, one of BERT's; `mask` hides padding of the text from both streams."""
        text, image = self.text_co(x.text, x.image), self.image_co(x.image, x.text, mask=mask)
        return Streams(text_block(text, mask=mask), self.image_block(image))


class ViLBERT(nn.Module):
    """Words and regions of a picture to features of both, and to a score of how well they belong together.

    The text stream is our BERT: its last `co_depth` blocks stand behind a co-attention. Differs from the paper in that
    masked words and regions are not named: of its two pre-training tasks the alignment alone has a head here.
    Raises ValueError for sizes that do not fit together and, when called, for regions without boxes.
    """

    def __init__(self, config: ViLBERTConfig):
        super().__init__()
        self.config = config
        self.bert = BERT(config.text, pooler=False)
        self.region_proj = nn.Linear(config.region_dim, config.image_dim)
        self.box_proj = nn.Linear(5, config.image_dim)
        self.image_norm = nn.LayerNorm(config.image_dim, eps=config.text.norm_eps)
        self.dropout = nn.Dropout(config.text.dropout)
        self.co_layers = nn.ModuleList(CoLayer(config) for _ in range(config.co_depth))
        self.text_pooler = nn.Linear(config.text.dim, config.joint_dim)
        self.image_pooler = nn.Linear(config.image_dim, config.joint_dim)
        self.head = nn.Linear(config.joint_dim, 1)
        normal_weights(self)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        regions: Float[Tensor, "B R F"],
        boxes: Float[Tensor, "B K 4"],
        *,
        valid: Valid | None = None,
    ) -> Float[Tensor, " B"]:
        """The logit of "this text describes this picture": the alignment task of section 2.2."""
        return self.score(self.features(tokens, regions, boxes, valid=valid))

    def features(
        self,
        tokens: Int[Tensor, "B T"],
        regions: Float[Tensor, "B R F"],
        boxes: Float[Tensor, "B K 4"],
        *,
        valid: Valid | None = None,
    ) -> Streams:
        """h_w of all words and h_v of all regions, figure 1."""
        return self.encode(self.embed(tokens, regions, boxes), valid=valid)

    def embed(
        self, tokens: Int[Tensor, "B T"], regions: Float[Tensor, "B R F"], boxes: Float[Tensor, "B K 4"]
    ) -> Streams:
        """Words as in BERT; regions as the sum of two projections, of features and of places: section 2.2.

        A box is (x1, y1, x2, y2) as fractions of width and height; its fraction of the area is the fifth number.
        [IMG] is the mean of all regions in a box as large as the picture.
        """
        if regions.shape[:2] != boxes.shape[:2]:
            raise ValueError(f"each region has a box, got {tuple(regions.shape)} and {tuple(boxes.shape)}")
        regions = torch.cat([regions.mean(dim=1, keepdim=True), regions], dim=1)
        whole = boxes.new_tensor([0.0, 0.0, 1.0, 1.0]).expand(len(boxes), 1, -1)
        boxes = torch.cat([whole, boxes], dim=1)
        area = (boxes[..., 2:] - boxes[..., :2]).prod(dim=-1, keepdim=True)
        image = self.region_proj(regions) + self.box_proj(torch.cat([boxes, area], dim=-1))
        return Streams(self.bert.embed(tokens), self.dropout(self.image_norm(image)))

    def encode(self, x: Streams, *, valid: Valid | None = None) -> Streams:
        """The text through its own first blocks, then both streams through the layers that they share."""
        mask, alone = key_mask(valid), len(self.bert.blocks) - len(self.co_layers)
        text = x.text
        for block in self.bert.blocks[:alone]:
            text = block(text, mask=mask)
        x = Streams(text, x.image)
        for layer, block in zip(self.co_layers, self.bert.blocks[alone:], strict=True):
            x = layer(x, block, mask)
        return x

    def score(self, x: Streams) -> Float[Tensor, " B"]:
        """w (h_IMG * h_CLS) + b, section 2.2; each h behind a dense layer with ReLU, as in the released code."""
        h_img, h_cls = self.image_pooler(x.image[:, 0]).relu(), self.text_pooler(x.text[:, 0]).relu()
        return self.head(self.dropout(h_img * h_cls))[:, 0]


def grid_boxes(rows: int, columns: int) -> Float[Tensor, "R 4"]:
    """The boxes of patches, row by row: for pictures that are cut evenly where the paper detects objects."""
    top, left = torch.meshgrid(torch.arange(rows) / rows, torch.arange(columns) / columns, indexing="ij")
    corners = torch.stack([left, top], dim=-1).flatten(0, 1)
    return torch.cat([corners, corners + torch.tensor([1 / columns, 1 / rows])], dim=1)
