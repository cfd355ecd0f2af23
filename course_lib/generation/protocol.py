"""What generation asks of a model: to read some tokens, remember them, and say how likely each next one is."""

from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor


@runtime_checkable
class Cache(Protocol):
    """What a model remembers of the tokens it has read."""

    length: int  # tokens read

    def select(self, rows: Int[Tensor, " R"]) -> None:
        """Keeps these rows of the batch, in this order; a row may be kept several times."""


@runtime_checkable
class LanguageModel(Protocol):
    """p(next token | tokens so far). GPT is one, and so is an encoder-decoder's `model.given(source)`."""

    def new_cache(self, max_length: int) -> Cache:
        """An empty memory with room for that many tokens, the prompt's and new ones."""

    def next_logits(
        self, tokens: Int[Tensor, "B T"], cache: Cache, *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B V"]:
        """Reads `tokens` (all, or the `valid` ones, are real) after those in the cache; the logits of the next one."""


def check_request(model: object, prompt: Tensor, valid: Tensor | None, max_new_tokens: int) -> None:
    """Raises ValueError for a model that cannot write, for a prompt as below, and if no new token is asked for."""
    if not hasattr(model, "new_cache"):
        raise ValueError(
            f"{type(model).__name__} does not write: it has no new_cache, as a GPT or a CharacterLM has. "
            "An encoder-decoder writes through model.given(source)"
        )
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be 1 or more, got {max_new_tokens}")
    check_prompt(prompt, valid)


def check_prompt(prompt: Tensor, valid: Tensor | None) -> None:
    """Raises ValueError for an empty or right-padded prompt, and for one without a batch axis."""
    if prompt.ndim != 2 or prompt.numel() == 0:
        advice = "give at least a start token" if prompt.numel() == 0 else "one row is prompt[None], with a batch axis"
        raise ValueError(f"a prompt has rows of one or more tokens, got shape {tuple(prompt.shape)}: {advice}")
    if valid is None:
        return
    if valid.shape != prompt.shape:
        raise ValueError(f"valid must have the prompt's shape {tuple(prompt.shape)}, got {tuple(valid.shape)}")
    bad = (~valid[:, -1] | (valid[:, :-1] & ~valid[:, 1:]).any(dim=1)).nonzero().flatten().tolist()
    if bad:
        raise ValueError(
            f"pad prompts at the left only: padding follows a real token, or is all there is, in rows {bad}"
        )
