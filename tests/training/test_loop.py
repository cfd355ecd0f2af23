import copy
import inspect
import math
import re
from collections import namedtuple
from dataclasses import dataclass
from functools import partial

import jaxtyping
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.training import FitConfig, History, fit, seed_everything, seeded, shuffled_batches, simple_fit
from course_lib.training import run as run_module
from course_lib.training.engine import OneProcess
from course_lib.training.engine import using as using_engine
from course_lib.training.loop import to_device
from course_lib.training.progress import Silent, using
from course_lib.training.schedules import cosine

INPUTS = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
TARGETS = INPUTS @ torch.tensor([[1.0], [-2.0], [0.5], [0.0], [3.0]]) + 0.7


def network(dropout=0.0):
    with seeded(3):
        return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 1))


def batch_at(step):
    rows = torch.arange(8 * step, 8 * step + 8) % 40
    return INPUTS[rows], TARGETS[rows]


def loss(model, batch):
    return ((model(batch[0]) - batch[1]) ** 2).mean()


def validate(model):
    return float(((model(INPUTS) - TARGETS) ** 2).mean())


def same(first, second):
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_equals_the_loop_that_one_would_write_by_hand():
    config = FitConfig(steps=30, learning_rate=0.02, warmup=5, clip_norm=0.5, weight_decay=0.1, betas=(0.8, 0.95))
    ours, by_hand = network(), network()
    history = fit(ours, batch_at, loss, config=config)

    matrices, vectors = [by_hand[0].weight, by_hand[3].weight], [by_hand[0].bias, by_hand[3].bias]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=0.02, betas=(0.8, 0.95), fused=True)
    for step in range(30):
        for group in optimizer.param_groups:
            group["lr"] = 0.02 * cosine(step, 30, 5)
        value = loss(by_hand, batch_at(step))
        optimizer.zero_grad()
        value.backward()
        norm = math.sqrt(sum(float(p.grad.square().sum()) for p in by_hand.parameters()))
        for p in by_hand.parameters():
            p.grad *= min(1.0, 0.5 / (norm + 1e-6))
        optimizer.step()
        assert history.losses[step] == pytest.approx(value.item(), rel=1e-4)
        assert history.gradient_norms[step] == pytest.approx(norm, rel=1e-4)
        assert history.learning_rates[step] == 0.02 * cosine(step, 30, 5)
    for a, b in zip(ours.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_the_same_seed_gives_the_same_run_whatever_came_before():
    def run(seed):
        model = network(dropout=0.5)
        history = fit(model, batch_at, loss, config=FitConfig(steps=20, seed=seed))
        return model, history.losses

    first, losses = run(1)
    torch.rand(100)
    again, losses_again = run(1)
    other, losses_other = run(2)
    assert same(first, again) and (losses == losses_again).all()
    assert not same(first, other) and not (losses == losses_other).all()


def test_the_callers_random_numbers_go_on_as_if_there_had_been_no_training():
    seed_everything(0)
    expected = torch.rand(4)
    seed_everything(0)
    fit(network(dropout=0.5), batch_at, loss, config=FitConfig(steps=3))
    assert torch.equal(torch.rand(4), expected)


def test_the_average_follows_its_closed_form_and_is_what_remains():
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.zero_()
    config = FitConfig(steps=12, learning_rate=1.0, schedule="constant", clip_norm=None, ema=0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    fit(model, lambda step: None, lambda m, b: -m.weight.sum(), config=config, optimizer=optimizer)
    expected = 0.0
    for t in range(1, 13):  # the weight itself is t after t steps
        decay = min(0.5, (1 + t) / (10 + t))
        expected = decay * expected + (1 - decay) * t
    assert model.weight.item() == pytest.approx(expected, rel=1e-6)


def test_validation_and_best_weights_use_the_average():
    values = []

    def watched(model):
        values.append(copy.deepcopy(model.state_dict()))
        return validate(model)

    model = network()
    config = FitConfig(steps=10, learning_rate=0.05, ema=0.9, evaluate_every=5)
    history = fit(model, batch_at, loss, config=config, validate=watched)
    assert all(torch.equal(values[-1][name], tensor) for name, tensor in model.state_dict().items())
    without = network()
    fit(without, batch_at, loss, config=FitConfig(steps=10, learning_rate=0.05))
    assert not same(model, without)
    assert history.best_step == 10 and torch.equal(history.best_weights["0.weight"], model[0].weight)


@pytest.mark.parametrize(("mode", "expected"), [("min", 4), ("max", 6)])
def test_the_best_weights_are_those_of_the_best_validation(mode, expected):
    scores = iter([float("nan"), 1.0, 9.0, 1.0, float("nan")])
    kept = {}

    def score(model):
        kept[len(kept)] = copy.deepcopy(model.state_dict())
        return next(scores)

    model = network()
    config = FitConfig(steps=9, evaluate_every=2)
    history = fit(model, batch_at, loss, config=config, validate=score, mode=mode)
    assert history.validation_steps.tolist() == [2, 4, 6, 8, 9]
    assert history.best_step == expected and history.best_value == {4: 1.0, 6: 9.0}[expected]
    assert np.isnan(history.validation_values[-1])
    last = copy.deepcopy(model)
    history.load_best(model)
    assert not same(model, last)
    assert torch.equal(model[0].weight, kept[expected // 2 - 1]["0.weight"])


def test_a_validation_that_is_not_a_number_is_never_the_best():
    history = fit(network(), batch_at, loss, config=FitConfig(steps=1), validate=lambda model: math.nan)
    assert history.best_step is None and history.best_value is None and history.best_weights is None


def test_validation_sees_evaluation_mode_without_gradients_and_training_goes_on_in_training_mode():
    modes = []

    def watch(model, batch=None):
        modes.append((model.training, torch.is_grad_enabled()))
        return loss(model, batch) if batch else 0.0

    model = network()
    fit(model, batch_at, watch, config=FitConfig(steps=2, evaluate_every=1), validate=watch)
    assert modes == [(True, True), (False, False)] * 2
    assert not model.training


def test_validating_more_often_does_not_change_the_training():
    def noisy(model):
        return float(torch.rand(()))

    models = [network(dropout=0.5) for _ in range(2)]
    for model, every in zip(models, (1, None), strict=True):
        fit(model, batch_at, loss, config=FitConfig(steps=9, evaluate_every=every), validate=noisy)
    assert same(*models)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_before_it_ruins_the_weights(bad):
    good = network()
    fit(good, batch_at, loss, config=FitConfig(steps=5, learning_rate=0.025, schedule="constant"))
    model, step = network(), iter(range(100))

    def explodes(model, batch):
        return loss(model, batch) + (bad if next(step) == 5 else 0.0)

    config = FitConfig(steps=50, learning_rate=0.025, schedule="constant")
    with pytest.raises(FloatingPointError, match=rf"step 5 with learning rate 0.025: the loss is {bad}"):
        fit(model, batch_at, explodes, config=config)
    assert same(model, good)


def test_a_gradient_that_is_not_finite_stops_too():
    def infinite_slope(model, batch):
        return (model.weight.sum() * 0).sqrt()

    with pytest.raises(FloatingPointError, match="step 0 .*gradient norm is (nan|inf)"):
        fit(nn.Linear(2, 1), lambda step: None, infinite_slope, config=FitConfig(steps=3))


def test_a_custom_schedule_and_optimizer_are_used():
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    config = FitConfig(steps=4, learning_rate=0.1, schedule=lambda step, steps, warmup: 1 / (1 + step))
    history = fit(model, batch_at, loss, config=config, optimizer=optimizer)
    np.testing.assert_allclose(history.learning_rates, [0.1, 0.05, 0.1 / 3, 0.025])
    assert "momentum_buffer" in optimizer.state[model.weight]


def test_an_optimizer_with_another_rate_than_the_config_is_refused():
    model = nn.Linear(5, 1)
    with pytest.raises(ValueError, match="optimizer's learning rate is 0.5 but the config's is 0.1"):
        fit(model, batch_at, loss, config=FitConfig(steps=1, learning_rate=0.1),
            optimizer=torch.optim.SGD(model.parameters(), lr=0.5))  # fmt: skip


def test_a_data_loader_is_refused_with_what_to_write_instead():
    dataset = torch.utils.data.TensorDataset(INPUTS, TARGETS)
    unchecked = inspect.unwrap(fit)  # the types that tests check would speak first
    with pytest.raises(ValueError, match="function of the step.*got DataLoader") as error:
        unchecked(network(), torch.utils.data.DataLoader(dataset), loss, config=FitConfig(steps=1))
    advice = re.search("indices_at = (.*) and batch_at = (.*)\\.$", str(error.value))
    names = {"shuffled_batches": shuffled_batches, "dataset": dataset, "batch_size": 8, "seed": 0, "torch": torch}
    names["indices_at"] = eval(advice[1], names)
    first = eval(advice[2], names)(0)
    rows = shuffled_batches(40, 8, 0)(0)
    assert torch.equal(first[0], INPUTS[rows]) and torch.equal(first[1], TARGETS[rows])


def test_a_history_survives_its_file(tmp_path):
    config = FitConfig(steps=6, evaluate_every=2)
    history = fit(network(), batch_at, loss, config=config, validate=validate)
    history.save(tmp_path / "history.npz")
    copy_ = History.load(tmp_path / "history.npz")
    assert copy_.best_step == history.best_step == 6 and copy_.best_value == history.best_value
    assert all(np.array_equal(array, copy_.arrays()[name]) for name, array in history.arrays().items())
    with pytest.raises(ValueError, match="no best weights"):
        copy_.load_best(network())


def test_seconds_of_validation_and_saving_are_not_counted(tmp_path, monkeypatch):
    now = 0.0

    class FakeTime:
        perf_counter = process_time = staticmethod(lambda: now)

    def takes(seconds, result):
        nonlocal now
        now += seconds
        return result

    monkeypatch.setattr(run_module, "time", FakeTime)
    save = run_module.checkpoints.save
    monkeypatch.setattr(run_module.checkpoints, "save", lambda *state: takes(100, save(*state)))
    history = fit(
        network(), batch_at, lambda m, b: takes(1, loss(m, b)), validate=lambda m: takes(10, 0.0),
        config=FitConfig(steps=5, evaluate_every=1, checkpoint_every=1), checkpoint=tmp_path,
    )  # fmt: skip
    assert history.wall_seconds.tolist() == history.cpu_seconds.tolist() == [1, 2, 3, 4, 5]


Pair = namedtuple("Pair", "x y")


@dataclass
class Sentences:
    ids: Tensor
    name: str


def test_a_batch_of_any_structure_is_moved_to_the_device():
    x = torch.zeros(2)
    batch = {"a": [x, (x, 3)], "b": Pair(x, None), "c": Sentences(x, "French")}
    moved = to_device(batch, torch.device("meta"))
    tensors = [moved["a"][0], moved["a"][1][0], moved["b"].x, moved["c"].ids]
    assert all(tensor.device.type == "meta" for tensor in tensors)
    assert moved["a"][1][1] == 3 and moved["b"].y is None and moved["c"].name == "French"
    assert isinstance(moved["b"], Pair) and isinstance(moved["a"][1], tuple)


class OneOfMany(OneProcess):
    """A process of several, alone: what the others would add to a mean, it lacks."""

    def __init__(self, rank, processes, *training):
        super().__init__(*training)
        self.rank, self.processes = rank, processes


def test_one_of_many_processes_writes_and_shows_progress(tmp_path):
    shown = []

    class Display(Silent):
        def update(self, done, total, **details):
            shown.append(done)

    for rank in (1, 0):
        with using(Display):
            fit(network(), batch_at, loss, config=FitConfig(steps=2), checkpoint=tmp_path / f"{rank}",
                engine=partial(OneOfMany, rank, 2))  # fmt: skip
        assert ((tmp_path / f"{rank}").exists(), shown) == ((False, []) if rank else (True, [1, 2]))


def test_an_engine_is_used_by_every_fit_in_its_block_and_by_none_after_it():
    made = []

    class Counted(OneProcess):
        def __init__(self, *training):
            made.append(training[0])
            super().__init__(*training)

    models = [network() for _ in range(3)]
    with using_engine(Counted):
        fit(models[0], batch_at, loss, config=FitConfig(steps=1))
        fit(models[1], batch_at, loss, config=FitConfig(steps=1), engine=OneProcess)
    fit(models[2], batch_at, loss, config=FitConfig(steps=1))
    assert made == models[:1]


def test_an_optimizer_of_other_parameters_is_refused():
    def trained(model, optimizer):
        fit(model, batch_at, loss, config=FitConfig(steps=1, learning_rate=0.1), optimizer=optimizer)

    model = network()
    before = torch.optim.SGD(model.parameters(), lr=0.1)
    model[3] = nn.Linear(8, 1)
    with pytest.raises(ValueError, match="2 tensors that are not .* Make the optimizer after"):
        trained(model, before)
    with pytest.raises(ValueError, match=r"not 3\.weight, 3\.bias.*requires_grad_\(False\)"):
        trained(model, torch.optim.SGD(model[0].parameters(), lr=0.1))
    model[3].requires_grad_(False)
    trained(model, torch.optim.SGD(model[0].parameters(), lr=0.1))


def test_an_exhausted_iterator_is_named_with_its_step():
    batches = iter([batch_at(0)])
    with pytest.raises(ValueError, match="no batch for step 1.*function of the step"):
        fit(network(), lambda step: next(batches), loss, config=FitConfig(steps=3))


def test_numbers_of_numpy_are_plain_ones_in_a_config(tmp_path, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # outside of tests nobody checks the annotations
    config = FitConfig(steps=np.int64(2), learning_rate=np.float64(0.1), warmup=np.int32(1), seed=np.uint8(3))
    assert {type(value) for value in (config.steps, config.warmup, config.seed)} == {int}
    assert type(config.learning_rate) is float
    fit(network(), batch_at, loss, config=config, checkpoint=tmp_path)
    assert torch.load(tmp_path / "last.pt", weights_only=True)["settings"]["steps"] == 2


@pytest.mark.parametrize("clip_norm", [1.0, 1e-2])
def test_the_short_loop_takes_the_same_steps_as_fit(clip_norm):
    torch.manual_seed(0)
    first = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    second = copy.deepcopy(first)
    batches = torch.randn(20, 5, 3)

    def loss(model, x):
        return F.mse_loss(model(x)[:, 0], x.prod(dim=1))

    settings = {"steps": 20, "learning_rate": 1e-2, "warmup": 3, "clip_norm": clip_norm}
    losses = simple_fit(first, batches.__getitem__, loss, **settings)
    history = fit(second, batches.__getitem__, loss, config=FitConfig(**settings))
    assert losses == pytest.approx(history.losses, rel=1e-5)
    for mine, theirs in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)
    assert not first.training
