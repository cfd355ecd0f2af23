"""Right answers of other forms pass the exercises of the lessons, and what must not be done is told."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.lessons.lesson_01.tasks import PARTS as PARTS_01
from course_lib.lessons.lesson_05.tasks import attention
from course_lib.lessons.lesson_06.tasks import PARTS as PARTS_06
from course_lib.lessons.lesson_09.tasks import NAMES, runs_to_fit
from course_lib.tasks import Draw
from tests.lessons.answered import tasks_of

TASKS = {number: tasks_of(number) for number in ("01", "05", "06", "09", "13")}
# ------------------------------------------------------------------ 01


class ByNorms(nn.Module):
    """The skip connection is chosen by a conditional expression, and ReLU is a function."""

    def __init__(self, in_channels, out_channels, stride=1):
        super().__init__()
        same = stride == 1 and in_channels == out_channels
        self.shortcut = nn.Identity() if same else nn.Sequential(*self.pair(in_channels, out_channels, 1, stride))
        self.conv1, self.norm1 = self.pair(in_channels, out_channels, 3, stride)
        self.conv2, self.norm2 = self.pair(out_channels, out_channels, 3, 1)

    def pair(self, inside, outside, kernel, stride):
        conv = nn.Conv2d(inside, outside, kernel_size=kernel, stride=stride, padding=kernel // 2, bias=False)
        return conv, nn.BatchNorm2d(outside)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return F.relu(torch.add(self.shortcut(x), y))


class Pooled(nn.Module):
    """Stages in a loop over blocks, and the pooling as a layer."""

    def __init__(self, num_classes, widths, depths, first_stride=2):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, widths[0], 3, padding=1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()
        )
        inside, stages = [widths[0], *widths[:-1]], []
        for i in range(len(widths)):
            stage = nn.Sequential()
            for j in range(depths[i]):
                stride = 1 if j else (2 if i else first_stride)
                stage.append(PARTS_01["BasicBlock"](widths[i] if j else inside[i], widths[i], stride))
            stages.append(stage)
        self.stages, self.head = nn.ModuleList(stages), nn.Linear(widths[-1], num_classes)

    def features(self, images):
        x = nn.Sequential(self.stem, *self.stages)(images)
        return F.adaptive_avg_pool2d(x, 1).flatten(1)

    def forward(self, images):
        return F.linear(self.features(images), self.head.weight, self.head.bias)


def by_rows(rgba, flip, shift, ground):
    B, _, H, W = rgba.shape
    large = torch.zeros(B, 4, H + 8, W + 8)
    large[:, :, 4:-4, 4:-4] = rgba
    made = torch.empty(B, 3, H, W)
    for b in range(B):
        top, left = int(shift[b, 0]), int(shift[b, 1])
        part = large[b, :, top : top + H, left : left + W]
        if flip[b]:
            part = part[..., torch.arange(W - 1, -1, -1)]
        made[b] = torch.lerp(ground[b][:, None, None].expand(3, H, W), part[:3], part[3])
    return made


def flipped_first(rgba, flip, shift, ground):
    """Mirroring first needs the shift from the other side."""
    start = torch.where(flip, 8 - shift[:, 1], shift[:, 1])
    turned = torch.where(flip[:, None, None, None], rgba.flip(3), rgba)
    H, W = rgba.shape[2:]
    windows = [
        image[:, d : d + H, r : r + W]
        for image, d, r in zip(F.pad(turned, (4,) * 4), shift[:, 0].tolist(), start.tolist(), strict=True)
    ]
    moved = torch.stack(windows)
    return ground[..., None, None] + moved[:, 3:] * (moved[:, :3] - ground[..., None, None])


def by_scheduler(model, batches, rate, decay, frozen):
    parts = [model.head] if frozen else [model.head, *list(model.stages)[::-1], model.stem]
    optimizer = torch.optim.AdamW(PARTS_01["parameter_groups"](parts, rate, decay), weight_decay=0.01)
    n = len(batches)
    w = max(1, n // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: min((t + 1) / w, (n - t) / (n - w + 1)))
    found = torch.zeros(n)
    for t, (images, labels) in enumerate(batches):
        model.eval() if frozen else model.train()
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(model(images), labels)
        loss.backward()
        optimizer.step()
        schedule.step()
        found[t] = loss.item()
    model.train(False)
    return found


# ------------------------------------------------------------------ 05


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


class WithoutAttention(TASKS["05"]["decoder"].module):
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


class HeadByHead(TASKS["05"]["multi_head"].module):
    def forward(self, x, context=None, mask=None):
        context, heads = x if context is None else context, []
        q, k, v = self.q_proj(x), self.k_proj(context), self.v_proj(context)
        for h, some in enumerate(torch.arange(x.shape[-1]).chunk(self.num_heads)):
            shape = len(x), self.num_heads, x.shape[1], context.shape[1]
            seen = None if mask is None else mask.expand(shape)[:, h]
            heads.append(attention(q[..., some], k[..., some], v[..., some], seen))
        return self.o_proj(torch.cat(heads, -1))


# ------------------------------------------------------------------ 06


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
        self.attn, self.mlp = TASKS["05"]["multi_head"].module(dim, num_heads), PARTS_06["MLP"](dim, mlp_dim)
        self.norm1, self.norm2, self.first = nn.LayerNorm(dim), nn.LayerNorm(dim), pre_norm

    def forward(self, x, mask=None):
        if self.first:
            h = self.norm1(x)
            x = x + self.attn(h, h, mask)
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attn(x, None, mask))
        return self.norm2(x + self.mlp(x))


class Decoder(TASKS["06"]["decoder_block"].module):
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


class Whole(TASKS["06"]["transformer"].module):
    def embed(self, table, words):
        x = F.embedding(words, table.weight * table.embedding_dim**0.5)
        return x + TASKS["05"]["positions"].reference(50, table.embedding_dim)[: words.shape[1]]

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


# ------------------------------------------------------------------ 09


class Unstacked(nn.Module):
    def __init__(self, log_E, log_A, log_B, alpha, beta):
        super().__init__()
        for name, value in zip(NAMES, (log_E, log_A, log_B, alpha, beta), strict=True):
            self.register_parameter(name, nn.Parameter(torch.tensor(value).double()))

    def forward(self, N, D):
        E, A, B = self.log_E.exp(), self.log_A.exp(), self.log_B.exp()
        return torch.log(E + A / N**self.alpha + B / D**self.beta)


class Float32(Unstacked):
    def __init__(self, *values):
        super().__init__(*values)
        self.float()


def by_hand(N, D, L, starts):
    """The Huber loss in its two parts, not divided, and a step in a list of losses."""
    found = []
    for start in starts:
        law = Unstacked(*start)
        optimizer = torch.optim.LBFGS(law.parameters(), max_iter=400, line_search_fn="strong_wolfe")

        def loss(law=law):
            r = (law(N, D) - torch.log(L)).abs()
            return torch.where(r < 1e-3, r**2 / 2, 1e-3 * (r - 5e-4)).sum() * 1e6

        def closure(optimizer=optimizer, loss=loss):
            optimizer.zero_grad()
            value = loss()
            value.backward()
            return value

        optimizer.step(closure)
        found.append((float(loss()), [float(p) for p in law.parameters()]))
    return torch.tensor(min(found)[1], dtype=torch.float64)


def looped(x, y, picks, level):
    b = torch.stack([TASKS["09"]["power_law"].reference(x[row], y[row])[1] for row in picks if len(row.unique()) > 1])
    return torch.stack([b.quantile((1 - level) / 2), b.quantile((1 + level) / 2)])


def by_factors(log_A, log_B, alpha, beta, flops):
    a, b = beta / (alpha + beta), alpha / (alpha + beta)
    G = (alpha * math.exp(log_A) / (beta * math.exp(log_B))) ** (1 / (alpha + beta))
    return torch.tensor([G * (flops / 6) ** a, (flops / 6) ** b / G], dtype=torch.float64)


def by_lstsq(x, y):
    columns = torch.stack([torch.ones_like(x), x.log()], dim=1)
    log_a, slope = torch.linalg.lstsq(columns, y.log()[:, None]).solution[:, 0]
    return torch.stack([log_a.exp(), -slope])


def matrix_by_matrix(dim, depth, context, vocab, tokens):
    per_block = sum((3 * dim * dim, context * dim, context * dim, dim * dim, 4 * dim * dim, 4 * dim * dim))
    return int(2 * 3 * (depth * per_block + vocab * dim) * tokens)


# ------------------------------------------------------------------ 13


def with_batch_norm(encoder, images, labels, new, num_classes, steps, lr):
    norm = nn.BatchNorm1d(encoder.mlp.out_features, affine=False, momentum=None)
    with torch.no_grad():
        known, asked = norm(encoder(images).mean(dim=1)), encoder(new).mean(dim=1)
        rows = norm.eval()(asked)
    head = nn.Linear(known.shape[1], num_classes)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    optimizer = torch.optim.SGD(head.parameters(), lr=lr)
    for _ in range(steps):
        loss = F.cross_entropy(head(known), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return head(rows).detach()


# ------------------------------------------------------------------ all

PROBE, STEP = (TASKS["13"][name].reference for name in ("linear_probe", "pretrain_step"))
CLEARS = "    optimizer.zero_grad()\n"
OTHERS = {
    "01": [("block", ByNorms), ("resnet", Pooled), ("augment", by_rows), ("augment", flipped_first)]
    + [("fine_tune", by_scheduler)],
    "05": [("additive", Einsum), ("encoder", OneSentenceAtATime), ("decoder", WithoutAttention)]
    + [("greedy", by_forward), ("multi_head", HeadByHead)],
    "06": [("layernorm", Norm), ("mlp", ByMatrices), ("residual", spelled_out), ("encoder_block", Encoder)]
    + [("decoder_block", Decoder), ("transformer", Whole), ("greedy", row_by_row)],
    "09": [("law", Unstacked), ("fit_law", by_hand), ("bootstrap_interval", looped), ("allocation", by_factors)]
    + [("flops", matrix_by_matrix), ("power_law", by_lstsq)],
    "13": [("linear_probe", with_batch_norm)]
    + [("linear_probe", PROBE.changed((("known.std(dim=0)", "known.std(dim=0, correction=0)"),)))]
    + [("pretrain_step", STEP.changed(((CLEARS, ""), ("    noise =", f"{CLEARS}    noise ="))))],
}


@pytest.mark.parametrize(("number", "name", "answer"), [(n, *other) for n, some in OTHERS.items() for other in some])
def test_right_answers_of_other_forms_pass(number, name, answer):
    assert TASKS[number][name].run(answer).passed


def with_numbers(noise, ratio):
    keep, restore, masked = TASKS["13"]["random_mask"].reference(noise, ratio)
    return keep, restore, masked.float()


@pytest.mark.parametrize(
    ("number", "name", "answer", "told"),
    [("09", "law", Float32, "parameters in float32"), ("13", "random_mask", with_numbers, "mask of numbers")],
)
def test_an_answer_of_the_wrong_type_is_told_so(number, name, answer, told):
    assert TASKS[number][name].run(answer).misconceptions == [told]


def test_overwriting_x_or_a_copy_of_it_is_told_to_write_no_such_line():
    def overwrites(x, norm, sublayer, pre_norm):
        x += sublayer(norm(x) if pre_norm else x)
        return x if pre_norm else norm(x)

    def overwrites_a_copy(x, norm, sublayer, pre_norm):
        return overwrites(x.clone(), norm, sublayer, pre_norm)

    def loses_the_gradient(x, norm, sublayer, pre_norm):
        return spelled_out(x.detach(), norm, sublayer, pre_norm)

    for answer in (overwrites, overwrites_a_copy):
        (finding,) = TASKS["06"]["residual"].run(answer).findings
        assert "not even on a copy" in finding.hint
        assert "clone" not in finding.hint
    (finding,) = TASKS["06"]["residual"].run(loses_the_gradient).findings
    assert "+=" not in finding.hint


def test_a_stuck_start_ends_far_above_the_right_one():
    N, D, L, starts = runs_to_fit(Draw(5))
    ends = [TASKS["09"]["fit_law"].reference(N, D, L, [start]) for start in starts]
    errors = [F.l1_loss(TASKS["09"]["law"].module(*end.tolist())(N, D), L.log()).item() for end in ends]
    assert errors[1] < 0.01 < min(errors[0], errors[2])
