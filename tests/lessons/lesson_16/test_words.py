"""The search of icons by words, what is measured of it and of captions."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.data.icons import icon_names
from course_lib.lessons.lesson_16 import words_learner as learner
from course_lib.lessons.lesson_16 import words_playground as play
from course_lib.lessons.lesson_16.recipes import icon_words
from course_lib.lessons.lesson_16.recipes import pictures_and_words as captioning
from tests.lessons.modern import holds, in_words


@pytest.fixture(scope="module")
def trained():
    return load_trained("icon_clip")


@pytest.fixture(scope="module")
def explorer(trained):
    return play.search(trained.model)


def test_no_name_comes_twice_in_a_batch_and_each_name_is_its_drawings_own():
    numbers = icon_words.drawings("train")[1]
    rows = icon_words.one_of_each(numbers, torch.Generator().manual_seed(0))
    assert len(rows) == len(icon_words.known_names()) == len(numbers[rows].unique())
    other = icon_words.one_of_each(numbers, torch.Generator().manual_seed(1))
    assert not torch.equal(numbers[rows], numbers[other])
    assert icon_words.tokenizer().decode(learner.pairs("train").tokens[0].tolist(), strip_specials=True)
    assert len(icon_words.tokenizer()) == learner.PIECES and icon_words.tokenizer().pad_id == 0
    some = learner.pairs()
    assert some.images.shape[1] == 128 and len(some.images) == len(some.tokens) == len(some.numbers)


def test_recall_counts_how_many_columns_are_ahead():
    cosines = torch.tensor([[0.9, 0.1, 0, 0, 0, 0, 0], [0.6, 0.1, 0.5, 0.4, 0.3, 0.2, 0], [0, 0.5, 0.9, 0, 0, 0, 0]])
    assert icon_words.recalls(cosines, torch.tensor([0, 1, 1])) == pytest.approx({1: 1 / 3, 5: 2 / 3})


def test_the_shipped_model_has_the_recall_of_its_card(trained):
    for split in ("new designer", "new names"):
        found = learner.recall(learner.towers_of(trained.model), split)
        for k, value in found.items():
            assert value == pytest.approx(trained.card["test"][f"recall@{k} of names, {split}"], abs=0.003)


def test_a_model_at_random_has_the_recall_of_chance():
    torch.manual_seed(0)
    vectors = torch.randn(learner.PIECES, 64)

    def model(images, tokens):
        return images[:, :64], vectors[tokens].mean(dim=1)

    assert learner.recall(model)[5] < 0.04


def test_the_claims_hold_for_the_shipped_model(trained):
    assert holds(in_words("16", "search", trained.model, trained.card, predicted=30))
    before = learner.towers_of(icon_words.build(icon_words.ContrastiveSettings()).eval())
    after = learner.towers_of(trained.model)
    assert holds(in_words("16", "trained", after)) and not holds(in_words("16", "trained", before))
    figure = learner.showing()(after)
    assert figure.axes


def test_a_query_without_words_or_with_too_many_gets_a_sentence(explorer):
    assert "Type a word" in explorer.frame({"query": "  "}).alt
    assert "please keep to" in explorer.frame({"query": "word " * 20}).alt
    assert "word pieces" in explorer.frame({"query": "qx zq xq qz xx zz qq zx jq qj jx xj"}).alt
    assert "sunflower" in explorer.frame().alt


def test_what_is_found_is_what_the_pixels_show(trained):
    hits = play.find(trained.model, "sunflower", "new designer")
    assert hits[0].name == "sunflower" and hits[0].pixels.shape == (32, 32, 3)
    assert [hit.cosine for hit in hits] == sorted((hit.cosine for hit in hits), reverse=True)
    assert {hit.name for hit in hits} <= set(icon_names())


@torch.no_grad()
def test_gates_scale_the_trained_ones():
    model = load_trained("pictures_and_words").model
    words = captioning.encoded(["a small cat at the left"])
    image = torch.randn(1, captioning.FIELDS**2, model.config.vision_dim)
    half = learner.opened(model, 0.5)
    assert torch.equal(half.gated[0].alpha_attn, model.gated[0].alpha_attn / 2)
    assert torch.equal(learner.opened(model, 1.0)(words, image), model(words, image))
