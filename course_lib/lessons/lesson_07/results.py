"""Lesson 07, BERT: its results, each with figure, alt text, claims and what it means."""

import operator
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from course_lib.classroom.results import Result
from course_lib.classroom.widgets import heat_map
from course_lib.data.labelled import minimal_pair_splits
from course_lib.lessons.lesson_07 import figures, small
from course_lib.lessons.lesson_07.recipes.parallel import BESIDE, FILLED, FOUND, TAGGED
from course_lib.lessons.lesson_07.recipes.pretraining import vocabulary
from course_lib.lessons.lesson_07.sentences import SentenceEncoder
from course_lib.models.bert_tasks import BERTForMaskedLM
from course_lib.tasks.claims import above, below
from course_lib.training.history import History

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


def masking(tokens: Int[Tensor, " T"], given: Int[Tensor, " T"], masked: Bool[Tensor, " T"], *, bet=None) -> Result:
    words, read = ([vocabulary().id_to_token(i) for i in ids.tolist()] for ids in (tokens, given))
    fates = [
        "" if not asked else "[MASK]" if new == "[MASK]" else "kept" if new == word else "another word"
        for word, new, asked in zip(words, read, masked.tolist(), strict=True)
    ]
    return Result(
        figures.masking(words, read, fates),
        alt="A sentence in three rows: its words; what the model reads, where some words are [MASK], one is another "
        "word and one stays as it was; and what it is asked, which is just those words.",
    )


def training(history: History, bert: BERTForMaskedLM, *, bet=None) -> Result:
    frequency, trained = small.frequency_loss(), small.short_loss(bert)
    yours = history.validation_values
    return Result(
        figures.training(
            history.validation_steps, yours, {"frequencies alone": frequency, "bert, 12,000 steps": trained}
        ),
        alt="Nats per hidden word in new sentences against steps: yours begins a little below a guesser that knows "
        "frequencies alone, falls, and ends between that line and the one of the model that comes with the course.",
        claims=(("it ends over 1.5 nats below what frequencies alone allow", above(frequency - yours[-1], 1.5)),),
        outcome="First come frequencies, then word classes (a noun belongs here), last what agrees with what: the "
        "three blanks show it while it learns. Each row of 15 % gaps is a question with a free answer, and text is "
        "full of them.",
    )


def few_labels(card: Mapping, *, bet=None) -> Result:
    tagging, gender = ({
        learner: {count: _seeds(card, f"{task}, {count} labelled sentences, {learner}") for count in counts}
        for learner in LEARNERS
    } for task, counts in (("tagging", (3, 10, 30)), ("hidden gender", (30, 100))))  # fmt: skip
    worst = min(tagging["pretrained"][10])
    return Result(
        figures.few_labels(tagging, gender, bet),
        alt="Share of right answers against the number of labelled sentences. Left, tags: the pre-trained model lies "
        "far above logistic regression, and that above a fresh network, at 3, 10 and 30 sentences. Right, a gender "
        "that does not show: the pre-trained one comes close to all, the two others stay at one half.",
        claims=(
            ("with 10 labelled sentences the worst seed is over 15 points ahead of logistic regression, and over 20 "
             "ahead of a fresh network",
             worst > max(tagging["baseline"][10]) + 15 and worst > max(tagging["scratch"][10]) + 20),
            ("hidden gender from 30 labels: over 80 % with each seed, the two others below 60 %",
             min(gender["pretrained"][30]) > 80
             and max(gender["scratch"][30] + gender["baseline"][30]) < 60),
        ),
        came=sum(tagging["pretrained"][10]) / len(tagging["pretrained"][10]),
        outcome="On the right no label can help: the nouns of the questions stand in no labelled sentence, and *les "
        "lois sont difficiles* does not say that *loi* is feminine. Only the unlabelled text does, in other sentences "
        "(*la loi est nouvelle*). On the left a fresh network even does worse than logistic regression (\"without a "
        "network\"); on the right both guess. One draw of ten sentences, as in the cell above, may lie well off the "
        "mean.",
    )  # fmt: skip


def zero_shot(card: Mapping, *, bet=None) -> Result:
    right = {
        name: _seeds(card, f"zero-shot, 100 labelled sentences, {learner}")
        for name, learner in (("always noun", "baseline"), ("fresh network", "scratch"), ("bert", "pretrained"))
    }
    return Result(
        figures.bars({"French words tagged, from English labels": (right, "% right", 100)}, bet, bet_on="bert"),
        alt="Bars: always saying noun is right for 22 % of the French words, a fresh network trained on English labels "
        "for a third, the pre-trained one for about four fifths, with every seed.",
        claims=(
            ("each seed of `bert` is over 70 %, a fresh network under 40 %",
             min(right["bert"]) > 70 and max(right["fresh network"]) < 40),
        ),
        came=sum(right["bert"]) / len(right["bert"]),
        outcome="No French word ever had a label. What English and French have in common is where words stand and what "
        "they stand beside: articles before nouns, a full stop at the end. *One* set of weights had to learn it for "
        "both, with eight tokens that both write alike (the full stop, *important*, ...).",
    )  # fmt: skip


def parallel(card: Mapping, *, bet=None) -> Result:
    def both(measure: str, factor: float = 100) -> dict[str, Sequence[float]]:
        return {name: _seeds(card, f"{measure}, {name}", factor) for name in ("apart", "side by side")}

    helped = "beside a\ntranslation"
    gaps = both(FILLED, 1) | {helped: both(BESIDE, 1)["side by side"]}
    found, tags = both(FOUND), both(TAGGED)
    return Result(
        figures.bars(
            {
                "Words in gaps": (gaps, "nats per hidden word", None),
                "Translations found": (found, "% of 300", None),
                "Tags, English labels": (tags, "% right", 100),
            }
        ),
        alt="Three panels, three seeds each. The model that read translations fills gaps in single sentences nearly as "
        "well as the other, and better where a translation stands beside them. It finds about three times as many "
        "translations. French words it tags worse.",
        claims=(
            ("a translation beside it saves over 0.3 nats per hidden word, each seed",
             min(map(operator.sub, gaps["side by side"], gaps[helped])) > 0.3),
            ("each seed side by side finds more translations than any seed apart",
             min(found["side by side"]) > max(found["apart"])),
            ("it tags better in no seed", all(map(operator.le, tags["side by side"], tags["apart"]))),
        ),
        outcome="*Translations found*: of 300 new sentences, each read alone, how many have their own translation as "
        "the nearest among 300 by the mean of their features (by chance 0.3 %; mean of both directions). To fill a "
        "gap from across, the model had to learn which word belongs to which, and something of it stays when the "
        "translation is gone. **Not shown**: better tags. Kinds of words and their order were there without, and the "
        "seeds differ much. In the paper, whose task is about meaning, it helped: see the table at the end.",
    )  # fmt: skip


def agreement(model: BERTForMaskedLM, *, bet=None) -> Result:
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
        figures.agreement(right, bet),
        alt="Bars for French verbs, French gender and English verbs. Where the noun between agrees with the subject, "
        "the right form is nearly always the likelier one; where it does not, seldom, far below one half.",
        claims=(
            ("in all three: over 80 % where the nearest noun agrees, under 40 % where it misleads",
             above(min(agrees for agrees, _ in right.values()), 80),
             below(max(misleads for _, misleads in right.values()), 40)),
        ),
        came=right["French verb"][1],
        outcome="It learned a shortcut: *agree with the noun just before*. Where the two are neighbours that is right, "
        "and a test on such sentences would never have found it out. Over both kinds together it is hardly "
        "better than chance. So **this did not show**: at this size, telling good sentences from bad. Large BERTs do "
        "find the subject (Goldberg 2019, arXiv 1901.05287).",
    )  # fmt: skip


def meaning(encoder: SentenceEncoder, *, bet=None) -> Result:
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
        alt="A table of six sentences against themselves: apart from the diagonal, the brightest squares join the two "
        "sentences of each pair, which mean nearly the same and share hardly a word." if official else
        "A table of six sentences of the grammar against themselves: those that share words are brightest.",
        claims=(("for all six the nearest other sentence is the one that means the same", found),) if official else (),
        outcome="None of these six sentences was chosen from its training text, and no two of a pair share a noun or "
        "a verb. What is compared is the mean of the features of all tokens; what made that mean useful is a second "
        "training, on "
        "pairs of sentences that belong together (Reimers & Gurevych 2019)." if official else
        "Our small model compares words and their places, and little meaning: it has read a grammar, not the world.",
    )  # fmt: skip


def _seeds(card: Mapping, name: str, factor: float = 100) -> Sequence[float]:
    return [factor * seed["test"][name] for seed in card["seeds"]]


RESULTS = {
    function.__name__: function for function in (masking, training, few_labels, zero_shot, parallel, agreement, meaning)
}
