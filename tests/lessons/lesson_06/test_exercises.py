import pytest
import torch

from course_lib.generation import beam_search, greedy
from course_lib.lessons.lesson_06.learner import search
from course_lib.lessons.lesson_06.tasks import TASKS
from course_lib.models.transformer import Transformer, TransformerConfig
from course_lib.text.merges import Corpus, learn_merges_naive
from course_lib.training.seeding import seeded

IDS = {"start_id": 1, "end_id": 2}


@pytest.fixture(scope="module")
def writer():
    with seeded(1):
        config = TransformerConfig(vocab_size=9, dim=16, depth=1, num_heads=2, mlp_dim=16, dropout=0.0)
        model = Transformer(config).eval()
        return model.given(torch.randint(3, 9, (1, 5)))


def test_a_search_with_one_beam_is_greedy(writer):
    tokens, _ = search(TASKS["beam_step"].reference, writer, num_beams=1, max_new_tokens=8, **IDS)
    assert torch.equal(tokens, greedy(writer, torch.ones(1, 1, dtype=torch.long), max_new_tokens=8, end_id=2))


def test_a_search_scores_what_it_finds_as_the_library_does(writer):
    tokens, scores = search(TASKS["beam_step"].reference, writer, num_beams=4, max_new_tokens=8, penalty=0.8, **IDS)
    library = beam_search(
        writer, torch.ones(1, 1, dtype=torch.long), num_beams=4, max_new_tokens=8, length_penalty=0.8, end_id=2
    )
    assert torch.equal(tokens[0, : library.tokens.shape[2]], library.tokens[0, 0])
    assert scores[0] == pytest.approx(library.scores[0, 0].item(), abs=1e-5) and (scores.diff() <= 0).all()


def test_merges_one_by_one_are_those_that_a_tokenizer_learns():
    counts = {"lowest": 5, "slow": 3, "widest": 6, "newest": 4}
    corpus = Corpus.from_counts(counts)
    pieces, known = [list(word) for word in counts], len(corpus.tokens)
    for merge in learn_merges_naive(corpus, known + 3).merges:
        pieces = TASKS["bpe_merge"].reference(pieces, list(counts.values()))
        assert any("".join(merge) in word for word in pieces)
