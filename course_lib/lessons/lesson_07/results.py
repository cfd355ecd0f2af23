"""Lesson 07, BERT: its results, each with figure, alt text, claims and what it means."""

import operator
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from course_lib.classroom.results import Result
from course_lib.classroom.widgets import heat_map
from course_lib.data.labelled import minimal_pair_splits
from course_lib.lessons.lesson_07 import figures, small
from course_lib.lessons.lesson_07.recipes.next_sentence import ACCURACY, CONSECUTIVE, ELSEWHERE, OVERLAP, SWAPPED
from course_lib.lessons.lesson_07.recipes.parallel import BESIDE, FILLED, FOUND, TAGGED
from course_lib.lessons.lesson_07.recipes.pretraining import vocabulary
from course_lib.lessons.lesson_07.sentences import SentenceEncoder
from course_lib.models.bert_tasks import BERTForMaskedLM
from course_lib.tasks.claims import above, below

LEARNERS = ("pretrained", "scratch", "baseline")
PAIRED = (  # the first two of each three mean the same and share hardly a word
    "Someone makes music in front of an audience.",
    "A man is playing a guitar on the stage.",
    "Yesterday the board voted the plan down.",
    "The committee rejected the proposal.",
    "Felines spend many hours napping.",
    "Cats sleep most of the day.",
)
GRAMMAR = (
    "the minister signs the law .",
    "the minister signs the new law .",
    "la ministre signe la loi .",
    "the trees are green .",
    "the tree is green .",
    "les arbres sont verts .",
)


def masking(
    tokens: Int[Tensor, " T"], given: Int[Tensor, " T"], masked: Bool[Tensor, " T"], *, predicted=None
) -> Result:
    words, read = ([vocabulary().id_to_token(i) for i in ids.tolist()] for ids in (tokens, given))
    fates = [
        "" if not asked else "[MASK]" if new == "[MASK]" else "kept" if new == word else "replaced"
        for word, new, asked in zip(words, read, masked.tolist(), strict=True)
    ]
    return Result(figures.masking(words, read, fates))


def training(curve: Mapping[int, float], bert: BERTForMaskedLM, *, predicted=None) -> Result:
    frequency, trained = small.frequency_loss(), small.short_loss(bert)
    steps, yours = np.array([*curve]), np.array([*curve.values()])
    return Result(
        figures.training(steps, yours, {"frequencies alone": frequency, "bert, 12,000 steps": trained}),
        claims={"loss": above(frequency - yours[-1], 1.0)},
    )


def fine_tuning(measured: Mapping[str, Mapping[str, Sequence[float]]], *, predicted=None) -> Result:
    titles = {"tags": "Tags\n10 sentences", "gender": "Gender\n30 sentences", "answers": "Spans\n100 questions"}
    panels = {titles[task]: (ways, "accuracy (%)", 100) for task, ways in measured.items()}
    better = all(max(ways["scratch"]) < min(ways["fine-tuned"]) for ways in measured.values())
    return Result(figures.bars(panels), claims={"scratch": better})


def few_labels(card: Mapping, *, predicted=None) -> Result:
    tagging, gender = (
        {
            learner: {count: _seeds(card, f"{task}, {count} labelled sentences, {learner}") for count in counts}
            for learner in LEARNERS
        }
        for task, counts in (("tagging", (3, 10, 30)), ("hidden gender", (30, 100)))
    )
    worst = min(tagging["pretrained"][10])
    return Result(
        figures.few_labels(tagging, gender, predicted),
        claims={
            "10 labels": worst > max(tagging["baseline"][10]) + 15 and worst > max(tagging["scratch"][10]) + 20,
            "30 labels": min(gender["pretrained"][30]) > 80
            and max(gender["scratch"][30] + gender["baseline"][30]) < 60,
        },
        came=sum(tagging["pretrained"][10]) / len(tagging["pretrained"][10]),
    )


def zero_shot(card: Mapping, *, predicted=None) -> Result:
    right = {
        name: _seeds(card, f"zero-shot, 100 labelled sentences, {learner}")
        for name, learner in (("always noun", "baseline"), ("from scratch", "scratch"), ("bert", "pretrained"))
    }
    return Result(
        figures.bars(
            {"French words tagged, from English labels": (right, "accuracy (%)", 100)}, predicted, predicted_for="bert"
        ),
        claims={"accuracy": min(right["bert"]) > 70 and max(right["from scratch"]) < 40},
        came=sum(right["bert"]) / len(right["bert"]),
    )


def parallel(card: Mapping, *, predicted=None) -> Result:
    def both(measure: str, factor: float = 100) -> dict[str, Sequence[float]]:
        return {name: _seeds(card, f"{measure}, {name}", factor) for name in ("apart", "side by side")}

    helped = "beside a\ntranslation"
    gaps = both(FILLED, 1) | {helped: both(BESIDE, 1)["side by side"]}
    found, tags = both(FOUND), both(TAGGED)
    return Result(
        figures.bars(
            {
                "Masked words": (gaps, "nats per chosen token", None),
                "Translations found": (found, "found (% of 300)", None),
                "Tags from English": (tags, "accuracy (%)", 100),
            }
        ),
        claims={
            "loss": min(map(operator.sub, gaps["side by side"], gaps[helped])) > 0.3,
            "retrieval": min(found["side by side"]) > max(found["apart"])
            and all(map(operator.le, tags["side by side"], tags["apart"])),
        },
    )


def next_sentence(card: Mapping, *, predicted=None) -> Result:
    right = {"common words": _seeds(card, OVERLAP), "our BERT": _seeds(card, ACCURACY)}
    kinds = {"elsewhere": ELSEWHERE, "swapped": SWAPPED, "consecutive": CONSECUTIVE}
    called = {name: _seeds(card, score) for name, score in kinds.items()}
    return Result(
        figures.bars(
            {
                "Next or from elsewhere?": (right, "accuracy (%)", 100),
                "What our BERT calls next": (called, "pairs called next (%)", 100),
            }
        ),
        claims={"words": above(min(right["common words"]) - max(right["our BERT"]), 5)},
        values={
            "words": np.mean(right["common words"]),
            "bert": np.mean(right["our BERT"]),
            "swapped": np.mean(called["swapped"]),
            "consecutive": np.mean(called["consecutive"]),
            "elsewhere": np.mean(called["elsewhere"]),
        },
    )


def agreement(model: BERTForMaskedLM, *, predicted=None) -> Result:
    right = {}
    for name, language, kind in (
        ("French verb", "french", "verb"),
        ("French gender", "french", "gender"),
        ("English verb", "english", "verb"),
    ):
        pairs = minimal_pair_splits(kinds=(kind,), language=language, train=0, validation=0, test=300).test
        same, prefers = torch.tensor([pair.features[0] == pair.features[1] for pair in pairs]), None
        prefers = small.prefers_good(model, pairs).float()
        right[name] = tuple(100 * prefers[rows].mean().item() for rows in (same, ~same))
    return Result(
        figures.agreement(right, predicted),
        claims={
            "attractor": (
                above(min(agrees for agrees, _ in right.values()), 80),
                below(max(misleads for _, misleads in right.values()), 40),
            )
        },
        came=right["French verb"][1],
    )


def meaning(encoder: SentenceEncoder, *, predicted=None) -> Result:
    official = encoder.name == "MiniLM"
    texts = list(PAIRED if official else GRAMMAR)
    vectors = encoder(texts)
    similar = vectors @ vectors.T
    nearest = (similar - 2 * torch.eye(len(texts))).argmax(dim=1).tolist()
    found = nearest == [1, 0, 3, 2, 5, 4]
    return Result(
        heat_map(
            similar.clamp(0, 1),
            [f"{text} {number}" for number, text in enumerate(texts, start=1)],
            [str(number + 1) for number in range(len(texts))],
            label="cosine of each two sentences, below 0 as 0",
            numbers=True,
        ),
        claims={"nearest": found} if official else {},
        variant="" if official else "grammar",
    )


def _seeds(card: Mapping, name: str, factor: float = 100) -> Sequence[float]:
    return [factor * seed["test"][name] for seed in card["seeds"]]


RESULTS = {
    function.__name__: function
    for function in (masking, training, fine_tuning, few_labels, zero_shot, next_sentence, parallel, agreement, meaning)
}
