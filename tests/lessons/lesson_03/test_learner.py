"""A learner's step, loop and clipping are what the lesson runs on."""

import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.recurrent import rnn_step
from course_lib.lessons.lesson_03 import learner, shapes
from course_lib.lessons.lesson_03.recipes import names
from course_lib.lessons.lesson_03.tasks import TASKS

clip, unroll = (TASKS[name].reference for name in ("clip", "unroll"))


def test_the_readers_loop_equals_the_kernel_under_padding():
    trained, (ids, valid, _) = load_trained("names").model, names.examples("test")
    ids, valid = ids[:20], valid[:20]
    expected = trained(ids, valid=valid)
    assert torch.allclose(learner.with_learner_block(trained, rnn_step, unroll)(ids, valid=valid), expected, atol=1e-5)


def test_the_reader_runs_on_the_learners_functions():
    model = learner.build(lambda x, h, *_: 0 * h, unroll)
    ids, valid, _ = names.examples("test")
    logits = model(ids[:3], valid=valid[:3])
    assert torch.equal(logits[0], logits[1])  # with a step that keeps nothing all names are alike


def test_two_layers_are_the_same_loop_twice():
    assert learner.two_layers(rnn_step, unroll) < 1e-5 < learner.two_layers(lambda x, h, *_: h, unroll)


def test_clipping_decides_whether_the_run_survives():
    assert not learner.explosive_run(None, seed=0, steps=10).survived
    run = learner.explosive_run(clip, seed=0, steps=10)
    assert run.survived and max(run.norms) > 100


def test_the_five_shapes_take_and_give_at_their_own_times():
    five = shapes.run_all("görögország", "the women sign a law .", "les femmes signent un accord important .")
    one, caption, language, translation, tags = five
    assert [len(shape.given) for shape in five] == [1, 1, 11, 6, 7]
    assert len(one.said) == 1 and len(caption.said) > 5 and language.said == ["Hungarian"] and language.waits == 10
    assert translation.waits == 6 and translation.said[1] == "femmes"
    assert len(tags.said) == 7 and tags.said[0] == "DET|m|p"  # wrong: the gender of "les" comes a word later
