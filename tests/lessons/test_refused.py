"""What the lessons' own functions cannot work with is refused, in words that name it."""

from dataclasses import replace

import pytest

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_01.recipes import depth, resnet
from course_lib.lessons.lesson_04 import units
from course_lib.lessons.lesson_05 import neighbours
from course_lib.lessons.lesson_05.playground import translator
from course_lib.lessons.lesson_06 import transformer
from course_lib.lessons.lesson_06.recipes.translator import TransformerSettings, build
from course_lib.lessons.lesson_07.search import search
from course_lib.lessons.lesson_08 import definitions, modern
from course_lib.lessons.lesson_11 import icon_recipes, recipes
from course_lib.models.gpt import GPT, GPTConfig

REFUSED = {
    "depth": (lambda: depth.build(replace(depth.SETTINGS, kind="dense")), "kind.*plain, residual, got 'dense'"),
    "resnet": (lambda: resnet.build(resnet.SceneSettings(net="vgg")), "net.*resnet, cnn, got 'vgg'"),
    "digits": (
        lambda: recipes.build(recipes.ImageSettings(net="swin")),
        "net.*vit, hybrid, mixer, resnet, got 'swin'",
    ),
    "icons": (
        lambda: icon_recipes.build(icon_recipes.IconSettings(net="mlp")),
        "net.*vit, resnet, swin, mixer, got 'mlp'",
    ),
    "parts of a GPT": (
        lambda: modern.swap(GPT(GPTConfig(vocab_size=9, dim=8, depth=1, num_heads=2)), "rope"),
        "parts.*rotary, RMSNorm, SwiGLU, grouped, got rope",
    ),
    "invented words": (lambda: definitions.invented(1000, definitions.headwords()), "only"),
    "neighbours": (
        lambda: neighbours.train_reader(task="right only", num_heads=1, learning_rate=0.1, seed=0, steps=1),
        "right only",
    ),
    "a character": (lambda: units.read_text(load_trained("lstm_characters").model, "Ω"), "not in the vocabulary"),
    "no word": (
        lambda: transformer.translate(build(TransformerSettings(dim=8, depth=1)), "  ", place=transformer.Place(0, 1)),
        "no word",
    ),
    "no examples": (lambda: translator(str, [], []), "at least one example"),
    "no pages": (lambda: search(None, []), "There is no sentence to search in"),
}


@pytest.mark.parametrize(("call", "words"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_by_name(call, words):
    with pytest.raises((ValueError, KeyError), match=words):
        call()
