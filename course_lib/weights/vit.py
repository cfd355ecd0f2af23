"""The layout of ViT's official checkpoints."""

from typing import Any

from course_lib.models.vit import ViT, ViTConfig
from course_lib.weights.layout import ACTIVATIONS, FLAG, Layout, integer, number, pixels

BARE, HEADED = "ViTModel", "ViTForImageClassification"


def build(ours: dict[str, Any], architecture: str, names: frozenset[str]) -> ViT:
    """The model; a bare one has a pooler if the checkpoint has."""
    width, dim = ours.pop("pooler_dim"), ours["dim"]
    if architecture == HEADED:
        return ViT(ViTConfig(**ours))
    pooled = any(name.startswith("pooler.") for name in names)
    if pooled and width not in (None, dim):
        raise ValueError(f"pooler_output_size is {width}, and we have only {dim}")
    return ViT(ViTConfig(**ours | {"num_classes": None, "pool": "mlp" if pooled else "cls"}))


def describe(model: ViT) -> tuple[str, dict[str, Any]]:
    """Architecture and settings. Raises ValueError for a stem, a pooling or a head that the layout does not have."""
    config = model.config
    if config.stem != "patch" or config.pool == "mean" or (config.pool == "mlp" and config.num_classes is not None):
        raise ValueError(
            f"the official layout has no place for stem={config.stem!r} with pool={config.pool!r} and "
            f"num_classes={config.num_classes}: it takes patches, and a class token with or without a head of one layer"
        )
    return BARE if config.num_classes is None else HEADED, vars(config)


def block(theirs: str, ours: str) -> list[tuple[str, str]]:
    """The rows of the blocks in an encoder, or in MAE's decoder."""
    return [
        (f"{theirs}.layernorm_{{before,after}}", f"{ours}.norm{{1,2}}"),
        (f"{theirs}.attention.attention.{{query,key,value}}", f"{ours}.attn.{{q,k,v}}_proj"),
        (f"{theirs}.attention.output.dense", f"{ours}.attn.o_proj"),
        (f"{theirs}.intermediate.dense", f"{ours}.ffn.up_proj"),
        (f"{theirs}.output.dense", f"{ours}.ffn.down_proj"),
    ]


LAYOUT = Layout(
    model_type="vit",
    architectures=(BARE, HEADED),
    build=build,
    describe=describe,
    settings=[
        ("image_size", "image_size", pixels, 224),
        ("patch_size", "patch_size", integer, 16),
        ("num_channels", "in_channels", integer, 3),
        ("hidden_size", "dim", integer, 768),
        ("num_hidden_layers", "depth", integer, 12),
        ("num_attention_heads", "num_heads", integer, 12),
        ("intermediate_size", "mlp_dim", integer, 3072),
        ("hidden_act", "activation", ACTIVATIONS, "gelu"),
        ("hidden_dropout_prob", "dropout", number, 0.0),
        ("layer_norm_eps", "norm_eps", number, 1e-12),
        ("qkv_bias", "qkv_bias", FLAG, True),
        ("pooler_output_size", "pooler_dim", integer, None),
        ("num_labels", "num_classes", integer, 2),
    ],
    fixed={"attention_probs_dropout_prob": 0.0, "pooler_act": "tanh"},
    prefix="vit.",
    backbone=[
        ("embeddings.cls_token", "cls_token"),
        ("embeddings.position_embeddings", "pos_embed"),
        ("embeddings.patch_embeddings.projection", "patch_embed.proj"),
        *block("encoder.layer.#", "blocks.#"),
        ("layernorm", "norm"),
        ("pooler.dense", "pooler"),
    ],
    heads=[("classifier", "head")],
    ignored=[r"^embeddings\.mask_token$", r"^pooler\."],  # of a head that we do not open, or beside a classifier
)
