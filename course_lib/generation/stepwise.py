"""Decoding one token after the other: the argmax (greedy), or one drawn at random (sampling)."""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.functional import sampling
from course_lib.generation.protocol import LanguageModel, check_prompt, check_request

Choice = Callable[[Tensor], Tensor]  # logits (B, V) in, tokens (B) out


def argmax(logits: Float[Tensor, "B V"]) -> Int[Tensor, " B"]:
    """The token of the largest logit in each row."""
    return logits.argmax(dim=-1)


def random_choice(
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
    choose: Choice = argmax,
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
    check_request(model, prompt, valid, max_new_tokens)
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
    """The new tokens of each row, the argmax at every step; arguments and errors as in `stream`."""
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
    """The new tokens of each row, drawn as `random_choice` does; the other arguments and errors as in `stream`.

    How likely the model finds them, before temperature and filters, say `log_probs(model, prompt, tokens)`.
    """
    choose = random_choice(temperature=temperature, top_k=top_k, top_p=top_p, generator=generator)
    steps = stream(
        model, prompt, max_new_tokens=max_new_tokens, choose=choose, end_id=end_id, pad_id=pad_id, valid=valid
    )
    return torch.stack(list(steps), dim=1)


def log_probs(
    model: Callable[..., Tensor],
    prompt: Int[Tensor, "B T"],
    tokens: Int[Tensor, "B T_new"],
    *,
    valid: Bool[Tensor, "B T"] | None = None,
) -> Float[Tensor, "B T_new"]:
    """log p(token | prompt and the tokens before it), in nats, for tokens that anyone may have written.

    One teacher-forced call of `model(tokens)`, in the mode that the model is in and with gradients where they are
    enabled, as DPO and PPO need them. Of an encoder-decoder give `partial(model, source)`, whose gradients reach the
    encoder, too; it takes no `valid`. What stands behind a row's end counts like any token: leave it out of a sum.
    Raises ValueError as `stream` does, and for ids that are no tokens of the model.
    """
    check_prompt(prompt, valid)
    is_other = isinstance(model, nn.Module) and (not hasattr(model, "new_cache") or model.head is None)
    if is_other or not callable(model):
        raise ValueError(
            f"{type(model).__name__} gives no logits of next tokens: it must write and have a head; of an "
            "encoder-decoder give partial(model, source)"
        )
    read = torch.cat([prompt, tokens[:, :-1]], dim=1)
    padding = {} if valid is None else {"valid": F.pad(valid, (0, tokens.shape[1] - 1), value=True)}
    logits = model(read, **padding)[:, prompt.shape[1] - 1 :]
    if tokens.numel() and not 0 <= int(tokens.min()) <= int(tokens.max()) < logits.shape[-1]:
        raise ValueError(
            f"token ids must be from 0 to {logits.shape[-1] - 1}, got {int(tokens.min())} to {int(tokens.max())}: what "
            "stands behind a row's end must be a token, too, and is left out of a sum afterwards"
        )
    return logits.log_softmax(dim=-1).gather(2, tokens[:, :, None]).squeeze(2)
