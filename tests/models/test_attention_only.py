import torch

from course_lib.models.attention_only import AttentionOnly, AttentionOnlyConfig


def model(**changes):
    torch.manual_seed(0)
    return AttentionOnly(AttentionOnlyConfig(**{"vocab_size": 11, "context_length": 6, "dim": 8} | changes))


def test_no_place_sees_a_later_one():
    x = torch.randn(1, 6, 8, requires_grad=True)
    (torch.arange(8.0) * model().encode(x)[0, 2]).sum().backward()  # a plain sum is that of a norm: constant
    assert (x.grad[0, 3:] == 0).all() and (x.grad[0, :3] != 0).any()


def test_each_layer_adds_its_attention_to_what_came_in():
    net, tokens = model(), torch.arange(6)[None]
    x = net.embed(tokens)
    for norm, layer in zip(net.norms, net.layers, strict=True):
        x = x + layer(norm(x), causal=True)
    torch.testing.assert_close(net(tokens), net.head(net.norm(x)))


def test_there_are_no_biases_but_those_of_norms():
    assert {name.split(".")[0] for name, _ in model().named_parameters() if name.endswith("bias")} == {"norms", "norm"}


def test_two_heads_of_full_width_in_one_layer_have_the_weights_of_two_layers():
    def weights(net):
        return sum(parameter.numel() for parameter in net.layers.parameters())

    assert weights(model(depth=1, num_heads=2, head_dim=8)) == weights(model(depth=2))
