"""Small sets of our own in the place of the real ones."""

from dataclasses import replace

import pytest
import torch

from course_lib.data.real import CLOTHES, ImageSet
from course_lib.lessons.real_data import captions, images, shakespeare
from course_lib.lessons.recipes import real_recipes

TEXT = "To be, or not to be, that is the question: " * 40
WHO = {"A dog": "Un chien", "A cat": "Un chat", "The man": "L'homme"}
DOES = {"runs": "court", "sleeps": "dort", "sings": "chante", "waits": "attend"}
PAIRS = [(f"{who} {does}.", f"{WHO[who]} {DOES[does]}.") for who in WHO for does in DOES]

SMALL = {"steps": 4, "batch_size": 4, "dim": 8, "depth": 1, "num_heads": 2, "mlp_dim": 8, "context_length": 16}
SMALL |= {"vocab_size": 280, "averaged": 2, "num_beams": 2}


@pytest.fixture
def in_small():
    """A function from the name of a training to the same in small."""

    def recipe(name):
        known = real_recipes()[name]
        settings = known.variants[""]
        small = {key: value for key, value in SMALL.items() if hasattr(settings, key)}
        return replace(known, variants={"": replace(settings, **small)})

    return recipe


@pytest.fixture
def no_caches():
    caches = (images.splits, shakespeare.tokenizer, shakespeare.parts, captions.pairs, captions.tokenizer)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.fixture
def made_up(no_caches, monkeypatch):
    pixels = torch.randint(256, (100, 1, 28, 28), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    found = ImageSet(pixels, (torch.arange(100) + 1) % 10, CLOTHES)
    monkeypatch.setattr(images, "WHOLE", {name: lambda split: found for name in images.WHOLE})
    monkeypatch.setattr(images, "PARTS", {name: lambda: found for name in images.PARTS})
    monkeypatch.setattr(images, "HELD_OUT", 10)
    monkeypatch.setattr(shakespeare, "tiny_shakespeare", lambda: TEXT)
    monkeypatch.setattr(captions, "multi30k", lambda split, languages: PAIRS)
    monkeypatch.setattr(captions, "LONGEST", 6)
