import pytest
import torch
import torch.nn.functional as F

from course_lib.functional.positions import relative_buckets
from course_lib.models.t5 import T5, T5Config, t5_base, t5_large, t5_small

SOURCE_VALID = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])


def make(seed=0, **overrides):
    """A tiny model with large random weights, in double precision and evaluation mode."""
    sizes = {"vocab_size": 23, "dim": 12, "depth": (1, 2), "num_heads": 3, "head_dim": 5, "mlp_dim": 20}
    torch.manual_seed(seed)
    model = T5(T5Config(**sizes | {"num_buckets": 6, "max_distance": 5} | overrides)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def batch(seed=0):
    """Two sources of unequal length (see SOURCE_VALID), and what to write for them."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(0, 23, (2, length), generator=generator) for length in (6, 7)]


def num_parameters(build, **overrides):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build(**overrides).parameters())


def by_equations(model, source, target):
    """The logits of one pair of rows by the paper's words, head by head."""
    config, weight = model.config, dict(model.named_parameters())
    gate = config.activation != "relu"

    def norm(x, name):
        return x / (x.pow(2).mean(-1, keepdim=True) + config.norm_eps).sqrt() * weight[f"{name}.weight"]

    def linear(x, name):
        return x @ weight[f"{name}.weight"].T

    def biases(name, T, bidirectional):
        table, distance = weight[f"{name}.table"], torch.arange(T) - torch.arange(T)[:, None]
        settings = {"num_buckets": config.num_buckets, "max_distance": config.max_distance}
        return table[relative_buckets(distance, bidirectional=bidirectional, **settings)].unbind(-1)

    def attend(x, context, name, biases=None, causal=False):
        q = linear(x, f"{name}.q_proj").chunk(config.num_heads, dim=-1)
        k, v = (linear(context, f"{name}.{part}_proj").chunk(config.num_heads, dim=-1) for part in "kv")
        rows = []
        for h in range(config.num_heads):
            scores = q[h] @ k[h].T + (0 if biases is None else biases[h])
            if causal:
                scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
            rows.append(scores.softmax(-1) @ v[h])
        return linear(torch.cat(rows, dim=-1), f"{name}.o_proj")

    def feed_forward(x, name):
        inner = linear(x, f"{name}.up_proj")
        inner = F.gelu(linear(x, f"{name}.gate_proj"), approximate="tanh") * inner if gate else inner.relu()
        return linear(inner, f"{name}.down_proj")

    def stack(x, name, context=None):
        own = biases(f"{name}_bias", len(x), context is None)
        for i in range(len(getattr(model, name))):
            block = f"{name}.{i}"
            h = norm(x, f"{block}.norm1")
            x = x + attend(h, h, f"{block}.attn", own, causal=context is not None)
            if context is not None:
                x = x + attend(norm(x, f"{block}.norm2"), context, f"{block}.cross_attn")
            x = x + feed_forward(norm(x, f"{block}.norm{2 if context is None else 3}"), f"{block}.ffn")
        return norm(x, f"{name}_norm")

    E = weight["token_embed.weight"]
    features = stack(E[target], "decoder", stack(E[source], "encoder"))
    return features @ E.T / config.dim**0.5 if config.head == "tied" else linear(features, "head")


def test_presets_have_the_sizes_of_the_released_models():
    assert num_parameters(t5_small) == 60_506_624
    assert num_parameters(t5_base) == 222_903_552
    assert num_parameters(t5_large) == 737_668_096
    version_1_1 = {"activation": "gated_gelu_tanh", "head": "linear", "mlp_dim": 1024, "depth": 8, "num_heads": 6}
    assert num_parameters(t5_small, **version_1_1) == 76_961_152
    assert num_parameters(t5_large, num_heads=32, head_dim=128, mlp_dim=16_384) == 2_851_598_336  # 3B
    assert num_parameters(t5_large, num_heads=128, head_dim=128, mlp_dim=65_536) == 11_307_321_344  # 11B


@pytest.mark.parametrize("version", [{}, {"activation": "gated_gelu_tanh", "head": "linear"}], ids=["1.0", "1.1"])
def test_logits_follow_the_equations(version):
    model, (source, target) = make(**version), batch()
    expected = torch.stack([by_equations(model, *pair) for pair in zip(source, target, strict=True)])
    torch.testing.assert_close(model(source, target), expected, rtol=0, atol=1e-12)


def test_future_target_tokens_do_not_leak_and_the_source_is_seen():
    model, entered, (source, target) = make(), [], batch()
    model.dropout.register_forward_pre_hook(lambda _, inputs: entered.append(inputs[0]))
    logits = model(source, target, source_valid=SOURCE_VALID)
    source_grad, target_grad = torch.autograd.grad(logits[:, 3].sum(), entered[::2])
    assert (target_grad[:, 4:] == 0).all() and (target_grad[:, :4] != 0).any(dim=-1).all()
    assert torch.equal((source_grad != 0).any(dim=-1), SOURCE_VALID)


@pytest.mark.parametrize("head", ["tied", "tied_unscaled", "linear"])
@pytest.mark.parametrize("steps", [[7], [4, 1, 1, 1], [1] * 7, [2, 3, 2]], ids=str)
@torch.no_grad()
def test_cached_equals_uncached(steps, head):
    model, (source, target) = make(head=head), batch()
    logits = model(source, target, source_valid=SOURCE_VALID)
    writer, seen = model.given(source, SOURCE_VALID), 0
    cache = writer.new_cache(7)
    for new in steps:
        found = writer.next_logits(target[:, seen : seen + new], cache)
        seen += new
        torch.testing.assert_close(found, logits[:, seen - 1], rtol=0, atol=1e-12)


@torch.no_grad()
def test_padding_changes_nothing():
    model, (source, target) = make(), batch()
    target_valid = torch.tensor([[True] * 7, [False] * 3 + [True] * 4])
    alone = model(source[1:, :4], target[1:, 3:])[0]
    together = model(source, target, source_valid=SOURCE_VALID, target_valid=target_valid)[1, 3:]
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-12)
    at_the_left = torch.cat([source[:, 4:], source[:, :4]], dim=1), SOURCE_VALID.roll(2, 1)
    moved = model(at_the_left[0], target, source_valid=at_the_left[1], target_valid=target_valid)[1, 3:]
    torch.testing.assert_close(moved, alone, rtol=0, atol=1e-12)


@torch.no_grad()
def test_prompts_of_unequal_length_and_selected_rows_go_on_alike():
    model, (source, target) = make(), batch()
    target_valid = torch.tensor([[True] * 7, [False] * 3 + [True] * 4])
    expected = model(source, target, source_valid=SOURCE_VALID, target_valid=target_valid)
    writer = model.given(source, SOURCE_VALID)
    cache = writer.new_cache(7)
    first = writer.next_logits(target[:, :5], cache, valid=target_valid[:, :5])
    torch.testing.assert_close(first, expected[:, 4], rtol=0, atol=1e-12)
    rows = torch.tensor([1, 1, 0])
    cache.select(rows)
    torch.testing.assert_close(writer.next_logits(target[rows, 5:6], cache), expected[rows, 5], rtol=0, atol=1e-12)
    torch.testing.assert_close(writer.next_logits(target[rows, 6:], cache), expected[rows, 6], rtol=0, atol=1e-12)


def test_the_bias_of_a_stack_is_computed_once():
    model, calls = make(depth=(3, 2)), []
    for bias in (model.encoder_bias, model.decoder_bias):
        bias.register_forward_hook(lambda module, *_: calls.append(module))
    model(*batch())
    assert calls == [model.encoder_bias, model.decoder_bias]


def test_nothing_has_a_bias_and_heads_are_as_wide_as_asked():
    model = make(activation="gated_gelu_tanh")
    assert not [name for name, _ in model.named_parameters() if name.endswith(".bias")]
    assert model.decoder[0].attn.q_proj.weight.shape == (15, 12) and len(model.encoder) == 1 and len(model.decoder) == 2


def test_the_tied_head_gets_all_three_gradients():
    tied, untied, (source, target) = make(head="tied_unscaled"), make(head="linear"), batch()
    untied.load_state_dict(tied.state_dict())
    for model in (tied, untied):
        F.cross_entropy(model(source, target).flatten(0, 1), target.flatten()).backward()
    expected = untied.head.weight.grad + untied.token_embed.weight.grad
    torch.testing.assert_close(tied.token_embed.weight.grad, expected, rtol=0, atol=1e-12)


def test_first_weights_make_up_for_the_missing_scale():
    torch.manual_seed(0)
    model = t5_small(vocab_size=400, depth=1, mlp_dim=1024)
    block = model.decoder[0]
    for attn in (block.attn, block.cross_attn):
        assert attn.q_proj.weight.std().item() == pytest.approx((512 * 64) ** -0.5, rel=0.02)
        assert attn.v_proj.weight.std().item() == pytest.approx(512**-0.5, rel=0.02)
    assert block.ffn.down_proj.weight.std().item() == pytest.approx(1024**-0.5, rel=0.02)
    assert model.head.weight.std().item() == pytest.approx(1, rel=0.02)
    x = torch.randn(4, 50, 512)
    q, k = (proj(x).unflatten(-1, (8, 64)) for proj in (block.attn.q_proj, block.attn.k_proj))
    assert (q * k).sum(-1).std().item() == pytest.approx(1, rel=0.1)


def test_dropout_acts_in_training_only():
    model, pair = make(dropout=0.5), batch()
    assert torch.equal(model(*pair), model(*pair))
    model.train()
    assert not torch.equal(model(*pair), model(*pair))
    dropped = []
    model.dropout.register_forward_hook(lambda *_: dropped.append(_))
    model(*pair)
    assert len(dropped) == 4  # both embeddings, both stacks' output
    assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} == {0.5}
    assert {block.attn.dropout for block in model.decoder} == {0.5}


def test_without_a_head_the_features_come_out():
    model, (source, target) = make(head=None), batch()
    features = model.decode(model.embed_target(target), model.encode(model.embed(source)))
    torch.testing.assert_close(model(source, target), features, rtol=0, atol=0)
    with pytest.raises(ValueError, match="head=None"):
        model.given(source)


def test_a_batch_can_be_learned_by_heart():
    torch.manual_seed(0)
    model = t5_small(vocab_size=23, dim=32, depth=2, num_heads=2, head_dim=16, mlp_dim=64, dropout=0.0)
    source, target = batch()
    target_in = torch.cat([torch.zeros(2, 1, dtype=torch.long), target[:, :-1]], dim=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(40):
        loss = F.cross_entropy(model(source, target_in).flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert torch.equal(model(source, target_in).argmax(-1), target)


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="head must be one of .* got 'own'"):
        T5Config(head="own")
    with pytest.raises(ValueError, match="activation must be one of .* got 'tanh'"):
        make(activation="gated_tanh")
    with pytest.raises(ValueError, match="num_buckets=3"):
        make(num_buckets=3)
