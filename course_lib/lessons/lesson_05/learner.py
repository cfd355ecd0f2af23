"""Lesson 05: the learner's translator and decoding loop on sentences, its scores, and what is shown while it learns."""

import html
from collections.abc import Callable, Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.translation import SentencePair
from course_lib.functional.metrics import bleu_by_length, corpus_bleu
from course_lib.training.translation import (
    LENGTH_EDGES,
    TranslationScores,
    TranslatorRecipe,
    attention_error_rate,
    batch_source,
    vocabularies,
)

Greedy = Callable[..., Int[Tensor, "B T"]]


@torch.no_grad()
def translate(model: nn.Module, greedy: Greedy, sentences: Sequence[str], max_length: int = 70) -> list[list[str]]:
    """What a translator and a decoding loop of the exercises make of English sentences."""
    english, french = vocabularies()
    words = greedy(model, *english.encode_batch(sentences), french.start_id, french.end_id, max_length)
    return [french.sentence(row) for row in words]


def example(greedy: Greedy, sentence: str) -> Callable[[nn.Module], str]:
    """For `page.watch`: the sentence in the French that the network has learned by then."""

    def shows(model: nn.Module) -> str:
        (words,) = translate(model, greedy, [sentence], max_length=20)
        return f"<p>{html.escape(sentence)}</p><p><b>{html.escape(' '.join(words))}</b></p>"

    return shows


def score(
    model: nn.Module, greedy: Greedy, pairs: Sequence[SentencePair], weights: Float[Tensor, "B T_q T_k"] | None = None
) -> TranslationScores:
    """BLEU of the translations of all pairs, also by length; the alignment error rate of the weights, if given."""
    translations = translate(model, greedy, [" ".join(pair.english) for pair in pairs])
    references = [pair.french for pair in pairs]
    return TranslationScores(
        bleu=corpus_bleu(translations, references).score,
        by_length=tuple(bleu_by_length(translations, references, [len(pair.english) for pair in pairs], LENGTH_EDGES)),
        alignment_error_rate=None if weights is None else attention_error_rate(weights, pairs),
        translations=tuple(map(tuple, translations)),
    )


def batches(pairs: Sequence[SentencePair], count: int, size: int = 32, seed: int = 0) -> Iterator[tuple]:
    """So many batches of sentences of similar length: source, its mask, target, its mask."""
    batch_at = batch_source(pairs, TranslatorRecipe(batch_size=size, seed=seed))
    for step in range(count):
        yield batch_at(step)
