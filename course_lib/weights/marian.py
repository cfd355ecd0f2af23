"""Marian's translators, such as opus-mt, as Hugging Face keeps them: the released kin of the 2017 Transformer."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from course_lib.models.transformer import Transformer, TransformerConfig
from course_lib.weights.layout import ACTIVATIONS, OFFICIAL_ACTIVATIONS, ONE_ROW, Layout, Settings

BARE, HEADED = "MarianModel", "MarianMTModel"
SIDES = ("encoder", "decoder")


def build(settings: Settings, architecture: str) -> Transformer:
    """The model that a config.json describes."""
    settings.only(is_encoder_decoder=True, is_decoder=False, static_position_embeddings=True)
    settings.only(normalize_before=False, normalize_embedding=False, add_final_layer_norm=False)
    for side in SIDES:
        settings.number(f"{side}_layerdrop", 0.0, at_most=0.0)  # we drop no whole layers
    tied = settings.flag("tie_word_embeddings", True)
    shared = tied and settings.flag("share_encoder_decoder_embeddings", True)  # without the first, the second is void
    vocab_size = settings.integer("vocab_size", 58_101)
    return Transformer(
        TransformerConfig(
            vocab_size=vocab_size if shared else (vocab_size, settings.integer("decoder_vocab_size", vocab_size)),
            dim=settings.integer("d_model", 1024),
            depth=tuple(settings.integer(f"{side}_layers", 12) for side in SIDES),
            num_heads=tuple(settings.integer(f"{side}_attention_heads", 16) for side in SIDES),
            mlp_dim=tuple(settings.integer(f"{side}_ffn_dim", 4096) for side in SIDES),
            max_length=settings.integer("max_position_embeddings", 1024),
            activation=settings.choice("activation_function", ACTIVATIONS, "gelu"),
            positions="sinusoidal_halves",
            scale_embedding=settings.flag("scale_embedding", False),
            dropout=tuple(
                settings.number(key, default)
                for key, default in {"dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0}.items()
            ),
            head=None if architecture == BARE else "tied" if tied else "linear",
        )
    )


def describe(model: nn.Module) -> dict[str, Any]:
    """The config.json of a model.

    The ids of special tokens, which a model of ours does not know, are those of opus-mt: the end of a sentence comes
    first in the vocabulary, and padding, which also starts a translation, last.
    Raises ValueError for what Marian's layout cannot say.
    """
    config = model.config
    shared = isinstance(config.vocab_size, int)
    source_vocab, target_vocab = 2 * [config.vocab_size] if shared else config.vocab_size
    for name, wanted in {"pre_norm": False, "positions": "sinusoidal_halves"}.items():
        if getattr(config, name) != wanted:
            raise ValueError(f"Marian's layout needs {name}={wanted!r}, this model has {getattr(config, name)!r}")
    if shared and config.head == "linear":
        raise ValueError(
            "Marian's layout has no table that source and target share and the logits do not: this model has "
            f"vocab_size={config.vocab_size} and head='linear'"
        )
    pairs = {"layers": config.depth, "attention_heads": config.num_heads, "ffn_dim": config.mlp_dim}
    padding = min(source_vocab, target_vocab) - 1
    return {
        "architectures": [BARE if config.head is None else HEADED],
        "vocab_size": source_vocab,
        "decoder_vocab_size": target_vocab,
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": config.head != "linear",
        "d_model": config.dim,
        **{f"{side}_{key}": value for key, pair in pairs.items() for side, value in zip(SIDES, pair, strict=True)},
        "max_position_embeddings": config.max_length,
        "static_position_embeddings": True,
        "activation_function": OFFICIAL_ACTIVATIONS[config.activation],
        "scale_embedding": config.scale_embedding,
        **dict(zip(("dropout", "attention_dropout", "activation_dropout"), config.dropout, strict=True)),
        "is_encoder_decoder": True,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
        "pad_token_id": padding,
        "decoder_start_token_id": padding,
    }


def position_tables(model: nn.Module) -> Mapping[str, Tensor]:
    """The sinusoids, which some files hold and the bare official model asks for."""
    tables = (model.source_pos.table, model.target_pos.table)
    return {f"{side}.embed_positions.weight": table for side, table in zip(SIDES, tables, strict=True)}


LAYOUT = Layout(
    model_type="marian",
    architectures=(BARE, HEADED),
    prefix="model.",
    trunk=(
        ("encoder.embed_tokens", "source_embed"),
        ("decoder.embed_tokens", "target_embed"),
        *(
            (f"{side}.layers.#.{theirs}", f"{side}.#.{ours}")
            for side in SIDES
            for theirs, ours in {
                "self_attn.out_proj": "attn.o_proj",
                "self_attn_layer_norm": "norm1",
                "fc1": "ffn.up_proj",
                "fc2": "ffn.down_proj",
                "final_layer_norm": "norm2" if side == "encoder" else "norm3",
            }.items()
        ),
        ("decoder.layers.#.encoder_attn.out_proj", "decoder.#.cross_attn.o_proj"),
        ("decoder.layers.#.encoder_attn_layer_norm", "decoder.#.norm2"),
        *((f"{side}.layers.#.self_attn.{part}_proj", f"{side}.#.attn.{part}_proj") for side in SIDES for part in "qkv"),
        *((f"decoder.layers.#.encoder_attn.{part}_proj", f"decoder.#.cross_attn.{part}_proj") for part in "qkv"),
    ),
    heads=(("lm_head.weight", "head.weight"), ("final_logits_bias", "head.bias", ONE_ROW)),
    shared={"encoder.embed_tokens.weight": "shared.weight"},
    aliases=(  # where tied weights are stored several times
        (r"^((en|de)coder\.embed_tokens|lm_head)\.weight$", "shared.weight"),
        (r"^lm_head\.weight$", "decoder.embed_tokens.weight"),
    ),
    ignored=(r"embed_positions\.weight$", r"^shared\.weight$"),  # the latter where source and target have their own
    computed=position_tables,
    build=build,
    describe=describe,
)
