"""Marian's translators, such as opus-mt, as Hugging Face keeps them."""

from typing import Any

from torch import Tensor

from course_lib.models.marian import Marian, MarianConfig
from course_lib.weights.layout import ACTIVATIONS, FLAG, ONE_ROW, Layout, integer, number

BARE, HEADED = "MarianModel", "MarianMTModel"


def build(ours: dict[str, Any], architecture: str, names: frozenset[str]) -> Marian:
    """The model: without tied embeddings source and target share none, either."""
    source, target, shared, tied = (ours.pop(name) for name in ("source_vocab", "target_vocab", "shared", "tied"))
    vocab_size = source if shared and tied else (source, target or source)
    head = None if architecture == BARE else "tied" if tied else "linear"
    return Marian(MarianConfig(**ours, vocab_size=vocab_size, head=head))


def describe(model: Marian) -> tuple[str, dict[str, Any]]:
    """Architecture and settings. Raises ValueError for tables that are shared in a way that Marian's layout lacks."""
    config, shared = model.config, isinstance(model.config.vocab_size, int)
    if shared and config.head == "linear":
        raise ValueError(
            "Marian's layout has no table that source and target share and the logits do not: this model has "
            f"vocab_size={config.vocab_size} and head='linear'"
        )
    source, target = vocabularies(config)
    beside = {"source_vocab": source, "target_vocab": target, "shared": shared, "tied": config.head != "linear"}
    return BARE if config.head is None else HEADED, vars(config) | beside


def vocabularies(config: MarianConfig) -> tuple[int, int]:
    """Tokens of source and target."""
    return (config.vocab_size,) * 2 if isinstance(config.vocab_size, int) else config.vocab_size


def special_tokens(config: MarianConfig) -> dict[str, int]:
    """Those of opus-mt: the end of a sentence comes first, and padding, which also starts a translation, last."""
    padding = min(vocabularies(config)) - 1
    ids = {"pad_token_id": padding, "decoder_start_token_id": padding}
    return ids | {"eos_token_id": 0, "forced_eos_token_id": 0}


def position_tables(model: Marian) -> dict[str, Tensor]:
    """The sinusoids, which some files hold and the bare official model asks for."""
    sides = {"encoder": model.source_pos, "decoder": model.target_pos}
    return {f"{side}.embed_positions.weight": positions.table for side, positions in sides.items()}


LAYOUT = Layout(
    model_type="marian",
    architectures=(BARE, HEADED),
    build=build,
    describe=describe,
    settings=[
        ("vocab_size", "source_vocab", integer, 58_101),
        ("decoder_vocab_size", "target_vocab", integer, None),
        ("share_encoder_decoder_embeddings", "shared", FLAG, True),
        ("tie_word_embeddings", "tied", FLAG, True),
        ("d_model", "dim", integer, 1024),
        ("{encoder,decoder}_layers", "depth", integer, 12),
        ("{encoder,decoder}_attention_heads", "num_heads", integer, 16),
        ("{encoder,decoder}_ffn_dim", "mlp_dim", integer, 4096),
        ("max_position_embeddings", "context_length", integer, 1024),
        ("activation_function", "activation", ACTIVATIONS, "gelu"),
        ("scale_embedding", "scale_embedding", FLAG, False),
        ("dropout", "dropout", number, 0.1),
        ("attention_dropout", "attention_dropout", number, 0.0),
        ("activation_dropout", "inner_dropout", number, 0.0),
    ],
    fixed={
        **{"is_encoder_decoder": True, "is_decoder": False, "static_position_embeddings": True},
        **{"normalize_before": False, "normalize_embedding": False, "add_final_layer_norm": False},
        **{"encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0},
    },
    special_tokens=special_tokens,
    prefix="model.",
    backbone=[
        ("encoder.embed_tokens", "source_embed"),
        ("decoder.embed_tokens", "target_embed"),
        ("{encoder,decoder}.layers.#.self_attn.{q,k,v,out}_proj", "{encoder,decoder}.#.attn.{q,k,v,o}_proj"),
        ("{encoder,decoder}.layers.#.self_attn_layer_norm", "{encoder,decoder}.#.norm1"),
        ("decoder.layers.#.encoder_attn.{q,k,v,out}_proj", "decoder.#.cross_attn.{q,k,v,o}_proj"),
        ("decoder.layers.#.encoder_attn_layer_norm", "decoder.#.norm2"),
        ("{encoder,decoder}.layers.#.fc1", "{encoder,decoder}.#.ffn.up_proj"),
        ("{encoder,decoder}.layers.#.fc2", "{encoder,decoder}.#.ffn.down_proj"),
        ("encoder.layers.#.final_layer_norm", "encoder.#.norm2"),
        ("decoder.layers.#.final_layer_norm", "decoder.#.norm3"),
    ],
    heads=[("lm_head.weight", "head.weight"), ("final_logits_bias", "head.bias", ONE_ROW)],
    shared={"encoder.embed_tokens.weight": "shared.weight"},
    aliases=[  # where tied weights are stored several times
        (r"^((en|de)coder\.embed_tokens|lm_head)\.weight$", "shared.weight"),
        (r"^lm_head\.weight$", "decoder.embed_tokens.weight"),
    ],
    ignored=[r"embed_positions\.weight$", r"^shared\.weight$"],  # the latter where source and target have their own
    computed=position_tables,
)
