"""The blocks of the Conformer as Hugging Face keeps them, in Wav2Vec2-Conformer with relative positions.

Only blocks: those checkpoints read the waveform itself, through convolutions that the Conformer's paper does not have,
and so they are none of `from_pretrained`'s families.
"""

from collections.abc import Mapping

from torch import Tensor, nn

from course_lib.models.conformer import Conformer, ConformerConfig
from course_lib.weights.layout import Layout, Transform, entries, integer

ENCODER = "Wav2Vec2ConformerEncoder"
POINTWISE = Transform(lambda tensor: tensor[..., 0], lambda tensor: tensor[..., None])  # a convolution of width 1
BIAS = Transform(lambda tensor: tensor[:, None], lambda tensor: tensor[:, 0])  # (H, d), a row for all queries in ours

LAYOUT = Layout(
    model_type="wav2vec2-conformer",
    architectures=(ENCODER,),
    build=lambda ours, architecture, names: Conformer(ConformerConfig(**ours)),
    describe=lambda model: (ENCODER, vars(model.config)),
    settings=[
        ("hidden_size", "dim", integer, 768),
        ("num_hidden_layers", "depth", integer, 12),
        ("num_attention_heads", "num_heads", integer, 12),
        ("intermediate_size", "mlp_dim", integer, 3072),
        ("conv_depthwise_kernel_size", "kernel_size", integer, 31),
    ],
    fixed={"position_embeddings_type": "relative", "hidden_act": "swish"},
    backbone=[
        ("layers.#.ffn{1,2}_layer_norm", "blocks.#.norm{1,4}"),
        ("layers.#.ffn{1,2}.intermediate_dense", "blocks.#.ffn{1,2}.up_proj"),
        ("layers.#.ffn{1,2}.output_dense", "blocks.#.ffn{1,2}.down_proj"),
        ("layers.#.self_attn_layer_norm", "blocks.#.norm2"),
        ("layers.#.self_attn.linear_{q,k,v,out,pos}", "blocks.#.attn.{q,k,v,o,pos}_proj"),
        ("layers.#.self_attn.pos_bias_{u,v}", "blocks.#.attn.{content,position}_bias", BIAS),
        ("layers.#.conv_module.layer_norm", "blocks.#.norm3"),
        ("layers.#.conv_module.pointwise_conv{1,2}", "blocks.#.conv.{in,out}_proj", POINTWISE),
        ("layers.#.conv_module.depthwise_conv", "blocks.#.conv.depthwise"),
        ("layers.#.conv_module.batch_norm", "blocks.#.conv.norm"),
        ("layers.#.final_layer_norm", "blocks.#.norm5"),
    ],
)


def build(config: Mapping[str, object]) -> Conformer:
    """A Conformer with blocks of an official config's sizes. Raises ValueError for rotary positions and the like."""
    return Conformer(ConformerConfig(**LAYOUT.read_settings(config), dropout=0.0))


def load_blocks(model: Conformer, official: Mapping[str, Tensor]) -> None:
    """Puts the blocks of an official encoder's `state_dict` into ours. Raises ValueError for a tensor too few or many.

    The official encoder ends with one more layer norm, which the paper's has not, and ours neither.
    """
    blocks = nn.ModuleDict({"blocks": model.blocks})
    expected = entries(LAYOUT, blocks, ENCODER)
    found = {name for name in official if name.startswith("layers.")}
    problems = [f"{name} is missing" for name in sorted(expected.keys() - found)]
    if problems := problems + [f"{name} is unknown" for name in sorted(found - expected.keys())]:
        raise ValueError(f"these are not {len(model.blocks)} blocks of a {ENCODER}: {', '.join(problems[:6])}")
    ours = [entry.read(official[name]) for name, entry in expected.items()]
    blocks.load_state_dict({name: tensor for each in ours for name, tensor in each.items()})
