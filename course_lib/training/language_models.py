"""Lessons 03, 04 and 08: language models of English prose, on equal terms: RNN, LSTM, GRU and GPT beside an n-gram."""

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.prose import prose_splits
from course_lib.functional.metrics import bits_per_byte
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.kneser_ney import KneserNey, KneserNeyConfig
from course_lib.models.recurrent import CharacterLM, RecurrentConfig
from course_lib.text.bpe import ByteLevelBPE
from course_lib.text.characters import CharacterTokenizer
from course_lib.text.tokenizer import Tokenizer
from course_lib.training.batches import text_windows
from course_lib.training.history import History
from course_lib.training.loop import FitConfig, fit
from course_lib.training.progress import Progress
from course_lib.training.registry import Recipe, Trained
from course_lib.training.seeding import seeded

RECURRENT = ("rnn", "lstm", "gru")
STREAMS = 16  # a recurrent model reads the text to be scored in so many parts at once
WINDOWS = 32  # a GPT scores so many windows at once
VALIDATION_TOKENS = 20_000  # of the validation text, while a model is trained


@dataclass(frozen=True, kw_only=True)
class LanguageRecipe:
    """A language model of the prose and how it is trained."""

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
class TokenizedProse:
    """The three splits as ids; each begins with the line feed before its first paragraph, which is not scored."""

    tokenizer: Tokenizer
    train: Int[Tensor, " T_train"]
    validation: Int[Tensor, " T_validation"]
    test: Int[Tensor, " T_test"]
    num_bytes: dict[str, int]  # of each split, without that line feed

    def split(self, name: str) -> Int[Tensor, " T"]:
        return {"train": self.train, "validation": self.validation, "test": self.test}[name]


@dataclass(frozen=True, kw_only=True)
class TrainedLanguageModel:
    """A finished run: its recipe, its model and what happened."""

    recipe: LanguageRecipe
    model: nn.Module
    history: History


@lru_cache(maxsize=4)
def tokenized_prose(vocab_size: int | None = None) -> TokenizedProse:
    """The prose in characters, or in the tokens of a byte-level BPE that was trained on the training split."""
    splits = prose_splits()
    train = splits.text("train")
    if vocab_size is None:
        tokenizer = CharacterTokenizer.train([train], specials=())
    else:
        tokenizer = ByteLevelBPE.train([train], vocab_size=vocab_size, specials=())
    ids, num_bytes = {}, {}
    for name in ("train", "validation", "test"):
        text = splits.text(name)
        ids[name] = torch.tensor(tokenizer.encode("\n" + text))
        num_bytes[name] = len(text.encode())
    return TokenizedProse(tokenizer=tokenizer, num_bytes=num_bytes, **ids)


def build_language_model(recipe: LanguageRecipe) -> nn.Module:
    """A fresh model of the recipe; its first weights depend on the seed alone."""
    vocab_size = len(tokenized_prose(recipe.vocab_size).tokenizer)
    with seeded(recipe.seed):
        if recipe.model in RECURRENT:
            return CharacterLM(
                RecurrentConfig(
                    vocab_size=vocab_size,
                    cell=recipe.model,
                    embed_dim=min(recipe.dim, 64),
                    hidden_dim=recipe.dim,
                    num_layers=recipe.depth,
                    dropout=recipe.dropout,
                    forget_bias=1.0 if recipe.model == "lstm" else None,
                )
            )
        return GPT(
            GPTConfig(
                vocab_size=vocab_size,
                context_length=recipe.context_length,
                dim=recipe.dim,
                depth=recipe.depth,
                num_heads=max(1, recipe.dim // 32),
                dropout=recipe.dropout,
            )
        )


def next_token_loss(model: nn.Module, window: Int[Tensor, "B T"]) -> Float[Tensor, ""]:
    """Mean cross-entropy of each token given those before it in the window, in nats per token."""
    logits = model(window[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())


def train_language_model(
    recipe: LanguageRecipe, *, checkpoint=None, checkpoint_every: int | None = None, progress=None
) -> TrainedLanguageModel:
    """Trains a model of the prose; with a folder `checkpoint` an interrupted run goes on, see `fit`."""
    prose = tokenized_prose(recipe.vocab_size)
    model = build_language_model(recipe)
    config = FitConfig(
        steps=recipe.steps,
        learning_rate=recipe.learning_rate,
        schedule="cosine",
        warmup=min(100, recipe.steps // 4),
        betas=(0.9, 0.98),
        weight_decay=0.01,
        evaluate_every=max(1, recipe.steps // 4),
        checkpoint_every=checkpoint_every,
        seed=recipe.seed,
    )
    history = fit(
        model,
        text_windows(prose.train, batch_size=recipe.batch_size, length=recipe.context_length + 1, seed=recipe.seed),
        next_token_loss,
        config=config,
        validate=lambda trained: nats_per_token(trained, prose.validation[:VALIDATION_TOKENS]),
        checkpoint=checkpoint,
        progress=progress,
    )
    return TrainedLanguageModel(recipe=recipe, model=model, history=history)


def score_language_model(model: nn.Module, recipe: LanguageRecipe, split: str) -> float:
    """Bits per byte on a split of the prose; comparable between models with different tokens."""
    prose = tokenized_prose(recipe.vocab_size)
    return bits_per_byte(float(token_nats(model, prose.split(split)).sum()), prose.num_bytes[split])


def score_n_gram(order: int, split: str, *, vocab_size: int | None = None) -> float:
    """Bits per byte of a Kneser-Ney n-gram that has counted the training text."""
    prose = tokenized_prose(vocab_size)
    model = fitted_n_gram(order, vocab_size)
    return bits_per_byte(-model.log_prob(prose.split(split)[1:]), prose.num_bytes[split])


@lru_cache(maxsize=2)
def fitted_n_gram(order: int, vocab_size: int | None = None) -> KneserNey:
    """A Kneser-Ney n-gram over the tokens of the training text."""
    prose = tokenized_prose(vocab_size)
    return KneserNey(KneserNeyConfig(vocab_size=len(prose.tokenizer), order=order)).fit(prose.train[1:])


def nats_per_token(model: nn.Module, ids: Int[Tensor, " T"]) -> float:
    return float(token_nats(model, ids).mean())


@torch.no_grad()
def token_nats(model: nn.Module, ids: Int[Tensor, " T"]) -> Float[Tensor, " N"]:
    """-ln p of every token of a text but the first, each given much of what stands before it.

    A recurrent model carries its state along; a GPT reads windows that overlap by half, so that a token has at least
    half a window of context (all there is, at the beginning). Raises ValueError for a text of fewer than two tokens.
    """
    if len(ids) < 2:
        raise ValueError(f"a text needs two tokens or more to be scored, got {len(ids)}")
    return recurrent_nats(model, ids) if isinstance(model, CharacterLM) else window_nats(model, ids)


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


def window_nats(model: GPT, ids: Int[Tensor, " T"]) -> Float[Tensor, " N"]:
    """Each window scores its second half, the first window all of it."""
    length = min(model.config.context_length, len(ids) - 1)
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


PROSE = (
    "English prose of docstrings, 2.3 million characters, data/prose: byte-level text that needs no download, split by "
    "module. Trained on its training split, tuned on its validation split, reported on its test split."
)
LICENCE = (
    "MIT, as the course. The text behind it is under the BSD-, MIT- and PSF-type licences that data/prose/LICENSES.txt "
    "holds."
)
SCORE = "bits per byte"


def prose_recipe(title: str, lesson: str, settings: LanguageRecipe, *, minutes: float, notes: str) -> Recipe:
    """A language model of the prose as a training that `course train` can run."""

    def train(seed: int, checkpoint: Path, progress: Progress | None) -> Trained:
        recipe = replace(settings, seed=seed)
        trained = train_language_model(
            recipe, checkpoint=checkpoint, checkpoint_every=max(1, recipe.steps // 20), progress=progress
        )
        return Trained(
            model=trained.model,
            history=trained.history,
            validation={SCORE: score_language_model(trained.model, recipe, "validation")},
            test={SCORE: score_language_model(trained.model, recipe, "test")},
            extra={"tokenizer": tokenized_prose(recipe.vocab_size).tokenizer.state_dict(), "recipe": asdict(recipe)},
        )

    plain = {name: value for name, value in asdict(settings).items() if name != "seed"}
    return Recipe(
        title=title,
        lesson=lesson,
        data=PROSE,
        licence=LICENCE,
        minutes=minutes,
        settings=plain,
        train=train,
        chosen_by=SCORE,
        notes=notes,
    )


GPT_BPE = prose_recipe(
    "GPT on the tokens of a byte-level BPE",
    "08",
    LanguageRecipe(
        model="gpt",
        vocab_size=1024,
        dim=128,
        depth=4,
        context_length=128,
        batch_size=8,
        steps=8000,
        learning_rate=4e-3,
    ),
    minutes=12,
    notes="",
)

EQUAL_TERMS = (
    "RNN, LSTM and GPT on characters have 0.6 M parameters each, and as many steps as fit into the same CPU time; the "
    "learning rate of each was chosen on the validation split."
)
RNN_CHARACTERS = prose_recipe(
    "RNN on characters",
    "03",
    LanguageRecipe(model="rnn", dim=704, depth=1, steps=2540, learning_rate=2e-3),
    minutes=3,
    notes=EQUAL_TERMS,
)
LSTM_CHARACTERS = prose_recipe(
    "LSTM on characters",
    "04",
    LanguageRecipe(model="lstm", dim=344, depth=1, steps=2440, learning_rate=8e-3),
    minutes=3,
    notes=EQUAL_TERMS,
)
GPT_CHARACTERS = prose_recipe(
    "GPT on characters",
    "08",
    LanguageRecipe(model="gpt", dim=128, depth=3, context_length=64, steps=3830, learning_rate=4e-3),
    minutes=3,
    notes=EQUAL_TERMS,
)
