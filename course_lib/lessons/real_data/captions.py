"""The Transformer of lesson 06 on Multi30k, from English to French, scored by sacreBLEU on the test set of 2016.

Post 2018, "A call for clarity in reporting BLEU scores", arXiv 1804.08771.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.data.checkpoints import TrainedModel
from course_lib.data.place import CannotStart
from course_lib.data.real import multi30k
from course_lib.functional.losses import cross_entropy
from course_lib.generation import beam_search
from course_lib.models.transformer import Transformer, TransformerConfig
from course_lib.text.bpe import ByteLevelBPE
from course_lib.text.tokenizer import Tokenizer
from course_lib.training.averaging import load_mean
from course_lib.training.batches import bucketed_batches
from course_lib.training.recipe import Recipe, Scores, Trained, common, each, fit_by
from course_lib.training.seeding import seeded

Pairs = Sequence[tuple[str, ...]]  # (English, French)
SIGNS = ("<pad>", "<s>", "</s>")
SHOWN = 4  # sentences on the lesson's page
ROWS = 50  # sentences that are translated at once
LONGEST = 80  # tokens of a translation


@dataclass(frozen=True, kw_only=True)
class CaptionSettings:
    """A small Transformer and how it is trained."""

    vocab_size: int = 4000  # byte-level tokens that both languages share
    dim: int = 128
    depth: int = 2
    num_heads: int = 4
    mlp_dim: int = 512
    context_length: int = 128  # tokens
    pre_norm: bool = True
    dropout: float = 0.1
    smoothing: float = 0.1  # of the targets
    batch_size: int = 64  # sentences
    steps: int = 2000
    learning_rate: float = 2e-3
    averaged: int = 5  # of the last checkpoints, one every twentieth of the steps
    num_beams: int = 4
    seed: int = 0


@lru_cache(maxsize=1)
def pairs(split: str) -> Pairs:
    """The captions of a split in English and French."""
    return multi30k(split, ("en", "fr"))


@lru_cache(maxsize=1)
def tokenizer(vocab_size: int) -> ByteLevelBPE:
    """One for both languages, learned from the training captions."""
    return ByteLevelBPE.train([text for pair in pairs("train") for text in pair], vocab_size, specials=SIGNS)


def loss(model: Transformer, batch: tuple[Tensor, ...], *, smoothing: float) -> Float[Tensor, ""]:
    """Mean cross-entropy of the real target tokens, in nats."""
    source, source_valid, target, target_valid = batch
    logits = model(source, target[:, :-1], source_valid=source_valid)
    return cross_entropy(logits, target[:, 1:], smoothing=smoothing, scored=target_valid[:, 1:])


def train(settings: CaptionSettings, *, checkpoint: Path) -> Trained:
    """Trains the translator; its weights are the mean of the last checkpoints (Vaswani et al. 2017, section 6.1)."""
    words, known = tokenizer(settings.vocab_size), pairs("train")
    with seeded(settings.seed):
        config = common(settings, TransformerConfig) | {"vocab_size": len(words)}
        model = Transformer(TransformerConfig(**config))
    indices_at = bucketed_batches([len(english) for english, _ in known], settings.batch_size, settings.seed)

    def batch_at(step: int) -> tuple[Tensor, ...]:
        english, french = zip(*(known[i] for i in indices_at(step).tolist()), strict=True)
        return *words.encode_batch(english), *words.encode_batch(french, start=True, end=True)

    trained = fit_by(
        settings,
        model,
        batch_at,
        partial(loss, smoothing=settings.smoothing),
        schedule="inverse_sqrt",
        warmup=min(400, settings.steps // 4),
        betas=(0.9, 0.98),
        keep_weights=settings.averaged,
        checkpoint=checkpoint,
    )
    load_mean(checkpoint, model, last=settings.averaged)
    return replace(trained, extra={"tokenizer": words.state_dict()})


@torch.inference_mode()
def translate(model: Transformer, words: Tokenizer, texts: Sequence[str], *, num_beams: int = 4) -> list[str]:
    """The French for English sentences, by beam search."""
    written = []
    for start in range(0, len(texts), ROWS):
        source, valid = words.encode_batch(texts[start : start + ROWS])
        beams = beam_search(
            model.given(source, valid),
            torch.full((len(source), 1), words.start_id),
            num_beams=num_beams,
            max_new_tokens=LONGEST,
            end_id=words.end_id,
            pad_id=words.pad_id,
        )
        written += [words.decode(tokens, strip_specials=True).strip() for tokens in beams.tokens[:, 0]]
    return written


def score(trained: Trained, split: str) -> Scores:
    """sacreBLEU, 0 to 100, with its usual tokens ("13a"), upper and lower case told apart."""
    english, french = zip(*pairs(split), strict=True)
    words = tokenizer(trained.settings.vocab_size)
    written = translate(trained.model, words, english, num_beams=trained.settings.num_beams)
    return {"sacreBLEU": sacrebleu_score(written, french)}


def show(data: str, trained: Trained | TrainedModel | None = None) -> None:
    """The first test captions in both languages, and with a model its translations."""
    english, french = zip(*pairs("test")[:SHOWN], strict=True)
    written = ["" for _ in english]
    if trained is not None:
        words = Tokenizer.from_state_dict(trained.extra["tokenizer"])
        written = translate(trained.model.eval(), words, english)
    for source, people, model in zip(english, french, written, strict=True):
        print(f"{source}\n    people: {people}" + (f"\n    model:  {model}" if trained else ""))


def sacrebleu_score(written: Sequence[str], references: Sequence[str]) -> float:
    """By the package sacrebleu. Raises CannotStart, with the command that installs it, without it."""
    try:
        from sacrebleu import corpus_bleu
    except ImportError:
        raise CannotStart("This score needs the package sacrebleu: python -m pip install 'sacrebleu>=2.6,<3'") from None
    return corpus_bleu(list(written), [list(references)]).score


RECIPES = {
    "translator_multi30k": Recipe(
        title="A Transformer on the captions of Multi30k, from English to French",
        lesson="06",
        data="The data set multi30k, task 1, raw, see docs/data.md: 29,000 pairs to train by, 1,014 for validation; "
        "the test is test_2016_flickr, 1,000 pairs. Text as it is, on both sides, cased and not tokenized.",
        minutes=10,
        variants={"": CaptionSettings()},
        train=train,
        scores=each(score),
        chosen_by="sacreBLEU",
        mode="max",
        licence="The weights come from Multi30k, which is under CC BY-NC-SA: for research, not for sale.",
    )
}
