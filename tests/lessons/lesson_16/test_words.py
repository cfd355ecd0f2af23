"""The search of icons by words, what is measured of it and of captions, and the diagrams of the models."""

import re
from pathlib import Path

import pytest
import torch

from course_lib.classroom.texts import read_results
from course_lib.data.checkpoints import load_trained
from course_lib.data.icons import icon_names
from course_lib.lessons.lesson_16 import words_learner as learner
from course_lib.lessons.lesson_16 import words_playground as play
from course_lib.lessons.lesson_16 import words_results as results
from course_lib.lessons.lesson_16.recipes import icon_words
from course_lib.lessons.lesson_16.recipes import pictures_and_words as captioning
from course_lib.lessons.lesson_16.words_diagrams import DIAGRAMS

TEXTS = read_results(Path(results.__file__).parent / "results.md")


@pytest.fixture(scope="module")
def trained():
    return load_trained("icon_clip")


@pytest.fixture(scope="module")
def explorer(trained):
    return play.search(trained.model)


def told(name, *arguments, **options):
    """A result in its words; no slot is left."""
    result = results.RESULTS[name](*arguments, **options).told(name, TEXTS)
    assert not re.search(r"\{\w+(:[^}]*)?\}", re.sub(r"\$[^$]*\$", "", result.alt + result.outcome))
    return result


def holds(result):
    return all(all(held) for _, held in result.conditions())


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
    assert holds(told("search", trained.model, trained.card, predicted=30))
    before = learner.towers_of(icon_words.build(icon_words.ContrastiveSettings()).eval())
    after = learner.towers_of(trained.model)
    assert holds(told("trained", after)) and not holds(told("trained", before))
    figure = learner.showing()(after)
    assert figure.axes


def test_the_search_has_three_goals_and_each_can_be_reached(explorer):
    def reached(**state):
        return [goal(explorer.state(**state)) for goal in explorer.goals]

    assert reached(query="zebra crossing")[:2] == [False, False]
    assert reached(query="Green  book", where="new names")[0] and not reached(query="green book")[0]
    assert reached(query="fish")[1] and not reached(query="sunflower")[1]
    assert reached(query="yellow face")[2] and not reached(query="sunflower")[2]


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


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_lies_inside_its_sheet(name):
    fig, alt = DIAGRAMS[name]()
    width, height = fig.get_size_inches()
    assert width <= 12 and height <= 5.5 and alt
    fig.draw_without_rendering()
    for inner in (part.get_window_extent() for part in (*fig.axes[0].texts, *fig.axes[0].patches)):
        assert fig.bbox.x0 <= inner.x0 and inner.x1 <= fig.bbox.x1
        assert fig.bbox.y0 <= inner.y0 and inner.y1 <= fig.bbox.y1


def test_diagrams_show_the_sizes_of_the_shipped_models(trained):
    _, alt = DIAGRAMS["clip"]()
    config = trained.model.config
    assert f"(B, {config.image_dim})" in alt and f"(B, {config.joint_dim})" in alt
    flamingo = load_trained("pictures_and_words").model.config
    _, alt = DIAGRAMS["flamingo"]()
    assert f"(B, {flamingo.num_latents}, {flamingo.vision_dim})" in alt and f"(B, T, {flamingo.language.dim})" in alt


@torch.no_grad()
def test_gates_scale_the_trained_ones():
    model = load_trained("pictures_and_words").model
    words = captioning.encoded(["a small cat at the left"])
    image = torch.randn(1, captioning.FIELDS**2, model.config.vision_dim)
    half = learner.opened(model, 0.5)
    assert torch.equal(half.gated[0].alpha_attn, model.gated[0].alpha_attn / 2)
    assert torch.equal(learner.opened(model, 1.0)(words, image), model(words, image))
