"""Writing one token after the other: the likeliest (greedy), or one drawn by lot (sampling)."""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.functional import sampling
from course_lib.generation.protocol import LanguageModel, check_request

Choice = Callable[[Tensor], Tensor]  # logits (B, V) in, tokens (B) out


def likeliest(logits: Float[Tensor, "B V"]) -> Int[Tensor, " B"]:
    """The token of the largest logit in each row."""
    return logits.argmax(dim=-1)


def by_lot(
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Choice:
    """Draws from what temperature, then top-k, then top-p leave of the distribution; None leaves a filter out."""

    def choose(logits: Tensor) -> Tensor:
        if temperature != 1.0:
            logits = sampling.temperature(logits, temperature)
        if top_k is not None:
            logits = sampling.top_k(logits, top_k)
        if top_p is not None:
            logits = sampling.top_p(logits, top_p)
        return sampling.draw(logits, generator)

    return choose


def stream(
    model: LanguageModel,
    prompt: Int[Tensor, "B T"],
    *,
    max_new_tokens: int,
    choose: Choice = likeliest,
    end_id: int | None = None,
    pad_id: int = 0,
    valid: Bool[Tensor, "B T"] | None = None,
) -> Iterator[Int[Tensor, " B"]]:
    """Yields each step's tokens, one for each row, as soon as they are chosen.

    Ends when every row has written `end_id` or `max_new_tokens` tokens; a row that has ended goes on with `pad_id`.
    `valid` is True at the prompt's real tokens; padding stands at the left. The caller puts the model into eval mode.
    Raises ValueError for an empty or right-padded prompt, for less than one new token and, from the model, for more
    tokens than it can read.
    """
    check_request(prompt, valid, max_new_tokens)
    return _write(model, prompt, valid, max_new_tokens, choose, end_id, pad_id)


def _write(
    model: LanguageModel,
    prompt: Tensor,
    valid: Tensor | None,
    max_new_tokens: int,
    choose: Choice,
    end_id: int | None,
    pad_id: int,
) -> Iterator[Tensor]:
    # not made in inference mode, so that what comes back may be used in training
    written = prompt.new_full((max_new_tokens, len(prompt)), pad_id)
    ended = torch.zeros(len(prompt), dtype=torch.bool, device=prompt.device)
    with torch.inference_mode():
        cache = model.new_cache(prompt.shape[1] + max_new_tokens)
    unread = prompt
    for tokens in written:
        with torch.inference_mode():  # left before each yield: the reader's code runs in the reader's mode
            chosen = choose(model.next_logits(unread, cache, valid=valid))
            tokens.copy_(chosen if end_id is None else torch.where(ended, tokens, chosen))
            unread, valid = tokens[:, None], None
        yield tokens
        if end_id is not None:
            ended |= tokens == end_id
            if ended.all():
                return


def greedy(
    model: LanguageModel,
    prompt: Int[Tensor, "B T"],
    *,
    max_new_tokens: int,
    end_id: int | None = None,
    pad_id: int = 0,
    valid: Bool[Tensor, "B T"] | None = None,
) -> Int[Tensor, "B T_new"]:
    """The new tokens of each row, the likeliest at every step; arguments and errors as in `stream`."""
    steps = stream(model, prompt, max_new_tokens=max_new_tokens, end_id=end_id, pad_id=pad_id, valid=valid)
    return torch.stack(list(steps), dim=1)


def sample(
    model: LanguageModel,
    prompt: Int[Tensor, "B T"],
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    end_id: int | None = None,
    pad_id: int = 0,
    valid: Bool[Tensor, "B T"] | None = None,
) -> Int[Tensor, "B T_new"]:
    """The new tokens of each row, drawn as `by_lot` does; the other arguments and errors as in `stream`."""
    choose = by_lot(temperature=temperature, top_k=top_k, top_p=top_p, generator=generator)
    steps = stream(
        model, prompt, max_new_tokens=max_new_tokens, choose=choose, end_id=end_id, pad_id=pad_id, valid=valid
    )
    return torch.stack(list(steps), dim=1)


def log_probs(
    model: LanguageModel,
    prompt: Int[Tensor, "B T"],
    tokens: Int[Tensor, "B T_new"],
    *,
    valid: Bool[Tensor, "B T"] | None = None,
) -> Float[Tensor, "B T_new"]:
    """log p(token | prompt and the tokens before it), in nats, for tokens that anyone may have written.

    Raises ValueError as `stream` does.
    """
    check_request(prompt, valid, tokens.shape[1])
    result = torch.empty(tokens.shape, device=tokens.device)
    with torch.inference_mode():
        cache = model.new_cache(prompt.shape[1] + tokens.shape[1])
        logits = model.next_logits(prompt, cache, valid=valid)
        for step, token in enumerate(tokens.unbind(dim=1)):
            if step:
                logits = model.next_logits(tokens[:, step - 1 : step], cache)
            result[:, step] = logits.log_softmax(dim=-1).gather(1, token[:, None]).squeeze(1)
    return result
