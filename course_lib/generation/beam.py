"""Beam search: an approximation of the most probable whole sequence that keeps several unfinished ones at each step.

Graves, "Sequence transduction with recurrent neural networks", 2012, arXiv 1211.3711, section 2.5. Sutskever, Vinyals &
Le, "Sequence to sequence learning with neural networks", NeurIPS 2014, arXiv 1409.3215, section 3.2. Wu et al.,
"Google's neural machine translation system", 2016, arXiv 1609.08144, section 7 (length penalty).
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.generation.protocol import LanguageModel, check_request

NONE = float("-inf")  # the score of a sequence that does not exist
EMPTY = -1  # in place of a token that has not been written


class Beams(NamedTuple):
    """N sequences for each prompt, best first. A score is the sum of the log-probabilities / length^penalty.

    Where a prompt has fewer than N sequences, the rest are padding and score -inf.
    """

    tokens: Int[Tensor, "B N T"]
    scores: Float[Tensor, "B N"]

    def best(self, count: int) -> "Beams":
        """The `count` best sequences of each prompt."""
        scores, order = self.scores.topk(count, dim=1)
        return Beams(_rows(self.tokens, order), scores)


def beam_search(
    model: LanguageModel,
    prompt: Int[Tensor, "B T"],
    *,
    num_beams: int,
    max_new_tokens: int,
    length_penalty: float = 1.0,
    early_stopping: bool | Literal["never"] = False,
    num_return: int = 1,
    end_id: int | None = None,
    pad_id: int = 0,
    valid: Bool[Tensor, "B T"] | None = None,
    watch: Callable[[Beams, Beams], None] | None = None,
) -> Beams:
    """The `num_return` best of the sequences that a beam of `num_beams` finds, without the prompt.

    A sequence is finished by `end_id` or at `max_new_tokens` tokens; its score is sum_i log p(y_i) / n^penalty, where
    n counts its new tokens, the end too. Differs from Wu et al. 2016, eq. (14), whose penalty is ((5 + n) / 6)^alpha.
    A row is over when it has `num_beams` finished sequences and, unless `early_stopping` is True, the best unfinished
    one would not beat the worst of them if it ended now. It may still win later: with "never" the row goes on as long
    as a longer continuation of probability 1 would win. `valid` is as in `stream`. `watch(running, finished)` sees each
    step: the unfinished sequences with sums of log-probabilities, the finished with scores; -1 is not written yet.
    Raises ValueError as `stream` does, and for numbers of beams that do not fit together.
    """
    check_request(model, prompt, valid, max_new_tokens)
    if not 1 <= num_return <= num_beams:
        raise ValueError(f"1 <= num_return <= num_beams is needed, got num_return={num_return}, num_beams={num_beams}")
    if early_stopping not in (True, False, "never"):
        raise ValueError(f"early_stopping must be True, False or 'never', got {early_stopping!r}")
    found = _search(model, prompt, valid, num_beams, max_new_tokens, length_penalty, early_stopping, end_id, watch)
    tokens, scores = found.best(num_return)
    tokens = tokens.masked_fill(scores[..., None] == NONE, EMPTY)
    width = int((tokens != EMPTY).sum(dim=-1).max())
    return Beams(tokens[..., :width].masked_fill(tokens[..., :width] == EMPTY, pad_id), scores)


@torch.inference_mode()
def _search(
    model: LanguageModel,
    prompt: Tensor,
    valid: Tensor | None,
    num_beams: int,
    max_new_tokens: int,
    length_penalty: float,
    early_stopping: bool | str,
    end_id: int | None,
    watch: Callable[[Beams, Beams], None] | None,
) -> Beams:
    batch, device = len(prompt), prompt.device
    in_place = torch.arange(batch * num_beams, device=device)
    running = Beams(
        torch.full((batch, num_beams, max_new_tokens), EMPTY, device=device),
        torch.full((batch, num_beams), NONE, device=device),
    )
    finished = Beams(*(t.clone() for t in running))
    running.scores[:, 0] = 0.0  # all beams of a row are alike at first: one of them counts
    over = torch.zeros(batch, 1, dtype=torch.bool, device=device)

    cache = model.new_cache(prompt.shape[1] + max_new_tokens)
    logits = model.next_logits(prompt, cache, valid=valid)
    vocab_size = logits.shape[-1]
    if vocab_size < 2:
        raise ValueError("beam search chooses among tokens, but this model's vocabulary has only one")
    cache.select(in_place // num_beams)
    logits = logits.repeat_interleave(num_beams, dim=0)

    for length in range(1, max_new_tokens + 1):
        totals = running.scores[:, :, None] + logits.float().log_softmax(dim=-1).view(batch, num_beams, -1)
        # twice as many as there are beams: even if all of the better half end, the beam stays full
        scores, choice = totals.flatten(1).topk(2 * num_beams, dim=1)
        parents, words = choice // vocab_size, choice % vocab_size
        tokens = _rows(running.tokens, parents)
        tokens[:, :, length - 1] = words
        ends = torch.full_like(words, length == max_new_tokens, dtype=torch.bool)
        if end_id is not None:
            ends |= words == end_id

        final = (scores / length**length_penalty).masked_fill(~ends | over, NONE)
        # an end among the worse half would not be in the beam: it does not count
        candidates = Beams(tokens[:, :num_beams], final[:, :num_beams])
        finished = Beams(*(torch.cat(pair, dim=1) for pair in zip(finished, candidates, strict=True))).best(num_beams)
        going_on, order = scores.masked_fill(ends, NONE).topk(num_beams, dim=1)
        running = Beams(_rows(tokens, order), going_on)
        if watch is not None:
            watch(running, finished)

        over |= _is_over(running, finished, length, max_new_tokens, length_penalty, early_stopping)
        if over.all():
            break
        rows = (in_place[::num_beams, None] + parents.gather(1, order)).flatten()
        if not torch.equal(rows, in_place):
            cache.select(rows)
        logits = model.next_logits(running.tokens[:, :, length - 1].reshape(-1, 1), cache)
    return finished


def _is_over(
    running: Beams,
    finished: Beams,
    length: int,
    max_new_tokens: int,
    length_penalty: float,
    early_stopping: bool | str,
) -> Bool[Tensor, "B 1"]:
    best, worst = running.scores[:, :1], finished.scores[:, -1:]
    none_goes_on = best == NONE
    if early_stopping is True:
        return (worst > NONE) | none_goes_on
    # a positive penalty favours the long: the most that a sequence can reach is its sum at full length
    longest = max_new_tokens if early_stopping == "never" and length_penalty > 0 else length
    return (best / longest**length_penalty <= worst) | none_goes_on


def _rows(tokens: Int[Tensor, "B N T"], which: Int[Tensor, "B M"]) -> Int[Tensor, "B M T"]:
    return tokens.gather(1, which[:, :, None].expand(-1, -1, tokens.shape[2]))
