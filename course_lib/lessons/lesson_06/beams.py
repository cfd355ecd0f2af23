"""Lesson 06: every step of a beam search for one sentence, and the attention weights at each step."""

from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.data.translation import SentencePair, tokenize_english
from course_lib.data.translation import translate as gold_translation
from course_lib.generation import beam_search, greedy, log_probs
from course_lib.generation.beam import NONE, Beams
from course_lib.layers.recording import record_attention
from course_lib.models.transformer import Transformer
from course_lib.training.translation import vocabularies

END = "</s>"
Words = tuple[str, ...]


class Hypothesis(NamedTuple):
    """A translation begun or, if `</s>` is its last word, ended."""

    words: Words
    log_p: float  # the sum over its words, in nats


class Level(NamedTuple):
    """One step of the search: the hypotheses that go on, best first, and those that ended in it."""

    running: tuple[Hypothesis, ...]
    ended: tuple[Hypothesis, ...]

    @property
    def all(self) -> tuple[Hypothesis, ...]:
        """Both."""
        return (*self.running, *self.ended)


class Look(NamedTuple):
    """What the model saw when it wrote each word of a hypothesis, and how likely each next word was."""

    maps: Float[Tensor, "L H T_q T_k"]  # cross-attention
    chances: Float[Tensor, "T_q V"]


class Search:
    """A sentence decoded by beam search, step by step, with greedy's translation and the grammar's beside it.

    Raises ValueError for a text without a word.
    """

    def __init__(self, model: Transformer, text: str, *, num_beams: int, penalty: float):
        english, french = vocabularies()
        self.model, self.penalty, self.source = model, penalty, tuple(tokenize_english(text))
        if not self.source:
            raise ValueError("Type a sentence, or take one of the examples.")
        self.unknown = tuple(word for word in dict.fromkeys(self.source) if word not in english)
        self.gold: SentencePair | None = gold_translation(" ".join(self.source))
        self._ids, valid = english.encode_batch([" ".join(self.source)])
        prompt = torch.tensor([[french.start_id]])
        settings = {"max_new_tokens": 2 * len(self.source) + 10, "end_id": french.end_id, "pad_id": french.pad_id}
        seen: list[tuple[Beams, Beams]] = []
        with torch.inference_mode():
            writer = model.given(self._ids, valid)
            beam_search(
                writer,
                prompt,
                num_beams=num_beams,
                length_penalty=penalty,
                watch=lambda *beams: seen.append(beams),
                **settings,
            )
            greedily = greedy(model.given(self._ids, valid), prompt, **settings)
            greedily_log_p = float(log_probs(partial(model, self._ids), prompt, greedily).sum())
        self.levels = [self._level(*beams) for beams in seen]
        self.kept = self._hypotheses(seen[-1][1], penalty)  # what had ended when the search stopped, best first
        self.winner = self.kept[0]
        self.greedy = Hypothesis(self._words(greedily[0]), greedily_log_p)

    def score(self, hypothesis: Hypothesis) -> float:
        """What ended hypotheses are compared by: the sum, divided by their length to the power of the penalty."""
        return hypothesis.log_p / len(hypothesis.words) ** self.penalty

    def goes_on(self, step: int, hypothesis: Hypothesis) -> bool:
        """Whether it has a continuation in the next step."""
        return step < len(self.levels) and any(h.words[:step] == hypothesis.words for h in self.levels[step].all)

    def wins(self, words: Words) -> bool:
        """Whether these words are how the winner begins."""
        return words == self.winner.words[: len(words)]

    def led_and_lost(self) -> list[int]:
        """The steps, from 1, in which the best of those that went on was not what won in the end."""
        running = enumerate((level.running for level in self.levels[: len(self.winner.words) - 1]), start=1)
        return [step for step, level in running if level and not self.wins(level[0].words)]

    def deaths(self) -> int:
        """How many hypotheses had no continuation, before the search stopped."""
        levels = enumerate(self.levels[:-1], start=1)
        return sum(not self.goes_on(step, h) for step, level in levels for h in level.running)

    def look(self, words: Words) -> Look:
        """What the model saw while it wrote these words."""
        french = vocabularies()[1]
        ids = [french.start_id, *(french.encode(" ".join(words[:-1])))]
        with torch.inference_mode(), record_attention(self.model) as record:
            logits = self.model(self._ids, torch.tensor([ids]))
        return Look(record.maps("cross_attn")[0], logits[0].softmax(dim=-1))

    def links(self, words: Words) -> set[tuple[int, int]]:
        """The grammar's links (French, English) of these words, as far as it would write them, too."""
        if self.gold is None:
            return set()
        agree = [j for j in range(len(words)) if words[: j + 1] == self.gold.french[: j + 1]]
        return {(j, i) for i, j in self.gold.alignment if j in agree}

    def _level(self, running: Beams, finished: Beams) -> Level:
        going_on = self._hypotheses(running, None)
        step = max((len(h.words) for h in going_on), default=int((running.tokens[0, 0] >= 0).sum()))
        ended = self._hypotheses(finished, self.penalty)
        return Level(going_on, tuple(h for h in ended if len(h.words) == step))

    def _hypotheses(self, beams: Beams, penalty: float | None) -> tuple[Hypothesis, ...]:
        found = []
        for tokens, score in zip(beams.tokens[0], beams.scores[0].tolist(), strict=True):
            if score > NONE:
                words = self._words(tokens)
                found.append(Hypothesis(words, score if penalty is None else score * len(words) ** penalty))
        return tuple(found)

    def _words(self, tokens: Int[Tensor, " T"]) -> Words:
        vocabulary = vocabularies()[1].vocabulary
        words = tuple(vocabulary[i] for i in tokens.tolist() if i >= 0)
        return words[: words.index(END) + 1] if END in words else words
