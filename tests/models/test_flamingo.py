import math

import pytest
import torch
from transformers import IdeficsConfig
from transformers.models.idefics.perceiver import IdeficsPerceiverResampler

from course_lib.models.flamingo import FlamingoConfig, GatedCrossAttention, PerceiverResampler, flamingo_on
from course_lib.models.gpt import GPT, GPTConfig

LANGUAGE = GPTConfig(vocab_size=11, context_length=8, dim=8, depth=3, num_heads=2, dropout=0.1)
SIZES = {"vision_dim": 6, "num_latents": 3, "resampler_depth": 2, "num_heads": 2, "head_dim": 5}


def language(std=0.3):
    torch.manual_seed(0)
    model = GPT(LANGUAGE).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=std)
    return model.double()


def make(open_gates=True, **overrides):
    """A tiny model in double precision and evaluation mode; its gates at 0, or all weights large and random."""
    model = flamingo_on(language(), **SIZES | overrides).double().eval()
    if open_gates:
        torch.manual_seed(1)
        for parameter in model.parameters():
            if parameter.requires_grad:
                torch.nn.init.normal_(parameter, std=0.5)
    return model


def tokens_and_pictures(batch=2, length=5, features=4):
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randint(11, (batch, length), generator=generator)
    return tokens, torch.randn(batch, features, 6, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("every", [1, 2])
def test_with_gates_at_zero_the_language_model_is_unchanged_to_the_last_bit(training, every):
    model, (tokens, picture) = make(open_gates=False, every=every).train(training), tokens_and_pictures()
    assert torch.equal(model(tokens, picture), language()(tokens))


def test_with_open_gates_each_row_depends_on_its_own_picture():
    model, (tokens, picture) = make(), tokens_and_pictures()
    alone = language()(tokens)
    assert not torch.allclose(model(tokens, picture), alone)
    (grad,) = torch.autograd.grad(model(tokens, picture.requires_grad_())[0].sum(), picture)
    assert (grad[0] != 0).all() and (grad[1] == 0).all()


def test_only_new_parts_learn_and_at_gates_of_zero_only_the_gates():
    model, (tokens, picture) = make(open_gates=False), tokens_and_pictures()
    assert {name.split(".")[0] for name, p in model.named_parameters() if p.requires_grad} == {"resampler", "gated"}
    model(tokens, picture).square().mean().backward()
    moving = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert moving == {f"gated.{i}.{gate}" for i in range(3) for gate in ("alpha_attn", "alpha_ffn")}
    model = make()
    model(tokens, picture).square().mean().backward()
    assert all((p.grad is not None and p.grad.any()) == p.requires_grad for p in model.parameters())


def test_a_step_of_training_leaves_the_language_model_as_it_is():
    model, (tokens, picture) = make().train(), tokens_and_pictures()
    before = {name: each.clone() for name, each in model.language.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, weight_decay=0.1)
    model(tokens, picture).square().mean().backward()
    optimizer.step()
    assert all(torch.equal(each, before[name]) for name, each in model.language.state_dict().items())
    assert not model.language.training and not model.language.blocks[0].dropout.training and model.gated.training


def test_a_gated_block_follows_figure_4():
    torch.manual_seed(0)
    block = GatedCrossAttention(FlamingoConfig(language=LANGUAGE, **SIZES)).double()
    torch.nn.init.constant_(block.alpha_attn, 0.7), torch.nn.init.constant_(block.alpha_ffn, -0.4)
    y, x = torch.randn(1, 3, 8).double(), torch.randn(1, 4, 6).double()
    h = torch.nn.functional.layer_norm(y, (8,))
    q, k, v = h[0] @ block.attn.q_proj.weight.T, x[0] @ block.attn.k_proj.weight.T, x[0] @ block.attn.v_proj.weight.T
    heads = [
        (a @ b.T / 5**0.5).softmax(-1) @ c
        for a, b, c in zip(q.split(5, -1), k.split(5, -1), v.split(5, -1), strict=True)
    ]
    expected = y + math.tanh(0.7) * (torch.cat(heads, -1) @ block.attn.o_proj.weight.T)
    inner = torch.nn.functional.gelu(torch.nn.functional.layer_norm(expected, (8,)) @ block.ffn.up_proj.weight.T)
    expected = expected + math.tanh(-0.4) * (inner @ block.ffn.down_proj.weight.T)
    torch.testing.assert_close(block(y, x), expected, rtol=0, atol=1e-12)


def test_the_resampler_is_that_of_idefics():
    """An open twin of Flamingo, in transformers; its feed-forward network has a ReLU, and so has ours here."""
    torch.manual_seed(0)
    config = IdeficsConfig(
        vision_config={"embed_dim": 6, "num_attention_heads": 2, "intermediate_size": 8},
        perceiver_config={"use_resampler": True, "qk_layer_norms_perceiver": False},
    )
    theirs = IdeficsPerceiverResampler(config, 6, 2, 2, 5, 3)  # width, layers, heads, width of a head, latents
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    ours = PerceiverResampler(FlamingoConfig(language=LANGUAGE, **SIZES, activation="relu"))
    names = {
        "attn.context_layer_norm": "norm_features",
        "attn.latents_layer_norm": "norm1",
        "attn.output_proj": "attn.o_proj",
        "ffn.ln": "norm2",
        "ffn.fc": "ffn.up_proj",
        "ffn.c_proj": "ffn.down_proj",
    }
    weights = {}
    for name, tensor in theirs.state_dict().items():
        name = name.replace("blocks.", "layers.").replace("layer_norm.", "norm.") if "blocks" not in name else name
        if name.startswith("blocks."):
            _, layer, part, rest = name.split(".", 3)
            rest = f"{('attn', 'ffn')[int(part)]}.{rest}"
            for old, new in names.items():
                rest = rest.replace(f"{old}.", f"{new}.")
            name = f"layers.{layer}.{rest}"
        weights[name] = tensor
    ours.load_state_dict(weights)
    features = torch.randn(2, 4, 6)
    torch.testing.assert_close(ours(features), theirs(features), rtol=0, atol=1e-5)


@torch.no_grad()
def test_padding_at_the_left_changes_nothing():
    model, (tokens, picture) = make(), tokens_and_pictures()
    valid = torch.tensor([[False, False, True, True, True], [True] * 5])
    found, expected = model(tokens, picture, valid=valid)[:1, 2:], model(tokens[:1, 2:], picture[:1])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("every", [1, 2])
def test_gated_blocks_stand_before_every_second_block_if_asked(every):
    model, order = make(every=every), []
    for name, part in [*model.gated.named_children(), *model.language.blocks.named_children()]:
        kind = "look" if isinstance(part, GatedCrossAttention) else "block"
        part.register_forward_hook(lambda *_, what=f"{kind} {name}": order.append(what))
    model(*tokens_and_pictures())
    looks = {1: ["look 0", "block 0", "look 1", "block 1", "look 2", "block 2"]}
    assert order == looks.get(every, ["look 0", "block 0", "block 1", "look 1", "block 2"])
