"""The stop "On real data" of four lessons: without the set, with it, and with a model trained on it."""

import pytest

from course_lib.commands.train import train
from course_lib.lessons.real_data import stop
from course_lib.lessons.real_data.stop import AT_WORK, on_real_data
from course_lib.lessons.recipes import real_recipes
from course_lib.training.progress import Silent, using

SETS = {"resnet": "mnist_part", "vit": "fashion_mnist_part", "gpt": "tiny_shakespeare", "translator": "multi30k"}
every_model = pytest.mark.parametrize("model", AT_WORK)
SHOWN = "first 12 test images, 28 by 28 pixels, dark on white: shirt, sneaker"
OF_THE_SET = {"resnet": SHOWN, "vit": SHOWN, "gpt": "not to be", "translator": "people: Un chien court."}
OF_THE_MODEL = {"resnet": "The model names", "vit": "The model names", "gpt": "given: ", "translator": "model:  "}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    monkeypatch.delenv("COURSE_DATA_MIRROR", raising=False)
    return tmp_path


@pytest.fixture
def here(home, made_up, in_small, monkeypatch):
    """The sets are there, and trainings take a few steps."""
    monkeypatch.setattr(stop, "is_here", lambda name: True)
    for model, data in SETS.items():
        monkeypatch.setitem(real_recipes(), f"{model}_{data}", in_small(f"{model}_{data}"))
    with using(lambda title: Silent()):
        yield


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
    assert train(model, data=SETS[model]) == 0
    capsys.readouterr()
    told = said(capsys, model)
    assert "Trained here: " in told and OF_THE_MODEL[model] in told and "train=True" not in told
    weights = home / "checkpoints" / f"{model}_{SETS[model]}" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(ValueError, match="is damaged or not the file of its card"):
        on_real_data(model, SETS[model])


def test_a_checkpoint_of_another_training_is_not_shown_and_the_cure_is_told(here, home):
    train("gpt", data=SETS["gpt"])
    for model in ("resnet", "translator"):
        (home / "checkpoints" / "gpt_tiny_shakespeare").rename(home / "checkpoints" / f"{model}_{SETS[model]}")
        told = f"holds the model 'gpt_tiny_shakespeare', not '{model}_.*: make it anew: course train {model}_"
        with pytest.raises(ValueError, match=told):
            on_real_data(model, SETS[model])
        (home / "checkpoints" / f"{model}_{SETS[model]}").rename(home / "checkpoints" / "gpt_tiny_shakespeare")


@pytest.mark.parametrize(
    ("file", "spoil", "told"),
    [
        ("card.json", lambda card: card.write_text("{"), "does not hold a card"),
        ("card.json", lambda card: card.write_text("{}"), "does not hold a card"),
        ("model.safetensors", lambda weights: weights.unlink(), "does not hold .* the file of its model, whole"),
    ],
)
def test_a_damaged_card_and_missing_weights_are_said_with_the_cure(file, spoil, told, here, home):
    train("gpt", data=SETS["gpt"])
    spoil(home / "checkpoints" / "gpt_tiny_shakespeare" / file)
    with pytest.raises(ValueError, match=f"{told}.*: make it anew: course train gpt_tiny_shakespeare"):
        on_real_data("gpt", "tiny_shakespeare")


def test_a_training_that_there_is_not_is_refused_with_those_that_there_are(home):
    with pytest.raises(ValueError, match="no training 'vit_imagenet'"):
        on_real_data("vit", "imagenet")
