import sys

import pytest
import torch
from sacrebleu import corpus_bleu

from course_lib.data.place import CannotStart
from course_lib.lessons.real_data import captions
from course_lib.models.transformer import Transformer, TransformerConfig
from course_lib.text.bpe import ByteLevelBPE


def test_the_score_is_sacrebleus():
    written, references = ["Un chien court vite.", "Deux chats."], ["Un chien court.", "Deux petits chats dorment."]
    assert captions.sacrebleu_score(written, references) == corpus_bleu(written, [references]).score
    assert captions.sacrebleu_score(references, references) == pytest.approx(100)


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
