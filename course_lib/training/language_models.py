"""Language models of English text, on equal terms: RNN, LSTM, GRU and GPT beside an n-gram (lessons 03, 04, 08)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.prose import ProseSplits, dictionary_splits, prose_splits
from course_lib.functional.losses import check_whole
from course_lib.functional.metrics import bits_per_byte
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.kneser_ney import KneserNey, KneserNeyConfig
from course_lib.models.recurrent import CharacterLM, RecurrentConfig
from course_lib.text.bpe import ByteLevelBPE
from course_lib.text.characters import CharacterTokenizer
from course_lib.text.tokenizer import Tokenizer
from course_lib.training.batches import text_windows
from course_lib.training.recipe import Recipe, Scores, Trained, common, each, fit_by, rounded
from course_lib.training.seeding import seeded

RECURRENT = ("rnn", "lstm", "gru")
STREAMS = 16  # a recurrent model reads the text to be scored in so many parts at once
WINDOWS = 32  # a GPT scores so many windows at once
VALIDATION_TOKENS = 20_000  # of the validation text, while a model is trained
CORPORA = {  # what a card says of a text: where it is from, its licence, what is in one split as a whole
    "prose": (
        "English prose of docstrings, 2.3 million characters, data/prose",
        "the BSD-, MIT- and PSF-type licences that data/prose/LICENSES.txt holds",
        "module",
    ),
    "dictionary": (
        "WordNet's entries, 8.4 million characters, data/prose/dictionary",
        "WordNet's licence, which data/prose/dictionary/LICENSE.txt holds",
        "headword",
    ),
}


@dataclass(frozen=True, kw_only=True)
class LanguageSettings:
    """A language model of the prose and how it is trained."""

    corpus: ClassVar[str] = "prose"

    model: str  # "rnn", "lstm", "gru" or "gpt"
    vocab_size: int | None = None  # byte-level BPE tokens; None: every character is a token
    dim: int
    depth: int
    context_length: int = 128  # tokens of a training window, and the most that GPT sees
    batch_size: int = 16  # windows
    steps: int
    learning_rate: float
    dropout: float = 0.0
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class DictionarySettings(LanguageSettings):
    """The same of the dictionary."""

    corpus: ClassVar[str] = "dictionary"


@dataclass(frozen=True, kw_only=True)
class TokenizedProse:
    """The ids of each split, which begin with a line feed before the first line that is not scored."""

    tokenizer: Tokenizer
    ids: dict[str, Int[Tensor, " T"]]
    num_bytes: dict[str, int]  # without that line feed


@lru_cache(maxsize=4)
def tokenized_prose(vocab_size: int | None = None) -> TokenizedProse:
    """The prose in characters, or in the tokens of a byte-level BPE that was trained on the training split."""
    return _tokenized(prose_splits(), vocab_size)


@lru_cache(maxsize=2)
def tokenized_dictionary(vocab_size: int | None = None) -> TokenizedProse:
    """The same of the dictionary."""
    return _tokenized(dictionary_splits(), vocab_size)


def tokenized(corpus: str, vocab_size: int | None = None) -> TokenizedProse:
    """The "prose" or the "dictionary". Raises ValueError for another text."""
    if corpus not in CORPORA:
        raise ValueError(f"the corpus must be one of {tuple(CORPORA)}, got {corpus!r}")
    return tokenized_prose(vocab_size) if corpus == "prose" else tokenized_dictionary(vocab_size)


def _tokenized(splits: ProseSplits, vocab_size: int | None) -> TokenizedProse:
    texts = {name: splits.text(name) for name in ("train", "validation", "test")}
    if vocab_size is None:
        tokenizer = CharacterTokenizer.train([texts["train"]], specials=())
    else:
        tokenizer = ByteLevelBPE.train([texts["train"]], vocab_size=vocab_size, specials=())
    return TokenizedProse(
        tokenizer=tokenizer,
        ids={name: torch.tensor(tokenizer.encode("\n" + text)) for name, text in texts.items()},
        num_bytes={name: len(text.encode()) for name, text in texts.items()},
    )


def build_language_model(settings: LanguageSettings) -> nn.Module:
    """A fresh model; its first weights depend on the seed alone."""
    vocab_size = len(tokenized(settings.corpus, settings.vocab_size).tokenizer)
    with seeded(settings.seed):
        if settings.model not in RECURRENT:
            heads = max(1, settings.dim // 32)
            return GPT(GPTConfig(**common(settings, GPTConfig) | {"vocab_size": vocab_size, "num_heads": heads}))
        return CharacterLM(
            RecurrentConfig(
                vocab_size=vocab_size,
                cell=settings.model,
                embed_dim=min(settings.dim, 64),
                hidden_dim=settings.dim,
                num_layers=settings.depth,
                dropout=settings.dropout,
                forget_bias=1.0 if settings.model == "lstm" else None,
            )
        )


def next_token_loss(model: nn.Module, window: Int[Tensor, "B T"]) -> Float[Tensor, ""]:
    """Mean cross-entropy of each token given those before it in the window, in nats per token.

    Raises ValueError for a model without a head, and for tokens that are not whole numbers.
    """
    if getattr(model, "head", model) is None:
        raise ValueError(f"this {type(model).__name__} has head=None: it makes features, no logits of the next token")
    check_whole("tokens", window)
    logits = model(window[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())


def train_language_model(settings: LanguageSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains a model of the text; with a folder `checkpoint` an interrupted run goes on, see `fit`."""
    prose, model = tokenized(settings.corpus, settings.vocab_size), build_language_model(settings)
    windows = {"batch_size": settings.batch_size, "length": settings.context_length + 1, "seed": settings.seed}
    return fit_by(
        settings,
        model,
        text_windows(prose.ids["train"], **windows),
        next_token_loss,
        parts=4,
        schedule="cosine",
        warmup=min(100, settings.steps // 4),
        betas=(0.9, 0.98),
        weight_decay=0.01,
        validate=lambda model: nats_per_token(model, prose.ids["validation"][:VALIDATION_TOKENS]),
        checkpoint=checkpoint,
        extra={"tokenizer": prose.tokenizer.state_dict()},
    )


def score_language_model(trained: Trained, split: str) -> Scores:
    """Bits per byte on a split of the text; comparable between models with different tokens."""
    prose = tokenized(trained.settings.corpus, trained.settings.vocab_size)
    nats = float(token_nats(trained.model, prose.ids[split]).sum())
    return {"bits per byte": bits_per_byte(nats, prose.num_bytes[split])}


def train_in_half(settings: LanguageSettings, *, checkpoint: Path | None = None) -> Trained:
    """As `train_language_model`; the weights are then rounded to 16 bits, in which they are shipped."""
    trained = train_language_model(settings, checkpoint=checkpoint)
    rounded(trained.model)
    return trained


def language_recipe(
    title: str,
    lesson: str,
    settings: LanguageSettings,
    *,
    minutes: float,
    train: Callable[..., Trained] = train_language_model,
) -> Recipe:
    """A language model of the text as a training that `course train` can run."""
    text, licence, cut = CORPORA[settings.corpus]
    return Recipe(
        title=title,
        lesson=lesson,
        data=f"{text}: byte-level text that needs no download, split by {cut}. Trained on its training split, tuned on "
        "its validation split, reported on its test split.",
        licence=f"MIT, as the course. The text behind it is under {licence}.",
        minutes=minutes,
        variants={"": settings},
        train=train,
        scores=each(score_language_model),
        chosen_by="bits per byte",
    )


def score_n_gram(order: int, split: str, *, vocab_size: int | None = None, corpus: str = "prose") -> float:
    """Bits per byte of a Kneser-Ney n-gram that has counted the training text."""
    prose = tokenized(corpus, vocab_size)
    model = fitted_n_gram(order, vocab_size, corpus)
    return bits_per_byte(-model.log_prob(prose.ids[split][1:]), prose.num_bytes[split])


@lru_cache(maxsize=2)
def fitted_n_gram(order: int, vocab_size: int | None = None, corpus: str = "prose") -> KneserNey:
    """A Kneser-Ney n-gram over the tokens of the training text."""
    prose = tokenized(corpus, vocab_size)
    return KneserNey(KneserNeyConfig(vocab_size=len(prose.tokenizer), order=order)).fit(prose.ids["train"][1:])


def nats_per_token(model: nn.Module, ids: Int[Tensor, " T"]) -> float:
    return float(token_nats(model, ids).mean())


@torch.no_grad()
def token_nats(model: nn.Module, ids: Int[Tensor, " T"], *, length: int | None = None) -> Float[Tensor, " N"]:
    """-ln p of every token of a text but the first, each given much of what stands before it.

    A recurrent model carries its state along; a GPT reads windows that overlap by half, so that a token has at least
    half a window of context (all there is, at the beginning). They are of `length` tokens, by default as many as the
    model's config says that it can read. Raises ValueError for a text of fewer than two tokens.
    """
    if len(ids) < 2:
        raise ValueError(f"a text needs two tokens or more to be scored, got {len(ids)}")
    if isinstance(model, CharacterLM):
        return recurrent_nats(model, ids)
    return window_nats(model, ids, model.config.context_length if length is None else length)


def recurrent_nats(model: CharacterLM, ids: Int[Tensor, " T"], *, part: int = 512) -> Float[Tensor, " N"]:
    """The text is cut into streams, which are read side by side, each from the zero state on."""
    count = -(-(len(ids) - 1) // STREAMS)
    rows = [ids[i : i + count + 1] for i in range(0, len(ids) - 1, count)]
    nats = []
    for same_length in {len(row): None for row in rows}:
        batch = torch.stack([row for row in rows if len(row) == same_length])
        state, losses = None, []
        for begin in range(0, same_length - 1, part):
            inputs, targets = batch[:, begin : begin + part], batch[:, begin + 1 : begin + part + 1]
            logits, state = model.read_on(inputs[:, : targets.shape[1]], state)
            losses.append(F.cross_entropy(logits.transpose(1, 2), targets, reduction="none"))
        nats.append(torch.cat(losses, dim=1).flatten())
    return torch.cat(nats)


def window_nats(model: nn.Module, ids: Int[Tensor, " T"], length: int) -> Float[Tensor, " N"]:
    """Each window of so many tokens scores its second half, the first window all of it."""
    length = min(length, len(ids) - 1)
    stride = max(1, length // 2)
    starts = torch.arange(0, len(ids) - length, stride)
    if starts[-1] + length < len(ids) - 1:  # the last window ends with the text
        starts = torch.cat([starts, torch.tensor([len(ids) - 1 - length])])
    nats, scored = [], 0
    for group in starts.split(WINDOWS):
        windows = ids[group[:, None] + torch.arange(length + 1)]
        logits = model(windows[:, :-1])
        losses = F.cross_entropy(logits.transpose(1, 2), windows[:, 1:], reduction="none")
        for start, row in zip(group.tolist(), losses, strict=True):
            nats.append(row[scored - start :])
            scored = start + length
    return torch.cat(nats)
