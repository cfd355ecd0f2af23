"""What cannot be trained, drawn or probed is named."""

import math

import jaxtyping
import pytest
import torch
from torch import nn

from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.reward import RewardModel
from course_lib.training import (
    FitConfig,
    averaging,
    fit,
    language_models,
    parallel,
    preference,
    probes,
    scale,
    seeding,
    translation,
    vision,
)
from course_lib.training.batches import Rollouts, bucketed_batches, shuffled_batches, text_windows

TINY = GPTConfig(vocab_size=7, context_length=8, dim=8, depth=1, num_heads=2)
FEATURES, LABELS = torch.rand(10, 3), torch.arange(10) % 2
SENSELESS = {
    "steps": [0],
    "learning_rate": [0.0, math.nan],
    "schedule": ["cosin"],
    "warmup": [11, -1],
    "final_factor": [1.1, -0.1],
    "clip_norm": [0.0],
    "weight_decay": [-0.1],
    "betas": [(0.9, 1.0)],
    "evaluate_every": [0],
    "checkpoint_every": [0],
    "keep_weights": [-1],
    "seed": [-1],
    "ema": [1.0],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in SENSELESS for value in SENSELESS[name]])
def test_a_senseless_setting_is_refused_by_name_and_value(name, value):
    with pytest.raises(ValueError) as error:
        FitConfig(**({"steps": 10} | {name: value}))
    assert str(error.value).startswith(f"{name} must be ") and str(error.value).endswith(f"got {value!r}.")


def trained(model=None, loss=lambda model, x: model(x).mean(), **settings):
    model = model or nn.Linear(2, 1)
    fit(model, lambda step: torch.ones(4, 2), loss, config=FitConfig(steps=1, learning_rate=0.1), **settings)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: trained(loss=lambda model, x: model(x)), r"shape \(\), got \(4, 1\)"),
        (lambda: trained(mode="sum"), '"min" .*"max" .*got \'sum\''),
        (lambda: trained(nn.Tanh()), "Tanh has no parameter to train"),
        (lambda: averaging.mean_weights([{"w": torch.ones(2)}, {"w": torch.ones(3)}]), "not of one model"),
        (lambda: averaging.mean_weights([]), "got none"),
        (lambda: shuffled_batches(0, 4, 0), "0 examples and batch size 4"),
        (lambda: shuffled_batches(10, 0, 0), "10 examples and batch size 0"),
        (lambda: bucketed_batches([], 4, 0), "0 examples and batch size 4"),
        (lambda: bucketed_batches([1] * 10, 0, 0), "10 examples and batch size 0"),
        (lambda: text_windows(torch.arange(16), batch_size=4, length=17, seed=0), "16 tokens has no window of 17"),
        (lambda: Rollouts(print, epochs=0, minibatches=4), "got 0 and 4"),
        (lambda: language_models.tokenized("poems"), "'poems'"),
        (lambda: language_models.token_nats(GPT(TINY), torch.tensor([1])), "two tokens or more"),
        (lambda: language_models.next_token_loss(GPT(TINY), torch.zeros(2, 5)), "whole numbers.*torch.float32"),
        (
            lambda: vision.classification_loss(nn.Flatten(), (torch.rand(2, 1, 4, 4), torch.ones(2))),
            "whole numbers.*32",
        ),
        (lambda: parallel.run_jobs(seeding.seed_everything, [{}], workers=-1), "-1"),
        (lambda: parallel.run_jobs(seeding.seed_everything, [{}], threads_per_worker=0), "0"),
        (lambda: RewardModel(TINY), "set head=None in place of 'tied'"),
        (lambda: preference.PPOConfig(beta=-1), "must be 0 or more, got -1"),
        (lambda: probes.logistic_regression(FEATURES, LABELS, l2=0.0), "l2 must be positive, got 0"),
        (lambda: probes.logistic_regression(FEATURES, LABELS, scale="none"), "one of each, all, got 'none'"),
        (lambda: probes.logistic_regression(FEATURES, LABELS * 0 + 1), r"two classes or more, got \[1\]"),
        (lambda: probes.logistic_regression(FEATURES / 0, LABELS), "NaN or infinite"),
        (lambda: probes.logistic_regression(FEATURES[:0], LABELS[:0]), "got 0 examples and 0 labels"),
        (lambda: probes.tuned_probe((FEATURES, LABELS[:9]), (FEATURES, LABELS)), "got 10 examples and 9 labels"),
        (lambda: probes.nearest_neighbours(FEATURES, LABELS, k=11), "from 1 to the number of examples, 10, got 11"),
        (lambda: probes.label_draw(LABELS, 99, seed=0), "99 of them cannot be drawn"),
        (lambda: scale.Setup(device="gpu"), "device must be one of cpu, cuda, mps, auto, got 'gpu'"),
        (lambda: scale.Setup(precision="16"), "precision must be one of 32, bf16, fp16, got '16'"),
        (lambda: scale.Setup(accumulate=0), "accumulate must be at least 1 batch a step, got 0"),
        (lambda: seeding.seed_everything(-1), "-1"),
        (lambda: seeding.seed_everything(2**32), str(2**32)),
        (lambda: translation.translate(None, "  "), "no word"),
    ],
)
def test_what_makes_no_sense_is_refused(call, words, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # the types that tests check would speak first
    with pytest.raises(ValueError, match=words):
        call()
