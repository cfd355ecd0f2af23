import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.lessons.lesson_05.tasks import TASKS as TASKS_05
from course_lib.lessons.lesson_06.tasks import PARTS, TASKS
from course_lib.text.merges import Corpus, learn_merges_naive


def test_merges_one_by_one_are_those_that_a_tokenizer_learns():
    counts = {"lowest": 5, "slow": 3, "widest": 6, "newest": 4}
    corpus = Corpus.from_counts(counts)
    pieces, known = [list(word) for word in counts], len(corpus.tokens)
    for merge in learn_merges_naive(corpus, known + 3).merges:
        pieces = TASKS["bpe_merge"].reference(pieces, list(counts.values()))
        assert any("".join(merge) in word for word in pieces)


# right answers of other forms


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)
        return torch.addcmul(self.bias, self.weight, x * scale)


class ByMatrices(nn.Module):
    def __init__(self, dim, mlp_dim):
        super().__init__()
        self.up_proj, self.down_proj = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)

    def forward(self, x):
        h = torch.einsum("btd,md->btm", x, self.up_proj.weight) + self.up_proj.bias
        return F.linear(h.clamp(min=0), self.down_proj.weight, self.down_proj.bias)


def spelled_out(x, norm, sublayer, pre_norm):
    y = torch.add(x, sublayer(norm(x) if pre_norm else x))
    return y if pre_norm else norm(y)


class Encoder(nn.Module):
    """PyTorch's norm, and no function around the sublayers."""

    def __init__(self, dim, num_heads, mlp_dim, pre_norm=True):
        super().__init__()
        self.attn, self.mlp = TASKS_05["multi_head"].module(dim, num_heads), PARTS["MLP"](dim, mlp_dim)
        self.norm1, self.norm2, self.first = nn.LayerNorm(dim), nn.LayerNorm(dim), pre_norm

    def forward(self, x, mask=None):
        if self.first:
            h = self.norm1(x)
            x = x + self.attn(h, h, mask)
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attn(x, None, mask))
        return self.norm2(x + self.mlp(x))


class Decoder(TASKS["decoder_block"].module):
    def forward(self, x, context, context_mask=None):
        steps = torch.arange(x.shape[1])
        seen = (steps[:, None] >= steps)[None, None]
        for norm, part in (
            (self.norm1, lambda h: self.attn(h, h, seen)),
            (self.norm2, lambda h: self.cross_attn(h, context, context_mask)),
            (self.norm3, self.mlp),
        ):
            x = x + part(norm(x)) if self.pre_norm else norm(x + part(x))
        return x


class Whole(TASKS["transformer"].module):
    def embed(self, table, words):
        x = F.embedding(words, table.weight * table.embedding_dim**0.5)
        return x + TASKS_05["positions"].reference(50, table.embedding_dim)[: words.shape[1]]

    def forward(self, source, valid, target):
        context = self.encode(source, valid)
        return torch.cat([self.decode(target[:, : t + 1], context, valid)[:, -1:] for t in range(target.shape[1])], 1)


def row_by_row(model, source, valid, start, end, max_length):
    rows = []
    for words, real in zip(source, valid, strict=True):
        said = [start]
        while len(said) <= max_length and end not in said[1:]:
            logits = model(words[None], real[None], torch.tensor([said]))
            said.append(int(logits[0, -1].argmax()))
        rows.append(torch.tensor(said[1:]))
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=end)


def in_two_pieces(step, peak, warmup):
    return peak * step / warmup if step < warmup else peak / (step / warmup) ** 0.5


def by_targets(logits, targets, smoothing, real):
    V = logits.shape[-1]
    q = F.one_hot(targets, V) * (1 - smoothing) + smoothing / V
    losses = -(q * logits.log_softmax(-1)).sum(-1)
    return torch.where(real, losses, 0).sum() / real.sum()


OTHERS = {
    "layernorm": (Norm, nn.LayerNorm),
    "mlp": (ByMatrices,),
    "residual": (spelled_out,),
    "encoder_block": (Encoder,),
    "decoder_block": (Decoder,),
    "transformer": (Whole,),
    "greedy": (row_by_row,),
    "schedule": (in_two_pieces,),
    "smoothed_loss": (by_targets,),
}


@pytest.mark.parametrize(
    ("name", "answer"), [(n, a) for n, all_ in OTHERS.items() for a in all_ if a is not nn.LayerNorm]
)
def test_right_answers_of_other_forms_pass(name, answer):
    assert not TASKS[name].run(answer).misconceptions


def test_overwriting_x_or_a_copy_of_it_is_told_to_write_no_such_line():
    def overwrites(x, norm, sublayer, pre_norm):
        x += sublayer(norm(x) if pre_norm else x)
        return x if pre_norm else norm(x)

    def overwrites_a_copy(x, norm, sublayer, pre_norm):
        return overwrites(x.clone(), norm, sublayer, pre_norm)

    def loses_the_gradient(x, norm, sublayer, pre_norm):
        return spelled_out(x.detach(), norm, sublayer, pre_norm)

    for answer in (overwrites, overwrites_a_copy):
        (finding,) = TASKS["residual"].run(answer).findings
        assert "not even on a copy" in finding.hint
        assert "clone" not in finding.hint
    (finding,) = TASKS["residual"].run(loses_the_gradient).findings
    assert "+=" not in finding.hint
