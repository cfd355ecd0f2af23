"""Training can be watched: whole, silent where nobody looks, and without a trace in the weights."""

import random

import pytest
import torch
from torch import nn

from course_lib.classroom import Page, kept, live
from course_lib.classroom.output import WIDGET_VIEW
from course_lib.training.config import FitConfig
from course_lib.training.loop import fit
from course_lib.training.progress import Progress, Silent
from course_lib.viz.style import figure

STEPS = 6


@pytest.fixture(autouse=True)
def looked_at(monkeypatch):
    monkeypatch.delenv("COURSE_PROGRESS", raising=False)
    monkeypatch.setattr(live, "SECONDS_BETWEEN_DRAWINGS", 0.0)
    monkeypatch.setattr(live, "SHARE_OF_TIME", float("inf"))


def small_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))


def train(model, progress=None):
    def batch_at(step):
        return torch.randn(8, 3, generator=torch.Generator().manual_seed(step))

    config = FitConfig(steps=STEPS, learning_rate=0.1, warmup=0)
    fit(
        model,
        batch_at,
        lambda model, x: (model(x) - x.sum(1, keepdim=True)).square().mean(),
        config=config,
        progress=progress,
    )
    return model.state_dict()


def careless(model):
    """An example that draws random numbers and would change the running averages in training mode."""
    random.random()
    return f"<em>{model(torch.randn(5, 3)).mean():.3f}</em>"


def test_watching_leaves_no_trace_in_the_weights(page):
    alone, model = train(small_model()), small_model()
    watched = train(model, live.watch(model, example=careless))
    assert len(page) == 1 and all(torch.equal(alone[name], watched[name]) for name in alone)


def test_the_example_is_made_in_evaluation_mode_without_gradients_and_modes_come_back(page):
    model = small_model().train()
    model[1].eval()
    seen = []
    display = live.watch(model, example=lambda m: seen.append((m[2].training, torch.is_grad_enabled())) or "")
    display.update(1, 2, loss=1.0)
    assert seen == [(False, False)] and model[2].training and model.training and not model[1].training


def test_what_is_shown_is_cut_off_nowhere_and_its_stored_text_is_the_same_for_all(page):
    display = live.watch(nn.Linear(1, 1), example=lambda model: "a word", title="a <b>", height=200)
    for step in range(3):
        display.update(step + 1, 3, loss=3.0 - step)
        assert display.box.value.startswith('<div style="min-height:200px"') and "overflow" not in display.box.value
        assert "flex:none;width:320px;height:180px" in display.box.value  # the curve's room, from the first step on
    display.close()
    assert "a word" in display.box.value and "3/3" in display.box.value and "a &lt;b&gt;" in display.box.value
    assert "Loss over 3 steps: from 3 to 1" in display.box.value
    assert [{mime: text for mime, text in shown.items() if mime != WIDGET_VIEW} for shown in page] == [
        {"text/plain": "", "text/html": ""}
    ]


def test_an_example_may_be_a_figure(page):
    display = live.watch(nn.Linear(1, 1), example=lambda model: figure(2, 1)[0], title="learning")
    display.update(1, 1, loss=1.0)
    assert 'alt="learning: one example"' in display.box.value


def test_an_example_that_fails_does_not_end_the_training(page):
    display = live.watch(nn.Linear(1, 1), example=lambda model: 1 / 0)
    display.update(1, 1, loss=1.0)
    assert "could not be shown: ZeroDivisionError" in display.box.value


def test_it_is_redrawn_seldom(page, monkeypatch):
    monkeypatch.setattr(live, "SECONDS_BETWEEN_DRAWINGS", 1e6)
    drawn = []
    display = live.watch(nn.Linear(1, 1), example=lambda model: drawn.append(1) or "")
    for step in range(100):
        display.update(step + 1, 100, loss=1.0)
    assert len(drawn) == 1
    display.close()
    assert len(drawn) == 2  # the end is always shown


def test_the_slower_the_example_the_rarer_the_drawing(page, monkeypatch):
    clock = iter(range(0, 100, 5))  # each look at the clock comes 5 s after the last
    monkeypatch.setattr(live, "SHARE_OF_TIME", 0.1)
    monkeypatch.setattr(live.time, "monotonic", lambda: next(clock))
    display = live.watch(nn.Linear(1, 1))
    display.update(1, 100, loss=1.0)
    assert display.wait == 50


def test_the_curve_of_a_long_training_is_short_and_keeps_its_ends():
    curve = live.loss_curve([float(10_000 - step) for step in range(10_000)])
    assert curve.count(",") < 200 and "Loss over 10000 steps: from 9.96e+03 to" in curve
    assert live.loss_curve([1.0]) == "" and "NaN" not in live.loss_curve([1.0, 1.0])


def test_where_nobody_looks_it_is_silent(page, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", "off")
    display = Page("06").watch(nn.Linear(1, 1), example=careless)
    display.update(1, 2, loss=1.0)
    display.close()
    assert isinstance(display, Silent) and isinstance(display, Progress) and page == []


def test_without_a_kernel_it_is_silent():
    assert isinstance(Page("06").watch(nn.Linear(1, 1)), Silent)


def test_a_training_that_is_stopped_keeps_what_it_has_learned_and_is_not_kept(page, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    calls = []

    def stopped_after(steps):
        model = small_model()
        display = live.watch(model)
        update = display.update

        def press_after(done, total, **details):
            update(done, total, **details)
            calls.append(done)
            if done == steps:
                display.button.click()

        display.update = press_after
        return train(model, display)

    weights = kept.keep("05", "net", stopped_after, {"steps": 2})
    assert calls == [1, 2]
    alone = small_model()
    assert not all(torch.equal(weights[name], value) for name, value in alone.state_dict().items())
    assert not list(tmp_path.rglob("net-*"))
    kept.keep("05", "net", stopped_after, {"steps": 99})
    assert len(list(tmp_path.rglob("net-*.pt"))) == 1
