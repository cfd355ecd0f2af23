"""Lesson 08, GPT: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Mapping, Sequence
from statistics import fmean

import torch
from torch import nn

from course_lib.classroom.results import Result
from course_lib.functional import sampling
from course_lib.lessons.lesson_08 import figures
from course_lib.lessons.lesson_08 import induction as heads
from course_lib.models.attention_only import AttentionOnly
from course_lib.tasks.claims import above, below
from course_lib.text.tokenizer import Tokenizer

Card = Mapping


def mechanism(model: nn.Module, tokenizer: Tokenizer, text: str, *, predicted=None) -> Result:
    ids = torch.tensor([tokenizer.encode("\n" + text)])
    with torch.no_grad():
        probs = model(ids)[0].softmax(dim=-1)
    names = [tokenizer.decode([i]).replace("\n", "start").strip() for i in ids[0].tolist()]
    right = probs[:-1].gather(1, ids[0, 1:, None])[:, 0]
    guesses = [tokenizer.decode([i]).replace("\n", "end").strip() for i in probs[:-1].argmax(dim=-1).tolist()]
    return Result(figures.mechanism(names, right.tolist(), guesses))


def bits(
    counted: Mapping[str, Mapping[int, float]], yours: float, ours: float, cards: Mapping[str, Card], *, predicted=None
) -> Result:
    def seeds(name: str, score: str = "bits per byte") -> list[float]:
        return [seed["test"][score] for seed in cards[name]["seeds"]]

    def spent(*names: str) -> str:
        seconds = fmean(seed["cpu_seconds"] for name in names for seed in cards[name]["seeds"])
        return f"{round(seconds, -1):.0f} CPU seconds each"

    characters = {name: seeds(f"{name.lower()}_characters") for name in ("RNN", "LSTM", "GPT")}
    short, long = seeds("gpt_short", "bits per byte, LSTM"), seeds("gpt")
    tokens, letters = counted["tokens"], counted["characters"]
    rows = [
        (f"tokens, about {spent('gpt_short')}", "", []),
        ("", "yours, a GPT", [yours]),
        ("", "LSTM of its size, three seeds", short),
        ("tokens, counted", "", []),
        *(("", f"{n}-gram", [value]) for n, value in tokens.items()),
        (f"tokens, about {spent('gpt')}", "", []),
        ("", "GPT, the shipped one, three seeds", long),
        (f"characters, about {spent('gpt_characters', 'lstm_characters', 'rnn_characters')}", "", []),
        *(("", f"{name}, three seeds", values) for name, values in characters.items()),
        ("characters, counted", "", []),
        *(("", f"{n}-gram", [value]) for n, value in letters.items()),
    ]
    return Result(
        figures.bits(rows, predicted),
        claims={
            "your steps": above(yours - tokens[2], 0),
            "LSTM": above(yours - max(short), 0.1),
            "tokens": below(max(abs(value - min(tokens.values())) for value in (ours, *long)), 0.02),
            "characters": letters[8] < max(characters["LSTM"]) < min(characters["GPT"]),
        },
        came=yours,
    )


def knobs(
    model: nn.Module,
    tokenizer: Tokenizer,
    prompt: str,
    repeated: Mapping[float, float],
    human: float,
    *,
    predicted=None,
) -> Result:
    with torch.no_grad():
        logits = model(torch.tensor([tokenizer.encode("\n" + prompt)]))[0, -1]
    best = logits.topk(8).indices
    stations = {
        "as it is": logits,
        "T = 0.5": sampling.temperature(logits, 0.5),
        "T = 2": sampling.temperature(logits, 2.0),
        "top-k, 3": sampling.top_k(logits, 3),
        "top-p, 0.5": sampling.top_p(logits, 0.5),
    }
    probs = {name: station.softmax(dim=-1)[best].tolist() for name, station in stations.items()}
    names = [repr(tokenizer.decode([i]))[1:-1] for i in best.tolist()]
    greedy, others = repeated[0.0], {value: share for value, share in repeated.items() if value > 0}
    return Result(
        figures.knobs(names, probs, list(others), list(others.values()), greedy, human, predicted),
        claims={"repetition": (above(greedy / human, 5), below(others[1.0] - human, 0))},
        came=100 * greedy,
    )


def cache(
    lengths: Sequence[int],
    operations: Mapping[str, Sequence[float]],
    kept: Sequence[int],
    same: bool,
    *,
    predicted=None,
) -> Result:
    ratio = operations["without"][-1] / operations["with"][-1]
    return Result(
        figures.cache(lengths, operations, kept),
        claims={"same text": same, "saves": above(ratio, 100)},
    )


def induction(two: AttentionOnly, one: AttentionOnly, card: Card, *, predicted=None) -> Result:
    rows = heads.repeats(300, 2024)
    live = {"two layers": heads.accuracy(two, rows), "one layer": heads.accuracy(one, rows)}
    for layer in range(2):
        with heads.switched_off(two, layer):
            live[f"layer {layer + 1} off"] = heads.accuracy(two, rows)
    names = {
        "two layers": "second time right, two layers",
        "layer 1 off": "second time right without layer 1, two layers",
        "layer 2 off": "second time right without layer 2, two layers",
        "one layer": "second time right, one layer",
        "one layer, two heads": "second time right, one layer, two heads",
        "one layer, four times the steps": "second time right, one layer, four times the steps",
    }
    right = {name: [seed["test"][score] for seed in card["seeds"]] for name, score in names.items()}
    weights = heads.maps(two, rows)
    period = rows.period[0].item()
    token = rows.tokens[0, :-1]
    followers = (token[:, None] == token[None, :]).tril(-1).roll(1, dims=-1)
    others = [share for name, values in right.items() if name != "two layers" for share in values]
    return Result(
        figures.induction(weights[0, :, 0], followers, period, right, predicted),
        claims={
            "yours": (above(live.pop("two layers"), 0.9), below(max(live.values()), 0.2)),
            "seeds": min(right["two layers"]) > 0.95 and max(others) < 0.2,
            "attention": above(heads.at_followers(weights, rows)[1].max(), 0.9),
        },
        came=100 * sum(right["one layer, four times the steps"]) / len(card["seeds"]),
    )


def parts(card: Card, *, predicted=None) -> Result:
    def seeds(score: str, name: str) -> list[float]:
        return [seed["test"][f"{score}, {name}"] for seed in card["seeds"]]

    nats = {name: seeds("nats per token", name) for name in card["settings"]}
    kept = {name: seeds("cache bytes a token", name)[0] for name in nats}
    return Result(figures.parts(nats, kept))


RESULTS = {function.__name__: function for function in (mechanism, bits, knobs, cache, induction, parts)}
