"""T5 and T5 1.1 as Google released them and Hugging Face keeps them."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from course_lib.models.t5 import T5, T5Config
from course_lib.weights.layout import ACTIVATIONS, OFFICIAL_ACTIVATIONS, Layout, Row, Settings

BARE, HEADED = "T5Model", "T5ForConditionalGeneration"
GATED = {f"gated-{theirs}": f"gated_{ours}" for theirs, ours in ACTIVATIONS.items()}
FEED_FORWARD = ACTIVATIONS | GATED | {"gated-gelu": "gated_gelu_tanh"}  # whose name says less than it means
OFFICIAL_FEED_FORWARD = OFFICIAL_ACTIVATIONS | {
    "gated_relu": "gated-relu",
    "gated_gelu_tanh": "gated-gelu",
    "gated_silu": "gated-silu",
}


def build(settings: Settings, architecture: str) -> T5:
    """The model that a config.json describes."""
    settings.only(is_encoder_decoder=True, is_decoder=False)
    depth = settings.integer("num_layers", 6)
    decoder_depth = settings.integer("num_decoder_layers", depth)
    # 1.0 ties and scales, 1.1 does neither; one that Hugging Face starts afresh as 1.1 is tied, but not scaled
    scaled = settings.flag("scale_decoder_outputs", settings.flag("tie_word_embeddings", True))
    head = "tied" if scaled else "linear" if "lm_head.weight" in settings.names else "tied_unscaled"
    return T5(
        T5Config(
            vocab_size=settings.integer("vocab_size", 32_128),
            dim=settings.integer("d_model", 512),
            depth=depth if depth == decoder_depth else (depth, decoder_depth),
            num_heads=settings.integer("num_heads", 8),
            head_dim=settings.integer("d_kv", 64),
            mlp_dim=settings.integer("d_ff", 2048),
            activation=settings.choice("feed_forward_proj", FEED_FORWARD, "relu"),
            num_buckets=settings.integer("relative_attention_num_buckets", 32),
            max_distance=settings.integer("relative_attention_max_distance", 128),
            norm_eps=settings.number("layer_norm_epsilon", 1e-6),
            dropout=settings.number("dropout_rate", 0.1),
            head=None if architecture == BARE else head,
        )
    )


def describe(model: nn.Module) -> dict[str, Any]:
    """The config.json of a model. Raises ValueError for a feed-forward network that T5's layout has no name for."""
    config = model.config
    if config.activation not in OFFICIAL_FEED_FORWARD:
        raise ValueError(
            f"T5's layout has no activation {config.activation!r}, only {', '.join(OFFICIAL_FEED_FORWARD)}"
        )
    depth, decoder_depth = config.depth if isinstance(config.depth, tuple) else (config.depth, config.depth)
    return {
        "architectures": [BARE if config.head is None else HEADED],
        "vocab_size": config.vocab_size,
        "d_model": config.dim,
        "num_layers": depth,
        "num_decoder_layers": decoder_depth,
        "num_heads": config.num_heads,
        "d_kv": config.head_dim,
        "d_ff": config.mlp_dim,
        "feed_forward_proj": OFFICIAL_FEED_FORWARD[config.activation],
        "relative_attention_num_buckets": config.num_buckets,
        "relative_attention_max_distance": config.max_distance,
        "layer_norm_epsilon": config.norm_eps,
        "dropout_rate": config.dropout,
        "tie_word_embeddings": config.head != "linear",
        "scale_decoder_outputs": config.head == "tied",
        "is_encoder_decoder": True,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "decoder_start_token_id": 0,
    }


def feed_forward(model: nn.Module) -> Sequence[Row]:
    """What the feed-forward networks are called: W_1 is `wi`, or `wi_1` where there is a gate `wi_0`."""
    inner = {"wi_1": "up_proj", "wi_0": "gate_proj"} if model.config.activation in GATED.values() else {"wi": "up_proj"}
    return [
        (f"{stack}.block.#.layer.{place}.DenseReluDense.{theirs}", f"{stack}.#.ffn.{ours}")
        for stack, place in (("encoder", 1), ("decoder", 2))
        for theirs, ours in (inner | {"wo": "down_proj"}).items()
    ]


LAYOUT = Layout(
    model_type="t5",
    architectures=(BARE, HEADED, "T5WithLMHeadModel"),  # the last is the old name of the second
    trunk=(
        ("shared", "token_embed"),
        ("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", "encoder_bias.table"),
        ("decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", "decoder_bias.table"),
        *(
            (f"{stack}.block.#.layer.{place}.{theirs}.{part}", f"{stack}.#.{ours}.{part}_proj")
            for stack, place, theirs, ours in (
                ("encoder", 0, "SelfAttention", "attn"),
                ("decoder", 0, "SelfAttention", "attn"),
                ("decoder", 1, "EncDecAttention", "cross_attn"),
            )
            for part in "qkvo"
        ),
        *(
            (f"{stack}.block.#.layer.{place}.layer_norm", f"{stack}.#.norm{place + 1}")
            for stack, count in (("encoder", 2), ("decoder", 3))
            for place in range(count)
        ),
        ("encoder.final_layer_norm", "encoder_norm"),
        ("decoder.final_layer_norm", "decoder_norm"),
    ),
    options=feed_forward,
    heads=(("lm_head", "head"),),
    aliases=(
        (r"^(encoder|decoder)\.embed_tokens\.weight$", "shared.weight"),
        (r"^lm_head\.weight$", "shared.weight"),
    ),
    ignored=(r"EncDecAttention\.relative_attention_bias",),  # a leftover in the released files
    build=build,
    describe=describe,
)
