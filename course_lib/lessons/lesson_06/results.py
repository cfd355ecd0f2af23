"""Lesson 06, The Transformer: its results, each with figure, alt text, claims and what it means."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from course_lib.classroom.results import Result
from course_lib.data.translation import SentencePair
from course_lib.functional.cost import count_flops, median_seconds
from course_lib.lessons.lesson_06 import figures
from course_lib.lessons.lesson_06.recipes.tricks import DEPTHS
from course_lib.lessons.lesson_06.transformer import Place, alignments, error_rates
from course_lib.models.transformer import Transformer
from course_lib.tasks.claims import above, below
from course_lib.training.translation import encode_pairs, splits, vocabularies

LENGTHS = (4, 8, 16, 32, 48, 64)  # words written so far
CHANGES = {  # contestant -> row of the figure
    "paper": "as in the paper",
    "pre-norm": "pre-norm",
    "untied": "output layer not tied",
    "no smoothing": "no label smoothing",
    "dropout": "dropout 0.1",
    "no averaging": "no averaging",
    "constant rate": "constant rate, tuned",
    "no warm-up": "peak rate at once",
    "no positions in the decoder": "no positions in the decoder",
    "no positions": "no positions at all",
}


def machine(*, bet=None) -> Result:
    return Result(
        figures.machine(),
        alt="Left: the encoder, N blocks of self-attention and MLP over the English words with their positions; its "
        "output goes into the cross-attention of the decoder, N blocks of masked self-attention, cross-attention and "
        "MLP over the French words so far, which ends in the next word. Right: in a post-norm sublayer the norm stands "
        "on the path of x, behind the addition; in a pre-norm one it stands on the side path, before the sublayer.",
    )


def race(yours: float, tricks: Mapping, translator: Mapping, *, bet=None) -> Result:
    names = {
        "GRU of lesson 05, 1,000 steps": "GRU",
        "Transformer, 1,800 steps": "as long as the GRU",
        "Transformer, 1,000 steps": "pre-norm",
    }
    rows = {name: scores(tricks, f"BLEU, {contestant}") for name, contestant in names.items()}
    seconds = {
        name: np.mean(scores(tricks, f"CPU seconds, {contestant}"))
        for name, contestant in names.items()
        if contestant != "pre-norm"
    }
    seconds["Transformer, 1,000 steps"] = seconds["Transformer, 1,800 steps"] * 1000 / 1800  # the same steps
    rows["Transformer, 6,000 steps"] = scores(translator, "bleu")
    seconds["Transformer, 6,000 steps"] = np.mean([seed["cpu_seconds"] for seed in translator["seeds"]])
    gru, equal, _, _ = rows.values()
    return Result(
        figures.race(rows, seconds, yours, bet),
        alt="BLEU of four kinds of translators, a dot for each seed. Lesson 05's GRU and the Transformer that took "
        "about as long lie together near the right edge; the Transformer of 1,000 steps, yours with it, lies further "
        "to the left; that of 6,000 steps touches the edge.",
        claims=(
            ("your run reaches 80 BLEU", above(yours, 80)),
            ("in about the same time the two kinds are within 2 BLEU, every seed",
             max(gru + equal) - min(gru + equal) < 2),
        ),
        came=float(np.mean(equal)),
        outcome="A tie. On one core, with short sentences and one right translation for each, nothing is gained by "
        "giving up the recurrence: a step of the Transformer is cheaper, and it needs more of them. The gain is "
        "elsewhere. None of its words waits for another: while a graphics processor has cores to spare, long texts "
        "take hardly longer than short ones, where a recurrent network still walks. (Whether the GRU would come above "
        "99, too, with so many steps, we have not measured.)",
    )  # fmt: skip


def looks(model: Transformer, pair: SentencePair, pairs: Sequence[SentencePair], *, bet=None) -> Result:
    source, valid, target, _ = encode_pairs([pair])
    maps = alignments(model, source, target[:, :-1], valid)[0, :, :, : len(pair.french)]
    rates = error_rates(model, pairs)
    errors = [
        [rates[Place(layer, head)] for head in range(model.config.num_heads)] for layer in range(model.config.depth)
    ]
    return Result(
        figures.looks(maps, pair.french, pair.english, {(i, j) for i, j in pair.alignment}, errors),
        alt="Eight maps of the famous sentence, one for each head of both layers' cross-attention, a row for each "
        "French word, the gold links as rings. In the second layer the bright squares of the best heads lie on the "
        "rings; in the first layer most do not.",
        claims=(("one head has an alignment error rate below 0.1 on all tests", below(min(map(min, errors)), 0.1)),),
        outcome="Nobody told the heads what to do. In the second layer some find the word to translate. In the first "
        "one is as sharp, and in several rows a step behind: its square lies where the ring of the word *before* "
        "lies. It seems to say how far we are. By the rings it is mostly wrong, and it may be of use: a map is no "
        "explanation.",
    )


def beams(found: Mapping[str, tuple[float, float]], *, bet=None) -> Result:
    rows = "".join(
        f"<tr><td>{name}</td><td>{greedy:.1f}</td><td>{searched:.1f}</td></tr>"
        for name, (greedy, searched) in found.items()
    )
    gains = {name: searched - greedy for name, (greedy, searched) in found.items()}
    return Result(
        f"<table><tr><th>translator</th><th>greedy</th><th>4 beams</th></tr>{rows}</table>",
        alt="A table of BLEU, greedy and with four beams: your translator, the young one and the trained one.",
        claims=(
            ("the young translator gains by beams", above(gains["young"], 1)),
            ("the trained one hardly: under 0.5 BLEU", below(abs(gains["trained"]), 0.5)),
        ),
        outcome="Beams repair what a model half knows. Where it is sure of each word there is nothing to search. "
        "How much beams bring, to yours for instance, has to be measured each time.",
    )


def norms(card: Mapping, *, bet=None) -> Result:
    losses = {
        name: np.array([scores(card, f"loss, {contestant}, depth {depth}") for depth in DEPTHS]).T
        for name, contestant in {
            "post-norm": "post-norm",
            "post-norm, warm-up": "post-norm with warm-up",
            "pre-norm": "pre-norm",
        }.items()
    }
    plateau = unigram_loss()
    post, warm, pre = losses.values()
    return Result(
        figures.norms(DEPTHS, losses, plateau),
        alt="The loss against 1, 2, 4 and 8 blocks on each side, and the loss of a model that knows how frequent each "
        "word is. With one and two blocks the three lines lie together. With four and eight post-norm is up at that "
        "model's loss; warm-up lowers it with four, hardly with eight; pre-norm stays far below, and rises with eight.",
        claims=(
            ("with four and eight blocks post-norm is within 0.7 nats of the plateau, every seed",
             post[:, 2:].min() > plateau - 0.7),
            ("with four and eight blocks pre-norm is over a nat ahead of both others, every seed",
             (pre[:, 2:].max(axis=0) < np.minimum(post, warm)[:, 2:].min(axis=0) - 1).all()),
        ),
        came=2,
        outcome="It does not diverge: it sits on the plateau of a model that knows how frequent each word is, and "
        "nothing else. In post-norm each norm stands on the path of $x$, two in each block of the encoder, three in "
        "the decoder's; at the start the gradients of the last layers are large (Xiong et al. 2020), and the first "
        "steps spoil them. Slow first steps help with four blocks (that is what the paper's warm-up is for), hardly "
        "with eight. So does a third of the rate, 0.003 here (one seed, four blocks: the card has the losses), and "
        "pre-norm stays ahead. It leaves the plateau at every depth. But depth is no gift: within 200 steps its eight "
        "blocks are behind its one. More blocks want more steps.",
    )  # fmt: skip


def tricks(card: Mapping, *, bet=None) -> Result:
    rows = {row: scores(card, f"BLEU, {contestant}") for contestant, row in CHANGES.items()}
    paper = rows["as in the paper"]
    return Result(
        figures.tricks(rows, bet),
        alt="BLEU of the paper's recipe and of nine changes, three dots each. The peak rate at once ends near zero; no "
        "positions at all lose over half; the other changes lie near the band of the paper's recipe, pre-norm and an "
        "output layer of its own to the right of it.",
        claims=(
            ("without positions each seed loses over 30 BLEU", max(rows["no positions at all"]) < min(paper) - 30),
            ("pre-norm is ahead of post-norm with each seed", min(rows["pre-norm"]) > max(paper)),
        ),
        came=float(np.mean(rows["no positions at all"])),
        outcome="Nobody can do without the order of the English words; the decoder nearly can, since its mask tells it "
        "something of the order (lesson 05: the dog that bites). From a start at the peak rate it does not recover; "
        "a lower, constant rate needs no ramp: warm-up is what *allows* a high rate. Pre-norm gains, and so does an "
        "output layer of its own: tying saves a table, and ours has a few hundred words. Of smoothing, averaging and "
        "dropout nothing can be said here: seeds differ as much as recipes. On millions of real sentences they count. "
        "The paper lost 1.2 BLEU without dropout and 0.5 without smoothing, and 0.1 with learned positions (table 3, "
        "rows D and E).",
    )


def cache(model: Transformer, pair: SentencePair, *, bet=None) -> Result:
    operations, seconds = cost_of_writing(model, pair)
    without, cached = operations.values()
    return Result(
        figures.cache(LENGTHS, operations, seconds),
        alt="Two panels against the number of words written so far: operations for the next word, and its time. "
        "Without a cache the operations rise in proportion; with one they hardly rise.",
        claims=(
            (
                "without a cache word 65 costs over 10 times the operations of word 5, with one under 1.5 times",
                above(without[-1] / without[0], 10),
                below(cached[-1] / cached[0], 1.5),
            ),
        ),
        outcome="With a cache a new word asks all keys, and that is all that grows: a little with each word. Without "
        "one, everything is computed again. The clock shows less than the count: in a model as small as ours a call "
        "costs more than its arithmetic. In a large one the count decides, and the cache's memory: lesson 08.",
    )


def scores(card: Mapping, name: str) -> list[float]:
    """A test score of a card, by seed."""
    return [seed["test"][name] for seed in card["seeds"]]


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


RESULTS = {function.__name__: function for function in (machine, race, looks, beams, cache, norms, tricks)}
