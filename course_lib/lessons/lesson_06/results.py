"""Lesson 06, The Transformer: its results, each with figure, alt text, claims and what it means."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from course_lib.classroom.output import varies
from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.data.translation import SentencePair
from course_lib.functional.cost import count_flops, median_seconds
from course_lib.lessons.lesson_06 import figures, learner
from course_lib.lessons.lesson_06.recipes.tricks import DEPTHS, NORMS, OTHER_PEAKS, PEAK, RATES, rates
from course_lib.lessons.lesson_06.transformer import Place, alignments, error_rates
from course_lib.models.transformer import Transformer
from course_lib.tasks.claims import above, below
from course_lib.training.translation import encode_pairs, splits, vocabularies

FRACTIONS = {0.25: "a quarter", 0.5: "half", 1: "the full peak"}  # of PEAK
LENGTHS = (4, 8, 16, 32, 48, 64)  # words written so far
CHANGES = {  # variant -> row of the figure
    "paper": "baseline",
    "pre-norm": "pre-norm",
    "untied": "untied output layer",
    "no smoothing": "no label smoothing",
    "dropout": "dropout 0.1",
    "no averaging": "no weight averaging",
    "constant rate": "constant learning rate, tuned",
    "no warm-up": "no warm-up",
    "no positions in the decoder": "no positions in the decoder",
    "no positions": "no positions at all",
}


def race(yours: float, tricks: Mapping, translator: Mapping, *, predicted=None) -> Result:
    names = {
        "GRU of lesson 05, 1,000 steps": "GRU",
        "Transformer, 1,800 steps": "as long as the GRU",
        "Transformer, 1,000 steps": "pre-norm",
    }
    rows = {name: by_seed(tricks, f"BLEU, {variant}") for name, variant in names.items()}
    seconds = {
        name: np.mean(by_seed(tricks, f"CPU seconds, {variant}"))
        for name, variant in names.items()
        if variant != "pre-norm"
    }
    seconds["Transformer, 1,000 steps"] = seconds["Transformer, 1,800 steps"] * 1000 / 1800  # the same steps
    rows["Transformer, 6,000 steps"] = by_seed(translator, "bleu")
    seconds["Transformer, 6,000 steps"] = np.mean([seed["cpu_seconds"] for seed in translator["seeds"]])
    gru, equal, same_steps, _ = rows.values()
    return Result(
        figures.race(rows, seconds, yours, predicted),
        claims={"yours": above(yours, 75), "equal": max(gru + equal) - min(gru + equal) < 2},
        came=float(np.mean(same_steps)),
    )


def looks(model: Transformer, pair: SentencePair, pairs: Sequence[SentencePair], *, predicted=None) -> Result:
    source, valid, target, _ = encode_pairs([pair])
    maps = alignments(model, source, target[:, :-1], valid)[0, :, :, : len(pair.french)]
    rates = error_rates(model, pairs)
    errors = [
        [rates[Place(layer, head)] for head in range(model.config.num_heads)] for layer in range(model.config.depth)
    ]
    return Result(
        figures.looks(maps, pair.french, pair.english, {(i, j) for i, j in pair.alignment}, errors),
        claims={"error rate": below(min(map(min, errors)), 0.1)},
    )


def beams(found: Mapping[str, tuple[float, float]], *, predicted=None) -> Result:
    rows = "".join(
        f"<tr><td>{name}</td><td>{shown(f'{greedy:.1f}')}</td><td>{shown(f'{searched:.1f}')}</td></tr>"
        for name, (greedy, searched) in found.items()
        for shown in (varies if name == "yours" else str,)
    )
    gains = {name: searched - greedy for name, (greedy, searched) in found.items()}
    return Result(
        f"<table><tr><th>translator</th><th>greedy</th><th>4 beams</th></tr>{rows}</table>",
        claims={"gains": (above(gains["young"], 0.5), below(abs(gains["trained"]), 0.5))},
    )


def gradients(
    norms: Mapping[str, Mapping[str, list[list[float]]]], sizes: Mapping[str, list[float]], *, predicted=None
) -> Result:
    post, pre = (np.array(norms["last"][name]) for name in ("post-norm", "pre-norm"))
    first_post, first_pre = (np.array(norms["first"][name]) for name in ("post-norm", "pre-norm"))
    return Result(
        figures.gradients(learner.DEPTHS, norms, sizes),
        claims={
            "start": (
                above((pre[:, 0] / pre[:, -1]).min(), 1.8),
                above((post[:, -1] / pre[:, -1]).min(), 2.5),
                above((first_pre[:, -1] / first_post[:, -1]).min(), 2.5),
            ),
        },
    )


def norms(card: Mapping, *, predicted=None) -> Result:
    shown = [name for name in NORMS if all(rates(name, depth) for depth in DEPTHS)]
    losses = {
        name: np.array([losses_at(card, name, depth, best_rate(card, name, depth)) for depth in DEPTHS]).T
        for name in shown
    }
    plateau = unigram_loss()
    post, warm, pre = losses.values()
    return Result(
        figures.norms(DEPTHS, losses, plateau),
        claims={
            "depth": (
                above(post[:, -1].min(), plateau - 0.7),
                above((np.minimum(post, warm)[:, 1:].min(axis=0) - pre[:, 1:].max(axis=0)).min(), 1),
            ),
        },
        came=2,
        values={"gap": plateau - post[:, -1].mean()},
    )


def warmups(card: Mapping, *, predicted=None) -> Result:
    rows, found = "", {}
    for depth in DEPTHS:
        for name in NORMS:
            tried, best = rates(name, depth), best_rate(card, name, depth)
            for rate in tried:
                found[name, depth, rate] = np.array(losses_at(card, name, depth, rate))
            means = {rate: f"{found[name, depth, rate].mean():.2f}" for rate in tried}
            cells = (f"<b>{means[rate]}</b>" if rate == best else means.get(rate, "–") for rate in RATES)
            row = "".join(f"<td>{cell}</td>" for cell in (depth, name, *cells))
            rows += f"<tr>{row}</tr>" if tried else ""
    heads = "".join(f"<th>{name}</th>" for name in ("blocks", "variant", *(f"{rate:g}" for rate in RATES)))
    lower, best = [], []
    for name, high in (("post-norm", 3e-3), ("pre-norm", 1e-2)):
        without, warm = (
            (found[one, 4, best_rate(card, one, 4)], found[one, 4, high]) for one in (name, f"{name} with warm-up")
        )
        lower.append((without[1] - warm[1]).min())
        best.append(abs(without[0].mean() - warm[0].mean()))
    return Result(
        f"<table><tr>{heads}</tr>{rows}</table>",
        claims={"warm-up": (above(min(lower), 0.4), below(max(best), 0.1))},
    )


def tricks(card: Mapping, peaks: Mapping, *, predicted=None) -> Result:
    rows = {row: by_seed(card, f"BLEU, {variant}") for variant, row in CHANGES.items()}
    paper = rows["baseline"]
    found = {variant: bleu_by_peak(card, peaks, variant) for variant in OTHER_PEAKS}
    means = {variant: {peak: float(np.mean(bleu)) for peak, bleu in of.items()} for variant, of in found.items()}
    best = {variant: max(of, key=of.get) for variant, of in means.items()}
    tuned = {variant: np.array(of[best[variant]]) for variant, of in found.items()}
    quarter = [of[best[name]] - of[PEAK / 4] for name, of in means.items() if name != "no warm-up"]
    return Result(
        figures.tricks(rows, predicted),
        claims={
            "changes": (
                above(min(paper) - max(rows["no positions at all"]), 30),
                above(min(rows["pre-norm"]) - max(paper), 0),
                above((tuned["no warm-up"] - tuned["paper"]).min(), -2),
                above(min(tuned[name].mean() for name in ("pre-norm", "untied")) - tuned["paper"].mean(), 2),
                below((tuned["no averaging"] - tuned["paper"]).max(), 1),
                above(min(quarter), 5),
            ),
        },
        came=float(np.mean(rows["no positions at all"])),
        values={
            "scores": "\n".join(f"- {row}: {', '.join(f'{bleu:.1f}' for bleu in of)}" for row, of in rows.items()),
            "peaks": peak_list(means),
            "no_warmup": tuned["no warm-up"].mean(),
            "with_warmup": tuned["paper"].mean(),
            "averaging": tuned["paper"].mean() - tuned["no averaging"].mean(),
        },
    )


def bleu_by_peak(card: Mapping, peaks: Mapping, variant: str) -> dict[float, list[float]]:
    """BLEU on validation, by seed, at each peak of the learning rate."""
    found = {PEAK: [seed["validation"][f"BLEU, {variant}"] for seed in card["seeds"]]}
    for peak in OTHER_PEAKS[variant]:
        found[peak] = [seed["validation"][f"BLEU, {variant}, peak {peak:g}"] for seed in peaks["seeds"]]
    return dict(sorted(found.items()))


def peak_list(found: Mapping[str, Mapping[float, float]]) -> str:
    """A line for each variant with its BLEU at each peak, the best of them bold."""
    lines = []
    for variant, bleu in found.items():
        cells = {peak: f"{value:.1f} at {FRACTIONS[peak / PEAK]}" for peak, value in bleu.items()}
        best = max(bleu, key=bleu.get)
        cells[best] = f"**{cells[best]}**"
        lines.append(f"- {CHANGES[variant]}: {', '.join(cells.values())}")
    return "\n".join(lines)


def cache(model: Transformer, pair: SentencePair, *, predicted=None) -> Result:
    operations, seconds = cost_of_writing(model, pair)
    without, cached = operations.values()
    return Result(
        figures.cache(LENGTHS, operations, seconds),
        claims={"saves": (above(without[-1] / without[0], 10), below(cached[-1] / cached[0], 1.5))},
    )


def losses_at(card: Mapping, name: str, depth: int, rate: float) -> list[float]:
    """Test losses of a placement of the norm at a depth and a learning rate, by seed."""
    return by_seed(card, f"loss, {name}, depth {depth}, rate {rate:g}")


def best_rate(card: Mapping, name: str, depth: int) -> float | None:
    """The learning rate with the lowest mean loss on validation sentences; None if none was tried."""

    def validation(rate: float) -> float:
        return sum(seed["validation"][f"loss, {name}, depth {depth}, rate {rate:g}"] for seed in card["seeds"])

    return min(rates(name, depth), key=validation, default=None)


def unigram_loss() -> float:
    """Nats a word on the test of a model that knows how frequent each French word is, and nothing else."""
    data, counts = splits(), Counter()
    for pair in data.train:
        counts.update((*pair.french, "</s>"))
    total = counts.total()
    words = [word for pair in data.test for word in (*pair.french, "</s>")]
    return -sum(math.log(max(counts[word], 1) / total) for word in words) / len(words)


@torch.no_grad()
def cost_of_writing(model: Transformer, pair: SentencePair) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Operations and seconds that the word after so many costs, without a cache and with one."""
    source, valid, _, _ = encode_pairs([pair])
    context, start = model.encode(model.embed(source), valid), vocabularies()[1].start_id
    operations: dict[str, list[float]] = {"no cache": [], "cache": []}
    seconds: dict[str, list[float]] = {"no cache": [], "cache": []}
    for length in LENGTHS:
        words, writer = torch.full((1, length + 1), start), model.given(source, valid)

        def without(words=words):
            return model.logits(model.decode(model.embed_target(words), context, source_valid=valid)[:, -1:])

        memory = writer.new_cache(200)
        writer.next_logits(words[:, :-1], memory)

        def cached(words=words, writer=writer, memory=memory):
            return writer.next_logits(words[:, -1:], memory)

        for name, function in {"no cache": without, "cache": cached}.items():
            operations[name].append(count_flops(function))
            seconds[name].append(median_seconds(function, repeats=15))
    return operations, seconds


RESULTS = {function.__name__: function for function in (race, looks, beams, cache, gradients, norms, warmups, tricks)}
