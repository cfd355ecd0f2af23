"""Lesson 15: the official layouts of T5 and of a Conformer's blocks, opened in our implementations."""

import tempfile
from importlib.util import find_spec

import torch
from torch import nn

from course_lib.models.t5 import T5, T5Config
from course_lib.weights import from_pretrained, save_pretrained
from course_lib.weights.conformer import build, load_blocks

BLOCKS = {
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "conv_depthwise_kernel_size": 5,
    "position_embeddings_type": "relative",
    "hidden_act": "swish",
}


@torch.no_grad()
def opened_by_both() -> str:
    """What small models of random weights compute here and, where it is installed, in the official library."""
    torch.manual_seed(0)
    model = T5(T5Config(vocab_size=50, dim=16, depth=2, num_heads=2, head_dim=8, mlp_dim=32, dropout=0.0)).eval()
    for parameter in model.parameters():
        parameter.normal_(std=0.2)
    source, target = torch.randint(50, (2, 7)), torch.randint(50, (2, 4))
    ours = model(source, target)
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(model, folder)
        again = from_pretrained(folder).eval()
        said = (
            "T5, written in the official layout and opened again: the logits are the same: "
            f"{torch.equal(again(source, target), ours)}"
        )
        if find_spec("transformers") is None:
            return f"{said}\n(the library `transformers` is not installed here: with it this cell compares both models)"
        from transformers import T5ForConditionalGeneration
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        official = T5ForConditionalGeneration.from_pretrained(folder).eval()
    apart = (official(input_ids=source, decoder_input_ids=target).logits - ours).abs().max()
    return (
        f"{said}\nT5, opened by the official library: the logits differ by less than 1e-3: {bool(apart < 1e-3)}\n"
        f"Conformer blocks of Wav2Vec2-Conformer in ours: outputs differ by less than 1e-3: {blocks_agree()}"
    )


@torch.no_grad()
def blocks_agree() -> bool:
    """Whether official Conformer blocks with random weights compute the same in our implementation."""
    from transformers import Wav2Vec2ConformerConfig
    from transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer import Wav2Vec2ConformerEncoder

    small = {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2}
    config = Wav2Vec2ConformerConfig(**BLOCKS, **small)
    official = Wav2Vec2ConformerEncoder(config).eval()
    official.layer_norm = nn.Identity()  # it ends with one more norm, which the paper does not have
    ours = build(config.to_dict()).eval()
    load_blocks(ours, official.state_dict())
    x = torch.randn(2, 9, BLOCKS["hidden_size"])
    return bool((official(x).last_hidden_state - ours.encode(x)).abs().max() < 1e-3)
