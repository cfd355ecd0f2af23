"""Lesson 07: BERT learns two languages from unlabelled sentences, and then a task from a few labelled ones."""

from dataclasses import asdict

from course_lib.lessons.lesson_07.recipes import next_sentence, parallel
from course_lib.lessons.lesson_07.recipes.few_labels import COMPARISONS, DRAWS, FINE_TUNING, few_label_scores
from course_lib.lessons.lesson_07.recipes.pretraining import PretrainingSettings, pretrain
from course_lib.training.recipe import Recipe, Scores, Trained, each, plain

SETTINGS = PretrainingSettings()
LOSS = "nats per hidden word"


def score(trained: Trained, split: str) -> Scores:
    """On validation how well gaps are filled, on the test how much that helps with few labels."""
    if split == "validation":
        return {LOSS: float(trained.history.validation_values[-1])}
    return few_label_scores(trained.model, split=split)


RECIPES = {
    "bert": Recipe(
        title="BERT of English and French sentences",
        lesson="07",
        data="20,000 sentences that course_lib.data.translation makes by a grammar, half of them English, half French, "
        "none in both languages; labelled ones of course_lib.data.labelled: validation 300, test 500",
        minutes=10,
        variants={"": SETTINGS},
        train=pretrain,
        scores=each(score),
        chosen_by=LOSS,
        settings=plain(SETTINGS)
        | {name: [asdict(settings) for settings in pair] for name, pair in FINE_TUNING.items()}
        | {"comparisons": COMPARISONS, "draws": DRAWS},
    ),
    "bert_parallel": Recipe(
        title="BERT of English sentences beside their French translations",
        lesson="07",
        data="20,000 sentences of one clause that course_lib.data.translation makes by a grammar, half English, half "
        "French; side by side, two thirds of the English ones have their translation beside them, in place of as many "
        "other French ones; English labels of course_lib.data.labelled, French questions "
        "of up to 12 words among 300 for validation and 500 for test; translations to be found: 300 and 300",
        minutes=6,
        variants=parallel.VARIANTS,
        train=parallel.train,
        scores=each(parallel.score),
        ships="side by side",
        chosen_by=f"{parallel.FILLED}, side by side",
        timed=tuple(parallel.VARIANTS),
    ),
    "next_sentence": Recipe(
        title="Next-sentence prediction on documents",
        lesson="07",
        data="pairs of sentences from the English documents of data/prose, half of them consecutive, half from two "
        "documents; 12,579 consecutive pairs to train on, 708 for validation, 1,199 for the test",
        minutes=2,
        variants={"": next_sentence.NextSentenceSettings()},
        train=next_sentence.train,
        scores=each(next_sentence.score),
        chosen_by=next_sentence.ACCURACY,
        mode="max",
        weights=False,
    ),
}
