"""The first network of the course: from the counts of a few letters to a language, with a handful of parameters."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.translation import SentencePair
from course_lib.training import seeded

LANGUAGES = ("English", "French")
HIDDEN, STEPS = 3, 300

Frequencies = Callable[[Sequence[str], str], Sequence[float]]
"""From the words of a sentence and some letters to a number for each letter."""


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A network with what it sees and how often it is right."""

    letters: str
    network: nn.Sequential
    means: Float[np.ndarray, "2 letters"]  # what it sees of English and of French sentences, on average
    accuracy: float  # of unseen sentences, 0 to 1


@contextmanager
def one_thread() -> Iterator[None]:
    """The fastest for networks so small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def letter_table(
    frequencies: Frequencies, letters: str, pairs: Sequence[SentencePair]
) -> tuple[Float[Tensor, "sentences letters"], Int[Tensor, " sentences"]]:
    """What a network sees of each sentence, and its language: 0 English, 1 French."""
    rows = [frequencies(words, letters) for pair in pairs for words in (pair.english, pair.french)]
    return torch.tensor(rows), torch.tensor([0, 1] * len(pairs))


def accuracy(network: nn.Module, seen: Tensor, languages: Tensor) -> float:
    """How often the larger output belongs to the right language, 0 to 1."""
    return (network(seen).argmax(dim=1) == languages).float().mean().item()


def fresh_network(num_letters: int) -> nn.Sequential:
    """An untrained network, always the same."""
    with seeded(0):
        return nn.Sequential(nn.Linear(num_letters, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, len(LANGUAGES)))


@one_thread()
def train(
    frequencies: Frequencies,
    letters: str,
    pairs: Sequence[SentencePair],
    unseen: Sequence[SentencePair],
    *,
    steps: int = STEPS,
) -> Trained:
    """Train a network on these letters, always from the same start."""
    seen, languages = letter_table(frequencies, letters, pairs)
    network = fresh_network(len(letters))
    adam = torch.optim.Adam(network.parameters(), lr=0.05)
    for _ in range(steps):
        adam.zero_grad()
        nn.functional.cross_entropy(network(seen), languages).backward()
        adam.step()
    means = np.stack([seen[languages == language].mean(dim=0).numpy() for language in range(len(LANGUAGES))])
    correct = accuracy(network, *letter_table(frequencies, letters, unseen))
    return Trained(letters=letters, network=network, means=means, accuracy=correct)


def wires(network: nn.Sequential) -> list[Float[np.ndarray, "to start"]]:
    """The weights of each layer."""
    return [layer.weight.detach().numpy() for layer in network if isinstance(layer, nn.Linear)]
