import torch

from course_lib.models.t5 import T5, T5Config


def make(**overrides):
    """A tiny model in evaluation mode, sources and targets; tests/weights compares it with the official one."""
    sizes = {"vocab_size": 23, "dim": 12, "depth": (3, 2), "num_heads": 3, "head_dim": 5, "mlp_dim": 20}
    return T5(T5Config(**sizes | overrides)).eval(), torch.randint(0, 23, (2, 6)), torch.randint(0, 23, (2, 7))


def test_the_bias_of_a_stack_is_computed_once():
    (model, *pair), calls = make(), []
    for bias in (model.encoder_bias, model.decoder_bias):
        bias.register_forward_hook(lambda module, *_: calls.append(module))
    model(*pair)
    assert calls == [model.encoder_bias, model.decoder_bias]


def test_dropout_reaches_both_embeddings_both_stacks_and_their_blocks():
    (model, *pair), dropped = make(dropout=0.5), []
    model.dropout.register_forward_hook(lambda *_: dropped.append(_))
    model(*pair)
    assert len(dropped) == 4
    assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} == {0.5}
    assert {block.attn.dropout for block in model.decoder} == {0.5}
