"""Lesson 05: one layer of attention that must look to one side, or to both, with one head or with several."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.functional.attention import attention_weights
from course_lib.layers.transformer import MultiHeadAttention, SinusoidalPositions
from course_lib.training.batches import shuffled_batches
from course_lib.training.loop import FitConfig, fit
from course_lib.training.seeding import seeded
from course_lib.training.translation import splits, vocabularies

TASKS = {"left only": (-1,), "both neighbours": (-1, +1)}  # offsets of the words to be named
LENGTH = 12  # words: longer sentences are cut, shorter ones left out


@dataclass(frozen=True, kw_only=True)
class TrainedReader:
    """A finished training, and the share of the neighbours that it names right, from 0 to 1."""

    model: "NeighbourReader"
    validation: float
    test: float


class NeighbourReader(nn.Module):
    """Names the word at each of `offsets` from every word, out of what one attention layer returns.

    There is no residual and no MLP: all that reaches the read-out has passed through the heads.
    """

    def __init__(
        self,
        vocab_size: int,
        dim: int,
        num_heads: int,
        offsets: Sequence[int],
        make_attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
    ):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim)
        self.positions = SinusoidalPositions(dim, context_length=LENGTH)
        self.attention = make_attention(dim, num_heads)
        self.readout = nn.ModuleList(nn.Linear(dim, vocab_size) for _ in offsets)

    def forward(self, words: Int[Tensor, "B T"]) -> list[Float[Tensor, "B T V"]]:
        gathered = self.attention(self.positions(self.embed(words)))
        return [name_word(gathered) for name_word in self.readout]


def train_reader(
    *,
    task: str,
    num_heads: int,
    seed: int,
    learning_rate: float = 0.03,
    steps: int = 500,
    dim: int = 32,
    make_attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
    progress=None,
) -> TrainedReader:
    """Trains one reader and scores it; `task` is a key of `TASKS`, `make_attention(dim, num_heads)` is its layer."""
    offsets = TASKS[task]
    train, validation, test = sentences()
    with seeded(seed):
        model = NeighbourReader(len(vocabularies()[0]), dim, num_heads, offsets, make_attention)
        for parameter in model.attention.parameters():  # a learner's layer starts as ours does
            nn.init.xavier_uniform_(parameter) if parameter.ndim == 2 else nn.init.zeros_(parameter)
    indices_at = shuffled_batches(len(train), 32, seed)

    def loss(model: NeighbourReader, words: Tensor) -> Tensor:
        pairs = predictions_and_answers(model, words, offsets)
        return sum(F.cross_entropy(logits.flatten(0, 1), answers.flatten()) for logits, answers in pairs)

    config = FitConfig(steps=steps, learning_rate=learning_rate, schedule="linear", seed=seed)
    fit(model, lambda step: train[indices_at(step)], loss, config=config, progress=progress)
    return TrainedReader(
        model=model,
        validation=accuracy(model, validation, offsets),
        test=accuracy(model, test, offsets),
    )


@lru_cache(maxsize=1)
def sentences() -> tuple[Int[Tensor, "train T"], Int[Tensor, "validation T"], Int[Tensor, "test T"]]:
    """The first words of each long enough English sentence, for training, validation and test."""
    english, data = vocabularies()[0], splits()
    return tuple(
        torch.tensor([english.encode(" ".join(p.english[:LENGTH])) for p in pairs if len(p.english) >= LENGTH])
        for pairs in (data.train, data.validation, data.test)
    )


def predictions_and_answers(
    model: NeighbourReader, words: Int[Tensor, "B T"], offsets: Sequence[int]
) -> list[tuple[Float[Tensor, "B t V"], Int[Tensor, "B t"]]]:
    """Logits and answers of the words that have a neighbour on either side."""
    last = words.shape[1] - 1
    return [
        (logits[:, 1:last], words[:, 1 + offset : last + offset])
        for logits, offset in zip(model(words), offsets, strict=True)
    ]


@torch.no_grad()
def accuracy(model: NeighbourReader, words: Int[Tensor, "n T"], offsets: Sequence[int]) -> float:
    """Share of the neighbours that the model names right, from 0 to 1."""
    right = [logits.argmax(-1) == answers for logits, answers in predictions_and_answers(model, words, offsets)]
    return torch.stack(right).float().mean().item()


@torch.no_grad()
def look(model: NeighbourReader, words: Sequence[str]) -> Float[Tensor, "H T T"]:
    """Where each head of a layer with `q_proj` and `k_proj` attends to in a sentence."""
    x = model.positions(model.embed(torch.tensor([vocabularies()[0].encode(" ".join(words))])))
    layer = model.attention
    q, k = (rearrange(proj(x), "1 t (h d) -> h t d", h=layer.num_heads) for proj in (layer.q_proj, layer.k_proj))
    return attention_weights(q, k)
