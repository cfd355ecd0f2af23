import pytest
import torch
from torch import nn

from course_lib.data.checkpoints import load_trained
from course_lib.generation import greedy
from course_lib.layers.transformer import LearnedPositions
from course_lib.lessons.lesson_08 import modern
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.llama import Llama, LlamaConfig

SIZES = {"vocab_size": 30, "context_length": 20, "dim": 16, "depth": 2, "num_heads": 4}
TOKENS = torch.randint(30, (3, 12), generator=torch.Generator().manual_seed(1))
ONE_BY_ONE = [(part,) for part in modern.PARTS]


def make(*parts):
    """The GPT with these parts and large random weights."""
    torch.manual_seed(0)
    model = modern.swap(GPT(GPTConfig(**SIZES, dropout=0.0)), *parts)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.eval()


@pytest.mark.parametrize("parts", [(), *ONE_BY_ONE, modern.PARTS], ids=str)
@torch.no_grad()
def test_only_the_named_parts_are_exchanged_and_it_writes_with_a_cache_what_it_would_write_without(parts):
    model = make(*parts)
    for block in model.blocks:
        assert (block.attn.rotary is not None) == ("rotary" in parts)
        assert (block.attn.num_kv_heads == 2) == ("grouped" in parts)
        assert (block.ffn.gate_proj is not None) == ("SwiGLU" in parts)
        assert block.ffn.activation == ("silu" if "SwiGLU" in parts else "gelu_tanh")
        assert type(block.norm1) is type(block.norm2) is type(model.norm)
    assert isinstance(model.norm, nn.RMSNorm) == ("RMSNorm" in parts)
    assert isinstance(model.pos_embed, LearnedPositions) == ("rotary" not in parts)
    written, whole = greedy(model, TOKENS, max_new_tokens=8), TOKENS
    for _ in range(8):
        whole = torch.cat([whole, model(whole)[:, -1:].argmax(-1)], dim=1)
    assert torch.equal(written, whole[:, 12:])


def test_without_a_part_it_is_the_gpt_that_it_was():
    plain, swapped = GPT(GPTConfig(**SIZES)).eval(), modern.swap(GPT(GPTConfig(**SIZES))).eval()
    swapped.load_state_dict(plain.state_dict())
    assert torch.equal(swapped(TOKENS), plain(TOKENS))


@pytest.mark.parametrize("parts", ONE_BY_ONE, ids=str)
def test_blocks_have_as_many_parameters_as_before(parts):
    settings = modern.VARIANTS["GPT"]
    sizes = {"vocab_size": 1024, "context_length": settings.context_length, "dim": settings.dim, "num_heads": 4}
    plain, swapped = (
        sum(p.numel() for p in modern.swap(GPT(GPTConfig(**sizes, depth=2)), *which).blocks[0].parameters())
        for which in ((), parts)
    )
    assert abs(swapped - plain) <= 0.005 * plain


def test_all_four_without_a_bias_are_llama():
    gpt = make(*modern.PARTS)
    width = gpt.blocks[0].ffn.up_proj.out_features
    llama = Llama(LlamaConfig(**SIZES, num_kv_heads=2, mlp_dim=width, norm_eps=1e-5, head="tied")).eval()
    for name, parameter in gpt.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
    llama.load_state_dict({name: tensor for name, tensor in gpt.state_dict().items() if not name.endswith("bias")})
    torch.testing.assert_close(llama(TOKENS), gpt(TOKENS), atol=1e-5, rtol=0)


def test_a_cache_keeps_keys_and_values_of_each_layer_and_grouped_heads_halve_it():
    assert modern.cache_bytes(make()) == 2 * 2 * 16 * 4  # keys and values, layers, numbers, bytes
    assert modern.cache_bytes(make("grouped")) == modern.cache_bytes(make(*modern.PARTS)) == 128


def test_all_variants_differ_in_their_parts_and_rates_alone():
    for name, settings in modern.VARIANTS.items():
        given = {"parts": settings.parts, "learning_rate": settings.learning_rate, "model": settings.model}
        assert settings == modern.replace(modern.SETTINGS, **given)
        assert type(modern.build(settings)).__name__ == ("Llama" if name == "Llama" else "GPT")


def test_what_the_page_says_of_the_parts_is_so_with_every_seed():
    card = load_trained("modern_decoder").card
    nats = {name: [seed["test"][f"nats per token, {name}"] for seed in card["seeds"]] for name in card["settings"]}
    kept = {name: card["seeds"][0]["test"][f"cache bytes a token, {name}"] for name in nats}
    gain = {name: [a - b for a, b in zip(nats["GPT"], values, strict=True)] for name, values in nats.items()}
    assert min(gain["rotary"]) > 0.2
    assert max(abs(sum(gain[name]) / 3) for name in ("RMSNorm", "SwiGLU", "grouped")) < 0.05
    assert kept["GPT"] == 2 * kept["grouped"]
    assert all(all_four < rotary for all_four, rotary in zip(nats["all four"], nats["rotary"], strict=True))
