"""One vector for a sentence out of the vectors of its tokens (Reimers & Gurevych, "Sentence-BERT", EMNLP 2019,
arXiv 1908.10084)."""

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor


def mean_pool(features: Float[Tensor, "B T D"], valid: Bool[Tensor, "B T"]) -> Float[Tensor, "B D"]:
    """The mean over the real tokens, section 3; a row without any gets zeros."""
    kept = valid[:, :, None]
    return features.masked_fill(~kept, 0.0).sum(dim=1) / kept.sum(dim=1).clamp(min=1)


def sentence_embeddings(features: Float[Tensor, "B T D"], valid: Bool[Tensor, "B T"]) -> Float[Tensor, "B D"]:
    """`mean_pool` scaled to length 1, so that a dot product of two sentences is their cosine similarity."""
    return F.normalize(mean_pool(features, valid), dim=-1)
