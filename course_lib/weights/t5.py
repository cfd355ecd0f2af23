"""T5 and T5 1.1 as Google released them and Hugging Face keeps them."""

from typing import Any

from course_lib.models.t5 import T5, T5Config
from course_lib.weights.layout import ACTIVATIONS, FLAG, Layout, Row, integer, number

BARE, HEADED = "T5Model", "T5ForConditionalGeneration"
GATED = {f"gated-{theirs}": f"gated_{ours}" for theirs, ours in ACTIVATIONS.items()}
FEED_FORWARD = ACTIVATIONS | GATED | {"gated-gelu": "gated_gelu_tanh"}  # whose name says less than it means


def build(ours: dict[str, Any], architecture: str, names: frozenset[str]) -> T5:
    """The model. Its head: 1.0 ties and scales, 1.1 does neither; one that is started afresh as 1.1 is only tied."""
    depth, decoder_depth, tied, scaled = (ours.pop(name) for name in ("depth", "decoder_depth", "tied", "scaled"))
    scaled = tied if scaled is None else scaled
    head = "tied" if scaled else "linear" if "lm_head.weight" in names else "tied_unscaled"
    depth = depth if decoder_depth in (None, depth) else (depth, decoder_depth)
    return T5(T5Config(**ours, depth=depth, head=None if architecture == BARE else head))


def describe(model: T5) -> tuple[str, dict[str, Any]]:
    """Architecture and settings."""
    head, depths = model.config.head, model.config.depth
    depth, decoder_depth = depths if isinstance(depths, tuple) else (depths, depths)
    beside = {"depth": depth, "decoder_depth": decoder_depth, "tied": head != "linear", "scaled": head == "tied"}
    return BARE if head is None else HEADED, vars(model.config) | beside


def feed_forward(model: T5) -> list[Row]:
    """What the feed-forward networks are called: W_1 is `wi`, or `wi_1` where there is a gate `wi_0`."""
    theirs, ours = ("wi_{0,1}", "{gate,up}_proj") if model.config.activation in GATED.values() else ("wi", "up_proj")
    return [
        (f"{stack}.block.#.layer.{place}.DenseReluDense.{theirs}", f"{stack}.#.ffn.{ours}")
        for stack, place in (("encoder", 1), ("decoder", 2))
    ]


LAYOUT = Layout(
    model_type="t5",
    architectures=(BARE, HEADED, "T5WithLMHeadModel"),  # the last is the old name of the second
    build=build,
    describe=describe,
    settings=[
        ("vocab_size", "vocab_size", integer, 32_128),
        ("d_model", "dim", integer, 512),
        ("num_layers", "depth", integer, 6),
        ("num_decoder_layers", "decoder_depth", integer, None),
        ("num_heads", "num_heads", integer, 8),
        ("d_kv", "head_dim", integer, 64),
        ("d_ff", "mlp_dim", integer, 2048),
        ("feed_forward_proj", "activation", FEED_FORWARD, "relu"),
        ("relative_attention_num_buckets", "num_buckets", integer, 32),
        ("relative_attention_max_distance", "max_distance", integer, 128),
        ("layer_norm_epsilon", "norm_eps", number, 1e-6),
        ("dropout_rate", "dropout", number, 0.1),
        ("tie_word_embeddings", "tied", FLAG, True),
        ("scale_decoder_outputs", "scaled", FLAG, None),
    ],
    fixed={"is_encoder_decoder": True, "is_decoder": False},
    special_tokens=lambda config: {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0},
    backbone=[
        ("shared", "token_embed"),
        (
            "{encoder,decoder}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
            "{encoder,decoder}_bias.table",
        ),
        ("{encoder,decoder}.block.#.layer.0.SelfAttention.{q,k,v,o}", "{encoder,decoder}.#.attn.{q,k,v,o}_proj"),
        ("decoder.block.#.layer.1.EncDecAttention.{q,k,v,o}", "decoder.#.cross_attn.{q,k,v,o}_proj"),
        ("encoder.block.#.layer.1.DenseReluDense.wo", "encoder.#.ffn.down_proj"),
        ("decoder.block.#.layer.2.DenseReluDense.wo", "decoder.#.ffn.down_proj"),
        ("{encoder,decoder}.block.#.layer.{0,1,2}.layer_norm", "{encoder,decoder}.#.norm{1,2,3}"),
        ("{encoder,decoder}.final_layer_norm", "{encoder,decoder}_norm"),
    ],
    options=feed_forward,
    heads=[("lm_head", "head")],
    aliases=[
        (r"^(encoder|decoder)\.embed_tokens\.weight$", "shared.weight"),
        (r"^lm_head\.weight$", "shared.weight"),
    ],
    ignored=[r"EncDecAttention\.relative_attention_bias"],  # a leftover in the released files
)
