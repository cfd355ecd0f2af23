"""GPT-2 as OpenAI released it and Hugging Face keeps it."""

from typing import Any

from torch import nn

from course_lib.models.gpt import GPT, GPTConfig
from course_lib.weights.layout import ACTIVATIONS, CONV1D, OFFICIAL_ACTIVATIONS, Layout, Settings

BARE, HEADED = "GPT2Model", "GPT2LMHeadModel"
DROPOUTS = ("embd_pdrop", "attn_pdrop", "resid_pdrop")


def build(settings: Settings, architecture: str) -> GPT:
    """The model that a config.json describes."""
    settings.only(scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    dim = settings.integer("n_embd", 768)
    dropouts = tuple(settings.number(key, 0.1) for key in DROPOUTS)
    head = "tied" if settings.flag("tie_word_embeddings", True) else "linear"
    return GPT(
        GPTConfig(
            vocab_size=settings.integer("vocab_size", 50_257),
            context_length=settings.integer("n_positions", 1024),
            dim=dim,
            depth=settings.integer("n_layer", 12),
            num_heads=settings.integer("n_head", 12),
            mlp_dim=settings.integer("n_inner", 4 * dim),
            activation=settings.choice("activation_function", ACTIVATIONS, "gelu_new"),
            norm_eps=settings.number("layer_norm_epsilon", 1e-5),
            dropout=dropouts[0] if len(set(dropouts)) == 1 else dropouts,
            head=head if architecture == HEADED else None,
        )
    )


def describe(model: nn.Module) -> dict[str, Any]:
    """The config.json of a model. Raises ValueError for post-norm: GPT-1 has a layout of its own."""
    config = model.config
    if not config.pre_norm:
        raise ValueError("GPT-2's layout has no post-norm: save a model with pre_norm=False by course_lib.weights.own")
    dropouts = config.dropout if isinstance(config.dropout, tuple) else 3 * (config.dropout,)
    last_token = config.vocab_size - 1  # of GPT-2: the end of the text, which also begins it
    return {
        "architectures": [BARE if config.head is None else HEADED],
        "vocab_size": config.vocab_size,
        "n_positions": config.context_length,
        "n_embd": config.dim,
        "n_layer": config.depth,
        "n_head": config.num_heads,
        "n_inner": config.mlp_dim,
        "activation_function": OFFICIAL_ACTIVATIONS[config.activation],
        "layer_norm_epsilon": config.norm_eps,
        "tie_word_embeddings": config.head != "linear",
        "bos_token_id": last_token,
        "eos_token_id": last_token,
    } | dict(zip(DROPOUTS, dropouts, strict=True))


LAYOUT = Layout(
    model_type="gpt2",
    architectures=(BARE, HEADED),
    trunk=(
        ("wte", "token_embed"),
        ("wpe.weight", "pos_embed.table"),
        ("h.#.ln_1", "blocks.#.norm1"),
        ("h.#.attn.c_attn", "blocks.#.attn.{q,k,v}_proj", CONV1D),
        ("h.#.attn.c_proj", "blocks.#.attn.o_proj", CONV1D),
        ("h.#.ln_2", "blocks.#.norm2"),
        ("h.#.mlp.c_fc", "blocks.#.ffn.up_proj", CONV1D),
        ("h.#.mlp.c_proj", "blocks.#.ffn.down_proj", CONV1D),
        ("ln_f", "norm"),
    ),
    heads=(("lm_head", "head"),),
    prefix="transformer.",
    aliases=((r"^lm_head\.weight$", "wte.weight"),),
    ignored=(r"^h\.\d+\.attn\.(masked_)?bias$",),  # the causal mask, in older files
    build=build,
    describe=describe,
)
