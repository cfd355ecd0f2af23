import pytest
import torch
import torch.nn.functional as F

from course_lib.layers.recording import record_attention
from course_lib.models import llama
from course_lib.models.llama import Llama, LlamaConfig


def make(seed=0, **overrides):
    """A tiny model with large random weights, in double precision and evaluation mode."""
    sizes = {"vocab_size": 23, "context_length": 9, "dim": 16, "depth": 2, "num_heads": 4, "num_kv_heads": 2}
    torch.manual_seed(seed)
    model = Llama(LlamaConfig(**sizes | {"mlp_dim": 10} | overrides)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def batch(seed=0, size=(2, 7)):
    return torch.randint(0, 23, size, generator=torch.Generator().manual_seed(seed))


def num_parameters(build):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build().parameters())


def by_equations(model, tokens):
    """The logits of one row by the papers' equations, head by head, with each pair as a complex number."""
    config, T = model.config, len(tokens)
    weight = dict(model.named_parameters())
    head_dim = config.dim // config.num_heads
    group = config.num_heads // config.num_kv_heads
    theta = config.rotary_base ** (-2 * torch.arange(head_dim // 2).double() / head_dim)
    turns = torch.exp(1j * torch.arange(T).double()[:, None] * theta)

    def norm(x, name):
        return x / (x.pow(2).mean(-1, keepdim=True) + config.norm_eps).sqrt() * weight[f"{name}.weight"]

    def turned(x):
        return torch.complex(*x.chunk(2, dim=-1)) * turns

    def attend(x, name):
        q, k, v = ((x @ weight[f"{name}.{part}_proj.weight"].T).split(head_dim, dim=-1) for part in "qkv")
        rows = []
        for i, query in enumerate(q):
            score = (turned(query) @ turned(k[i // group]).conj().T).real / head_dim**0.5
            weights = score.masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf).softmax(-1)
            rows.append(weights @ v[i // group])
        return torch.cat(rows, dim=-1) @ weight[f"{name}.o_proj.weight"].T

    def feed_forward(x, name):
        gate, up = (x @ weight[f"{name}.{part}_proj.weight"].T for part in ("gate", "up"))
        return (gate * gate.sigmoid() * up) @ weight[f"{name}.down_proj.weight"].T

    x = weight["token_embed.weight"][tokens]
    for i in range(config.depth):
        x = x + attend(norm(x, f"blocks.{i}.norm1"), f"blocks.{i}.attn")
        x = x + feed_forward(norm(x, f"blocks.{i}.norm2"), f"blocks.{i}.ffn")
    return norm(x, "norm") @ weight["head.weight"].T


def test_presets_have_the_sizes_of_the_papers():
    assert num_parameters(llama.llama_7b) == 6_738_415_616
    assert num_parameters(llama.llama_13b) == 13_015_864_320
    assert num_parameters(llama.llama_33b) == 32_528_943_616
    assert num_parameters(llama.llama_65b) == 65_285_660_672
    assert num_parameters(llama.llama2_7b) == 6_738_415_616
    assert num_parameters(llama.llama2_13b) == 13_015_864_320
    assert num_parameters(llama.llama2_70b) == 68_976_648_192


def test_llama_2_reads_twice_as_much():
    with torch.device("meta"):
        first, second, largest = llama.llama_7b(), llama.llama2_7b(), llama.llama2_70b()
    assert (first.config.context_length, second.config.context_length) == (2048, 4096)
    assert (first.config.norm_eps, second.config.norm_eps) == (1e-6, 1e-5)
    assert largest.blocks[0].attn.k_proj.out_features == 1024 and largest.blocks[0].attn.head_dim == 128


def test_logits_follow_the_equations():
    model, tokens = make(), batch()
    expected = torch.stack([by_equations(model, row) for row in tokens])
    torch.testing.assert_close(model(tokens), expected, rtol=0, atol=1e-5)  # its angles are of single precision


def test_future_tokens_do_not_leak():
    model, seen = make(), []
    model.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    (grad,) = torch.autograd.grad(model(batch())[:, 3].sum(), seen)
    assert (grad[:, 4:] == 0).all() and (grad[:, :4] != 0).all(dim=-1).all()


@pytest.mark.parametrize("settings", [{}, {"head": "tied"}, {"num_kv_heads": 1}, {"num_kv_heads": None}], ids=str)
@pytest.mark.parametrize("steps", [[7], [4, 1, 1, 1], [1] * 7, [2, 3, 2]], ids=str)
@torch.no_grad()
def test_cached_equals_uncached(steps, settings):
    model, tokens = make(**settings), batch()
    cache, seen, logits = model.new_cache(7), 0, model(tokens)
    for new in steps:
        found = model.next_logits(tokens[:, seen : seen + new], cache)
        seen += new
        torch.testing.assert_close(found, logits[:, seen - 1], rtol=0, atol=1e-12)
    assert cache.length == 7


@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
@torch.no_grad()
def test_the_cache_holds_the_shared_heads_alone(num_kv_heads):
    model = make(num_kv_heads=num_kv_heads)
    cache = model.new_cache(9)
    model.next_logits(batch(), cache)
    assert all(layer.past.k.shape == layer.past.v.shape == (2, num_kv_heads, 7, 4) for layer in cache.layers)


@torch.no_grad()
def test_padding_at_the_left_changes_nothing():
    """Its row stands farther to the right, by which no distance changes: but for the last bits of the angles."""
    model, tokens = make(), batch()
    valid = torch.tensor([[False] * 3 + [True] * 4, [True] * 7])
    alone, close = model(tokens[:1, 3:]), {"rtol": 0, "atol": 1e-5}
    torch.testing.assert_close(model(tokens, valid=valid)[:1, 3:], alone, **close)
    cache = model.new_cache(9)
    torch.testing.assert_close(model.next_logits(tokens[:, :5], cache, valid=valid[:, :5])[0], alone[0, 1], **close)
    torch.testing.assert_close(model.next_logits(tokens[:, 5:6], cache)[0], alone[0, 2], **close)
    with pytest.raises(ValueError, match="first token only, but follows 6 tokens in the cache"):
        model.next_logits(tokens[:, 5:], cache, valid=torch.tensor([[False, True], [True, True]]))


@torch.no_grad()
def test_padding_at_the_right_changes_nothing():
    model, tokens = make(), batch()
    valid = torch.tensor([[True] * 4 + [False] * 3, [True] * 7])
    torch.testing.assert_close(model(tokens, valid=valid)[0, :4], model(tokens[:1, :4])[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(model(tokens)[0, :4], model(tokens[:1, :4])[0], rtol=0, atol=1e-12)


@torch.no_grad()
def test_beams_go_on_from_the_rows_that_were_selected():
    model, tokens = make(), batch()
    cache, rows = model.new_cache(9), torch.tensor([1, 0, 1])
    model.next_logits(tokens[:, :4], cache)
    cache.select(rows)
    found = model.next_logits(tokens[rows, 4:5], cache)
    torch.testing.assert_close(found, model(tokens[:, :5])[rows, -1], rtol=0, atol=1e-12)


@torch.no_grad()
def test_order_is_seen_though_no_position_is_added():
    model, tokens = make(), batch(size=(1, 6))
    other = tokens[:, [3, 1, 2, 0, 4, 5]]  # two tokens of the past change places
    assert (model(other)[:, -1] - model(tokens)[:, -1]).abs().max() > 1e-3


@torch.no_grad()
def test_each_query_head_has_a_map_of_its_own():
    model, tokens = make(), batch()
    with record_attention(model) as record:
        model(tokens)
    maps = record.maps()
    assert maps.shape == (2, 2, 4, 7, 7) and (maps[:, :, 0] - maps[:, :, 1]).abs().max() > 1e-3


def test_without_a_head_the_features_come_out():
    model, tokens = make(head=None), batch()
    torch.testing.assert_close(model(tokens), model.features(tokens), rtol=0, atol=0)
    with pytest.raises(ValueError, match="head=None"):
        model.new_cache(5)


def test_a_tied_head_is_the_token_embedding():
    assert make(head="tied").head.weight is not make().head.weight
    model = make(head="tied")
    assert model.head.weight is model.token_embed.weight


def test_first_weights_are_small():
    torch.manual_seed(0)
    model = Llama(LlamaConfig(vocab_size=500, dim=128, depth=2, num_heads=4, mlp_dim=300))
    for name, weight in model.named_parameters():
        if "norm" in name:
            assert (weight == 1).all()
        else:
            assert weight.std().item() == pytest.approx(0.02, rel=0.03)
    assert not [name for name, _ in model.named_parameters() if name.endswith("bias")]


def test_a_text_can_be_learned_by_heart():
    torch.manual_seed(0)
    sizes = {"vocab_size": 23, "dim": 32, "depth": 2, "num_heads": 4, "num_kv_heads": 2, "mlp_dim": 86}
    model = Llama(LlamaConfig(**sizes, context_length=20))
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
        LlamaConfig(head="own")
    with pytest.raises(ValueError, match="mlp_dim must be 1 or more, got 0"):
        LlamaConfig(mlp_dim=0)
    with pytest.raises(ValueError, match="dim=18, num_heads=4"):
        make(dim=18)
    with pytest.raises(ValueError, match="multiple of num_kv_heads, got 4 and 3"):
        make(num_kv_heads=3)
    with pytest.raises(ValueError, match="dim even and at least 2, got length=9, dim=3"):
        make(head_dim=3)
    with pytest.raises(ValueError, match="positions 0 to 9 .* 0 to 8"):
        make()(batch(size=(1, 10)))
    with pytest.raises(ValueError, match="at most 9 tokens, room for 11"):
        make().new_cache(11)


@torch.no_grad()
def test_the_last_new_token_needs_no_position():
    model, tokens = make(), batch(size=(1, 9))
    cache = model.new_cache(10)
    torch.testing.assert_close(model.next_logits(tokens, cache), model(tokens)[:, -1], rtol=0, atol=1e-12)
