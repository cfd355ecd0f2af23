"""Every training on a real set in small, on data of our own: it goes on, scores and ships as the lessons' do."""

import json
from dataclasses import replace

import pytest
import torch

from course_lib.data.real import CLOTHES, ImageSet
from course_lib.lessons.real_data import captions, images, shakespeare
from course_lib.lessons.recipes import all_recipes, find_recipe, real_recipes
from course_lib.training.progress import Silent, using

TEXT = "To be, or not to be, that is the question: " * 40
WHO = {"A dog": "Un chien", "A cat": "Un chat", "The man": "L'homme"}
DOES = {"runs": "court", "sleeps": "dort", "sings": "chante", "waits": "attend"}
PAIRS = [(f"{who} {does}.", f"{WHO[who]} {DOES[does]}.") for who in WHO for does in DOES]
SMALL = {"steps": 4, "batch_size": 4, "dim": 8, "depth": 1, "num_heads": 2, "mlp_dim": 8, "context_length": 16}
SMALL |= {"vocab_size": 280, "averaged": 2, "num_beams": 2}


class Stop(Silent):
    """Interrupts a training after two steps."""

    def update(self, done, total, **details):
        if done == 2:
            raise KeyboardInterrupt


@pytest.fixture
def made_up(monkeypatch):
    pixels = torch.randint(256, (40, 1, 28, 28), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    found = ImageSet(pixels, torch.arange(40) % 10, CLOTHES)
    monkeypatch.setattr(images, "WHOLE", {name: lambda split: found for name in images.WHOLE})
    monkeypatch.setattr(images, "PARTS", {name: lambda: found for name in images.PARTS})
    monkeypatch.setattr(images, "HELD_OUT", 10)
    monkeypatch.setattr(shakespeare, "tiny_shakespeare", lambda: TEXT)
    monkeypatch.setattr(captions, "multi30k", lambda split, languages: PAIRS)
    monkeypatch.setattr(captions, "LONGEST", 6)
    caches = (images.splits, shakespeare.tokenizer, shakespeare.parts, captions.pairs, captions.tokenizer)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.parametrize("name", real_recipes())
def test_a_training_goes_on_scores_and_ships(name, made_up, tmp_path):
    known = find_recipe(name)
    settings = known.variants[""]
    small = {key: value for key, value in SMALL.items() if hasattr(settings, key)}
    recipe = replace(known, variants={"": replace(settings, **small)})
    with pytest.raises(KeyboardInterrupt), using(lambda title: Stop()):
        recipe.run(3, tmp_path / "one")
    outcome = recipe.run(3, tmp_path / "one")
    whole = recipe.run(3, tmp_path / "two").shipped.model.state_dict()
    other = recipe.run(4, tmp_path / "three").shipped.model.state_dict()
    shipped = outcome.shipped.model.state_dict()
    assert all(torch.equal(tensor, whole[key]) for key, tensor in shipped.items())
    assert any(not torch.equal(tensor, other[key]) for key, tensor in shipped.items())
    assert recipe.chosen_by in outcome.validation and set(outcome.validation) <= set(outcome.test)
    assert json.dumps(outcome.shipped.extra) and json.dumps(recipe.facts()) and 0 < recipe.minutes <= 20


def test_no_training_on_real_data_has_the_name_of_another():
    assert not real_recipes().keys() & all_recipes().keys()
    assert {recipe.lesson for recipe in real_recipes().values()} == {"01", "06", "08", "11"}
