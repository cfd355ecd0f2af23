"""One seed for every source of randomness, and a way to put the sources back as they were."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Seeds Python, NumPy and PyTorch (all devices).

    Raises ValueError unless 0 <= seed < 2**32, the range that NumPy accepts.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"A seed must lie between 0 and 2**32 - 1, got {seed}.")
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside the `with` block everything random starts from `seed`; afterwards it goes on as before."""
    before = random_state()
    try:
        seed_everything(seed)
        yield
    finally:
        restore_random_state(before)


def random_state() -> dict[str, Any]:
    """Where all sources of randomness stand now, as plain containers and tensors for a checkpoint."""
    numpy_state = np.random.get_state(legacy=False)
    state = {
        "python": random.getstate(),
        "numpy_key": torch.from_numpy(numpy_state["state"]["key"].astype(np.int64)),
        "numpy_rest": (numpy_state["state"]["pos"], numpy_state["has_gauss"], numpy_state["gauss"]),
        "torch": torch.get_rng_state(),
    }
    accelerator = _accelerator_in_use()
    if accelerator is not None:
        state["accelerator"] = accelerator.get_rng_state()
    return state


def restore_random_state(state: dict[str, Any]) -> None:
    """Puts all sources of randomness back to where `random_state` saw them."""
    random.setstate(state["python"])
    position, has_gauss, gauss = state["numpy_rest"]
    key = state["numpy_key"].numpy().astype(np.uint32)
    np.random.set_state(("MT19937", key, position, has_gauss, gauss))
    torch.set_rng_state(state["torch"])
    accelerator = _accelerator_in_use()
    if accelerator is not None and "accelerator" in state:
        accelerator.set_rng_state(state["accelerator"])


def _accelerator_in_use() -> Any | None:
    """torch.cuda, torch.mps ... once something runs there: asking earlier would start it for nothing."""
    if not torch.accelerator.is_available():
        return None
    module = torch.get_device_module()
    is_initialized = getattr(module, "is_initialized", lambda: True)
    return module if is_initialized() else None
