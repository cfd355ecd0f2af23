"""Llama 1 and 2 as Meta released them and Hugging Face keeps them, and what followed with the same parts.

Not read: rotary positions that are scaled for longer texts (Llama 3.1 and later), and biases.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from course_lib.models.llama import Llama, LlamaConfig
from course_lib.weights.layout import ACTIVATIONS, FLAG, Layout, integer, number, shortened

BARE, HEADED = "LlamaModel", "LlamaForCausalLM"
positive = partial(number, at_most=1e8)


def rotary(key: str, value: Any) -> dict[str, Any]:
    """What `rope_parameters`, or in older files `rope_scaling`, says. Raises ValueError for positions that are scaled.

    It has only the base of the angles, `rope_theta`, to say.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"{key} must be an object, got {shortened(value)}")
    kind = value.get("rope_type", value.get("type", "default"))
    if kind != "default" or value.keys() - {"rope_type", "type", "rope_theta"}:
        raise ValueError(f"{key} is {shortened(dict(value))}, and we have only rotary positions that are not scaled")
    return dict(value)


def build(ours: dict[str, Any], architecture: str, names: frozenset[str]) -> Llama:
    """The model, whose head is its own or tied. Raises ValueError for a base of the angles below 1."""
    said, _, base = (ours.pop(name) for name in ("rope", "scaling", "rotary_base"))
    if said is not None and said.get("rope_theta") is not None:
        base = positive("rope_theta", said["rope_theta"])
    if base < 1:
        raise ValueError(f"rope_theta must be 1 or more, got {base:g}")
    head = "tied" if ours.pop("tied") else "linear"
    if ours["head_dim"] == ours["dim"] // ours["num_heads"]:
        ours["head_dim"] = None
    if ours["num_kv_heads"] == ours["num_heads"]:
        ours["num_kv_heads"] = None
    return Llama(LlamaConfig(**ours, rotary_base=base, head=head if architecture == HEADED else None))


def describe(model: Llama) -> tuple[str, dict[str, Any]]:
    """Architecture and settings."""
    config = model.config
    beside = {
        "head_dim": config.head_dim or config.dim // config.num_heads,
        "num_kv_heads": config.num_kv_heads or config.num_heads,
        "rope": {"rope_type": "default", "rope_theta": config.rotary_base},
        "tied": config.head == "tied",
    }
    return BARE if config.head is None else HEADED, vars(config) | beside


LAYOUT = Layout(
    model_type="llama",
    architectures=(BARE, HEADED),
    build=build,
    describe=describe,
    settings=[
        ("vocab_size", "vocab_size", integer, 32_000),
        ("max_position_embeddings", "context_length", integer, 2048),
        ("hidden_size", "dim", integer, 4096),
        ("num_hidden_layers", "depth", integer, 32),
        ("num_attention_heads", "num_heads", integer, 32),
        ("num_key_value_heads", "num_kv_heads", integer, None),
        ("head_dim", "head_dim", integer, None),
        ("intermediate_size", "mlp_dim", integer, 11_008),
        ("hidden_act", "activation", ACTIVATIONS, "silu"),
        ("rms_norm_eps", "norm_eps", number, 1e-6),
        ("rope_theta", "rotary_base", positive, 10_000.0),  # in older files, and for older readers
        ("rope_parameters", "rope", rotary, None),
        ("rope_scaling", "scaling", rotary, None),
        ("tie_word_embeddings", "tied", FLAG, False),
    ],
    fixed={"attention_bias": False, "mlp_bias": False, "attention_dropout": 0.0, "pretraining_tp": 1},
    special_tokens=lambda config: {"bos_token_id": 1, "eos_token_id": 2},
    prefix="model.",
    backbone=[
        ("embed_tokens", "token_embed"),
        ("layers.#.{input,post_attention}_layernorm", "blocks.#.norm{1,2}"),
        ("layers.#.self_attn.{q,k,v,o}_proj", "blocks.#.attn.{q,k,v,o}_proj"),
        ("layers.#.mlp.{gate,up,down}_proj", "blocks.#.ffn.{gate,up,down}_proj"),
        ("norm", "norm"),
    ],
    heads=[("lm_head", "head")],
    aliases=[(r"^lm_head\.weight$", "embed_tokens.weight")],
    ignored=[r"rotary_emb\.inv_freq$"],  # the angles, in older files
)
