"""Lesson 04, LSTM and GRU: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Mapping, Sequence
from statistics import mean

import torch

from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.functional.recurrent import gradient_norms
from course_lib.lessons.lesson_04 import figures, learner, remember, units
from course_lib.lessons.lesson_04.units import Found
from course_lib.models.recurrent import CharacterLM, SequenceClassifier
from course_lib.tasks.claims import above, below

Card = Mapping
DISTANCE = 101
BITS = "bits per byte"
SHOWN = (3, slice(200, 700))  # a row of the test text, and the characters of it that are drawn
SENTENCES = "Return the first day of the week. The name is never empty. It is short."
LSTM_LENGTHS = (2, 5, 10, 25, 50, 100, 200, 400, 800, 1600, 3200, 6400)
REACH = ("RNN", "GRU", "LSTM, bias 1", "LSTM, long bias")


def distance(model: SequenceClassifier, card: Card, *, predicted=None) -> Result:
    lstm = {
        n: remember.accuracy(model.eval(), remember.held_out(n, count=500 if n <= 800 else 250)) for n in LSTM_LENGTHS
    }
    rnns = {length: by_seed(card, f"right, RNN, {length} symbols") for length in remember.LENGTHS}
    return Result(
        figures.distance(lstm, rnns, 50, predicted),
        claims={"far": (above(lstm[400], 0.99), below(max(rnns[50]), 0.2))},
        came=100 * lstm[400],
    )


def learning(
    losses: Mapping[str, Sequence[float]], ends: Mapping[str, float], costs: Mapping[str, float], *, predicted=None
) -> Result:
    curves = {name: learner.smoothed(each) for name, each in losses.items()}
    return Result(
        figures.learning(curves, ends, costs, 10),
        claims={"steps": (above(ends["RNN"] - ends["LSTM"], 0.03), above(ends["RNN"] - ends["GRU"], 0.03))},
        values={"lstm": costs["LSTM"] / costs["RNN"], "gru": costs["GRU"] / costs["RNN"]},
    )


def highway(*, predicted=None) -> Result:
    reach, gates = {}, {}
    rows = remember.held_out(DISTANCE, count=16)
    direction = torch.randn(16, 64, generator=torch.Generator().manual_seed(0))
    for kind in REACH:
        model = remember.build(remember.KINDS[kind](DISTANCE - 1))
        x = model.embed(rows.tokens)
        reach[kind] = gradient_norms(lambda x, model=model: model.rnn(x)[0], x, direction)
        if kind.startswith("LSTM"):
            kept = model.rnn.gates(x).f.log().mean(dim=(0, 2)).flip(0).cumsum(dim=0).exp().detach()
            gates[kind] = torch.cat([torch.ones(1), kept[:-1]])
    far = {kind: float(norms[50] / norms[1]) for kind, norms in reach.items()}
    return Result(
        figures.highway(reach, gates),
        claims={"gradient": (below(far["RNN"], 1e-9), above(far["LSTM, long bias"], 0.1))},
    )


def first_symbol(card: Card, yours: float | None, *, predicted=None) -> Result:
    right = {
        kind: {length: by_seed(card, f"right, {kind}, {length} symbols") for length in remember.LENGTHS}
        for kind in remember.KINDS
    }
    asked, hero = "LSTM, bias 1", "LSTM, long bias"
    return Result(
        figures.first_symbol(right, None if yours is None else (50, yours), hero, asked, predicted),
        claims={
            "plain": max(right["RNN"][50] + right[asked][50]) < 0.3,
            "long bias": all(min(by_length) > 0.9 for by_length in right[hero].values()),
        },
        came=100 * mean(right[asked][50]),
    )


def gates(model: CharacterLM, unit: int, *, predicted=None) -> Result:
    reading = units.read_text(model, SENTENCES)
    opened = {f"{name} ({word})": getattr(reading.gates, name)[0, :, unit]
              for name, word in (("f", "keep"), ("i", "write"), ("o", "show"))}  # fmt: skip
    cells, keep = reading.inside[0, :, unit], reading.gates.f[0, :, unit]
    start = SENTENCES.index("The")
    return Result(
        figures.gates(SENTENCES, cells, opened, unit),
        claims={"opens": (above(cells[start - 2] - cells[0], 15), below(keep[start - 1 : start + 1].min(), 0.3))},
    )


def counter(found: Found, other: Found, model: CharacterLM, *, predicted=None) -> Result:
    reading = units.read_split(model, "test")
    row, shown = SHOWN
    count = units.since_sentence(reading.texts[row])[shown].float()
    return Result(
        figures.counter(
            reading.inside[row, shown, found.unit],
            count,
            found.unit,
            {f"{name}, best unit": (unit.validation, unit.test) for name, unit in (("LSTM", found), ("RNN", other))},
        ),
        claims={"correlation": (above(abs(found.test), 0.7), below(abs(other.test), 0.3))},
    )


def quotes(model: CharacterLM, found: Found, *, predicted=None) -> Result:
    after = units.after_marks(model, found.unit)
    near, alone = units.inside_or_behind(model, found.unit), units.distance_alone(model)
    return Result(
        figures.quotes(after, found.unit, found.test, near, alone, predicted),
        claims={
            "marks": (
                above(found.test, 0.99),
                below(near, 0.9),
                below(near - alone, 0.15),
                above(min(float(means[0] - means[9]) / 9 for means in after.values()), 0.5),
            ),
        },
        came=near,
    )


def characters(rnn: Card, lstm: Card, short: Card, counts: Mapping[int, float], *, predicted=None) -> Result:
    long = {"5-gram": [counts[5]], "RNN": by_seed(rnn, BITS), "LSTM": by_seed(lstm, BITS), "8-gram": [counts[8]]}
    cells = {name: by_seed(short, f"{BITS}, {name}") for name in ("RNN", "LSTM", "GRU")}
    return Result(
        figures.characters(long, cells, predicted),
        claims={
            "equal": abs(mean(long["RNN"]) - mean(long["LSTM"])) < 0.02,
            "n-gram": above(min(long["RNN"] + long["LSTM"]) - counts[8], 0.05),
        },
        came=mean(long["LSTM"]),
    )


RESULTS = {
    function.__name__: function
    for function in (distance, highway, learning, first_symbol, characters, gates, counter, quotes)
}
