"""The stop "On real data" of four lessons: without the set, with it, and with a model trained on it."""

from dataclasses import replace

import pytest
import torch

from course_lib.data.real import CLOTHES, ImageSet
from course_lib.lessons.real_data import captions, images, shakespeare, stop
from course_lib.lessons.real_data.stop import AT_WORK, on_real_data
from course_lib.lessons.recipes import real_recipes
from course_lib.training.progress import Silent, using
from tests.lessons.real_data.test_recipes_in_small import PAIRS, SMALL, TEXT

SETS = {"resnet": "mnist_part", "vit": "fashion_mnist_part", "gpt": "tiny_shakespeare", "translator": "multi30k"}
every_model = pytest.mark.parametrize("model", AT_WORK)
OF_THE_SET = {
    "resnet": "first 12 test images, 28 by 28 pixels, dark on white: shirt, sneaker",
    "vit": "first 12 test images, 28 by 28 pixels, dark on white: shirt, sneaker",
    "gpt": "not to be",
    "translator": "people: Un chien court.",
}
OF_THE_MODEL = {"resnet": "The model names", "vit": "The model names", "gpt": "given: ", "translator": "model:  "}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    monkeypatch.delenv("COURSE_DATA_MIRROR", raising=False)
    return tmp_path


@pytest.fixture
def here(home, monkeypatch):
    """Small sets of our own in the place of the real ones, and trainings of a few steps."""
    pixels = torch.randint(256, (100, 1, 28, 28), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    found = ImageSet(pixels, (torch.arange(100) + 1) % 10, CLOTHES)
    monkeypatch.setattr(images, "PARTS", {name: lambda: found for name in images.PARTS})
    monkeypatch.setattr(shakespeare, "tiny_shakespeare", lambda: TEXT)
    monkeypatch.setattr(captions, "multi30k", lambda split, languages: PAIRS)
    monkeypatch.setattr(captions, "LONGEST", 6)
    monkeypatch.setattr(stop, "is_here", lambda name: True)
    for model, data in SETS.items():
        known = real_recipes()[f"{model}_{data}"]
        settings = known.variants[""]
        small = {key: value for key, value in SMALL.items() if hasattr(settings, key)}
        short = replace(known, variants={"": replace(settings, **small)})
        monkeypatch.setitem(real_recipes(), f"{model}_{data}", short)
    caches = (images.splits, shakespeare.tokenizer, shakespeare.parts, captions.pairs, captions.tokenizer)
    for cached in caches:
        cached.cache_clear()
    with using(lambda title: Silent()):
        yield
    for cached in caches:
        cached.cache_clear()


def said(capsys, model, **options):
    on_real_data(model, SETS[model], **options)
    return capsys.readouterr().out


@every_model
def test_without_the_set_it_says_what_was_measured_and_what_to_type(model, home, capsys):
    told = said(capsys, model)
    card = stop.measured_card(f"{model}_{SETS[model]}")
    assert card["title"] in told and f"{stop.listed(card['test'])}." in told
    assert f"course data fetch {SETS[model]}" in told and OF_THE_SET[model] not in told
    assert list(home.iterdir()) == []


def test_a_whole_set_that_was_not_measured_is_told_of_by_its_part(home, capsys):
    on_real_data("vit", "mnist")
    told = capsys.readouterr().out
    assert "on the first 19,690 training digits of MNIST" in told and "course data fetch mnist " in told


@every_model
def test_with_the_set_it_shows_some_of_it_and_how_to_train(model, here, capsys):
    told = said(capsys, model)
    assert OF_THE_SET[model] in told and OF_THE_MODEL[model] not in told
    assert f"course train {model} --data {SETS[model]}" in told and "train=True" in told


@every_model
def test_on_request_it_trains_on_the_page_and_shows_the_model_at_work(model, here, capsys, home):
    told = said(capsys, model, train=True)
    assert "Trained on this page: " in told and OF_THE_MODEL[model] in told
    assert (home / "training" / f"{model}_{SETS[model]}-on-the-page").exists()


@every_model
def test_a_model_that_was_trained_here_is_shown_and_a_damaged_one_is_said(model, here, capsys, home):
    from course_lib.commands.train import train

    assert train(model, data=SETS[model]) == 0
    capsys.readouterr()
    told = said(capsys, model)
    assert "Trained here: " in told and OF_THE_MODEL[model] in told and "train=True" not in told
    weights = home / "checkpoints" / f"{model}_{SETS[model]}" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(ValueError, match="is damaged or not the file of its card"):
        on_real_data(model, SETS[model])


def test_a_checkpoint_of_another_training_is_not_shown_and_the_cure_is_told(here, home):
    from course_lib.commands.train import train

    train("gpt", data=SETS["gpt"])
    for model in ("resnet", "translator"):
        (home / "checkpoints" / "gpt_tiny_shakespeare").rename(home / "checkpoints" / f"{model}_{SETS[model]}")
        told = f"holds the model 'gpt_tiny_shakespeare', not '{model}_.*: make it anew: course train {model}_"
        with pytest.raises(ValueError, match=told):
            on_real_data(model, SETS[model])
        (home / "checkpoints" / f"{model}_{SETS[model]}").rename(home / "checkpoints" / "gpt_tiny_shakespeare")


@pytest.mark.parametrize("spoil", [lambda card: card.write_text("{"), lambda card: card.write_text("{}")])
def test_a_damaged_card_is_said_with_its_cure(spoil, here, home):
    from course_lib.commands.train import train

    train("gpt", data=SETS["gpt"])
    spoil(home / "checkpoints" / "gpt_tiny_shakespeare" / "card.json")
    with pytest.raises(ValueError, match="does not hold a card.*: make it anew: course train gpt_tiny_shakespeare"):
        on_real_data("gpt", "tiny_shakespeare")


def test_weights_that_are_missing_are_said_with_the_cure(here, home):
    from course_lib.commands.train import train

    train("gpt", data=SETS["gpt"])
    (home / "checkpoints" / "gpt_tiny_shakespeare" / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="does not hold .* the file of its model, whole: make it anew"):
        on_real_data("gpt", "tiny_shakespeare")


def test_a_training_that_there_is_not_is_refused_with_those_that_there_are(home):
    with pytest.raises(ValueError, match="no training 'vit_imagenet'"):
        on_real_data("vit", "imagenet")
