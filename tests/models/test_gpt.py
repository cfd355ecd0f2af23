import torch

from course_lib.models.gpt import GPT, GPTConfig


def make(**overrides):
    """A tiny model with large random weights, in double precision and evaluation mode, and tokens for it."""
    sizes = {"vocab_size": 23, "context_length": 9, "dim": 12, "depth": 2, "num_heads": 3}
    model = GPT(GPTConfig(**sizes | overrides)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model, torch.randint(0, 23, (2, 7))


def test_a_gpt_1_has_its_norms_behind_the_sublayers_and_none_at_the_end():
    """GPT-2 is compared with the official one in tests/weights; the first GPT has no layout there."""
    model, tokens = make(pre_norm=False)
    x = model.embed(tokens)
    for block in model.blocks:
        x = block.norm1(x + block.attn(x, causal=True))
        x = block.norm2(x + block.ffn(x))
    torch.testing.assert_close(model(tokens), x @ model.token_embed.weight.T, rtol=0, atol=1e-12)


@torch.no_grad()
def test_only_the_last_position_is_projected_to_the_vocabulary():
    (model, tokens), shapes = make(), []
    model.head.register_forward_pre_hook(lambda _, inputs: shapes.append(inputs[0].shape))
    model.next_logits(tokens, model.new_cache(7))
    assert shapes == [(2, 12)]
