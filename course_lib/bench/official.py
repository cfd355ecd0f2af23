"""Official models beside ours, for benchmarks: Hugging Face's package is imported only when one is asked for."""

import tempfile

from torch import nn

from course_lib import weights


def need_peers() -> None:
    """Raises ModuleNotFoundError, of which the `course` command makes a sentence, where the peers are not installed."""
    import tokenizers  # noqa: F401
    import transformers  # noqa: F401


def ours_like(theirs: nn.Module) -> nn.Module:
    """Our model with the weights of an official one, in evaluation mode."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        return weights.from_pretrained(folder)
