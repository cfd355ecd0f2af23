"""How the real sets are cut, and what is scored on them."""

import sys

import pytest
import torch
import torch.nn.functional as F
from sacrebleu import corpus_bleu

from course_lib.data.place import CannotStart
from course_lib.data.real import DIGITS, ImageSet
from course_lib.lessons.real_data import captions, images, shakespeare
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.transformer import Transformer, TransformerConfig
from course_lib.text.bpe import ByteLevelBPE


def numbered(count):
    """Images whose first pixels tell their numbers."""
    pixels = torch.zeros(count, 1, 28, 28, dtype=torch.uint8)
    pixels[:, 0, 0, 0], pixels[:, 0, 0, 1] = torch.arange(count) // 256, torch.arange(count) % 256
    return ImageSet(pixels, torch.arange(count) % 10, DIGITS)


def test_a_whole_set_keeps_its_published_test_images_and_of_a_part_all_is_cut_from_the_end(monkeypatch, no_caches):
    monkeypatch.setitem(images.WHOLE, "mnist", lambda split: numbered({"train": 5_007, "test": 11}[split]))
    monkeypatch.setitem(images.PARTS, "mnist_part", lambda: numbered(100))
    ends = {"mnist": (range(7), range(7, 5_007), range(11)), "mnist_part": (range(70), range(70, 85), range(85, 100))}
    for name, parts in ends.items():
        for split, expected in zip(("train", "validation", "test"), parts, strict=True):
            pixels = images.splits(name)[split].pixels[:, 0, 0].int()
            assert (pixels[:, 0] * 256 + pixels[:, 1]).tolist() == list(expected)


@pytest.mark.parametrize("name", images.RECIPES)
def test_the_card_says_which_images_are_the_test(name):
    recipe = images.RECIPES[name]
    settings = recipe.variants[""]
    assert settings.data in recipe.data and name == f"{settings.model}_{settings.data}"
    assert ("not the published test images" in recipe.data) == (settings.data in images.PARTS)


def test_the_score_is_sacrebleus():
    written, references = ["Un chien court vite.", "Deux chats."], ["Un chien court.", "Deux petits chats dorment."]
    assert captions.sacrebleu_score(written, references) == corpus_bleu(written, [references]).score


def test_without_sacrebleu_the_command_that_installs_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(CannotStart, match="python -m pip install 'sacrebleu"):
        captions.sacrebleu_score(["a"], ["a"])


def test_what_was_learned_by_heart_is_translated_in_order(monkeypatch):
    pairs = [("A dog runs.", "Un chien court."), ("Two cats.", "Deux chats."), ("A man is outside.", "Un homme.")]
    english, french = zip(*pairs, strict=True)
    words = ByteLevelBPE.train([*english, *french], 300, specials=captions.SIGNS)
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocab_size=len(words), dim=16, depth=1, num_heads=2, mlp_dim=16, dropout=0.0))
    batch = (*words.encode_batch(english), *words.encode_batch(french, start=True, end=True))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for _ in range(60):
        optimizer.zero_grad()
        captions.loss(model, batch, smoothing=0.1).backward()
        optimizer.step()
    model.eval()
    monkeypatch.setattr(captions, "ROWS", 2)
    assert captions.translate(model, words, english) == list(french)
    assert captions.translate(model, words, english[::-1], num_beams=1) == list(french[::-1])


def test_each_window_is_read_from_nothing_and_each_character_counted_once():
    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=5, dim=8, depth=1, num_heads=2, context_length=4)).eval()
    torch.nn.init.normal_(model.token_embed.weight)
    ids = torch.randint(5, (4 * 70 + 3,))
    windows = [(ids[None, start : start + 4], ids[start + 1 : start + 5]) for start in range(0, 280, 4)]
    one_by_one = torch.stack([F.cross_entropy(model(given)[0], asked) for given, asked in windows])
    assert abs(shakespeare.nats_in_windows(model, ids) - one_by_one.mean().item()) < 1e-5


def test_the_text_is_cut_as_nanogpt_cuts_it_and_learned_with_the_settings_of_its_readme(monkeypatch, no_caches):
    monkeypatch.setattr(shakespeare, "tiny_shakespeare", lambda: "abcdefghij" * 11)
    parts = {name: shakespeare.tokenizer().decode(ids) for name, ids in shakespeare.parts().items()}
    assert parts["train"] == ("abcdefghij" * 11)[:99] and parts["held out"] == ("abcdefghij" * 11)[99:]
    assert parts["validation"] + parts["test"] == parts["held out"] and len(parts["validation"]) == 5
    settings = shakespeare.RECIPES["gpt_tiny_shakespeare"].variants[""]
    assert settings == shakespeare.ShakespeareSettings(
        dim=128, depth=4, num_heads=4, context_length=64, dropout=0.0, batch_size=12, steps=2000, learning_rate=1e-3,
        final_factor=0.1, weight_decay=0.1,
    )  # fmt: skip
