"""Lesson 05: recurrent translators from English to French, with and without attention, on equal terms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.data.translation import (
    SentencePair,
    TranslationSplits,
    english_words,
    french_words,
    tokenize_english,
    translation_splits,
)
from course_lib.functional.metrics import (
    LengthBucket,
    alignment_error_rate,
    argmax_alignment,
    bleu_by_length,
    corpus_bleu,
)
from course_lib.layers.recording import record_attention
from course_lib.models.seq2seq import Seq2Seq, Seq2SeqConfig
from course_lib.text.tokenizer import SPECIALS
from course_lib.text.words import WordTokenizer
from course_lib.training.batches import bucketed_batches
from course_lib.training.history import History
from course_lib.training.loop import FitConfig, fit
from course_lib.training.seeding import seeded

LENGTH_EDGES = (1, 8, 12, 16, 20, 31)  # English words: sentences are scored in these groups


@dataclass(frozen=True, kw_only=True)
class TranslatorRecipe:
    """What two translators that are compared must share, and what may differ."""

    attention: str = "scaled"  # as in `Seq2SeqConfig`
    looks_first: bool | None = None
    steps: int = 1000
    learning_rate: float = 5e-3
    batch_size: int = 32  # sentences
    width: int = 96  # embeddings, decoder state, each direction of the encoder
    seed: int = 0
    train_pairs: int = 20_000


@dataclass(frozen=True, kw_only=True)
class TranslationScores:
    """How well a translator did on held-out pairs."""

    bleu: float  # 0 to 100
    by_length: tuple[LengthBucket, ...]
    alignment_error_rate: float | None  # None without attention
    translations: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class TrainedTranslator:
    """A finished run: its recipe, its model and what happened."""

    recipe: TranslatorRecipe
    model: Seq2Seq
    history: History


@dataclass(frozen=True, kw_only=True)
class Translation:
    """A translated sentence, and where the model looked; `weights` is None for a model without attention."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: Float[Tensor, "T_q T_k"] | None
    unknown: tuple[str, ...]  # source words that the model has never seen


@lru_cache(maxsize=1)
def vocabularies() -> tuple[WordTokenizer, WordTokenizer]:
    """English and French, of the whole grammar: the same for every split and size."""
    return tuple(WordTokenizer([*SPECIALS, *w], cut_punctuation=False) for w in (english_words(), french_words()))


@lru_cache(maxsize=2)
def splits(train_pairs: int = 20_000) -> TranslationSplits:
    """The lesson's pairs: 500 for validation and 1,000 for the test, whatever the size of the training set."""
    return translation_splits(train=train_pairs, validation=500, test=1_000, seed=0)


def encode_pairs(
    pairs: Sequence[SentencePair],
) -> tuple[Int[Tensor, "B T_k"], Bool[Tensor, "B T_k"], Int[Tensor, "B T_q"], Bool[Tensor, "B T_q"]]:
    """Pairs as one padded batch: source ids and their validity, `<s> target </s>` ids and theirs."""
    english, french = vocabularies()
    source = english.encode_batch([" ".join(pair.english) for pair in pairs])
    target = french.encode_batch([" ".join(pair.french) for pair in pairs], start=True, end=True)
    return (*source, *target)


def translation_loss(model: Seq2Seq, batch: tuple[Tensor, Tensor, Tensor, Tensor]) -> Float[Tensor, ""]:
    """Mean cross-entropy of the real target words, in nats per word."""
    source, source_valid, target, target_valid = batch
    logits = model(source, source_valid, target[:, :-1])
    scored = target_valid[:, 1:]
    return F.cross_entropy(logits[scored], target[:, 1:][scored])


def build_translator(recipe: TranslatorRecipe, attend: Callable | None = None) -> Seq2Seq:
    """A fresh model of the recipe; its first weights depend on the seed alone.

    With `attend`, a scaled dot-product attention (q, k, v, mask), "scaled" looks by that one in place of ours.
    """
    english, french = vocabularies()
    config = Seq2SeqConfig(
        source_vocab=len(english),
        target_vocab=len(french),
        attention=recipe.attention,
        looks_first=recipe.looks_first,
        embed_dim=recipe.width,
        encoder_dim=recipe.width // 2 if recipe.attention == "dot" else recipe.width,
        hidden_dim=recipe.width,
        start_id=french.start_id,
        end_id=french.end_id,
    )
    with seeded(recipe.seed):
        model = Seq2Seq(config)
    if attend is not None:
        model.decoder.attention.attend = attend
    return model


def train_translator(model: Seq2Seq, recipe: TranslatorRecipe, *, checkpoint=None, progress=None) -> TrainedTranslator:
    """Trains a translator of `build_translator`; with a folder `checkpoint` it can go on, see `fit`."""
    pairs = splits(recipe.train_pairs).train
    config = FitConfig(
        steps=recipe.steps,
        learning_rate=recipe.learning_rate,
        schedule="linear",
        warmup=min(30, recipe.steps // 4),
        betas=(0.9, 0.98),  # of Vaswani et al. 2017, section 5.3: in a short run 0.999 remembers for too long
        seed=recipe.seed,
    )
    source = batch_source(pairs, recipe)
    history = fit(model, source, translation_loss, config=config, checkpoint=checkpoint, progress=progress)
    return TrainedTranslator(recipe=recipe, model=model, history=history)


def batch_source(pairs: Sequence[SentencePair], recipe: TranslatorRecipe) -> Callable[[int], tuple[Tensor, ...]]:
    """The batch of a step: sentences of similar length, so that little of it is padding."""
    indices_at = bucketed_batches([len(pair.english) for pair in pairs], recipe.batch_size, recipe.seed)
    return lambda step: encode_pairs([pairs[i] for i in indices_at(step).tolist()])


@torch.no_grad()
def score_translator(model: Seq2Seq, pairs: Sequence[SentencePair]) -> TranslationScores:
    """BLEU of greedy translations, and the alignment error rate of the weights while the reference is written."""
    french = vocabularies()[1]
    source, source_valid, target, _ = encode_pairs(pairs)
    longest = 2 * max(len(pair.french) for pair in pairs)
    words, _ = model.greedy_decode(source, source_valid, max_length=longest)
    translations = tuple(tuple(french.sentence(row)) for row in words)
    references = [pair.french for pair in pairs]
    with record_attention(model) as record:
        model(source, source_valid, target[:, :-1])
    return TranslationScores(
        bleu=corpus_bleu(translations, references).score,
        by_length=tuple(bleu_by_length(translations, references, [len(pair.english) for pair in pairs], LENGTH_EDGES)),
        alignment_error_rate=attention_error_rate(record.maps()[:, 0, 0], pairs) if record else None,
        translations=translations,
    )


def attention_error_rate(weights: Float[Tensor, "B T_q T_k"], pairs: Sequence[SentencePair]) -> float:
    """Alignment error rate when each French word is linked to the English word it attends to most."""
    links = [argmax_alignment(rows[: len(pair.french)]) for rows, pair in zip(weights, pairs, strict=True)]
    return alignment_error_rate(links, [pair.alignment for pair in pairs])


def translate(model: Seq2Seq, text: str) -> Translation:
    """Translates one English sentence as typed, and says which of its words the model does not know.

    Raises ValueError for a text without a word.
    """
    english, french = vocabularies()
    tokens = tokenize_english(text)
    if not tokens:
        raise ValueError("There is no word to translate: type an English sentence.")
    source, valid = english.encode_batch([" ".join(tokens)])
    words, weights = model.greedy_decode(source, valid, max_length=2 * len(tokens) + 10)
    target = tuple(french.sentence(words[0]))
    return Translation(
        source=tuple(tokens),
        target=target,
        weights=None if weights is None else weights[0, : len(target)],
        unknown=tuple(word for word in dict.fromkeys(tokens) if word not in english),
    )
