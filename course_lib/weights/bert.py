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
from course_lib.weights.layout import ACTIVATIONS, OFFICIAL_ACTIVATIONS, Layout, Settings, label_names, num_labels

MODELS: dict[str, type[nn.Module]] = {
    "BertModel": BERT,
    "BertForMaskedLM": BERTForMaskedLM,
    "BertForPreTraining": BERTForPreTraining,
    "BertForNextSentencePrediction": BERTForNextSentence,
    "BertForSequenceClassification": BERTForSequenceClassification,
    "BertForTokenClassification": BERTForTokenClassification,
}


def build(settings: Settings, architecture: str) -> nn.Module:
    """The model that a config.json describes; a bare one has a pooler if the checkpoint has."""
    settings.only(position_embedding_type="absolute", is_decoder=False, add_cross_attention=False)
    if settings.values.get("pruned_heads"):
        raise ValueError(f"pruned_heads is {settings.values['pruned_heads']}, and we have only whole blocks")
    config = BERTConfig(
        vocab_size=settings.integer("vocab_size", 30_522),
        dim=settings.integer("hidden_size", 768),
        depth=settings.integer("num_hidden_layers", 12),
        num_heads=settings.integer("num_attention_heads", 12),
        mlp_dim=settings.integer("intermediate_size", 3072),
        context_length=settings.integer("max_position_embeddings", 512),
        num_segments=settings.integer("type_vocab_size", 2),
        activation=settings.choice("hidden_act", ACTIVATIONS, "gelu"),
        norm_eps=settings.number("layer_norm_eps", 1e-12),
        dropout=dropout(settings),
        tied=settings.flag("tie_word_embeddings", True),
        num_labels=num_labels(settings),
    )
    if architecture == "BertModel":
        return BERT(config, pooler=any(name.startswith("pooler.") for name in settings.names))
    return MODELS[architecture](config)


def dropout(settings: Settings) -> float:
    """The one probability that all layers share. Raises ValueError if config.json has several."""
    hidden = settings.number("hidden_dropout_prob", 0.1)
    others = {"attention_probs_dropout_prob": 0.1, "classifier_dropout": hidden}
    for key, default in others.items():
        if settings.number(key, default) != hidden:
            raise ValueError(
                f"{key} is {settings.values.get(key, default)} and hidden_dropout_prob is {hidden}, and we have one "
                "dropout for all layers: make them equal in config.json, which changes nothing outside of training"
            )
    return hidden


def describe(model: nn.Module) -> dict[str, Any]:
    """The config.json of a model."""
    config = model.config
    architecture = next(name for name, kind in MODELS.items() if type(model) is kind)
    return {
        "architectures": [architecture],
        "vocab_size": config.vocab_size,
        "hidden_size": config.dim,
        "num_hidden_layers": config.depth,
        "num_attention_heads": config.num_heads,
        "intermediate_size": config.mlp_dim,
        "max_position_embeddings": config.context_length,
        "type_vocab_size": config.num_segments,
        "hidden_act": OFFICIAL_ACTIVATIONS[config.activation],
        "layer_norm_eps": config.norm_eps,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.dropout,
        "tie_word_embeddings": config.tied,
        "position_embedding_type": "absolute",
        "pad_token_id": 0,
    } | label_names(config.num_labels)


LAYOUT = Layout(
    model_type="bert",
    architectures=tuple(MODELS),
    prefix="bert.",
    our_prefix="bert.",
    trunk=[
        ("embeddings.word_embeddings", "token_embed"),
        ("embeddings.token_type_embeddings", "segment_embed"),
        ("embeddings.position_embeddings.weight", "pos_embed.table"),
        ("embeddings.LayerNorm", "norm"),
        ("encoder.layer.#.attention.self.query", "blocks.#.attn.q_proj"),
        ("encoder.layer.#.attention.self.key", "blocks.#.attn.k_proj"),
        ("encoder.layer.#.attention.self.value", "blocks.#.attn.v_proj"),
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
    build=build,
    describe=describe,
)
