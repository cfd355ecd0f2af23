"""BERT at work: the two tasks that it is pre-trained on, and classifiers of sentences and of tokens.

Devlin et al., "BERT: pre-training of deep bidirectional Transformers for language understanding", arXiv 1810.04805.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.layers.transformer import ACTIVATIONS, normal_weights
from course_lib.models.bert import BERT, BERTConfig, Tokens, Where


class MaskedLMHead(nn.Module):
    """logits = norm(act(W h + b)) E^T + c, with the transform W of the released code, which the paper leaves out.

    E is the token embedding, given with each call, or the head's own `decoder` where `tied` is False.
    """

    def __init__(self, config: BERTConfig):
        super().__init__()
        self.activation = ACTIVATIONS[config.activation]
        self.transform = nn.Linear(config.dim, config.dim)
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_eps)
        self.decoder = None if config.tied else nn.Linear(config.dim, config.vocab_size)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size)) if config.tied else None
        normal_weights(self)

    def forward(self, h: Float[Tensor, "*N D"], embedding: Float[Tensor, "V D"]) -> Float[Tensor, "*N V"]:
        h = self.norm(self.activation(self.transform(h)))
        return F.linear(h, embedding, self.bias) if self.decoder is None else self.decoder(h)


class BERTWithHead(nn.Module):
    """What the tasks below share: a BERT under a layer of their own, which makes `logits` of its features."""

    def __init__(self, config: BERTConfig, *, pooler: bool):
        super().__init__()
        self.config, self.bert = config, BERT(config, pooler=pooler)

    def forward(
        self, tokens: Tokens, *, segments: Tokens | None = None, valid: Where | None = None, masked: Where | None = None
    ) -> Any:
        """The task's logits; only those that name hidden words take `masked`."""
        features = self.features(tokens, segments=segments, valid=valid)
        return self.logits(features) if masked is None else self.logits(features, masked)

    def features(
        self, tokens: Tokens, *, segments: Tokens | None = None, valid: Where | None = None
    ) -> Float[Tensor, "B T D"]:
        """As in `BERT`."""
        return self.bert.features(tokens, segments=segments, valid=valid)


class BERTForMaskedLM(BERTWithHead):
    """What the masked tokens were: p(w_i | all that is around it), section 3.1, task 1."""

    def __init__(self, config: BERTConfig):
        super().__init__(config, pooler=False)
        self.head = MaskedLMHead(config)

    def logits(self, features: Float[Tensor, "B T D"], masked: Where | None = None) -> Float[Tensor, "*N V"]:
        """(B, T, V), or (N, V) of the N `masked` tokens: the loss needs no others."""
        return self.head(features if masked is None else features[masked], self.bert.token_embed.weight)


class PreTrainingLogits(NamedTuple):
    """What both tasks of the pre-training predict."""

    words: Float[Tensor, "*N V"]
    next_sentence: Float[Tensor, "B 2"]  # 0: B follows A, 1: it does not


class BERTForPreTraining(BERTWithHead):
    """Both tasks of section 3.1: what the masked tokens were, and whether sentence B follows sentence A."""

    def __init__(self, config: BERTConfig):
        super().__init__(config, pooler=True)
        self.head, self.next_sentence = MaskedLMHead(config), normal_weights(nn.Linear(config.dim, 2))

    def logits(self, features: Float[Tensor, "B T D"], masked: Where | None = None) -> PreTrainingLogits:
        """Of all words, or of the `masked` ones as in `BERTForMaskedLM`."""
        words = self.head(features if masked is None else features[masked], self.bert.token_embed.weight)
        return PreTrainingLogits(words, self.next_sentence(self.bert.pool(features)))


class BERTForNextSentence(BERTWithHead):
    """Section 3.1, task 2, alone: class 0 if sentence B follows A, otherwise class 1."""

    def __init__(self, config: BERTConfig):
        super().__init__(config, pooler=True)
        self.next_sentence = normal_weights(nn.Linear(config.dim, 2))

    def logits(self, features: Float[Tensor, "B T D"]) -> Float[Tensor, "B 2"]:
        return self.next_sentence(self.bert.pool(features))


class BERTForTokenClassification(BERTWithHead):
    """The logits of `num_classes` classes for each token, such as its part of speech: figure 4 (d)."""

    needs_pooler = False

    def __init__(self, config: BERTConfig):
        super().__init__(config, pooler=self.needs_pooler)
        rate = config.dropout if config.classifier_dropout is None else config.classifier_dropout
        self.dropout, self.classifier = nn.Dropout(rate), normal_weights(nn.Linear(config.dim, config.num_classes))

    def logits(self, features: Float[Tensor, "B T D"]) -> Float[Tensor, "B T C"]:
        return self.classifier(self.dropout(features))


class BERTForSequenceClassification(BERTForTokenClassification):
    """The same for a whole sentence or a pair of them, section 4.1, figure 4 (a) and (b)."""

    needs_pooler = True

    def logits(self, features: Float[Tensor, "B T D"]) -> Float[Tensor, "B C"]:
        return self.classifier(self.dropout(self.bert.pool(features)))
