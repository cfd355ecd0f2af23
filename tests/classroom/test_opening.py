"""A learner's model takes over trained weights, or is told what is different, and where first."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.classroom import Page
from course_lib.classroom.opening import DoesNotOpen, Shipped, compare, copy_weights
from course_lib.models.gpt import GPT, GPTConfig

NAMES = {"pos_embed.weight": "pos_embed.table"}


class Attention(nn.Module):
    def __init__(self, dim, num_heads, divisor=math.sqrt):
        super().__init__()
        self.num_heads, self.divisor = num_heads, divisor
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.o_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (
            proj(x).view(B, T, self.num_heads, -1).transpose(1, 2) for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = q @ k.mT / self.divisor(q.shape[-1])
        weights = scores.masked_fill(~torch.ones(T, T).tril().bool(), -torch.inf).softmax(dim=-1)
        return self.o_proj((weights @ v).transpose(1, 2).reshape(B, T, D))


class Block(nn.Module):
    def __init__(self, dim, num_heads, eps=1e-5, divisor=math.sqrt, approximate="tanh"):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=eps), nn.LayerNorm(dim)
        self.attn = Attention(dim, num_heads, divisor)
        self.ffn = nn.ModuleDict({"up_proj": nn.Linear(dim, 4 * dim), "down_proj": nn.Linear(4 * dim, dim)})
        self.approximate = approximate

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.ffn["down_proj"](F.gelu(self.ffn["up_proj"](self.norm2(x)), approximate=self.approximate))


class MyGPT(nn.Module):
    def __init__(self, vocab_size, context_length, dim, depth, num_heads, tied=True, final_norm=True, **block):
        super().__init__()
        self.token_embed, self.pos_embed = nn.Embedding(vocab_size, dim), nn.Embedding(context_length, dim)
        self.blocks = nn.ModuleList(Block(dim, num_heads, **block) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab_size, bias=False)
        self.final_norm = final_norm
        if tied:
            self.head.weight = self.token_embed.weight

    def forward(self, tokens):
        x = self.token_embed(tokens) + self.pos_embed(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x) if self.final_norm else x)


class WithoutHead(MyGPT):
    """The tied head needs no module of its own."""

    def __init__(self, **sizes):
        super().__init__(**sizes)
        del self.head

    def forward(self, tokens):
        self.head = partial(F.linear, weight=self.token_embed.weight)
        return super().forward(tokens)


class Renamed(MyGPT):
    def __init__(self, **sizes):
        super().__init__(**sizes)
        for block in self.blocks:
            block.attn.query_proj = block.attn.q_proj
            del block.attn.q_proj


class Additional(MyGPT):
    def __init__(self, **sizes):
        super().__init__(**sizes)
        self.scale = nn.Parameter(torch.ones(()))


class Turned(MyGPT):
    def __init__(self, vocab_size, context_length, dim, **sizes):
        super().__init__(vocab_size, context_length, dim, **sizes)
        self.pos_embed = nn.Embedding(dim, context_length)


class NoPositions(MyGPT):
    def forward(self, tokens):
        x = self.token_embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Stops(MyGPT):
    def forward(self, tokens):
        return self.head(tokens)


@pytest.fixture(scope="module")
def ours():
    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=50, context_length=12, dim=16, depth=2, num_heads=4, dropout=0.2))
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model.eval()


def sizes(model):
    return {name: getattr(model.config, name) for name in ("vocab_size", "context_length", "dim", "depth", "num_heads")}


SHIPPED = {
    "gpt": Shipped(model=lambda: GPT(GPTConfig()), sizes=sizes, inputs=lambda: (torch.arange(10)[None],), names=NAMES)
}


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    return Page("08", models=SHIPPED)


@pytest.mark.parametrize("make", [MyGPT, WithoutHead], ids=lambda make: make.__name__)
def test_her_model_computes_what_ours_does_and_the_page_goes_on_with_it(make, ours, page, capsys):
    mine = page.load("gpt", make, ours)
    assert isinstance(mine, make)
    tokens = torch.randint(50, (3, 12))
    assert torch.allclose(mine(tokens), ours(tokens), atol=1e-4)
    said = capsys.readouterr().out
    assert f"{sum(p.numel() for p in ours.parameters()):,} parameters" in said and "your model" in said
    assert page.session.entry("parts", "model gpt") == {"opened": True}


def test_the_solution_of_any_exercise_is_not_called_hers(ours, page, capsys):
    page.tasks = {"another": SimpleNamespace(module=None), "my_gpt": SimpleNamespace(module=MyGPT)}
    assert isinstance(page.load("gpt", MyGPT, ours), MyGPT)
    assert "This is the class of the solution" in capsys.readouterr().out
    assert not page.session.entry("parts", "model gpt")


WRONG = {
    "another scale": (partial(MyGPT, divisor=float), "`blocks.0.attn.v_proj` and `blocks.0.attn.o_proj`"),
    "another eps": (partial(MyGPT, eps=1.0), "`blocks.0.norm1` gets the right input, but its result differs"),
    "exact gelu": (
        partial(MyGPT, approximate="none"),
        "`blocks.0.ffn.up_proj` and `blocks.0.ffn.down_proj`",
    ),
    "no final norm": (
        partial(MyGPT, final_norm=False),
        "The input of `head` differs. Look at the lines between `blocks.1` and `head`, in `MyGPT.forward`",
    ),
    "no positions": (NoPositions, "Look at the lines between `token_embed` and `blocks.0`, in `NoPositions.forward`"),
    "head not tied": (partial(MyGPT, tied=False), "`head.weight` are one matrix in the trained model"),
    "another name": (Renamed, "Is that what you call `blocks.0.attn.query_proj.weight`"),
    "one more": (Additional, "It has parameter `scale`, which"),
    "turned": (Turned, "`pos_embed.weight` has shape (16, 12); (12, 16) is needed. Its two sizes are exchanged."),
    "stops": (Stops, "With an input of shape (1, 10) it stopped in line 2, `return self.head(tokens)`"),
    "cannot be built": (lambda **sizes: 1 // 0, "ZeroDivisionError"),
    "no module": (lambda **sizes: 3, "a value of type `int`"),
    "other arguments": (lambda vocab_size: 3, "TypeError"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_different_is_told_and_the_page_goes_on_with_ours(name, ours, page, capsys):
    make, told = WRONG[name]
    assert page.load("gpt", make, ours) is ours
    said = capsys.readouterr().out
    assert told.replace("`", "") in said and "goes on with ours" in said, said
    assert not page.session.entry("parts", "model gpt")


@pytest.mark.parametrize("make", [None, lambda **sizes: nn.Module()], ids=["nothing", "an empty class"])
def test_a_class_that_is_not_written_yet_is_no_mistake(make, ours, page, capsys):
    assert page.load("gpt", make, ours) is ours
    assert "not written yet" in capsys.readouterr().out


def test_running_statistics_are_copied_and_an_own_buffer_is_no_parameter():
    ours, mine = (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)) for _ in range(2))
    ours(torch.randn(20, 3) + 5)
    mine.register_buffer("mask", torch.ones(2))
    copy_weights(ours, mine, {})
    assert torch.equal(mine[1].running_mean, ours[1].running_mean)
    ours.eval()
    values = torch.randn(6, 3)
    difference, largest = compare(ours, mine, (values,), {})
    assert (difference, largest) == (0, pytest.approx(ours(values).abs().max().item()))
    mine[0].bias.data[0] += 1e-6
    assert 0 < compare(ours, mine, (values,), {})[0] < 1e-5


def test_a_result_that_is_not_finite_does_not_agree():
    ours, mine = nn.Linear(3, 3), nn.Linear(3, 3)
    copy_weights(ours, mine, {})
    mine.bias.data.fill_(torch.nan)
    with pytest.raises(DoesNotOpen, match="differs"):
        compare(ours, mine, (torch.randn(2, 3),), {})
