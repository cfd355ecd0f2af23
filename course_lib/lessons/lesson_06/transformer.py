"""Lesson 06: what a trained translator writes, how good that is, and where it looks meanwhile."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.data.translation import SentencePair, tokenize_english
from course_lib.functional.metrics import Link, alignment_error_rate, argmax_alignment, bleu_by_length, corpus_bleu
from course_lib.generation import beam_search, greedy
from course_lib.generation.stepwise import Choice, argmax, stream
from course_lib.layers.recording import record_attention
from course_lib.models.transformer import Transformer
from course_lib.training.translation import LENGTH_EDGES, Translation, TranslationScores, encode_pairs, vocabularies

ROWS = 250  # sentences that are translated or aligned at once


def write(model: Transformer, source: Tensor, source_valid: Tensor, *, num_beams: int = 1) -> Int[Tensor, "B T"]:
    """Translations, greedily or by beam search, up to twice as long as the longest source."""
    french = vocabularies()[1]
    prompt = torch.full((len(source), 1), french.start_id)
    settings = {"max_new_tokens": 2 * source.shape[1] + 10, "end_id": french.end_id, "pad_id": french.pad_id}
    with torch.inference_mode():
        writer = model.given(source, source_valid)
        if num_beams == 1:
            return greedy(writer, prompt, **settings)
        return beam_search(writer, prompt, num_beams=num_beams, **settings).tokens[:, 0]


def stream_words(model: Transformer, text: str, *, choose: Choice = argmax) -> Iterator[str]:
    """The French words of a translation, each as soon as it is chosen."""
    english, french = vocabularies()
    source, valid = english.encode_batch([" ".join(tokenize_english(text))])
    prompt = torch.full((1, 1), french.start_id)
    settings = {"max_new_tokens": 2 * source.shape[1] + 10, "end_id": french.end_id, "pad_id": french.pad_id}
    for token in stream(model.given(source, valid), prompt, choose=choose, **settings):
        if token.item() != french.end_id:
            yield french.vocabulary[token.item()]


class Place(NamedTuple):
    """Where to look at cross-attention; both count from 0."""

    layer: int  # of the decoder
    head: int | None = None  # None: the mean of all

    def of(self, maps: Float[Tensor, "B L H T_q T_k"]) -> Float[Tensor, "B T_q T_k"]:
        """The maps at this place."""
        return maps[:, self.layer].mean(dim=1) if self.head is None else maps[:, self.layer, self.head]


@torch.no_grad()
def alignments(
    model: Transformer, source: Tensor, target: Tensor, source_valid: Tensor
) -> Float[Tensor, "B L H T_q T_k"]:
    """The cross-attention while the target is written: row i says where each head looks for y_i."""
    with record_attention(model) as record:
        model(source, target, source_valid=source_valid)
    return record.maps("cross_attn")


@torch.no_grad()
def error_rates(model: Transformer, pairs: Sequence[SentencePair]) -> dict[Place, float]:
    """The alignment error rate at each place, while the references are written."""
    heads = (None, *range(model.config.num_heads))
    places = [Place(layer, head) for layer in range(model.config.depth) for head in heads]
    links: dict[Place, list[set[Link]]] = {place: [] for place in places}  # of each sentence
    for start in range(0, len(pairs), ROWS):
        group = pairs[start : start + ROWS]
        source, source_valid, target, _ = encode_pairs(group)
        maps = alignments(model, source, target[:, :-1], source_valid)
        for place, found in links.items():
            rows = zip(place.of(maps), group, strict=True)
            found += [argmax_alignment(weights[: len(pair.french)]) for weights, pair in rows]
    gold = [pair.alignment for pair in pairs]
    return {place: alignment_error_rate(found, gold) for place, found in links.items()}


def best_place(rates: Mapping[Place, float], *, whole_layers: bool = False) -> Place:
    """The place of the lowest error rate; with `whole_layers`, among the means of all heads."""
    return min((place for place in rates if place.head is None or not whole_layers), key=rates.__getitem__)


def score_transformer(
    model: Transformer, pairs: Sequence[SentencePair], *, place: Place, num_beams: int = 1
) -> TranslationScores:
    """BLEU of the translations, and the alignment error rate at a place."""
    french = vocabularies()[1]
    translations: list[tuple[str, ...]] = []
    for start in range(0, len(pairs), ROWS):
        source, source_valid, _, _ = encode_pairs(pairs[start : start + ROWS])
        words = write(model, source, source_valid, num_beams=num_beams)
        translations.extend(tuple(french.sentence(row)) for row in words)
    references = [pair.french for pair in pairs]
    return TranslationScores(
        bleu=corpus_bleu(translations, references).score,
        by_length=tuple(bleu_by_length(translations, references, [len(pair.english) for pair in pairs], LENGTH_EDGES)),
        alignment_error_rate=error_rates(model, pairs)[place],
        translations=tuple(translations),
    )


def translate(model: Transformer, text: str, *, place: Place, num_beams: int = 4) -> Translation:
    """Translates one English sentence as typed, and says where the model looked, seen from one place.

    Raises ValueError for a text without a word.
    """
    english, french = vocabularies()
    tokens = tokenize_english(text)
    if not tokens:
        raise ValueError("There is no word to translate: type an English sentence.")
    source, valid = english.encode_batch([" ".join(tokens)])
    words = french.sentence(write(model, source, valid, num_beams=num_beams)[0])
    target = torch.tensor([french.encode(" ".join(words), start=True)])
    weights = place.of(alignments(model, source, target, valid))[0]
    return Translation(
        source=tuple(tokens),
        target=tuple(words),
        weights=weights[: len(words)],
        unknown=tuple(word for word in dict.fromkeys(tokens) if word not in english),
    )
