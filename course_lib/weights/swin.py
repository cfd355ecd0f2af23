"""The layout of Swin's official checkpoints."""

from typing import Any

from torch import Tensor

from course_lib.layers.windows import relative_position_index
from course_lib.models.swin import Swin, SwinConfig
from course_lib.weights.layout import Layout, Settings, label_names, num_labels

BARE, HEADED = "SwinModel", "SwinForImageClassification"


def build(settings: Settings, architecture: str) -> Swin:
    """The model that a config.json describes."""
    settings.only(hidden_act="gelu", layer_norm_eps=1e-5, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return Swin(
        SwinConfig(
            image_size=image_size(settings) if settings.flag("use_absolute_embeddings", False) else None,
            patch_size=settings.integer("patch_size", 4),
            in_channels=settings.integer("num_channels", 3),
            num_classes=None if architecture == BARE else num_labels(settings),
            dim=settings.integer("embed_dim", 96),
            depths=settings.integers("depths", (2, 2, 6, 2)),
            num_heads=settings.integers("num_heads", (3, 6, 12, 24)),
            window_size=settings.integer("window_size", 7),
            mlp_ratio=settings.number("mlp_ratio", 4.0, at_most=1000.0),
            qkv_bias=settings.flag("qkv_bias", True),
            drop_path=settings.number("drop_path_rate", 0.1),
        )
    )


def image_size(settings: Settings) -> int | tuple[int, int]:
    """The side of a square image, or its height and width."""
    if not isinstance(settings.values.get("image_size"), list):
        return settings.integer("image_size", 224)
    pixels = settings.integers("image_size")
    if len(pixels) != 2:
        raise ValueError(f"image_size must be a number of pixels or two of them, got {str(pixels)[:80]}")
    return pixels


def describe(model: Swin) -> dict[str, Any]:
    """The config.json of a model. Raises ValueError for one whose windows do not shift."""
    config = model.config
    if not config.shifted:
        raise ValueError("the official layout has no place for shifted=False: its windows always shift")
    return {
        "architectures": [BARE if config.num_classes is None else HEADED],
        "image_size": 224 if config.image_size is None else config.image_size,
        "use_absolute_embeddings": config.image_size is not None,
        "patch_size": config.patch_size,
        "num_channels": config.in_channels,
        "embed_dim": config.dim,
        "depths": config.depths,
        "num_heads": config.num_heads,
        "window_size": config.window_size,
        "mlp_ratio": config.mlp_ratio,
        "qkv_bias": config.qkv_bias,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-5,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "drop_path_rate": config.drop_path,
    } | ({} if config.num_classes is None else label_names(config.num_classes))


def index_tables(model: Swin) -> dict[str, Tensor]:
    """The fixed tables that older files hold in each block; ours are computed."""
    index = relative_position_index(model.config.window_size)
    return {
        f"encoder.layers.{stage}.blocks.{block}.attention.self.relative_position_index": index.clone()
        for stage, depth in enumerate(model.config.depths)
        for block in range(depth)
    }


LAYOUT = Layout(
    model_type="swin",
    architectures=(BARE, HEADED),
    prefix="swin.",
    trunk=[
        ("embeddings.patch_embeddings.projection", "patch_embed.proj"),
        ("embeddings.norm", "patch_norm"),
        ("embeddings.position_embeddings", "pos_embed"),
        ("encoder.layers.#.blocks.#.layernorm_before", "stages.#.#.norm1"),
        ("encoder.layers.#.blocks.#.attention.self.query", "stages.#.#.attn.q_proj"),
        ("encoder.layers.#.blocks.#.attention.self.key", "stages.#.#.attn.k_proj"),
        ("encoder.layers.#.blocks.#.attention.self.value", "stages.#.#.attn.v_proj"),
        ("encoder.layers.#.blocks.#.attention.self.relative_position_bias_table", "stages.#.#.attn.bias_table"),
        ("encoder.layers.#.blocks.#.attention.output.dense", "stages.#.#.attn.o_proj"),
        ("encoder.layers.#.blocks.#.layernorm_after", "stages.#.#.norm2"),
        ("encoder.layers.#.blocks.#.intermediate.dense", "stages.#.#.ffn.up_proj"),
        ("encoder.layers.#.blocks.#.output.dense", "stages.#.#.ffn.down_proj"),
        ("encoder.layers.#.downsample.norm", "merges.#.norm"),
        ("encoder.layers.#.downsample.reduction", "merges.#.proj"),
        ("layernorm", "norm"),
    ],
    heads=[("classifier", "head")],
    aliases=[  # what Hugging Face's class calls them inside
        (r"attention\.q_proj", "attention.self.query"),
        (r"attention\.k_proj", "attention.self.key"),
        (r"attention\.v_proj", "attention.self.value"),
        (r"attention\.o_proj", "attention.output.dense"),
        (r"attention\.relative_position_bias\.relative", "attention.self.relative"),
        (r"mlp\.fc1", "intermediate.dense"),
        (r"mlp\.fc2", "output.dense"),
    ],
    computed=index_tables,
    ignored=[r"relative_position_index$", r"^embeddings\.mask_token$"],  # checked apart; of another head
    build=build,
    describe=describe,
)
