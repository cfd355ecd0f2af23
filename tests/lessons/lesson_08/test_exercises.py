"""What a learner writes runs inside the library's models, and gives what these give by themselves."""

import math
from pathlib import Path

import pytest
import torch
from torch import nn

from course_lib.authoring.lesson_pages import read_lesson
from course_lib.classroom.opening import copy_weights, load
from course_lib.functional import sampling
from course_lib.functional.metrics import bits_per_byte
from course_lib.functional.metrics import perplexity as of_nats
from course_lib.generation.stepwise import greedy
from course_lib.lessons.lesson_08.models import MODELS
from course_lib.lessons.lesson_08.tasks import TASKS
from course_lib.models.gpt import GPT, GPTConfig, gpt_lesson
from course_lib.training.language_models import next_token_loss
from course_lib.training.seeding import seeded
from course_lib.weights import from_pretrained, save_pretrained
from tests.lessons.answered import run_alone

shifted_loss, top_p, cached_step, perplexity = (
    TASKS[name].reference for name in ("shifted_loss", "top_p", "cached_step", "perplexity")
)
FILE_LINES = 150
TEXT = "the cat sat on the mat and the dog sat on the log. " * 40
DRIVER = """
torch.manual_seed(0)
loss, text = my_shifted_loss, torch.tensor(list(TEXT.encode()))
model = MyGPT(vocab_size=128, context_length=32, dim=32, depth=2, num_heads=2)
init_weights(model)
first = loss(model(batch(text, 8)), batch(text, 8)).item()
last = train(model, lambda: batch(text, 8), loss, steps=300, peak=4e-3)
with torch.no_grad():
    written = generate(model, text[None, :12], 20, temperature=0.1)
print(first, last, bytes(written[0].tolist()).decode(), sep="|")
"""


@pytest.fixture
def model():
    with seeded(1):
        return gpt_lesson(30, dim=16, depth=2, num_heads=2, dropout=0.0).eval()


TOKENS = torch.arange(3 * 20).view(3, 20) * 7 % 30


def test_the_shifted_loss_is_the_one_that_models_are_trained_with(model):
    torch.testing.assert_close(shifted_loss(model(TOKENS), TOKENS), next_token_loss(model, TOKENS))


def test_what_a_learner_assembles_is_the_gpt_of_the_library(model):
    mine = TASKS["gpt"].module(30, 128, 16, 2, 2).eval()
    copy_weights(model, mine, MODELS["gpt"].names)
    torch.testing.assert_close(mine(TOKENS), model(TOKENS))


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A small model with GPT-2's vocabulary and context, written in the released layout and read back."""
    folder = tmp_path_factory.mktemp("gpt2")
    with seeded(1):
        save_pretrained(GPT(GPTConfig(dim=24, depth=2, num_heads=3)), folder)
    return from_pretrained(folder)


def test_a_released_gpt2_opens_in_what_a_learner_assembles(released):
    mine = load(MODELS["gpt"], TASKS["gpt"].module, released)
    torch.testing.assert_close(mine(TOKENS), released(TOKENS))


def test_a_released_gpt2_does_not_open_without_its_final_norm(released, capsys):
    class WithoutNorm(TASKS["gpt"].module):
        def __init__(self, **sizes):
            super().__init__(**sizes)
            self.norm = nn.Identity()

    assert load(MODELS["gpt"], WithoutNorm, released) is None
    assert "norm.weight" in capsys.readouterr().out


def test_a_plain_file_of_the_solutions_and_the_cells_trains_and_writes_without_the_course(tmp_path):
    notebook = read_lesson(Path(__file__).parents[3] / "notebooks" / "08_gpt.ipynb").notebook
    printed = run_alone(
        tmp_path,
        TASKS,
        notebook,
        solutions=("attention", "block", "gpt", "shifted_loss"),
        cells=("batch", "init_weights", "train", "generate"),
        driver=f"TEXT = {TEXT[:51]!r} * 40{DRIVER}",
        lines=FILE_LINES,
    )
    first, last, written = printed.strip().split("|")
    assert abs(float(first) - math.log(128)) < 0.1 and float(last) < 1
    assert "on the mat and the" in written


def test_the_nucleus_is_that_of_the_library():
    logits = torch.randn(4, 50, generator=torch.Generator().manual_seed(0)) * 3
    torch.testing.assert_close(top_p(logits, 0.7), sampling.top_p(logits, 0.7))


def test_a_model_writes_the_same_text_when_each_step_reads_its_cache_by_hand(model):
    wanted = greedy(model, TOKENS, max_new_tokens=8)

    def attend(q, k, v, **_):
        n = q.shape[-2]
        return cached_step(q, k[..., -n:, :], v[..., -n:, :], k[..., :-n, :], v[..., :-n, :])

    for block in model.blocks:
        block.attn.attend = attend
    assert torch.equal(greedy(model, TOKENS, max_new_tokens=8), wanted)


def test_perplexity_and_bits_are_those_of_the_library():
    nats = torch.rand(40, generator=torch.Generator().manual_seed(0))
    both = perplexity(nats, 90)
    total = nats.sum().item()
    torch.testing.assert_close(both, torch.tensor([of_nats(total, 40), bits_per_byte(total, 90)]))
