"""The layout of MAE's official checkpoints."""

from typing import Any

from course_lib.models.mae import MAE, MAEConfig, MAEEncoder
from course_lib.models.vit import ViTConfig
from course_lib.weights.layout import Layout, Settings

BARE, HEADED = "ViTMAEModel", "ViTMAEForPreTraining"


def build(settings: Settings, architecture: str) -> MAEEncoder | MAE:
    """The model that a config.json describes; the bare one is the encoder alone."""
    settings.only(hidden_act="gelu", qkv_bias=True, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    encoder = ViTConfig(
        image_size=settings.integer("image_size", 224),
        patch_size=settings.integer("patch_size", 16),
        in_channels=settings.integer("num_channels", 3),
        num_classes=None,
        dim=settings.integer("hidden_size", 768),
        depth=settings.integer("num_hidden_layers", 12),
        num_heads=settings.integer("num_attention_heads", 12),
        mlp_dim=settings.integer("intermediate_size", 3072),
        norm_eps=settings.number("layer_norm_eps", 1e-12),
    )
    mask_ratio = settings.number("mask_ratio", 0.75)
    if architecture == BARE:
        return MAEEncoder(encoder, mask_ratio)
    return MAE(
        MAEConfig(
            encoder=encoder,
            decoder_dim=settings.integer("decoder_hidden_size", 512),
            decoder_depth=settings.integer("decoder_num_hidden_layers", 8),
            decoder_num_heads=settings.integer("decoder_num_attention_heads", 16),
            decoder_mlp_dim=settings.integer("decoder_intermediate_size", 2048),
            mask_ratio=mask_ratio,
            normalised=settings.flag("norm_pix_loss", False),
        )
    )


def describe(model: MAEEncoder | MAE) -> dict[str, Any]:
    """The config.json of a model. Raises ValueError for an encoder that the layout has no place for."""
    headed = isinstance(model, MAE)
    config, encoder = (model.config, model.config.encoder) if headed else (None, model.config)
    if encoder.pool != "cls" or encoder.stem != "patch" or encoder.dropout or not isinstance(encoder.image_size, int):
        raise ValueError(
            "the official layout takes square images, patches and a class token, and no dropout; got "
            f"image_size={encoder.image_size}, stem={encoder.stem!r}, pool={encoder.pool!r}, dropout={encoder.dropout}"
        )
    decoder = (
        {
            "decoder_hidden_size": config.decoder_dim,
            "decoder_num_hidden_layers": config.decoder_depth,
            "decoder_num_attention_heads": config.decoder_num_heads,
            "decoder_intermediate_size": config.decoder_mlp_dim,
            "norm_pix_loss": config.normalised,
        }
        if headed
        else {}
    )
    return {
        "architectures": [HEADED if headed else BARE],
        "image_size": encoder.image_size,
        "patch_size": encoder.patch_size,
        "num_channels": encoder.in_channels,
        "hidden_size": encoder.dim,
        "num_hidden_layers": encoder.depth,
        "num_attention_heads": encoder.num_heads,
        "intermediate_size": encoder.mlp_dim,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": encoder.norm_eps,
        "qkv_bias": True,
        "mask_ratio": config.mask_ratio if headed else model.mask_ratio,
    } | decoder


def block(theirs: str, ours: str) -> list[tuple[str, str]]:
    """The rows of one block, in the encoder and in the decoder."""
    return [
        (f"{theirs}.layernorm_before", f"{ours}.norm1"),
        (f"{theirs}.attention.attention.query", f"{ours}.attn.q_proj"),
        (f"{theirs}.attention.attention.key", f"{ours}.attn.k_proj"),
        (f"{theirs}.attention.attention.value", f"{ours}.attn.v_proj"),
        (f"{theirs}.attention.output.dense", f"{ours}.attn.o_proj"),
        (f"{theirs}.layernorm_after", f"{ours}.norm2"),
        (f"{theirs}.intermediate.dense", f"{ours}.ffn.up_proj"),
        (f"{theirs}.output.dense", f"{ours}.ffn.down_proj"),
    ]


LAYOUT = Layout(
    model_type="vit_mae",
    architectures=(BARE, HEADED),
    prefix="vit.",
    our_prefix="encoder.",
    trunk=[
        ("embeddings.cls_token", "cls_token"),
        ("embeddings.position_embeddings", "pos_embed"),  # fixed, and yet stored: a fresh official model has zeros
        ("embeddings.patch_embeddings.projection", "patch_embed.proj"),
        *block("encoder.layer.#", "blocks.#"),
        ("layernorm", "norm"),
    ],
    heads=[
        ("decoder.mask_token", "decoder.mask_token"),
        ("decoder.decoder_embed", "decoder.embed"),
        ("decoder.decoder_pos_embed", "decoder.pos_embed"),
        *block("decoder.decoder_encoder.layer.#", "decoder.blocks.#"),
        ("decoder.decoder_norm", "decoder.norm"),
        ("decoder.decoder_pred", "decoder.pred"),
    ],
    ignored=[r"^decoder\."],  # beside a bare model
    build=build,
    describe=describe,
)
