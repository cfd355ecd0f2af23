"""Lesson 01: the learner's functions run inside the networks, and change what they should."""

import torch

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_01 import learner
from course_lib.lessons.lesson_01.recipes import transfer as task
from course_lib.lessons.lesson_01.tasks import TASKS

freeze, parameter_groups, residual_block = (
    TASKS[name].reference for name in ("freeze", "parameter_groups", "residual_block")
)


def test_a_net_on_the_right_block_computes_what_it_did_and_on_a_wrong_one_does_not():
    image = torch.randn(2, 1, 12, 12)
    ours, theirs = (learner.deep_net("residual", 8, block).eval() for block in (None, residual_block))
    assert torch.equal(ours(image), theirs(image))
    wrong = learner.deep_net("residual", 8, lambda x, branch, shortcut: shortcut(x).relu()).eval()
    assert not torch.equal(ours(image), wrong(image))


def test_a_plain_net_asks_no_block():
    net = learner.deep_net("plain", 8, lambda x, branch, shortcut: 1 / 0)
    assert net(torch.randn(2, 1, 12, 12)).shape == (2, 10)


def test_a_frozen_trunk_does_not_move_in_a_training_and_a_free_one_does():
    source = learner.source_of(load_trained("transfer"))
    for held in (True, False):
        model = task.with_new_head(source, 0)
        before = {name: value.clone() for name, value in learner.trunk_of(model).state_dict().items()}
        if held:
            learner.keep_frozen(model, freeze)
        learner.learn_target(model, parameter_groups(learner.parts_of(model), 1e-3, 0.5), 2, 3)
        after = learner.trunk_of(model).state_dict()
        same = all(torch.equal(value, after[name]) for name, value in before.items())
        assert same == held


def test_the_old_task_is_asked_under_the_old_head():
    source = learner.source_of(load_trained("transfer"))
    assert learner.old_task(task.with_new_head(source, 0), source) > 0.95
