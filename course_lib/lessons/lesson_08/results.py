"""Lesson 08, GPT: its results, each with figure, alt text, claims and what it means."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

import torch
from torch import nn

from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.functional import sampling
from course_lib.lessons.lesson_08 import copying as stems
from course_lib.lessons.lesson_08 import definitions, figures
from course_lib.lessons.lesson_08 import induction as heads
from course_lib.lessons.lesson_08.recipes import PARTS, saved_in
from course_lib.models.attention_only import AttentionOnly
from course_lib.models.kneser_ney import KneserNey
from course_lib.tasks.claims import above, below
from course_lib.text.tokenizer import Tokenizer

Card = Mapping
SHORT = {"GPT": "GPT of its size", "LSTM": "LSTM of its size", "larger LSTM": "larger LSTM"}


def mechanism(model: nn.Module, tokenizer: Tokenizer, text: str, *, predicted=None) -> Result:
    ids = torch.tensor([tokenizer.encode("\n" + text)])
    with torch.no_grad():
        probs = model(ids)[0].softmax(dim=-1)
    names = [tokenizer.decode([i]).replace("\n", "start").strip() for i in ids[0].tolist()]
    right = probs[:-1].gather(1, ids[0, 1:, None])[:, 0]
    guesses = [tokenizer.decode([i]).replace("\n", "end").strip() for i in probs[:-1].argmax(dim=-1).tolist()]
    return Result(figures.mechanism(names, right.tolist(), guesses))


def bits(counted: Mapping[int, float], yours: float, cards: Mapping[str, Card], *, predicted=None) -> Result:
    short = {name: [s["test"][f"bits per byte, {name}"] for s in cards["gpt_short"]["seeds"]] for name in SHORT}
    long = by_seed(cards["dictionary"], "bits per byte, GPT")
    lstm = cards["dictionary"]["test"]["bits per byte, LSTM"]
    seconds = fmean(seed["cpu_seconds"] for seed in cards["gpt_short"]["seeds"])
    rows = [
        ("counted", "", []),
        *(("", f"{n}-gram", [value]) for n, value in counted.items()),
        (f"about {float(f'{seconds:.1g}'):,.0f} CPU seconds each", "", []),
        ("", "yours, a GPT", [yours]),
        *(("", words, short[name]) for name, words in SHORT.items()),
        (f"{cards['dictionary']['parameters'] / 1e6:.1f} million parameters, GPU minutes each", "", []),
        ("", "LSTM", [lstm]),
        ("", "GPT", long),
    ]
    return Result(
        figures.bits(rows, predicted),
        claims={
            "your steps": below(yours - counted[2], 0),
            "LSTM": max(short["larger LSTM"]) < min(short["GPT"]),
            "size": (below(max(long) - min(counted.values()), -0.1), below(max(long) - lstm, -0.1)),
        },
        came=yours,
    )


def first_loss(losses: Mapping[str, float], vocab_size: int, *, predicted=None) -> Result:
    even = math.log(vocab_size)
    values = {"even": even, "pytorch": losses["PyTorch's weights"], "gpt2": losses["GPT-2's weights"]}
    return Result(figures.first_loss(losses, even), values=values)


def twice(first: float, second: float, *, predicted=None) -> Result:
    return Result(figures.twice(first, second), values={"first": first, "second": second})


def headword(model: nn.Module, counts: KneserNey, tokenizer: Tokenizer, card: Card, *, predicted=None) -> Result:
    entries = definitions.held_out_entries(600)
    models = {"GPT": model, "5-gram": counts}
    saved = {name: definitions.saved_by_headword(one, tokenizer, entries) for name, one in models.items()}
    lstm = {part: card["test"][f"{saved_in(part)}, LSTM"] for part in PARTS}
    later = float(saved["GPT"][slice(*PARTS[-1])].mean())
    return Result(
        figures.headword(saved, {"LSTM": lstm}, predicted),
        claims={
            "headword": (
                above(later, 0.2),
                below(lstm[PARTS[-1]], 0.1),
                below(float(abs(saved["5-gram"][1:]).max()), 0.05),
            ),
        },
        came=later,
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
        "τ = 0.5": sampling.temperature(logits, 0.5),
        "τ = 2": sampling.temperature(logits, 2.0),
        "top-k, 3": sampling.top_k(logits, 3),
        "top-p, 0.5": sampling.top_p(logits, 0.5),
    }
    probs = {name: station.softmax(dim=-1)[best].tolist() for name, station in stations.items()}
    names = [repr(tokenizer.decode([i]))[1:-1] for i in best.tolist()]
    greedy, others = repeated[0.0], {value: share for value, share in repeated.items() if value > 0}
    return Result(
        figures.knobs(names, probs, list(others), list(others.values()), greedy, human, predicted),
        claims={"repetition": (above(greedy / human, 5), below(abs(others[1.0] - human), 0.01))},
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
        "one layer, 4 × the steps": "second time right, one layer, four times the steps",
    }
    right = {name: by_seed(card, score) for name, score in names.items()}
    weights = heads.maps(two, rows)
    period = rows.period[0].item()
    token = rows.tokens[0, :-1]
    followers = (token[:, None] == token[None, :]).tril(-1).roll(1, dims=-1)
    others = [share for name, values in right.items() if name != "two layers" for share in values]
    return Result(
        figures.induction(weights[0, :, 0], followers, period, right, predicted),
        claims={
            "yours": (
                above(live.pop("two layers"), 0.9),
                above(heads.at_followers(weights, rows)[1].max(), 0.9),
                below(max(live.values()), 0.2),
            ),
            "seeds": min(right["two layers"]) > 0.95 and max(others) < 0.2,
        },
        came=100 * sum(right["one layer, 4 × the steps"]) / len(card["seeds"]),
    )


def copying(model: nn.Module, tokenizer: Tokenizer, without_head: stems.Ablation, *, predicted=None) -> Result:
    words = definitions.invented(100, definitions.headwords())
    written = definitions.define(model, tokenizer, [word.prompt for word in words])
    attention = stems.attention_to_headword(model, tokenizer, words, written)[-1].tolist()
    whole = definitions.copying(written, words)["all"]
    without = stems.stems_without(model, tokenizer, words, without_head)
    lowest, second = sorted(without)[:2]
    return Result(
        figures.copying(attention, without, whole),
        claims={"one head": (below(lowest / whole, 0.1), above(second / whole, 0.5))},
    )


def parts(card: Card, *, predicted=None) -> Result:
    nats = {name: by_seed(card, f"nats per token, {name}") for name in card["settings"]}
    kept = {name: by_seed(card, f"cache bytes a token, {name}")[0] for name in nats}
    return Result(figures.parts(nats, kept))


RESULTS = {
    function.__name__: function
    for function in (mechanism, first_loss, bits, headword, knobs, cache, twice, copying, induction, parts)
}
