"""The Decision Transformer as Hugging Face keeps it."""

from typing import Any

import torch
from torch import Tensor

from course_lib.models.decision_transformer import DecisionTransformer, DecisionTransformerConfig
from course_lib.weights.layout import ACTIVATIONS, CONV1D, FLAG, Layout, integer, number

NAME = "DecisionTransformerModel"
NOT_PREDICTED = ("predict_state", "predict_return")  # heads that the paper does not use, and we have not


def build(ours: dict[str, Any], architecture: str, names: frozenset[str]) -> DecisionTransformer:
    """The model, without the official one's words and positions. Raises ValueError unless its dropouts are one."""
    del ours["positions"], ours["words"]
    dropouts = ours.pop("dropouts")
    if len(set(dropouts)) > 1:
        raise ValueError(f"resid_pdrop, embd_pdrop and attn_pdrop are {dropouts}, and we have only one dropout")
    return DecisionTransformer(DecisionTransformerConfig(**ours, dropout=dropouts[0]))


def describe(model: DecisionTransformer) -> tuple[str, dict[str, Any]]:
    """Architecture and settings."""
    return NAME, vars(model.config) | {"dropouts": (model.config.dropout,) * 3, "positions": 1, "words": 1}


def unused(model: DecisionTransformer) -> dict[str, Tensor]:
    """What the official class has beside ours, as zeros."""
    config = model.config
    sizes = dict(zip(NOT_PREDICTED, (config.state_dim, 1), strict=True))
    heads = {f"{name}.weight": torch.zeros(size, config.dim) for name, size in sizes.items()}
    biases = {f"{name}.bias": torch.zeros(size) for name, size in sizes.items()}
    tables = {f"encoder.{name}.weight": torch.zeros(1, config.dim) for name in ("wte", "wpe")}
    return heads | biases | tables


LAYOUT = Layout(
    model_type="decision_transformer",
    architectures=(NAME,),
    build=build,
    describe=describe,
    settings=[
        ("state_dim", "state_dim", integer, 17),
        ("act_dim", "action_dim", integer, 4),
        ("action_tanh", "tanh", FLAG, True),
        ("max_length", "context_steps", integer, 20),  # of the released checkpoints, not of the class
        ("max_ep_len", "max_steps", integer, 4096),
        ("hidden_size", "dim", integer, 128),
        ("n_layer", "depth", integer, 3),
        ("n_head", "num_heads", integer, 1),
        ("n_inner", "mlp_dim", integer, None),
        ("activation_function", "activation", ACTIVATIONS, "relu"),
        ("layer_norm_epsilon", "norm_eps", number, 1e-5),
        ("n_positions", "positions", integer, 1024),
        ("vocab_size", "words", integer, 1),
        ("{resid,embd,attn}_pdrop", "dropouts", number, 0.1),
    ],
    fixed={"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False},
    backbone=[
        ("embed_{return,state,action}", "{return,state,action}_embed"),
        ("embed_timestep.weight", "time_embed.table"),
        ("embed_ln", "embed_norm"),
        ("encoder.h.#.ln_{1,2}", "blocks.#.norm{1,2}"),
        ("encoder.h.#.attn.c_attn", "blocks.#.attn.{q,k,v}_proj", CONV1D),
        ("encoder.h.#.attn.c_proj", "blocks.#.attn.o_proj", CONV1D),
        ("encoder.h.#.mlp.c_fc", "blocks.#.ffn.up_proj", CONV1D),
        ("encoder.h.#.mlp.c_proj", "blocks.#.ffn.down_proj", CONV1D),
        ("encoder.ln_f", "norm"),
        ("predict_action.0", "head"),
    ],
    # the official class adds its GPT's first position to every token, after the norm: our norm's bias takes it over
    added={"encoder.wpe.weight": ("embed_norm.bias", lambda table: table[0])},
    unused=unused,
    ignored=[r"^encoder\.w[tp]e\.weight$", r"^predict_(state|return)\.", r"^encoder\.h\.\d+\.attn\.(masked_)?bias$"],
)
