"""GPT-2 as OpenAI released it and Hugging Face keeps it."""

from typing import Any

from course_lib.models.gpt import GPT, GPTConfig
from course_lib.weights.layout import ACTIVATIONS, CONV1D, FLAG, Layout, integer, number

BARE, HEADED = "GPT2Model", "GPT2LMHeadModel"
DROPOUTS = ("embed_dropout", "attention_dropout")  # None in our config: as `dropout`


def build(ours: dict[str, Any], architecture: str, names: frozenset[str]) -> GPT:
    """The model, whose head is tied or its own."""
    head = "tied" if ours.pop("tied") else "linear"
    ours |= {name: None for name in DROPOUTS if ours[name] == ours["dropout"]}
    return GPT(GPTConfig(**ours, head=head if architecture == HEADED else None))


def describe(model: GPT) -> tuple[str, dict[str, Any]]:
    """Architecture and settings. Raises ValueError for post-norm: GPT-1 has a layout of its own."""
    ours, head = vars(model.config), model.config.head
    if not ours["pre_norm"]:
        raise ValueError("GPT-2's layout has no post-norm: save a model with pre_norm=False by course_lib.weights.own")
    ours = ours | {name: ours["dropout"] for name in DROPOUTS if ours[name] is None}
    return BARE if head is None else HEADED, ours | {"tied": head != "linear"}


LAYOUT = Layout(
    model_type="gpt2",
    architectures=(BARE, HEADED),
    build=build,
    describe=describe,
    settings=[
        ("vocab_size", "vocab_size", integer, 50_257),
        ("n_positions", "context_length", integer, 1024),
        ("n_embd", "dim", integer, 768),
        ("n_layer", "depth", integer, 12),
        ("n_head", "num_heads", integer, 12),
        ("n_inner", "mlp_dim", integer, None),
        ("activation_function", "activation", ACTIVATIONS, "gelu_new"),
        ("layer_norm_epsilon", "norm_eps", number, 1e-5),
        ("embd_pdrop", "embed_dropout", number, 0.1),
        ("attn_pdrop", "attention_dropout", number, 0.1),
        ("resid_pdrop", "dropout", number, 0.1),
        ("tie_word_embeddings", "tied", FLAG, True),
    ],
    fixed={"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False},
    # of GPT-2 the last token: the end of the text, which also begins it
    special_tokens=lambda config: dict.fromkeys(("bos_token_id", "eos_token_id"), config.vocab_size - 1),
    prefix="transformer.",
    backbone=[
        ("wte", "token_embed"),
        ("wpe.weight", "pos_embed.table"),
        ("h.#.ln_{1,2}", "blocks.#.norm{1,2}"),
        ("h.#.attn.c_attn", "blocks.#.attn.{q,k,v}_proj", CONV1D),
        ("h.#.attn.c_proj", "blocks.#.attn.o_proj", CONV1D),
        ("h.#.mlp.c_fc", "blocks.#.ffn.up_proj", CONV1D),
        ("h.#.mlp.c_proj", "blocks.#.ffn.down_proj", CONV1D),
        ("ln_f", "norm"),
    ],
    heads=[("lm_head", "head")],
    aliases=[(r"^lm_head\.weight$", "wte.weight")],
    ignored=[r"^h\.\d+\.attn\.(masked_)?bias$"],  # the causal mask, in older files
)
