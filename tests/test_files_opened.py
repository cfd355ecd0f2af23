"""How many of our files a reader opens to follow one forward pass, traced while it runs."""

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from course_lib.models.clip import CLIP, CLIPConfig
from course_lib.models.gpt import GPTConfig
from course_lib.models.mixture_gpt import MixtureGPT, MixtureGPTConfig
from course_lib.models.reward import RewardModel
from course_lib.training import FitConfig, fit
from tests.models.test_every_model import TABLE, make

PACKAGE = Path(__file__).parents[1] / "course_lib"
SIZES = {"vocab_size": 9, "dim": 8, "depth": 2, "num_heads": 2}
HEADLESS, TOKENS = GPTConfig(head=None, **SIZES), torch.zeros(2, 4, dtype=torch.long)
PAIRS = (torch.zeros(2, 3), TOKENS, torch.tensor([4, 3]))
MODELS = {name: lambda case=case: make(case) for name, case in TABLE.items()} | {
    "mixture of experts": lambda: (MixtureGPT(MixtureGPTConfig(num_experts=2, **SIZES)), (TOKENS,)),
    "CLIP": lambda: (CLIP(CLIPConfig(text=HEADLESS, image_dim=3, joint_dim=2)), PAIRS),
    "reward model": lambda: (RewardModel(HEADLESS), (TOKENS,)),
}


def files_opened(function, *arguments):
    """The files of the package in which a line runs while the function is called."""
    opened = set()

    def note(frame, event, argument):
        if frame.f_code.co_filename.startswith(str(PACKAGE)):
            opened.add(Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix())

    before = sys.gettrace()
    sys.settrace(note)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return opened


@pytest.mark.parametrize("name", MODELS)
def test_a_forward_pass_opens_five_files_at_most(name):
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    opened = files_opened(model.eval(), *inputs)
    assert 1 <= len(opened) <= 5, sorted(opened)


def test_every_model_of_the_library_is_traced():
    traced = {type(build()[0]).__module__.rpartition(".")[2] for build in MODELS.values()}
    untraced = {"__init__", "baselines", "kneser_ney", "naive_bayes"}
    assert traced == {path.stem for path in (PACKAGE / "models").glob("*.py")} - untraced


def test_a_training_opens_eight_files_at_most():
    def train():
        fit(nn.Linear(3, 1), lambda step: torch.ones(2, 3), lambda m, x: m(x).mean(), config=FitConfig(steps=2))

    opened = files_opened(train)
    assert "training/loop.py" in opened and len(opened) <= 8, sorted(opened)
