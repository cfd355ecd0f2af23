import torch

from course_lib.models.gpt import GPTConfig
from course_lib.models.multimodal_gpt import MultimodalGPT, MultimodalGPTConfig

LANGUAGE = {"vocab_size": 11, "context_length": 9, "dim": 8, "depth": 2, "num_heads": 2, "dropout": 0.0}


def test_a_patch_that_is_projected_onto_a_words_embedding_is_that_word():
    """The twin: with patches that look like words the stream is a GPT's, position by position."""
    model = MultimodalGPT(MultimodalGPTConfig(language=GPTConfig(**LANGUAGE), patch_dim=6)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    tokens = torch.randint(11, (2, 5))
    torch.nn.init.zeros_(model.patch_proj.bias)
    torch.nn.init.eye_(model.patch_proj.weight)
    table = model.gpt.token_embed.weight.detach()
    table[3, 6:], table[7, 6:] = 0, 0
    words = torch.tensor([[3, 7, 7, 3], [7, 3, 3, 3]])
    expected = model.gpt(torch.cat([words, tokens], dim=1))[:, 4:]
    torch.testing.assert_close(model(tokens, table[words][..., :6]), expected, rtol=0, atol=1e-12)
