import pytest
import torch
import torch.nn.functional as F

from course_lib.layers.recording import record_attention
from course_lib.models.gpt import GPT, GPTConfig, gpt2_large, gpt2_medium, gpt2_small, gpt2_xl, gpt_lesson


def make(seed=0, **overrides):
    """A tiny model with large random weights, in double precision and evaluation mode."""
    sizes = {"vocab_size": 23, "context_length": 9, "dim": 12, "depth": 2, "num_heads": 3}
    torch.manual_seed(seed)
    model = GPT(GPTConfig(**sizes | overrides)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def batch(seed=0, size=(2, 7)):
    return torch.randint(0, 23, size, generator=torch.Generator().manual_seed(seed))


def num_parameters(build):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build().parameters())


def by_equations(model, tokens):
    """The logits of one row by the papers' equations, head by head."""
    config, T = model.config, len(tokens)
    weight = dict(model.named_parameters())

    def norm(x, name):
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.pow(2).mean(-1, keepdim=True) + config.norm_eps).sqrt()
        return scaled * weight[f"{name}.weight"] + weight[f"{name}.bias"]

    def linear(x, name):
        return x @ weight[f"{name}.weight"].T + weight[f"{name}.bias"]

    def attend(x, name):
        q, k, v = (linear(x, f"{name}.{part}_proj").chunk(config.num_heads, dim=-1) for part in "qkv")
        future = torch.ones(T, T).triu(1).bool()
        scores = [a @ b.T / a.shape[-1] ** 0.5 for a, b in zip(q, k, strict=True)]
        rows = [s.masked_fill(future, -torch.inf).softmax(-1) @ c for s, c in zip(scores, v, strict=True)]
        return linear(torch.cat(rows, dim=-1), f"{name}.o_proj")

    def feed_forward(x, name):
        inner = linear(x, f"{name}.up_proj")
        tanh = 0.5 * inner * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (inner + 0.044715 * inner**3)))
        return linear(tanh, f"{name}.down_proj")

    x = weight["token_embed.weight"][tokens] + weight["pos_embed.table"][:T]
    for i in range(config.depth):
        for name, sublayer, part in (("norm1", attend, "attn"), ("norm2", feed_forward, "ffn")):
            own, name = f"blocks.{i}.{part}", f"blocks.{i}.{name}"
            x = x + sublayer(norm(x, name), own) if config.pre_norm else norm(x + sublayer(x, own), name)
    return (norm(x, "norm") if config.pre_norm else x) @ weight["token_embed.weight"].T


def test_presets_have_the_sizes_of_the_released_models():
    assert num_parameters(gpt2_small) == 124_439_808
    assert num_parameters(gpt2_medium) == 354_823_168
    assert num_parameters(gpt2_large) == 774_030_080
    assert num_parameters(gpt2_xl) == 1_557_611_200
    assert num_parameters(lambda: gpt_lesson(1000)) == 937_728


@pytest.mark.parametrize("pre_norm", [True, False], ids=["GPT-2", "GPT-1"])
def test_logits_follow_the_equations(pre_norm):
    model, tokens = make(pre_norm=pre_norm), batch()
    expected = torch.stack([by_equations(model, row) for row in tokens])
    torch.testing.assert_close(model(tokens), expected, rtol=0, atol=1e-12)


def test_future_tokens_do_not_leak():
    model, seen = make(), []
    model.pos_embed.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    (grad,) = torch.autograd.grad(model(batch())[:, 3].sum(), seen)
    assert (grad[:, 4:] == 0).all() and (grad[:, :4] != 0).all(dim=-1).all()


@pytest.mark.parametrize("head", ["tied", "linear"])
@pytest.mark.parametrize("steps", [[7], [4, 1, 1, 1], [1] * 7, [2, 3, 2]], ids=str)
@torch.no_grad()
def test_cached_equals_uncached(steps, head):
    model, tokens = make(head=head), batch()
    cache, seen, logits = model.new_cache(7), 0, model(tokens)
    for new in steps:
        found = model.next_logits(tokens[:, seen : seen + new], cache)
        seen += new
        torch.testing.assert_close(found, logits[:, seen - 1], rtol=0, atol=1e-12)
    assert cache.length == 7


@torch.no_grad()
def test_padding_at_the_left_changes_nothing():
    model, tokens = make(), batch()
    valid = torch.tensor([[False] * 3 + [True] * 4, [True] * 7])
    alone = model(tokens[:1, 3:])
    torch.testing.assert_close(model(tokens, valid=valid)[:1, 3:], alone, rtol=0, atol=1e-12)
    cache = model.new_cache(9)
    torch.testing.assert_close(
        model.next_logits(tokens[:, :5], cache, valid=valid[:, :5])[0], alone[0, 1], rtol=0, atol=1e-12
    )
    torch.testing.assert_close(model.next_logits(tokens[:, 5:6], cache)[0], alone[0, 2], rtol=0, atol=1e-12)
    torch.testing.assert_close(model.next_logits(tokens[:, 6:], cache)[0], alone[0, 3], rtol=0, atol=1e-12)


@torch.no_grad()
def test_padding_at_the_right_changes_nothing():
    model, tokens = make(), batch()
    valid = torch.tensor([[True] * 4 + [False] * 3, [True] * 7])
    torch.testing.assert_close(model(tokens, valid=valid)[0, :4], model(tokens[:1, :4])[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(model(tokens)[0, :4], model(tokens[:1, :4])[0], rtol=0, atol=1e-12)


@torch.no_grad()
def test_beams_go_on_from_the_rows_that_were_selected():
    model, tokens = make(), batch()
    valid = torch.tensor([[False, False, True, True], [True] * 4])
    cache = model.new_cache(9)
    model.next_logits(tokens[:, :4], cache, valid=valid)
    rows = torch.tensor([1, 0, 1])
    cache.select(rows)
    found = model.next_logits(tokens[rows, 4:5], cache)
    expected = model(tokens[:, :5], valid=torch.cat([valid, valid[:, -1:]], dim=1))[:, -1]
    torch.testing.assert_close(found, expected[rows], rtol=0, atol=1e-12)


@torch.no_grad()
def test_only_the_last_position_is_projected_to_the_vocabulary():
    model, shapes = make(), []
    model.head.register_forward_pre_hook(lambda _, inputs: shapes.append(inputs[0].shape))
    model.next_logits(batch(), model.new_cache(7))
    assert shapes == [(2, 12)]


@pytest.mark.parametrize("pre_norm", [True, False])
def test_attention_maps_are_the_weights_that_the_blocks_use(pre_norm):
    model, tokens = make(pre_norm=pre_norm), batch()
    valid = torch.tensor([[False] * 2 + [True] * 5, [True] * 7])
    with record_attention(model) as record:
        model(tokens, valid=valid)
    maps, outputs, inputs = record.maps(), [], []
    assert maps.shape == (2, 2, 3, 7, 7)
    for block in model.blocks:
        block.attn.register_forward_hook(lambda _, given, output: inputs.append(given[0]) or outputs.append(output))
    model(tokens, valid=valid)
    for block, x, y, A in zip(model.blocks, inputs, outputs, maps.unbind(1), strict=True):
        v = block.attn.v_proj(x).unflatten(-1, (3, 4)).transpose(1, 2)
        torch.testing.assert_close(block.attn.o_proj((A @ v).transpose(1, 2).flatten(2)), y, rtol=0, atol=1e-12)
    assert (maps[0, :, :, :, :2] == 0).all() and (maps[0, :, :, 2:].sum(-1) - 1).abs().max() < 1e-12


def test_without_a_head_the_features_come_out():
    model, tokens = make(head=None), batch()
    torch.testing.assert_close(model(tokens), model.features(tokens), rtol=0, atol=0)
    with pytest.raises(ValueError, match="head=None"):
        model.new_cache(5)


def test_the_tied_head_is_the_token_embedding_and_gets_both_gradients():
    tied, tokens = make(), batch()
    untied = make(head="linear")
    assert tied.head.weight is tied.token_embed.weight and untied.head.weight is not untied.token_embed.weight
    untied.load_state_dict(tied.state_dict())
    for model in (tied, untied):
        F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
    expected = untied.head.weight.grad + untied.token_embed.weight.grad
    torch.testing.assert_close(tied.token_embed.weight.grad, expected, rtol=0, atol=1e-12)


def test_first_weights_are_those_of_the_paper():
    torch.manual_seed(0)
    model = gpt_lesson(500, depth=8)
    for block in model.blocks:
        for name, weight in block.named_parameters():
            if name.endswith("bias"):
                assert (weight == 0).all()
            elif "norm" in name:
                assert (weight == 1).all()
            else:
                last = name in ("attn.o_proj.weight", "ffn.down_proj.weight")
                assert weight.std().item() == pytest.approx(0.02 / 4 if last else 0.02, rel=0.03)
    assert model.token_embed.weight.std().item() == pytest.approx(0.02, rel=0.03)
    assert model.pos_embed.table.std().item() == pytest.approx(0.02, rel=0.03)


def test_each_dropout_reaches_its_place():
    model = make(embed_dropout=0.1, attention_dropout=0.2, dropout=0.3)
    assert model.dropout.p == 0.1
    assert all(block.attn.dropout == 0.2 and block.dropout.p == 0.3 for block in model.blocks)
    assert {make(dropout=0.4).dropout.p, make(dropout=0.4).blocks[1].attn.dropout} == {0.4}
    none = make(embed_dropout=0.0, attention_dropout=0.0, dropout=0.4)  # 0 is no "as `dropout`"
    assert (none.dropout.p, none.blocks[1].attn.dropout, none.blocks[1].dropout.p) == (0.0, 0.0, 0.4)


def test_a_text_can_be_learned_by_heart():
    torch.manual_seed(0)
    model = gpt_lesson(23, dim=32, depth=2, dropout=0.0)
    tokens = batch(size=(4, 20))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(80):
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = model(tokens[:, :-1]).argmax(-1) == tokens[:, 1:]
    assert right[:, 2:].all()  # the first tokens do not say yet which row it is


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="head must be one of .* got 'own'"):
        GPTConfig(head="own")
    with pytest.raises(ValueError, match="dim=12, num_heads=5"):
        make(num_heads=5)
    with pytest.raises(ValueError, match="positions 0 to 9 .* 0 to 8"):
        make()(batch(size=(1, 10)))
    with pytest.raises(ValueError, match="at most 9 tokens, room for 11"):
        make().new_cache(11)


@torch.no_grad()
def test_the_last_new_token_needs_no_position():
    model, tokens = make(), batch(size=(1, 9))
    cache = model.new_cache(10)
    torch.testing.assert_close(model.next_logits(tokens, cache), model(tokens)[:, -1], rtol=0, atol=1e-12)
