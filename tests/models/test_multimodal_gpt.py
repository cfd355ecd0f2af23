import pytest
import torch

from course_lib.generation import greedy
from course_lib.models.gpt import GPTConfig
from course_lib.models.multimodal_gpt import MultimodalGPT, MultimodalGPTConfig
from course_lib.weights import own

LANGUAGE = {"vocab_size": 11, "context_length": 9, "dim": 8, "depth": 2, "num_heads": 2, "dropout": 0.0}


def make(**overrides):
    """A tiny model with large random weights, in double precision and evaluation mode."""
    torch.manual_seed(0)
    model = MultimodalGPT(MultimodalGPTConfig(language=GPTConfig(**LANGUAGE | overrides), patch_dim=6)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def tokens_and_patches(length=5, patches=4):
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(11, (2, length), generator=generator)
    return tokens, torch.randn(2, patches, 6, generator=generator, dtype=torch.float64)


def test_a_patch_that_is_projected_onto_a_words_embedding_is_that_word():
    """The twin: with patches that look like words the stream is a GPT's, position by position."""
    model, (tokens, _) = make(), tokens_and_patches()
    torch.nn.init.zeros_(model.patch_proj.bias)
    torch.nn.init.eye_(model.patch_proj.weight)
    table = model.gpt.token_embed.weight.detach()
    table[3, 6:], table[7, 6:] = 0, 0
    words = torch.tensor([[3, 7, 7, 3], [7, 3, 3, 3]])
    expected = model.gpt(torch.cat([words, tokens], dim=1))[:, 4:]
    torch.testing.assert_close(model(tokens, table[words][..., :6]), expected, rtol=0, atol=1e-12)


def test_words_see_all_patches_and_the_words_before_them():
    model, (tokens, patches) = make(), tokens_and_patches()
    seen = []
    model.gpt.token_embed.register_forward_hook(lambda *call: seen.append(call[2]))
    logits = model(tokens, patches.requires_grad_())
    of_patches, of_words = torch.autograd.grad(logits[:, 2].sum(), [patches, seen[0]])
    assert (of_patches != 0).all() and (of_words[:, 3:] == 0).all() and (of_words[:, :3] != 0).any(dim=-1).all()


def test_patches_see_no_words_and_no_later_patches():
    model, (tokens, patches) = make(), tokens_and_patches()
    (grad,) = torch.autograd.grad(model.features(tokens, patches.requires_grad_())[:, 1].sum(), patches)
    assert (grad[:, 2:] == 0).all() and (grad[:, :2] != 0).any(dim=-1).all()
    other = model.features((tokens + 1) % 11, patches)
    assert torch.equal(other[:, :4], model.features(tokens, patches)[:, :4])


def test_the_order_of_patches_matters():
    model, (tokens, patches) = make(), tokens_and_patches()
    assert not torch.allclose(model(tokens, patches.flip(1)), model(tokens, patches))


@torch.no_grad()
def test_cached_writing_equals_uncached():
    model, (tokens, patches) = make(), tokens_and_patches()
    prefixed, logits, read = model.given(patches), model(tokens, patches), 0
    cache = prefixed.new_cache(5)
    for new in (2, 1, 2):
        found = prefixed.next_logits(tokens[:, read : read + new], cache)
        read += new
        torch.testing.assert_close(found, logits[:, read - 1], rtol=0, atol=1e-12)
    written = greedy(prefixed, tokens[:, :1], max_new_tokens=4)
    row = tokens[:, :1]
    for _ in range(4):
        row = torch.cat([row, model(row, patches)[:, -1:].argmax(-1)], dim=1)
    assert torch.equal(written, row[:, 1:])


@torch.no_grad()
def test_beams_go_on_behind_the_patches_of_their_row():
    model, (tokens, patches) = make(), tokens_and_patches()
    prefixed, rows = model.given(patches), torch.tensor([1, 0, 1])
    cache = prefixed.new_cache(5)
    prefixed.next_logits(tokens[:, :3], cache)
    cache.select(rows)
    found = prefixed.next_logits(tokens[rows, 3:4], cache)
    torch.testing.assert_close(found, model(tokens[:, :4], patches)[rows, -1], rtol=0, atol=1e-12)


@torch.no_grad()
def test_a_prompt_may_be_padded_at_the_left():
    model, (tokens, patches) = make(), tokens_and_patches()
    valid = torch.tensor([[False, False, True, True, True], [True] * 5])
    prefixed = model.given(patches)
    found = prefixed.next_logits(tokens, prefixed.new_cache(5), valid=valid)
    torch.testing.assert_close(found[0], model(tokens[:1, 2:], patches[:1])[0, -1], rtol=0, atol=1e-12)
    torch.testing.assert_close(found[1], model(tokens, patches)[1, -1], rtol=0, atol=1e-12)


def test_a_checkpoint_brings_the_model_back(tmp_path):
    model, (tokens, patches) = make().float(), tokens_and_patches()
    own.save(model, tmp_path / "model.safetensors")
    again = own.load(tmp_path / "model.safetensors")
    assert again.config == model.config and torch.equal(again(tokens, patches.float()), model(tokens, patches.float()))


def test_it_learns_to_name_the_brightest_patch():
    torch.manual_seed(0)
    config = MultimodalGPTConfig(language=GPTConfig(**LANGUAGE | {"dim": 16}), patch_dim=6)
    model = MultimodalGPT(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    start = torch.zeros(64, 1, dtype=torch.long)
    for _ in range(120):
        brightest = torch.randint(4, (64,))
        patches = torch.randn(64, 4, 6) * 0.3
        patches[torch.arange(64), brightest] += 1.5
        logits = model(start, patches)[:, 0]
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits, brightest).backward()
        optimizer.step()
    assert (logits.argmax(dim=-1) == brightest).float().mean() > 0.9


def test_a_model_and_a_patch_that_cannot_be_are_named():
    tokens, patches = tokens_and_patches()
    with pytest.raises(ValueError, match="patch_dim must be 1 or more, got 0"):
        MultimodalGPTConfig(patch_dim=0)
    with pytest.raises(ValueError, match="head=None"):
        MultimodalGPTConfig(language=GPTConfig(head=None))
    with pytest.raises(ValueError, match="a patch has 6 numbers, got 5"):
        make()(tokens, patches[..., :5])
    with pytest.raises(ValueError, match="positions 5 to 9 were asked for, the table holds 0 to 8"):
        make()(tokens, tokens_and_patches(patches=5)[1])
