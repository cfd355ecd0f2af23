"""The layout of MAE's official checkpoints."""

from typing import Any

from course_lib.models.mae import MAE, MAEConfig, MAEEncoder
from course_lib.models.vit import ViTConfig
from course_lib.weights import vit
from course_lib.weights.layout import FLAG, Layout, integer, number

BARE, HEADED = "ViTMAEModel", "ViTMAEForPreTraining"
DECODER = ("decoder_dim", "decoder_depth", "decoder_num_heads", "decoder_mlp_dim", "normalised")


def build(ours: dict[str, Any], architecture: str, names: frozenset[str]) -> MAEEncoder | MAE:
    """The model; the bare one is the encoder alone."""
    decoder, mask_ratio = {name: ours.pop(name) for name in DECODER}, ours.pop("mask_ratio")
    encoder = ViTConfig(**ours, num_classes=None)
    if architecture == BARE:
        return MAEEncoder(encoder, mask_ratio)
    return MAE(MAEConfig(encoder=encoder, mask_ratio=mask_ratio, **decoder))


def describe(model: MAEEncoder | MAE) -> tuple[str, dict[str, Any]]:
    """Architecture and settings. Raises ValueError for an encoder that the layout has no place for."""
    headed = isinstance(model, MAE)
    encoder = model.config.encoder if headed else model.config
    if encoder.pool != "cls" or encoder.stem != "patch" or encoder.dropout or not isinstance(encoder.image_size, int):
        raise ValueError(
            "the official layout takes square images, patches and a class token, and no dropout; got "
            f"image_size={encoder.image_size}, stem={encoder.stem!r}, pool={encoder.pool!r}, dropout={encoder.dropout}"
        )
    if encoder.activation != "gelu" or not encoder.qkv_bias:
        raise ValueError(
            "the official layout has one activation and one kind of projection for encoder and decoder, which are "
            f"'gelu' and with a bias in ours; got activation={encoder.activation!r} and qkv_bias={encoder.qkv_bias}"
        )
    beside = vars(model.config) if headed else {"mask_ratio": model.mask_ratio}
    return HEADED if headed else BARE, vars(encoder) | beside


LAYOUT = Layout(
    model_type="vit_mae",
    architectures=(BARE, HEADED),
    build=build,
    describe=describe,
    settings=[
        ("image_size", "image_size", integer, 224),
        ("patch_size", "patch_size", integer, 16),
        ("num_channels", "in_channels", integer, 3),
        ("hidden_size", "dim", integer, 768),
        ("num_hidden_layers", "depth", integer, 12),
        ("num_attention_heads", "num_heads", integer, 12),
        ("intermediate_size", "mlp_dim", integer, 3072),
        ("layer_norm_eps", "norm_eps", number, 1e-12),
        ("mask_ratio", "mask_ratio", number, 0.75),
        ("decoder_hidden_size", "decoder_dim", integer, 512),
        ("decoder_num_hidden_layers", "decoder_depth", integer, 8),
        ("decoder_num_attention_heads", "decoder_num_heads", integer, 16),
        ("decoder_intermediate_size", "decoder_mlp_dim", integer, 2048),
        ("norm_pix_loss", "normalised", FLAG, False),
    ],
    fixed={
        **{"hidden_act": "gelu", "qkv_bias": True},
        **{"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    },
    prefix="vit.",
    our_prefix="encoder.",
    backbone=vit.LAYOUT.backbone,  # the positions are fixed, and yet stored: a fresh official model has zeros
    heads=[
        ("decoder.mask_token", "decoder.mask_token"),
        ("decoder.decoder_embed", "decoder.embed"),
        ("decoder.decoder_pos_embed", "decoder.pos_embed"),
        *vit.block("decoder.decoder_encoder.layer.#", "decoder.blocks.#"),
        ("decoder.decoder_norm", "decoder.norm"),
        ("decoder.decoder_pred", "decoder.pred"),
    ],
    ignored=[r"^decoder\."],  # beside a bare model
)
