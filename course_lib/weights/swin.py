"""The layout of Swin's official checkpoints."""

from functools import partial
from typing import Any

from torch import Tensor

from course_lib.layers.windows import relative_position_index
from course_lib.models.swin import Swin, SwinConfig
from course_lib.weights.layout import FLAG, Layout, integer, integers, number, pixels

BARE, HEADED = "SwinModel", "SwinForImageClassification"


def build(ours: dict[str, Any], architecture: str, names: frozenset[str]) -> Swin:
    """The model; it has a size of images only where it has absolute positions."""
    ours |= {} if ours.pop("absolute") else {"image_size": None}
    return Swin(SwinConfig(**ours | ({"num_classes": None} if architecture == BARE else {})))


def describe(model: Swin) -> tuple[str, dict[str, Any]]:
    """Architecture and settings. Raises ValueError for windows that do not shift."""
    config = model.config
    if not config.shifted:
        raise ValueError("the official layout has no place for shifted=False: its windows always shift")
    absolute = {"absolute": config.image_size is not None}
    return BARE if config.num_classes is None else HEADED, vars(config) | absolute


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
    build=build,
    describe=describe,
    settings=[
        ("image_size", "image_size", pixels, 224),
        ("use_absolute_embeddings", "absolute", FLAG, False),
        ("patch_size", "patch_size", integer, 4),
        ("num_channels", "in_channels", integer, 3),
        ("embed_dim", "dim", integer, 96),
        ("depths", "depths", integers, (2, 2, 6, 2)),
        ("num_heads", "num_heads", integers, (3, 6, 12, 24)),
        ("window_size", "window_size", integer, 7),
        ("mlp_ratio", "mlp_ratio", partial(number, at_most=1000.0), 4.0),
        ("qkv_bias", "qkv_bias", FLAG, True),
        ("drop_path_rate", "drop_path", number, 0.1),
        ("num_labels", "num_classes", integer, 2),
    ],
    fixed={
        **{"hidden_act": "gelu", "layer_norm_eps": 1e-5},
        **{"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    },
    prefix="swin.",
    backbone=[
        ("embeddings.patch_embeddings.projection", "patch_embed.proj"),
        ("embeddings.norm", "patch_norm"),
        ("embeddings.position_embeddings", "pos_embed"),
        ("encoder.layers.#.blocks.#.layernorm_{before,after}", "stages.#.#.norm{1,2}"),
        ("encoder.layers.#.blocks.#.attention.self.{query,key,value}", "stages.#.#.attn.{q,k,v}_proj"),
        ("encoder.layers.#.blocks.#.attention.self.relative_position_bias_table", "stages.#.#.attn.bias_table"),
        ("encoder.layers.#.blocks.#.attention.output.dense", "stages.#.#.attn.o_proj"),
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
)
