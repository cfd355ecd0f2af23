"""Training through Lightning Fabric: in two gloo processes that torchrun starts, and in one."""

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.data.place import CannotStart
from course_lib.training import FitConfig, Rollouts, fit, scale
from course_lib.training.engine import OneProcess
from course_lib.training.scale import Launched, Setup, start
from tests.training import together
from tests.training.together import CONFIG, Net, batch_at, loss, loss_with_rest, validate

ROOT = Path(__file__).parents[2]


def torchrun(*arguments, **environment):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | environment
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What two processes made of the same trainings: of each its weights, histories and random numbers."""
    folder = tmp_path_factory.mktemp("together")
    ended = torchrun(together.__file__, str(folder))
    assert ended.returncode == 0, ended.stderr
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(2)], folder


def of_parts(count, part_loss=loss):
    """The mean loss of so many batches: what as many processes, or accumulated batches, see in a step."""
    return {
        "batch_at": lambda step: [batch_at(count * step + part) for part in range(count)],
        "loss": lambda model, batches: sum(part_loss(model, batch) for batch in batches) / count,
    }


def close(first, second):
    torch.testing.assert_close(first, second, rtol=1e-4, atol=1e-6)


def test_two_processes_train_as_one_with_twice_the_batch(two):
    alone = Net()
    history = fit(alone, partial(batch_at, size=8), loss, config=CONFIG, validate=validate)
    for weights, histories, *_ in two[0]:
        close(weights["plain"], alone.state_dict())
        for name in ("losses", "gradient_norms", "validation_values"):
            np.testing.assert_allclose(getattr(histories["plain"], name), getattr(history, name), rtol=1e-4)
        assert histories["plain"].best_step == history.best_step


def test_all_processes_end_with_the_same_weights_and_losses(two):
    (first, histories, *_), (second, others, *_) = two[0]
    for name in first:
        assert all(torch.equal(first[name][key], second[name][key]) for key in first[name])
    assert all((histories[name].losses == others[name].losses).all() for name in histories)


def test_a_layer_may_rest_in_a_step_of_one_process(two):
    alone = Net()
    fit(alone, config=CONFIG, **of_parts(2, loss_with_rest))
    used = {(batch_at(number)[0][0, 0] > 0).item() for number in (0, 1)}
    assert used == {True, False}  # already in step 0
    close(two[0][1][0]["rest"], alone.state_dict())


def test_two_processes_accumulate_two_batches_each(two):
    alone = Net()
    fit(alone, partial(batch_at, size=16), loss, config=CONFIG)
    close(two[0][0][0]["accumulated"], alone.state_dict())


def test_each_process_draws_random_numbers_of_its_own(two):
    draws = [drawn for _, _, drawn, _ in two[0]]
    assert len({*draws[0], *draws[1]}) == 8  # three steps and a rollout each
    alone = []
    fit(Net(), batch_at, together.noise_of(alone), config=FitConfig(steps=3, seed=5))
    assert draws[0][:3] == alone  # those of process 0 are as without the others


def test_an_interrupted_training_of_two_goes_on_bit_for_bit_and_one_of_them_writes(two):
    for weights, *_ in two[0]:
        assert all(torch.equal(weights["whole"][key], weights["resumed"][key]) for key in weights["whole"])
    assert {path.name for path in (two[1] / "run").iterdir()} == {"last.pt", "previous.pt"}
    with pytest.raises(ValueError, match="processes=2 then, 1 now"):
        fit(Net(dropout=0.5), batch_at, loss, config=CONFIG, checkpoint=two[1] / "run")


def test_when_a_training_ends_every_process_finds_its_checkpoint(two):
    assert [found for *_, found in two[0]] == [["last.pt"]] * 2


@pytest.mark.parametrize("count", [2, 3])
def test_accumulated_batches_make_the_step_of_one_large_batch(count):
    parts, whole = Net(), Net()
    histories = [
        fit(parts, batch_at, loss, config=CONFIG, engine=start(Setup(accumulate=count))),
        fit(whole, partial(batch_at, size=4 * count), loss, config=CONFIG),
    ]
    close(parts.state_dict(), whole.state_dict())
    np.testing.assert_allclose(histories[0].losses, histories[1].losses, rtol=1e-4)
    np.testing.assert_allclose(histories[0].gradient_norms, histories[1].gradient_norms, rtol=1e-4)


def test_rollouts_are_not_accumulated():
    rollouts = Rollouts(lambda model, number: {"x": torch.zeros(4)}, epochs=1, minibatches=2)
    with pytest.raises(ValueError, match="fewer minibatches, and not 3 a step"):
        fit(Net(), rollouts, loss, config=CONFIG, engine=start(Setup(accumulate=3)))


def test_bf16_is_for_the_forward_pass_and_leaves_batch_and_weights_as_they_are():
    seen = set()

    def look(model, batch):
        seen.update([("batch", batch[0].dtype), ("weights", model.inner.weight.dtype)])
        seen.add(("features", model.features(batch[0]).dtype))
        return loss(model, batch)

    rounded, exact = Net(), Net()
    fit(rounded, batch_at, look, config=CONFIG, engine=start(Setup(precision="bf16")))
    fit(exact, batch_at, loss, config=CONFIG)
    assert seen == {("batch", torch.float32), ("weights", torch.float32), ("features", torch.bfloat16)}
    difference = (rounded.inner.weight - exact.inner.weight).abs().max()
    assert 0 < difference < 0.05


def fp16_on_the_cpu():
    """Fabric takes fp16 there only if it is handed over."""
    from lightning_fabric import Fabric
    from lightning_fabric.plugins import MixedPrecision

    fabric = Fabric(accelerator="cpu", devices=1, plugins=[MixedPrecision("16-mixed", "cpu")])
    return Launched(fabric, Setup(precision="fp16"))


def small_loss(model, batch):
    """Its gradient, times the scale at the start, 65536, is a number of fp16 still."""
    return 0.01 * loss(model, batch)


def test_gradients_are_clipped_after_the_scale_of_the_loss_is_taken_out():
    config, models = FitConfig(steps=6, learning_rate=0.1, clip_norm=0.001), [Net(), Net()]
    histories = [
        fit(model, batch_at, small_loss, config=config, engine=engine,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
        for model, engine in zip(models, (fp16_on_the_cpu(), None), strict=True)
    ]  # fmt: skip
    assert (histories[1].gradient_norms > 0.001).all()
    np.testing.assert_allclose(histories[0].gradient_norms, histories[1].gradient_norms, rtol=0.02)
    moved = [model.inner.weight - Net().inner.weight for model in models]
    torch.testing.assert_close(*moved, rtol=0.05, atol=2e-6)


def test_a_step_that_overflows_is_left_out_and_the_scale_survives_an_interruption(tmp_path):
    def too_large_at_first(model, batch):
        return small_loss(model, batch) * (1e3 if torch.equal(batch[0], batch_at(0)[0]) else 1.0)

    config = FitConfig(steps=3, learning_rate=0.02, schedule="constant", checkpoint_every=1)
    model, engine = Net(), fp16_on_the_cpu()
    run = {"config": config, "engine": engine, "checkpoint": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        fit(model, together.interrupted_at(1), too_large_at_first, **run)
    assert torch.equal(model.inner.weight, Net().inner.weight)
    halved = torch.load(tmp_path / "last.pt", weights_only=True)["engine"]["scale"]
    assert halved == engine.fresh_scale["scale"] / 2
    fit(model, batch_at, too_large_at_first, **run)
    assert engine.scaler.get_scale() == halved and not torch.equal(model.inner.weight, Net().inner.weight)
    fit(Net(), batch_at, small_loss, config=FitConfig(steps=1), engine=engine)
    assert engine.scaler.get_scale() == 2 * halved  # each training begins anew


def test_the_loss_is_compiled_and_gives_the_same_training(monkeypatch):
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=count))
    models = [Net(), Net()]
    fit(models[0], batch_at, loss, config=CONFIG, engine=start(Setup(compile=True)))
    fit(models[1], batch_at, loss, config=CONFIG)
    close(models[0].state_dict(), models[1].state_dict())
    assert graphs


def test_a_run_goes_on_with_its_own_precision_and_accumulation_only(tmp_path):
    run = {"config": CONFIG, "checkpoint": tmp_path}
    fit(Net(), batch_at, loss, engine=start(Setup(accumulate=2, precision="bf16")), **run)
    with pytest.raises(ValueError, match="accumulate=2 then, 1 now; precision='bf16' then, '32' now"):
        fit(Net(), batch_at, loss, **run)


def test_nothing_asked_for_is_as_without_fabric():
    assert start() is OneProcess and start(Setup()) is OneProcess
    assert "lightning_fabric" not in subprocess.run(
        [sys.executable, "-c", "import sys; from course_lib.training import scale; scale.start(); print(*sys.modules)"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    ).stdout.split()  # fmt: skip


def test_without_fabric_one_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    assert start() is OneProcess
    with pytest.raises(CannotStart, match=r"pip install --editable '.\[scale\]'$"):
        start(Setup(accumulate=2))


def test_a_device_that_is_not_there_is_told_with_their_number(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda *a, **k: False)
    assert scale.usable_device("auto", 2) == "cpu"
    with pytest.raises(CannotStart, match="2 processes on cuda cannot start: PyTorch .* finds 0 such devices"):
        scale.usable_device("cuda", 2)
    with pytest.raises(CannotStart, match="fp16 is for GPUs: on the CPU take bf16"):
        start(Setup(precision="fp16"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no CUDA GPU on this machine")
@pytest.mark.parametrize("precision", ["32", "bf16", "fp16"])
def test_a_gpu_trains_as_the_cpu_does_and_gives_the_model_back(precision):
    there, here = Net(), Net()
    devices = set()

    def look(model):
        devices.add(model.inner.weight.device.type)
        return validate(model)

    config = FitConfig(steps=12, learning_rate=0.01, ema=0.9, evaluate_every=4)
    engine = start(Setup(device="cuda", precision=precision, accumulate=2))
    histories = [
        fit(there, batch_at, loss, config=config, validate=look, engine=engine),
        fit(here, partial(batch_at, size=8), loss, config=config, validate=validate),
    ]
    tolerance = {"32": 1e-3, "bf16": 0.05, "fp16": 0.02}[precision]
    np.testing.assert_allclose(histories[0].losses, histories[1].losses, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(histories[0].validation_values, histories[1].validation_values, atol=tolerance)
    assert devices == {"cpu"} and all(p.device.type == "cpu" for p in there.parameters())


def test_validation_gets_a_copy_where_the_data_are():
    class Elsewhere(scale.WithFabric):
        """A training on a device that has no numbers, but shapes."""

        def __init__(self, model):
            self.model, self.home = model.to("meta"), torch.device("cpu")
            self.fabric = type("On", (), {"device": torch.device("meta")})

    class Brought(nn.Linear):
        def to(self, device):
            return self if torch.device(device).type == "meta" else super().to_empty(device=device)

    place = Elsewhere(Brought(2, 2, device="meta"))
    copied = place.for_validation()
    assert copied.weight.device.type == "cpu" and place.model.weight.device.type == "meta"


def test_the_page_about_it_shows_a_script_that_trains(capsys):
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    exec(re.search("```python\n(.*?)```", page, flags=re.DOTALL)[1], {"__name__": "script"})
    before, after = map(float, re.findall(r"[\d.]+", capsys.readouterr().out))
    assert after < before / 10
    commands = re.findall("(?:course|course_lib.cli) train.*", page)
    flags = {flag for command in commands for flag in re.findall("--[a-z]+", command)}
    assert flags == {"--device", "--precision", "--compile"} and "--accumulate" in page
