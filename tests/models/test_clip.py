import pytest
import torch

from course_lib.models.clip import CLIP, CLIPConfig
from course_lib.models.gpt import GPTConfig

TEXT = GPTConfig(vocab_size=9, context_length=5, dim=8, depth=1, num_heads=2, dropout=0.0, head=None)
TOKENS, LENGTHS = torch.tensor([[3, 4, 2, 0, 0], [5, 6, 7, 8, 2]]), torch.tensor([3, 5])


@pytest.fixture
def model():
    torch.manual_seed(0)
    return CLIP(CLIPConfig(text=TEXT, image_dim=6, joint_dim=4)).eval()


@torch.no_grad()
def test_logits_are_cosines_times_the_scale(model):
    features = torch.randn(3, 6)
    images, texts = model.embed_images(features), model.embed_texts(TOKENS, LENGTHS)
    for embedded in (images, texts):
        torch.testing.assert_close(embedded.norm(dim=-1), torch.ones(len(embedded)))
    logits = model(features, TOKENS, LENGTHS)
    cosines = torch.cosine_similarity(images[:, None], texts[None], dim=-1)
    torch.testing.assert_close(logits, cosines / 0.07)
    assert logits.shape == (3, 2)


@torch.no_grad()
def test_padding_changes_nothing(model):
    short, other = TOKENS[:1, :3], TOKENS[:1].clone()
    other[0, 3:] = 7
    wanted = model.embed_texts(short, LENGTHS[:1])
    for padded in (TOKENS[:1], other):
        torch.testing.assert_close(model.embed_texts(padded, LENGTHS[:1]), wanted)


@torch.no_grad()
def test_a_text_is_the_mean_over_its_tokens(model):
    features = model.text(TOKENS)
    by_hand = torch.stack([row[:n].mean(dim=0) for row, n in zip(features, LENGTHS.tolist(), strict=True)])
    by_hand = torch.nn.functional.normalize(model.text_proj(by_hand), dim=-1)
    torch.testing.assert_close(model.embed_texts(TOKENS, LENGTHS), by_hand)
