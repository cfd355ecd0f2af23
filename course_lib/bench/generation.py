"""How fast our cached greedy generation is beside Hugging Face's `generate`: same weights and process, in turns."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from course_lib.bench.official import ours_like
from course_lib.bench.race import race
from course_lib.bench.table import Row, row
from course_lib.generation import greedy, store_by_columns


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A GPT-2 of random weights that writes `new_tokens` behind each of B prompts of T tokens.

    `target` is the ratio of tokens per second, ours to theirs, that is aimed at; `sizes` go to GPT2Config.
    """

    name: str
    B: int
    T: int
    new_tokens: int
    target: float
    sizes: dict[str, int]


LESSON = {"n_embd": 128, "n_layer": 4, "n_head": 4, "vocab_size": 1000, "n_positions": 128}
SETTINGS = (
    Setting(name="GPT, lesson size (D 128, 4 layers)", B=1, T=16, new_tokens=100, target=1.5, sizes=LESSON),
    Setting(name="GPT, lesson size (D 128, 4 layers)", B=8, T=16, new_tokens=100, target=1.5, sizes=LESSON),
    Setting(name="GPT-2 124M", B=1, T=32, new_tokens=32, target=1.0, sizes={}),
    Setting(name="GPT-2 124M", B=4, T=256, new_tokens=32, target=1.0, sizes={}),
)


def pair(sizes: dict[str, int]) -> tuple[nn.Module, nn.Module]:
    """Our model and the official one with the same weights."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    ends = {"bos_token_id": None, "eos_token_id": None}
    theirs = GPT2LMHeadModel(GPT2Config(**sizes, **ends)).eval()
    return store_by_columns(ours_like(theirs)), theirs


def runs(setting: Setting, ours: nn.Module, theirs: nn.Module) -> dict[str, Callable[[], Tensor]]:
    """One call of each, which writes all tokens of the setting and returns them.

    Raises ValueError if the two begin with other tokens: then they do not compute the same.
    """
    from transformers import GenerationConfig

    vocab_size = theirs.config.vocab_size
    prompt = torch.randint(vocab_size, (setting.B, setting.T), generator=torch.Generator().manual_seed(1))
    config = GenerationConfig(max_new_tokens=setting.new_tokens, do_sample=False, eos_token_id=None, pad_token_id=0)
    everything = torch.ones_like(prompt)
    variants = {
        "ours": lambda: greedy(ours, prompt, max_new_tokens=setting.new_tokens),
        "theirs": lambda: theirs.generate(prompt, attention_mask=everything, generation_config=config)[:, setting.T :],
    }
    first, same = (run()[:, 0].tolist() for run in variants.values())
    if first != same:
        raise ValueError(f"{setting.name}: ours goes on with {first}, theirs with {same}")
    return variants


def measure(setting: Setting, ours: nn.Module, theirs: nn.Module, *, seconds: float | None = None) -> Row:
    """Lets the two write in turns, for about so many seconds: milliseconds for each token of a row."""
    result = race(runs(setting, ours, theirs), fewest=9, seconds=seconds, warm_up=1)
    tokens = setting.B * setting.new_tokens
    made = row(f"{setting.name}, {setting.B} row(s), prompt {setting.T}", result, target=1 / setting.target)
    return replace(made, ours=made.ours / tokens, theirs=made.theirs / tokens)


def rows() -> Iterator[Row]:
    """Every setting, one after the other; a pair of models serves all settings of its size."""
    sizes, models = None, None
    for setting in SETTINGS:
        if setting.sizes != sizes:
            models = None  # freed before the next pair is made
            sizes, models = setting.sizes, pair(setting.sizes)
        yield measure(setting, *models)
