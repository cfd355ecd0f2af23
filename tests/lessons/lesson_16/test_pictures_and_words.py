"""The captions of the scenes, ViLBERT's hard alternatives, its searches, and a Flamingo with closed gates."""

import pytest
import torch

from course_lib.data.draws import generator
from course_lib.lessons.lesson_16.recipes import pictures_and_words as recipe
from course_lib.models.flamingo import flamingo_on
from course_lib.models.gpt import GPT, GPTConfig


@pytest.fixture(scope="module")
def words():
    """144 captions, no two alike."""
    return recipe.encoded(
        [recipe.caption(s, t, p) for s in recipe.SIZES for t in recipe.THINGS for p in recipe.POSITIONS]
    )


def test_a_caption_says_what_its_scene_shows():
    batch, texts = recipe.scenes("train", 60, seed=0)
    for pixels, name, box, text in zip(batch.instances, batch.names[:, 0], batch.boxes[:, 0], texts, strict=True):
        size, thing, position = recipe.parts_of(text)
        assert recipe.icon_names()[name] == thing and recipe.caption(size, thing, position) == text
        rows, columns = (pixels > 0).nonzero(as_tuple=True)
        height, width = rows.max() - rows.min() + 1, columns.max() - columns.min() + 1
        assert (size == "large") == (max(height, width) / recipe.SIZE >= recipe.LARGE)
        middle = (columns.min() + columns.max() + 1) / 2 / recipe.SIZE
        assert position == recipe.POSITIONS[sum(middle >= edge for edge in recipe.THIRDS)]
        assert box.tolist() == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


def test_every_word_is_known_and_every_caption_comes_back(words):
    assert recipe.tokenizer().unknown_id not in words and words.shape == (144, recipe.LONGEST)
    assert recipe.sentences(words)[0] == "a small banana at the left"
    assert len(set(recipe.sentences(words))) == 144


def test_test_scenes_show_a_designer_and_photographs_that_training_lacks():
    assert recipe.SPLITS["test"] == "new designer" and recipe.SPLITS["train"] == "train"
    drawn = {split: recipe.IconScenes(split=name, names=recipe.THINGS).icons() for split, name in recipe.SPLITS.items()}
    designers = {split: set(each.designers.tolist()) for split, each in drawn.items()}
    assert not designers["test"] & (designers["train"] | designers["validation"])
    for split in ("train", "test"):
        assert {recipe.icon_names()[number] for number in drawn[split].names.tolist()} == set(recipe.THINGS)


def test_captions_are_scored_as_a_whole_and_part_by_part():
    wanted = ["a small cat at the left", "a large pig at the right"]
    found = recipe.correct(["a small cat at the right", "a large pig at the right"], wanted)
    assert found == {"exact": 0.5, "size": 1.0, "thing": 1.0, "position": 0.5}
    assert recipe.correct(["a a a", "a small pig at"], wanted) == dict.fromkeys(found, 0.0)


def test_a_hard_alternative_is_a_caption_in_which_one_part_is_wrong(words):
    wrong = recipe.changed(words, generator("test"))
    assert ((wrong != words).sum(dim=1) == 1).all()
    right = {tuple(row) for row in words.tolist()}
    assert all(tuple(row) in right for row in wrong.tolist())
    assert set((wrong != words).nonzero()[:, 1].tolist()) == {2, 3, 6}  # size, thing, position, behind the start token
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
def test_with_closed_gates_the_language_model_is_left(words):
    torch.manual_seed(0)
    sizes = {"vocab_size": len(recipe.tokenizer()), "context_length": 10, "dim": 8, "depth": 2, "num_heads": 2}
    language = GPT(GPTConfig(**sizes)).eval()
    model = flamingo_on(language, vision_dim=6, num_latents=2, resampler_depth=1, num_heads=2, head_dim=4)
    for gated in model.gated:
        torch.nn.init.ones_(gated.alpha_attn), torch.nn.init.ones_(gated.alpha_ffn)
    image, some = torch.randn(3, 4, 6), words[:3]
    assert torch.equal(recipe.closed(model)(some, image), language(some))
    assert not torch.allclose(model(some, image), language(some))


def test_a_search_at_random_and_by_one_that_knows(words, monkeypatch):
    """A model that knows every pair finds all, one that gives all pairs the same score one of the candidates.

    A model that prefers some captions still finds the scenes, but gives each of them the same caption.
    """
    fields = words[:, 1:8, None].float().expand(-1, -1, 5)
    held_out = recipe.Examples(fields, fields, words)
    monkeypatch.setattr(recipe, "boxes_of", lambda fields: None)

    def knows(words, fields, boxes):
        return (fields[..., 0] == words[:, 1:8]).all(dim=1).float()

    def ignores(words, fields, boxes):
        return torch.zeros(len(words))

    def prefers(words, fields, boxes):
        return knows(words, fields, boxes) + 10 * words.double() @ torch.linspace(1, 3, 8).double().square()

    chance = 1 / recipe.CANDIDATES
    for model, scenes, captions in ((knows, 1, 1), (ignores, chance, chance), (prefers, 1, chance)):
        found = recipe.retrieval_scores(model, held_out)
        assert found == pytest.approx({"recall@1 of scenes": scenes, "recall@1 of captions": captions})
