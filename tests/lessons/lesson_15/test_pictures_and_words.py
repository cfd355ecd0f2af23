"""What ViLBERT is asked, how its searches are made, and what is left of a Flamingo whose gates are shut."""

import pytest
import torch

from course_lib.data.captions import caption, caption_tokenizer
from course_lib.data.draws import generator
from course_lib.lessons.lesson_15.recipes import pictures_and_words as recipe
from course_lib.models.flamingo import flamingo_on
from course_lib.models.gpt import GPT, GPTConfig

TOKENIZER = caption_tokenizer()


@pytest.fixture(scope="module")
def words():
    """120 captions, no two alike."""
    every = [caption(s, i, d, p) for s in range(2) for i in range(2) for d in range(10) for p in range(3)]
    return TOKENIZER.encode_batch(every, start=True, end=True)[0]


def test_a_hard_alternative_is_a_caption_in_which_one_thing_is_wrong(words):
    wrong = recipe.changed(words, generator("test"))
    assert ((wrong != words).sum(dim=1) == 1).all()
    right = {tuple(row) for row in words.tolist()}
    assert all(tuple(row) in right for row in wrong.tolist())
    places = set((wrong != words).nonzero()[:, 1].tolist())
    assert places == {2, 3, 4, 7}  # size, ink, digit, place, behind the start sign
    assert torch.equal(recipe.changed(words, generator("test")), wrong)


def test_in_a_search_no_caption_comes_twice(words):
    several = words[torch.randint(len(words), (200,), generator=generator("several"))]
    found = recipe.groups(several, 12)
    assert len(found) >= 12 and all(len(several[rows].unique(dim=0)) == len(rows) == 12 for rows in found)
    together = torch.cat(found)
    assert len(together.unique()) == len(together)  # and no scene is in two of them
    by_hand = recipe.groups(words[[0, 0, 1, 1]], 2)
    assert [rows.tolist() for rows in by_hand] == [[0, 2], [1, 3]]


@torch.no_grad()
def test_with_shut_gates_the_language_model_is_left(words):
    torch.manual_seed(0)
    language = GPT(GPTConfig(vocab_size=len(TOKENIZER), context_length=10, dim=8, depth=2, num_heads=2)).eval()
    model = flamingo_on(language, vision_dim=6, num_latents=2, resampler_depth=1, num_heads=2, head_dim=4)
    for gated in model.gated:
        torch.nn.init.ones_(gated.alpha_attn), torch.nn.init.ones_(gated.alpha_ffn)
    picture, some = torch.randn(3, 4, 6), words[:3]
    assert torch.equal(recipe.shut(model)(some, picture), language(some))
    assert not torch.allclose(model(some, picture), language(some))


def test_a_search_by_chance_and_by_one_who_knows(words, monkeypatch):
    """Who knows every pair finds all, who says the same of all finds one of the candidates.

    Who likes some captions better than others still finds the scenes, but gives each of them the same caption.
    """
    fields = words[:, 1:8, None].float().expand(-1, -1, 5)
    held_out = recipe.Examples(fields, fields, words)
    monkeypatch.setattr(recipe, "boxes_of", lambda fields: None)

    def knows(words, fields, boxes):
        return (fields[..., 0] == words[:, 1:8]).all(dim=1).float()

    def ignores(words, fields, boxes):
        return torch.zeros(len(words))

    def likes(words, fields, boxes):
        return knows(words, fields, boxes) + 10 * words.double() @ torch.linspace(1, 3, 9).double().square()

    chance = 1 / recipe.CANDIDATES
    for model, scenes, captions in ((knows, 1, 1), (ignores, chance, chance), (likes, 1, chance)):
        found = recipe.retrieval_scores(model, held_out)
        assert found == pytest.approx({"recall@1 of scenes": scenes, "recall@1 of captions": captions})
