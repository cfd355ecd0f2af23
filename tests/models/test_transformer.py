import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.functional.attention import readable_attention
from course_lib.layers.recording import record_attention
from course_lib.models.marian import Marian, MarianConfig
from course_lib.models.transformer import Transformer, TransformerConfig, transformer_base, transformer_big
from course_lib.weights import own

SIZES = {"vocab_size": (11, 13), "dim": 8, "context_length": 12}
TRANSFORMER = {"depth": 3, "num_heads": 4, "mlp_dim": 12}
MARIAN = {"depth": (2, 3), "num_heads": (2, 4), "mlp_dim": (12, 10)}
KINDS = [  # a Marian's constructor is its own, all the rest is the Transformer's
    {},
    {"pre_norm": True, "activation": "gelu"},
    {"positions": "learned", "vocab_size": 13},
    {"head": "linear"},
    {"build": Marian},
    {"build": Marian, "head": "linear", "scale_embedding": False},
]


def make(build=Transformer, **options):
    """A tiny model in double precision, two sources of unequal length, and targets of five tokens."""
    torch.manual_seed(0)
    config, sizes = (MarianConfig, MARIAN) if build is Marian else (TransformerConfig, TRANSFORMER)
    model = build(config(**SIZES | sizes | options)).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    source = torch.randint(11, (2, 6))
    valid = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    return model, source, valid, torch.randint(13, (2, 5))


def same(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("options", KINDS)
def test_padding_of_the_source_changes_nothing(options):
    model, source, valid, target = make(**options)
    together = model(source, target, source_valid=valid)[1:]
    same(together, model(source[1:, :4], target[1:]))


@pytest.mark.parametrize("options", KINDS)
def test_future_target_tokens_do_not_leak_and_every_source_token_counts(options):
    model, source, _, target = make(**options)
    embedded = {}
    for name in ("source_pos", "target_pos"):
        hook = lambda _, args, name=name: (embedded.setdefault(name, args[0].detach().requires_grad_()), *args[1:])  # noqa: E731
        getattr(model, name).register_forward_pre_hook(hook)
    model(source, target)[:, 2].square().sum().backward()
    gradient = embedded["target_pos"].grad
    assert (gradient[:, 3:] == 0).all() and (gradient[:, :3] != 0).all()
    assert (embedded["source_pos"].grad != 0).all()


@pytest.mark.parametrize("options", KINDS)
def test_writing_token_by_token_gives_the_logits_of_teacher_forcing(options):
    model, source, valid, target = make(**options)
    writer = model.given(source, valid)
    cache, logits = writer.new_cache(5), []
    with torch.no_grad():
        logits.append(writer.next_logits(target[:, :2], cache))
        logits += [writer.next_logits(target[:, [i]], cache) for i in range(2, 5)]
        expected = model(source, target, source_valid=valid)[:, 1:]
    assert cache.length == 5
    same(torch.stack(logits, dim=1), expected)


def test_rows_can_be_chosen_and_repeated_while_writing():
    model, source, valid, target = make()
    writer = model.given(source, valid)
    cache, rows = writer.new_cache(5), torch.tensor([1, 1, 0])
    with torch.no_grad():
        writer.next_logits(target[:, :3], cache)
        cache.select(rows)
        logits = writer.next_logits(target[rows, 3:4], cache)
        same(logits, model(source, target[:, :4], source_valid=valid)[rows, -1])


def test_prompts_padded_at_the_left_are_continued_as_if_alone():
    model, source, valid, target = make()
    writer = model.given(source, valid)
    cache = writer.new_cache(6)
    prompt = torch.stack([target[0, :4], torch.cat([torch.zeros(2, dtype=torch.long), target[1, :2]])])
    real = torch.tensor([[True] * 4, [False] * 2 + [True] * 2])
    with torch.no_grad():
        first = writer.next_logits(prompt, cache, valid=real)
        second = writer.next_logits(torch.stack([target[0, 4:5], target[1, 2:3]]), cache)
        alone = model(source[1:, :4], target[1:, :3])
    same(torch.stack([first[1], second[1]]), alone[0, 1:])


@pytest.mark.parametrize("options", (*KINDS[:2], KINDS[4]))
def test_recorded_attention_is_the_weights_behind_forward(options):
    model, source, valid, target = make(**options)
    seen = {"encoder": [], "attn": [], "cross_attn": []}

    def note(kind):
        def by_hand(attn, args, kwargs, output):
            x, context = (*args, args[0])[:2]
            heads = lambda y: y.unflatten(2, (attn.num_heads, -1)).transpose(1, 2)  # noqa: E731
            q, k, v = heads(attn.q_proj(x)), heads(attn.k_proj(context)), heads(attn.v_proj(context))
            made, weights = readable_attention(q, k, v, mask=kwargs["mask"], causal=kwargs.get("causal", False))
            same(attn.o_proj(made.transpose(1, 2).flatten(2)), output)
            seen[kind].append(weights)

        return by_hand

    for block in model.encoder:
        block.attn.register_forward_hook(note("encoder"), with_kwargs=True)
    for block in model.decoder:
        block.attn.register_forward_hook(note("attn"), with_kwargs=True)
        block.cross_attn.register_forward_hook(note("cross_attn"), with_kwargs=True)
    with record_attention(model) as record:
        model(source, target, source_valid=valid)
    for part, kind in (("encoder", "encoder"), (r"decoder.*\.attn", "attn"), ("cross_attn", "cross_attn")):
        same(record.maps(part), torch.stack(seen[kind], dim=1))
    maps = record.maps("cross_attn")
    assert maps.shape == (2, 3, 4, 5, 6)
    same(maps.sum(dim=-1), torch.ones(2, 3, 4, 5).double())
    assert (maps[1, ..., 4:] == 0).all()


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize(
    "options",
    [
        {"num_heads": 2},
        {"num_heads": 2, "pre_norm": True},
        {"build": Marian, "num_heads": (2, 2), "mlp_dim": (12, 12)},
        {"build": Marian, "num_heads": (2, 2), "mlp_dim": (12, 12), "scale_embedding": False},
    ],
)
def test_it_computes_what_torch_s_own_transformer_computes(options):
    model, source, valid, target = make(**options)
    marian, pre_norm = isinstance(model, Marian), options.get("pre_norm", False)
    sizes, settings = (len(model.encoder), len(model.decoder), 12), {"activation": F.silu if marian else F.relu}
    peer = nn.Transformer(8, 2, *sizes, dropout=0.0, batch_first=True, norm_first=pre_norm, **settings).double()
    with torch.no_grad():
        layers = (*peer.encoder.layers, *peer.decoder.layers)
        for ours, theirs in zip((*model.encoder, *model.decoder), layers, strict=True):
            crosses = [(ours.cross_attn, theirs.multihead_attn)] if hasattr(ours, "cross_attn") else []
            for attn, other in [(ours.attn, theirs.self_attn), *crosses]:
                for kind in ("weight", "bias"):
                    parts = [getattr(getattr(attn, name), kind) for name in ("q_proj", "k_proj", "v_proj")]
                    getattr(other, f"in_proj_{kind}").copy_(torch.cat(parts))
                other.out_proj.load_state_dict(attn.o_proj.state_dict())
            theirs.linear1.load_state_dict(ours.ffn.up_proj.state_dict())
            theirs.linear2.load_state_dict(ours.ffn.down_proj.state_dict())
            for name in [name for name, _ in theirs.named_children() if name.startswith("norm")]:
                getattr(theirs, name).load_state_dict(getattr(ours, name).state_dict())
    for ours, theirs in ((model.encoder_norm, peer.encoder), (model.decoder_norm, peer.decoder)):
        theirs.norm = ours
    peer.train()  # without dropout: evaluation mode would take a fused path that skips rows of padding
    angles = torch.arange(6)[:, None].double() / 10_000 ** (torch.arange(0, 8, 2).double() / 8)
    sines, cosines = angles.sin().float(), angles.cos().float()
    places = torch.cat([sines, cosines], 1) if marian else torch.stack([sines, cosines], 2).flatten(1)
    scale = 1 if options.get("scale_embedding") is False else math.sqrt(8)
    embed = lambda tokens, table: table(tokens) * scale + places[: tokens.shape[1]].double()  # noqa: E731
    features = peer(
        embed(source, model.source_embed),
        embed(target, model.target_embed),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(5).double(),
        src_key_padding_mask=torch.where(valid, 0.0, -torch.inf).double(),
        memory_key_padding_mask=torch.where(valid, 0.0, -torch.inf).double(),
    )
    same(model(source, target, source_valid=valid), model.head(features))


def test_one_number_of_tokens_shares_one_table_for_source_target_and_logits():
    model = make(vocab_size=13)[0]
    assert model.source_embed.weight is model.target_embed.weight is model.head.weight
    model = make()[0]
    assert model.source_embed.weight.shape == (11, 8) and model.head.weight is model.target_embed.weight
    assert make(head="linear")[0].head.weight is not make(head="linear")[0].target_embed.weight


def test_embeddings_enter_with_standard_deviation_one_and_no_token_is_favoured():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocab_size=400, dim=64, depth=1, num_heads=2, mlp_dim=64))
    entering = model.source_embed(torch.arange(400)[None]) * model.scale
    assert abs(entering.std().item() - 1) < 0.02
    assert (model.head.bias == 0).all()


def test_without_a_head_it_makes_features():
    model, source, valid, target = make(head=None)
    features = model(source, target, source_valid=valid)
    assert features.shape == (2, 5, 8) and model.head is None
    with pytest.raises(ValueError, match="head=None"):
        model.given(source, valid)


def test_dropout_reaches_embeddings_and_sublayers_alone():
    model = make(dropout=0.1)[0]
    assert model.dropout.p == 0.1
    for block in (*model.encoder, *model.decoder):
        assert (block.dropout.p, block.attn.dropout, block.ffn.dropout.p) == (0.1, 0.0, 0.0)
    assert model.decoder[0].cross_attn.dropout == 0.0


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def test_base_and_big_have_the_sizes_of_table_3():
    """Weights and biases with the one shared table of 37,000 rows; the paper says 65 M and 213 M."""
    with torch.device("meta"):
        base, big = count(transformer_base()), count(transformer_big())
    for total, dim, inner in ((base, 512, 2048), (big, 1024, 4096)):
        attention, ffn = 4 * (dim**2 + dim), 2 * dim * inner + inner + dim
        blocks = 6 * (attention + ffn + 2 * 2 * dim) + 6 * (2 * attention + ffn + 3 * 2 * dim)
        assert total == 37_000 * (dim + 1) + blocks
    assert base == pytest.approx(65e6, rel=0.03) and big == pytest.approx(213e6, rel=0.01)


def test_two_more_layers_cost_what_table_3_says():
    with torch.device("meta"):
        sizes = [count(transformer_base(depth=depth)) for depth in (2, 4, 6, 8)]
    for ours, theirs in zip(sizes, (36, 50, 65, 80), strict=True):
        assert ours - sizes[0] == pytest.approx((theirs - 36) * 1e6, abs=1e6)


def test_a_saved_model_comes_back_with_its_settings(tmp_path):
    model, source, valid, target = make(pre_norm=True, positions="learned")
    own.save(model.float(), tmp_path / "transformer.safetensors")
    again = own.load(tmp_path / "transformer.safetensors")
    assert again.config == model.config and again.config.vocab_size == (11, 13)
    assert torch.equal(again(source, target, source_valid=valid), model(source, target, source_valid=valid))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positions": "rotary"}, "positions must be one of .*'rotary'"),
        ({"head": "none"}, "head must be one of .*'none'"),
        ({"depth": 0}, "depth must be 1 or more, got 0"),
        ({"vocab_size": (11, 0)}, r"vocab_size must be 1 or more, got \(11, 0\)"),
        ({"num_heads": 3}, "dim=8, num_heads=3"),
    ],
)
def test_settings_that_make_no_sense_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_too_long_a_target_is_refused():
    model, source, _, _ = make()
    with pytest.raises(ValueError, match="positions 0 to 12 were asked for"):
        model(source, torch.zeros(2, 13, dtype=torch.long))


@pytest.mark.parametrize("pre_norm", [False, True])
def test_a_batch_can_be_learned_by_heart(pre_norm):
    torch.manual_seed(0)
    sizes = {"vocab_size": 20, "dim": 32, "depth": 1, "num_heads": 2, "mlp_dim": 64, "dropout": 0.0}
    model = Transformer(TransformerConfig(**sizes, pre_norm=pre_norm))
    source = torch.randint(3, 20, (8, 6))
    target = torch.cat([torch.ones(8, 1, dtype=torch.long), source.flip(1)], dim=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(60):
        loss = F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (model(source, target[:, :-1]).argmax(dim=-1) == target[:, 1:]).all()
