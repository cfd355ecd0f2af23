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


def mechanism(model: nn.Module, tokenizer: Tokenizer, text: str, *, bet=None) -> Result:
    ids = torch.tensor([tokenizer.encode("\n" + text)])
    with torch.no_grad():
        shares = model(ids)[0].softmax(dim=-1)
    names = [tokenizer.decode([i]).replace("\n", "start").strip() for i in ids[0].tolist()]
    right = shares[:-1].gather(1, ids[0, 1:, None])[:, 0]
    guesses = [tokenizer.decode([i]).replace("\n", "end").strip() for i in shares[:-1].argmax(dim=-1).tolist()]
    return Result(
        figures.mechanism(names, right.tolist(), guesses),
        alt="Left: a square of places against places, filled on and below the diagonal: each place sees itself and "
        "what stands before it. Right, a row for each place: the token read last, the model's favourite for the next "
        "one, the token that comes, and the probability that it had. About half of the favourites are right.",
    )


def bits(
    counted: Mapping[str, Mapping[int, float]], yours: float, ours: float, cards: Mapping[str, Card], *, bet=None
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
        figures.bits(rows, bet),
        alt="Bits per byte of the test text, fewer are better. On tokens your GPT stands behind the table of pairs and "
        "far behind an LSTM that trained as long; the shipped GPT, after minutes, is level with the best table. "
        "On characters the 8-gram leads, then LSTM and RNN, then GPT.",
        claims=(
            ("1,500 steps do not reach a table of token pairs", above(yours - tokens[2], 0)),
            ("an LSTM as large, trained as long, is over 0.1 ahead of yours, every seed",
             above(yours - max(short), 0.1)),
            ("the shipped GPT (as evaluated here, and every seed) is within 0.02 of the best table over tokens",
             below(max(abs(value - min(tokens.values())) for value in (ours, *long)), 0.02)),
            ("on characters the 8-gram and the LSTM beat GPT, every seed",
             letters[8] < max(characters["LSTM"]) < min(characters["GPT"])),
        ),
        came=yours,
        outcome="Counting two tokens takes a moment, and your GPT does not reach it. The shipped one is level with the "
        "best table, after minutes of computing (an LSTM on tokens was not given as many). If the story ended here, "
        "nobody would use it. Probably two million characters are little for a model that has to learn from scratch "
        "what a distance is; an LSTM is built for *one after the other*. Why, then, did GPT win elsewhere? Tables "
        "stop gaining: from four tokens to six there is hardly a change, since most longer contexts were never seen. "
        "The LSTM must work through a text step by step. A GPT uses all that a machine can do at once, and with more "
        "data, parameters and time it goes on getting better: lesson 09 measures that.",
    )  # fmt: skip


def knobs(
    model: nn.Module,
    tokenizer: Tokenizer,
    prompt: str,
    repeated: Mapping[float, float],
    human: float,
    *,
    bet=None,
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
    shares = {name: station.softmax(dim=-1)[best].tolist() for name, station in stations.items()}
    names = [repr(tokenizer.decode([i]))[1:-1] for i in best.tolist()]
    greedy, others = repeated[0.0], {value: share for value, share in repeated.items() if value > 0}
    return Result(
        figures.knobs(names, shares, list(others), list(others.values()), greedy, human, bet),
        alt="Left: the eight likeliest next tokens of one prompt as bars: as they are, sharper at temperature 0.5, "
        "flatter at 2, only three left by top-k, a few by top-p. Right: the share of four-token runs that repeat "
        "earlier ones; it is largest where the likeliest token is taken each time and falls with the temperature, "
        "below what people write.",
        claims=(
            ("greedy writing repeats over five times as much as people do, writing at temperature 1 less",
             above(greedy / human, 5), below(others[1.0] - human, 0)),
        ),
        came=100 * greedy,
        outcome="The likeliest token each time is not the likeliest text, and no text that a person would write: after "
        "a loop has come round once, its next round is likelier still (Holtzman et al. 2020, *neural text "
        "degeneration*). At temperature 1 the text is as varied as the model believes, and wanders: a small share of "
        "nonsense at each step adds up. Top-p cuts that tail, and keeps more tokens where the model is unsure.",
    )  # fmt: skip


def cache(
    lengths: Sequence[int],
    operations: Mapping[str, Sequence[float]],
    kept: Sequence[int],
    same: bool,
    *,
    bet=None,
) -> Result:
    ratio = operations["without"][-1] / operations["with"][-1]
    return Result(
        figures.cache(lengths, operations, kept),
        alt="Two panels on logarithmic axes, against the number of tokens before. Without a cache the operations for "
        "one more token grow steeply with the length; with one they grow slowly, since the new token still attends to "
        "all before it. The numbers that the cache keeps grow in proportion to the length.",
        claims=(
            ("with the cache the same text is written, token for token", same),
            (f"at {lengths[-1]:,} tokens the cache saves over 99 % of the operations", above(ratio, 100)),
        ),
        outcome="Keys and values of the past never change: no token sees a later one. So they are kept, and only the "
        "new token's query is asked. The price is memory: two vectors for each token and layer, here 2 x 4 x 128 "
        "numbers a token. (Measured on a network of our GPT's size, with random weights and a longer window.)",
    )


def induction(two: AttentionOnly, one: AttentionOnly, card: Card, *, bet=None) -> Result:
    rows = heads.repeats(300, 2024)
    live = {"two layers": heads.share_right(two, rows), "one layer": heads.share_right(one, rows)}
    for layer in range(2):
        with heads.switched_off(two, layer):
            live[f"layer {layer + 1} off"] = heads.share_right(two, rows)
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
        figures.induction(weights[0, :, 0], followers, period, right, bet),
        alt="Left: layer 1 looks one place back, a bright line beside the diagonal, as long as the sequence is new. "
        "Middle: layer 2, from the second time on, looks at rings that mark what followed this symbol before. Right: "
        "two layers name nearly all symbols right the second time; with either layer off, or one layer only, few.",
        claims=(
            ("your two layers name over 90 % right; with either switched off, and with one layer only, under 20 %",
             above(live.pop("two layers"), 0.9), below(max(live.values()), 0.2)),
            ("three seeds: two layers over 95 %, all others under 20 %",
             min(right["two layers"]) > 0.95 and max(others) < 0.2),
            ("layer 2 puts over 90 % of its weight on what came after the symbol before",
             above(heads.at_followers(weights, rows)[1].max(), 0.9)),
        ),
        came=100 * sum(right["one layer, four times the steps"]) / len(card["seeds"]),
        outcome="Layer 1 writes into each place *which symbol stood before me*. Layer 2 asks *who comes after a "
        "symbol like mine?*, finds the place, and copies its symbol. The second question can only be asked of answers "
        "to the first: that takes two layers, and two heads in one layer do not do it. (One layer sees which symbols "
        "occur in the row at all: hence more than 1 in 64.) In the maps the dotted line is where the row begins "
        "again, rings mark what is to be copied, and layer 1 looks back one place only while the row is new. Olsson "
        "et al. 2022 find such **induction heads** in every model of two layers and more that they study, and a bump "
        "in its loss where they form.",
    )  # fmt: skip


def parts(card: Card, *, bet=None) -> Result:
    def seeds(score: str, name: str) -> list[float]:
        return [seed["test"][f"{score}, {name}"] for seed in card["seeds"]]

    nats = {name: seeds("nats per token", name) for name in card["settings"]}
    kept = {name: seeds("cache bytes a token", name)[0] for name in nats}
    return Result(
        figures.parts(nats, kept),
        alt="Nats a token of the test text, three seeds each, fewer are better. RMSNorm, SwiGLU and grouped heads, "
        "each alone, are close to the plain GPT. Rotary positions are far better, all four together, with biases or, "
        "as in Llama, without, better still. Where heads are grouped the cache keeps half as many bytes.",
        outcome="One part carries most of the gain: with rotary positions a small GPT need not learn from scratch what "
        "a distance is. RMSNorm and SwiGLU, each alone, show nothing here at equal parameters and steps; SwiGLU also "
        "needed half the learning rate. Grouped heads are not there for a better loss: they halve what a cache keeps. "
        "All four are ahead of rotary positions alone. Parts do not simply add up: what shows nothing alone may help "
        "beside another, and with one seed of each pair it was SwiGLU (the card has the numbers). Other sizes and "
        "longer trainings were not tried; in a short one a learned table of positions has hardly been learned.",
    )  # fmt: skip


RESULTS = {function.__name__: function for function in (mechanism, bits, knobs, cache, induction, parts)}
