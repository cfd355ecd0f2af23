"""The layout of BERT's official checkpoints."""

from typing import Any

from torch import nn

from course_lib.models.bert import BERT, BERTConfig
from course_lib.models.bert_tasks import (
    BERTForMaskedLM,
    BERTForNextSentence,
    BERTForPreTraining,
    BERTForSequenceClassification,
    BERTForTokenClassification,
)
from course_lib.weights.layout import ACTIVATIONS, FLAG, Layout, integer, number

MODELS: dict[str, type[nn.Module]] = {
    "BertModel": BERT,
    "BertForMaskedLM": BERTForMaskedLM,
    "BertForPreTraining": BERTForPreTraining,
    "BertForNextSentencePrediction": BERTForNextSentence,
    "BertForSequenceClassification": BERTForSequenceClassification,
    "BertForTokenClassification": BERTForTokenClassification,
}
DROPOUTS = ("attention_dropout", "classifier_dropout")  # None in our config: as `dropout`


def build(ours: dict[str, Any], architecture: str, names: frozenset[str]) -> nn.Module:
    """The model; a bare one has a pooler if the checkpoint has."""
    config = BERTConfig(**ours | {name: None for name in DROPOUTS if ours[name] == ours["dropout"]})
    if architecture == "BertModel":
        return BERT(config, pooler=any(name.startswith("pooler.") for name in names))
    return MODELS[architecture](config)


def describe(model: nn.Module) -> tuple[str, dict[str, Any]]:
    """Architecture and settings."""
    ours = vars(model.config)
    architecture = next(name for name, kind in MODELS.items() if type(model) is kind)
    return architecture, ours | {name: ours["dropout"] for name in DROPOUTS if ours[name] is None}


LAYOUT = Layout(
    model_type="bert",
    architectures=tuple(MODELS),
    build=build,
    describe=describe,
    settings=[
        ("vocab_size", "vocab_size", integer, 30_522),
        ("hidden_size", "dim", integer, 768),
        ("num_hidden_layers", "depth", integer, 12),
        ("num_attention_heads", "num_heads", integer, 12),
        ("intermediate_size", "mlp_dim", integer, 3072),
        ("max_position_embeddings", "context_length", integer, 512),
        ("type_vocab_size", "num_segments", integer, 2),
        ("hidden_act", "activation", ACTIVATIONS, "gelu"),
        ("layer_norm_eps", "norm_eps", number, 1e-12),
        ("hidden_dropout_prob", "dropout", number, 0.1),
        ("attention_probs_dropout_prob", "attention_dropout", number, 0.1),
        ("classifier_dropout", "classifier_dropout", number, None),
        ("tie_word_embeddings", "tied", FLAG, True),
        ("num_labels", "num_classes", integer, 2),
    ],
    fixed={
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "add_cross_attention": False,
        "pruned_heads": {},
    },
    special_tokens=lambda config: {"pad_token_id": 0},
    prefix="bert.",
    our_prefix="bert.",
    backbone=[
        ("embeddings.word_embeddings", "token_embed"),
        ("embeddings.token_type_embeddings", "segment_embed"),
        ("embeddings.position_embeddings.weight", "pos_embed.table"),
        ("embeddings.LayerNorm", "norm"),
        ("encoder.layer.#.attention.self.{query,key,value}", "blocks.#.attn.{q,k,v}_proj"),
        ("encoder.layer.#.attention.output.dense", "blocks.#.attn.o_proj"),
        ("encoder.layer.#.attention.output.LayerNorm", "blocks.#.norm1"),
        ("encoder.layer.#.intermediate.dense", "blocks.#.ffn.up_proj"),
        ("encoder.layer.#.output.dense", "blocks.#.ffn.down_proj"),
        ("encoder.layer.#.output.LayerNorm", "blocks.#.norm2"),
        ("pooler.dense", "pooler"),
    ],
    heads=[
        ("cls.predictions.transform.dense", "head.transform"),
        ("cls.predictions.transform.LayerNorm", "head.norm"),
        ("cls.predictions.decoder", "head.decoder"),
        ("cls.predictions.bias", "head.bias"),
        ("cls.seq_relationship", "next_sentence"),
        ("classifier", "classifier"),
    ],
    aliases=[
        (r"LayerNorm\.gamma$", "LayerNorm.weight"),  # in the first releases
        (r"LayerNorm\.beta$", "LayerNorm.bias"),
        (r"^cls\.predictions\.decoder\.weight$", "embeddings.word_embeddings.weight"),  # where they are tied
        (r"^cls\.predictions\.decoder\.bias$", "cls.predictions.bias"),
    ],
    copies={"cls.predictions.decoder.bias": "cls.predictions.bias"},  # which is written, but not used, if not tied
    ignored=[r"^embeddings\.position_ids$", r"^pooler\.", r"^cls\."],  # counted off, or of a head that we do not open
)
