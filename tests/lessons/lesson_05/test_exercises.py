"""What a learner writes is what the library computes; right answers of other forms pass."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.classroom.opening import compare, copy_weights
from course_lib.data.checkpoints import load_trained
from course_lib.layers.recurrent import AdditiveAttention
from course_lib.layers.transformer import MultiHeadAttention
from course_lib.lessons.lesson_05.models import MODELS
from course_lib.lessons.lesson_05.tasks import TASKS, attention
from course_lib.training.translation import encode_pairs, splits, vocabularies

SOLUTION = {name: task.module or task.reference for name, task in TASKS.items()}


@pytest.fixture(scope="module")
def pair():
    """The shipped translator, and the solution's class with its weights."""
    shipped = MODELS["seq2seq"]
    ours = shipped.model().eval()
    mine = SOLUTION["seq2seq"](**shipped.sizes(ours)).eval()
    copy_weights(ours, mine, shipped.names)
    return ours, mine


def test_the_solution_opens_the_shipped_translator(pair):
    compare(*pair, MODELS["seq2seq"].inputs(), MODELS["seq2seq"].names)


def test_the_solution_decodes_like_the_library(pair):
    ours, mine = pair
    source, valid, *_ = encode_pairs(splits().test[:20])
    french = vocabularies()[1]
    words = SOLUTION["greedy"](mine, source, valid, french.start_id, french.end_id, 40)
    wanted, _ = ours.greedy_decode(source, valid, max_length=40)
    assert [french.sentence(row) for row in words] == [french.sentence(row) for row in wanted]


def test_additive_attention_is_that_of_the_library():
    ours, mine = AdditiveAttention(3, 4, 5), SOLUTION["additive"](3, 4, 5)
    with torch.no_grad():
        for theirs, own in ((ours.q_proj.weight, mine.W), (ours.k_proj.weight, mine.U), (ours.v[None], mine.v)):
            own.weight.copy_(theirs)
    q, k, mask = torch.randn(2, 3, 3), torch.randn(2, 6, 4), torch.arange(6) < torch.tensor([[[6]], [[4]]])
    torch.testing.assert_close(mine(q, k, mask), ours(q, k, mask=mask)[0])


def test_multi_head_attention_is_that_of_the_library():
    ours, mine = MultiHeadAttention(12, 3), SOLUTION["multi_head"](12, 3)
    mine.load_state_dict(ours.state_dict())
    x, other, mask = torch.randn(2, 5, 12), torch.randn(2, 7, 12), (torch.arange(7) < 4).expand(5, 7)
    torch.testing.assert_close(mine(x, other, mask), ours(x, other, mask=mask[None, None]))
    torch.testing.assert_close(mine(x, mask=torch.ones(5, 5).tril().bool()), ours(x, causal=True))


# right answers of other forms


class Einsum(nn.Module):
    def __init__(self, query_dim, key_dim, hidden_dim):
        super().__init__()
        self.W, self.U = nn.Linear(query_dim, hidden_dim, bias=False), nn.Linear(key_dim, hidden_dim, bias=False)
        self.v = nn.Linear(hidden_dim, 1, bias=False)

    def forward(self, q, k, mask=None):
        scores = torch.einsum("bqka,a->bqk", (self.W(q).unsqueeze(2) + self.U(k).unsqueeze(1)).tanh(), self.v.weight[0])
        scores = scores if mask is None else scores + torch.where(mask, 0.0, -math.inf)
        return torch.einsum("bqk,bkd->bqd", F.softmax(scores, -1), k)


class OneSentenceAtATime(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.embed, self.gru = nn.Embedding(vocab_size, dim), nn.GRU(dim, dim, batch_first=True, bidirectional=True)

    def forward(self, source, valid):
        states, ends = [], []
        for row, count in zip(source, valid.sum(dim=1), strict=True):
            out, last = self.gru(self.embed(row[None, :count]))
            states.append(F.pad(out[0], (0, 0, 0, len(row) - count)))
            ends.append(last[:, 0].flatten())
        return [torch.stack(states), torch.stack(ends)]


class WithoutAttention(SOLUTION["decoder"]):
    def forward(self, word, state, states, valid):
        scores = torch.einsum("bd,de,bte->bt", state, self.W, states) / math.sqrt(states.shape[-1])
        context = (scores.masked_fill(~valid, -math.inf).softmax(-1)[..., None] * states).sum(1)
        x = torch.cat((self.embed(word), context), 1)
        state = self.cell(x, state)
        return self.out(self.hidden(torch.cat((state, x), 1)).tanh()), state


def by_forward(model, source, valid, start, end, max_length):
    """Runs the whole model on all words so far, at each step."""
    out = torch.full((len(source), 1), start)
    for _ in range(max_length):
        word = model(source, valid, out)[:, -1].argmax(-1)
        word[(out[:, 1:] == end).any(1)] = end
        out = torch.cat([out, word[:, None]], 1)
        if (out[:, 1:] == end).any(1).all():
            break
    return out[:, 1:]


class HeadByHead(SOLUTION["multi_head"]):
    def forward(self, x, context=None, mask=None):
        context, heads = x if context is None else context, []
        q, k, v = self.q_proj(x), self.k_proj(context), self.v_proj(context)
        for h, some in enumerate(torch.arange(x.shape[-1]).chunk(self.num_heads)):
            shape = len(x), self.num_heads, x.shape[1], context.shape[1]
            seen = None if mask is None else mask.expand(shape)[:, h]
            heads.append(attention(q[..., some], k[..., some], v[..., some], seen))
        return self.o_proj(torch.cat(heads, -1))


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("additive", Einsum),
        ("encoder", OneSentenceAtATime),
        ("decoder", WithoutAttention),
        ("greedy", by_forward),
        ("multi_head", HeadByHead),
    ],
)
def test_right_answers_of_other_forms_pass(name, answer):
    assert TASKS[name].run(answer).passed


def test_the_card_has_both_effects_of_the_division_for_every_seed():
    tests = [seed["test"] for seed in load_trained("attention").card["seeds"]]
    assert len(tests) == 3 and all({"BLEU, small steps", "BLEU, small start"} <= {*test} for test in tests)
