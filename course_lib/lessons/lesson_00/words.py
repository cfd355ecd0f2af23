"""Word for word from English to French: two architectures that differ in what they see, each in three sizes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.data.translation import SentencePair, TranslationSplits
from course_lib.lessons.lesson_00.letters import one_thread
from course_lib.training import FitConfig, fit, seeded, shuffled_batches
from course_lib.training.translation import vocabularies

REACHES = {"the word alone": 0, "three neighbours to either side": 3}
WIDTHS = (4, 16, 64)
STEPS = 500


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A trained word translator: what it is, what it costs, what it can do."""

    model: nn.Module
    reach: int  # neighbours to either side
    parameters: int
    operations: int  # multiplications for one word
    accuracy: float  # 0 to 1, over all words of the test
    new_pairs: float  # 0 to 1, over adjectives beside a noun that they never had in training


def word_table(pairs: Sequence[SentencePair], reach: int) -> Int[Tensor, "words seen"]:
    """A row for each English word that has a French one: the words in sight, from left to right, then the French."""
    english, french = vocabularies()
    rows = []
    for pair in pairs:
        edge = [english.pad_id] * reach
        words = [*edge, *english.encode(" ".join(pair.english)), *edge]
        answers = french.encode(" ".join(pair.french))
        first_link = dict(sorted(pair.alignment, reverse=True))
        rows += [[*words[i : i + 2 * reach + 1], answers[j]] for i, j in first_link.items()]
    return torch.tensor(rows)


def new_pairs(pairs: Sequence[SentencePair], reach: int) -> Int[Tensor, "words seen"]:
    """The rows of adjectives that stand in new pairs with their nouns; in the test all pairs are new."""
    english, _ = vocabularies()
    kept = []
    for pair in pairs:
        adjectives = torch.tensor([english.token_to_id(adjective) for _, adjective in pair.combinations])
        rows = word_table([pair], reach)
        kept.append(rows[torch.isin(rows[:, reach], adjectives)])
    return torch.cat(kept)


def accuracy(model: nn.Module, rows: Int[Tensor, "words seen"]) -> float:
    """How many French words are named right, 0 to 1."""
    with torch.no_grad():
        return (model(rows[:, :-1]).argmax(dim=1) == rows[:, -1]).float().mean().item()


@one_thread()
def compare(
    build: Callable[[int, int], nn.Sequential], data: TranslationSplits, *, steps: int = STEPS
) -> dict[str, list[Measured]]:
    """Train `build(reach, width)` for both reaches and all widths, on equal terms."""
    found = {}
    for name, reach in REACHES.items():
        train, test, new = word_table(data.train, reach), word_table(data.test, reach), new_pairs(data.test, reach)
        found[name] = []
        for width in WIDTHS:
            with seeded(0):
                model = build(reach, width)
            _train(model, train, steps)
            linear = [layer for layer in model if isinstance(layer, nn.Linear)]
            found[name].append(
                Measured(
                    model=model,
                    reach=reach,
                    parameters=sum(p.numel() for p in model.parameters()),
                    operations=sum(layer.weight.numel() for layer in linear),
                    accuracy=accuracy(model, test),
                    new_pairs=accuracy(model, new),
                )
            )
    return found


def translate(measured: Measured, sentence: str) -> list[str]:
    """One French word for each English one, in its order."""
    english, french = vocabularies()
    edge = [english.pad_id] * measured.reach
    ids = torch.tensor([*edge, *english.encode(sentence), *edge])
    return french.decode(measured.model(ids.unfold(0, 2 * measured.reach + 1, 1)).argmax(dim=1)).split()


def _train(model: nn.Sequential, rows: Int[Tensor, "words seen"], steps: int) -> None:
    indices_at = shuffled_batches(len(rows), 256, 0)
    fit(
        model,
        lambda step: rows[indices_at(step)],
        lambda model, batch: nn.functional.cross_entropy(model(batch[:, :-1]), batch[:, -1]),
        config=FitConfig(steps=steps, learning_rate=0.01, schedule="linear", seed=0),
    )
