"""Attacks on the first real assignment: on its training, its module, its fixed numbers."""

from pathlib import Path

import pytest

from course_lib.grading.intake import Submission
from course_lib.grading.judge import judge
from course_lib.grading.spec import load, read_assignment
from tests.grading.attacks.course import KEY

pytestmark = pytest.mark.needs("sandbox")

ASSIGNMENTS = Path(__file__).parents[3] / "notebooks" / "assignments"

ATTACKS = {
    "training that remembers its examples": (
        "train",
        """
class Memory(nn.Module):
    def __init__(self, inputs, targets):
        super().__init__()
        self.known = {tuple(x.flatten().tolist()): int(y) for x, y in zip(inputs, targets)}
    def forward(self, inputs):
        found = torch.tensor([self.known.get(tuple(x.flatten().tolist()), 0) for x in inputs])
        return F.one_hot(found, 8).float()
def train(inputs, targets):
    return Memory(inputs, targets)
""",
    ),
    "training that returns what is no model": ("train", "def train(inputs, targets):\n    return lambda x: True\n"),
    "a model that gives all answers the highest score": (
        "train",
        """
class Sure(nn.Module):
    def forward(self, inputs):
        return torch.full((len(inputs), 8), float("inf"))
def train(inputs, targets):
    return Sure()
""",
    ),
    "a model that gives scores that are no numbers": (
        "train",
        """
class Nan(nn.Module):
    def forward(self, inputs):
        return torch.full((len(inputs), 8), float("nan"))
def train(inputs, targets):
    return Nan()
""",
    ),
    "training that overwrites targets and inputs with zeros": (
        "train",
        """
class Zero(nn.Module):
    def forward(self, inputs):
        inputs.zero_()
        return F.one_hot(torch.zeros(len(inputs), dtype=torch.long), 8).float()
def train(inputs, targets):
    inputs.zero_()
    targets.zero_()
    return Zero()
""",
    ),
    "training that never ends": (
        "train",
        "def train(inputs, targets):\n    while True:\n        torch.ones(9).sum()\n",
    ),
    "training on every core": (
        "train",
        "import os, time\ndef train(inputs, targets):\n    while True:\n        try:\n            os.fork()\n"
        "        except OSError:\n            time.sleep(0.01)\n",
    ),
    "a module with the right parameters and no attention": (
        "MultiHeadAttention",
        """
class MultiHeadAttention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(dim, dim) for _ in range(4))
    def forward(self, x, mask=None):
        return self.o_proj(self.v_proj(x))
""",
    ),
    "a module that lies about its parameters": (
        "MultiHeadAttention",
        """
class MultiHeadAttention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.dim = dim
    def state_dict(self, *a, **k):
        names = [f"{n}_proj.{p}" for n in "qkvo" for p in ("weight", "bias")]
        return {name: torch.zeros((self.dim,) * (2 if "weight" in name else 1)) for name in names}
    named_parameters = lambda self, *a, **k: iter(self.state_dict().items())
    def load_state_dict(self, *a, **k): pass
    def forward(self, x, mask=None):
        return torch.zeros_like(x)
""",
    ),
    "a table of the worked examples": (
        "local_attention",
        "def local_attention(q, k, v, window):\n    return torch.tensor([[6.0], [4.0], [20 / 3], [6.0]])\n",
    ),
    "answers for any question from one guess": (
        "additive_attention",
        "def additive_attention(q, h, W, U, v, mask=None):\n"
        "    return h.mean(-2, keepdim=True).expand(*q.shape[:-1], h.shape[-1])\n",
    ),
    "an answer full of lies about equality": (
        "local_attention",
        "torch.allclose = torch.equal = lambda *a, **k: True\ndef local_attention(q, k, v, window):\n"
        "    return torch.arange(float(v.numel())).reshape(v.shape) / 7\n",
    ),
    "constants chosen by the shapes of the inputs": (
        "local_attention",
        """
def local_attention(q, k, v, window):
    torch.manual_seed(sum(q.shape) + 10 * sum(v.shape) + 100 * window)
    return torch.randn(v.shape, dtype=v.dtype) + 0 * (q.sum() + k.sum() + v.sum())
""",
    ),
    "constants chosen by the shapes, of an average": (
        "additive_attention",
        """
def additive_attention(q, h, W, U, v, mask=None):
    torch.manual_seed(sum(h.shape) + 100 * sum(q.shape))
    weights = torch.rand(*q.shape[:-1], h.shape[1]).softmax(-1)
    if mask is not None:
        weights = weights * mask
        weights = (weights / weights.sum(-1, keepdim=True)).nan_to_num(0.0)
    return weights @ h
""",
    ),
    "an overflow at first, and zeros from the second call on": (
        "local_attention",
        """
CALLS = []
def local_attention(q, k, v, window):
    CALLS.append(1)
    if len(CALLS) > 1:
        return torch.zeros_like(v)
    powers = (1000 * q @ k.transpose(-2, -1)).exp()
    return (powers / powers.sum(-1, keepdim=True)) @ v
""",
    ),
    "links that depend on nothing but their number": (
        "alignment_error_rate",
        "def alignment_error_rate(predicted, sure, possible):\n"
        "    return 1 - sum(map(len, sure)) / (sum(map(len, predicted)) + sum(map(len, sure)))\n",
    ),
}


@pytest.fixture(scope="module")
def files():
    return read_assignment(ASSIGNMENTS, "05")


@pytest.mark.parametrize("name", ATTACKS)
def test_a_cheat_at_attention_earns_nothing(files, course, name):
    task, source = ATTACKS[name]
    answers = {task: source}
    honest = "additive_attention" if task != "additive_attention" else "local_attention"
    answers[honest] = next(cell.source for cell in load(files).cells if cell.grade_id == honest)
    submission = Submission(student="mallory", assignment="05", sha256="0" * 64, answers=answers)
    verdict = judge(submission, files, key=KEY, zygote=course.zygote)
    earned = {name: part["points"] for name, part in verdict["tasks"].items()}
    possible = {name: part["possible"] for name, part in verdict["tasks"].items()}
    assert earned == dict.fromkeys(possible, 0.0) | {honest: possible[honest]}
    assert verdict["status"] == "graded"
    assert verdict["seconds"] < 60
