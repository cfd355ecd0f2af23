"""The layout of ViT's official checkpoints."""

from typing import Any

from course_lib.models.vit import ViT, ViTConfig
from course_lib.weights.layout import Layout, Settings, label_names, num_labels


def build(settings: Settings, architecture: str) -> ViT:
    """The model that a config.json describes; a bare one has a pooler if the checkpoint has."""
    settings.only(hidden_act="gelu", qkv_bias=True, pooler_act="tanh", attention_probs_dropout_prob=0.0)
    dim = settings.integer("hidden_size", 768)
    bare = architecture == "ViTModel"
    pooled = bare and any(name.startswith("pooler.") for name in settings.names)
    if pooled:
        settings.only(pooler_output_size=dim)
    return ViT(
        ViTConfig(
            image_size=image_size(settings),
            patch_size=settings.integer("patch_size", 16),
            in_channels=settings.integer("num_channels", 3),
            num_classes=None if bare else num_labels(settings),
            dim=dim,
            depth=settings.integer("num_hidden_layers", 12),
            num_heads=settings.integer("num_attention_heads", 12),
            mlp_dim=settings.integer("intermediate_size", 3072),
            dropout=settings.number("hidden_dropout_prob", 0.0),
            norm_eps=settings.number("layer_norm_eps", 1e-12),
            pool="mlp" if pooled else "cls",
        )
    )


def describe(model: ViT) -> dict[str, Any]:
    """The config.json of a model. Raises ValueError for a stem, a pooling or a head that the layout does not have."""
    config = model.config
    if config.stem != "patch" or config.pool == "mean" or (config.pool == "mlp" and config.num_classes is not None):
        raise ValueError(
            f"the official layout has no place for stem={config.stem!r} with pool={config.pool!r} and "
            f"num_classes={config.num_classes}: it takes patches, and a class token with or without a head of one layer"
        )
    return {
        "architectures": ["ViTModel" if config.num_classes is None else "ViTForImageClassification"],
        "image_size": config.image_size,
        "patch_size": config.patch_size,
        "num_channels": config.in_channels,
        "hidden_size": config.dim,
        "num_hidden_layers": config.depth,
        "num_attention_heads": config.num_heads,
        "intermediate_size": config.mlp_dim,
        "hidden_act": "gelu",
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": config.norm_eps,
        "qkv_bias": True,
        "pooler_act": "tanh",
    } | ({} if config.num_classes is None else label_names(config.num_classes))


def image_size(settings: Settings) -> int | tuple[int, int]:
    """Height and width in pixels, or one number for both."""
    size = settings.values.get("image_size")
    if not isinstance(size, list):
        return settings.integer("image_size", 224)
    if len(size) != 2:
        raise ValueError(f"image_size must be a number of pixels or two of them, got {str(size)[:80]}")
    height, width = (Settings({"image_size": pixels}).integer("image_size") for pixels in size)
    return height, width


LAYOUT = Layout(
    model_type="vit",
    architectures=("ViTModel", "ViTForImageClassification"),
    prefix="vit.",
    trunk=[
        ("embeddings.cls_token", "cls_token"),
        ("embeddings.position_embeddings", "pos_embed"),
        ("embeddings.patch_embeddings.projection", "patch_embed.proj"),
        ("encoder.layer.#.layernorm_before", "blocks.#.norm1"),
        ("encoder.layer.#.attention.attention.query", "blocks.#.attn.q_proj"),
        ("encoder.layer.#.attention.attention.key", "blocks.#.attn.k_proj"),
        ("encoder.layer.#.attention.attention.value", "blocks.#.attn.v_proj"),
        ("encoder.layer.#.attention.output.dense", "blocks.#.attn.o_proj"),
        ("encoder.layer.#.layernorm_after", "blocks.#.norm2"),
        ("encoder.layer.#.intermediate.dense", "blocks.#.ffn.up_proj"),
        ("encoder.layer.#.output.dense", "blocks.#.ffn.down_proj"),
        ("layernorm", "norm"),
        ("pooler.dense", "pooler"),
    ],
    heads=[("classifier", "head")],
    ignored=[r"^embeddings\.mask_token$", r"^pooler\."],  # of a head that we do not open, or beside a classifier
    build=build,
    describe=describe,
)
