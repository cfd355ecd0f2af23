from dataclasses import replace

import torch

from course_lib.lessons.lesson_06 import learner
from course_lib.lessons.lesson_06.recipes import translator
from course_lib.lessons.lesson_06.tasks import TASKS
from course_lib.lessons.lesson_06.transformer import Place, stream_words, translate
from course_lib.training.progress import Silent
from course_lib.training.translation import encode_pairs, splits

TINY = replace(learner.SETTINGS, steps=40, warmup=10, dim=8, depth=1, batch_size=4, train_pairs=100)


def test_the_learner_s_parts_train_the_same_translator_as_the_library_s():
    block, rate, loss = (TASKS[name].reference for name in ("block", "schedule", "smoothed_loss"))
    model = learner.build(TINY, block)
    learner.train(model, TINY, rate, loss, Silent(""))
    expected = translator.train_transformer(TINY).model
    source, _, target, _ = encode_pairs(splits(100).validation[:5])
    with torch.no_grad():  # not the weights: a bias of keys has no effect, so Adam moves it by rounding errors
        torch.testing.assert_close(model(source, target), expected(source, target), rtol=0, atol=1e-3)


def test_another_block_makes_another_model():
    model = learner.build(TINY, lambda x, sublayers, norms: x)
    x = torch.randn(2, 3, 8)
    assert torch.equal(model.encoder[0](x), x)


def test_words_are_streamed_as_they_would_be_written_at_once():
    model = translator.build(TINY).eval()
    text = " ".join(splits(100).train[0].english)
    words = list(stream_words(model, text))
    assert tuple(words) == translate(model, text, place=Place(0), num_beams=1).target[: len(words)]
    assert words and isinstance(learner.shows(text)(model), str)
