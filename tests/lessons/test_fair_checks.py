"""A right answer in another style passes its check; what no table of mistakes can name is named.

The mistakes of the tables are tested in test_every_lesson.py, the library's own functions as answers in
test_modern_exercises.py.
"""

import importlib
import linecache
import math
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.tasks.findings import CUT_OFF, FORBIDDEN, GRADIENT_DIFFERS, OTHER_PARAMETERS

NAMES = {"math": math, "np": np, "torch": torch, "F": F, "nn": nn}


def tasks(lesson):
    return importlib.import_module(f"course_lib.lessons.lesson_{lesson}").page.tasks


def told(lesson, task, text):
    """What a check says of a function, given as text."""
    asked = tasks(lesson)[task]
    file, names = f"<{lesson} {task} {hash(text)}>", NAMES | dict(getattr(asked.reference, "names", {}))
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    return asked.run(names[re.findall(r"^(?:def|class) (\w+)", text, flags=re.MULTILINE)[-1]]).misconceptions


RIGHT = {
    ("01", "new_head", "frozen by name, the head from its weight"): """
def new_head(model, num_classes, frozen):
    new = copy.deepcopy(model)
    for name, parameter in new.named_parameters():
        parameter.requires_grad = not frozen
    new.head = nn.Linear(new.head.weight.shape[1], num_classes)
    return new
""",
    ("01", "parameter_groups", "the learning rate multiplied from part to part"): """
def parameter_groups(parts, rate, decay):
    groups = []
    for part in parts:
        groups.append(dict(params=[*part.parameters()], lr=rate))
        rate = rate * decay
    return groups
""",
    ("01", "conv_size", "places counted in a loop"): """
def conv_size(size, kernel, stride, padding):
    return len(range(0, size + 2 * padding - kernel + 1, stride))
""",
    ("02", "random_crop", "a grid by hand, image by image"): """
def my_random_crop(images, noise, smallest, degrees):
    out = []
    S = images.shape[-1]
    t = (torch.arange(S) * 2 + 1) / S - 1
    for n in range(len(images)):
        s = math.sqrt(smallest + (1 - smallest) * float(noise[0, n]))
        cx, cy = (float(2 * noise[k, n] - 1) * (1 - s) for k in (1, 2))
        a = math.radians((2 * float(noise[3, n]) - 1) * degrees)
        y, x = torch.meshgrid(t, t, indexing="ij")
        xs = s * (math.cos(a) * x - math.sin(a) * y) + cx
        ys = s * (math.sin(a) * x + math.cos(a) * y) + cy
        out.append(F.grid_sample(images[n : n + 1], torch.stack([xs, ys], -1)[None], padding_mode="border",
                                 align_corners=False))
    return torch.cat(out)
""",
    ("02", "views", "an outer loop and lerp"): """
def my_views(images, noise):
    both = []
    for u in noise:
        x = my_random_crop(images, u[:4], 0.5, 20)
        x = torch.clamp(x * (0.6 + 0.8 * u[4]).view(-1, 1, 1, 1), 0, 1)
        m = x.flatten(1).mean(1).view(-1, 1, 1, 1)
        x = torch.clamp(torch.lerp(m.expand_as(x), x, (0.6 + 0.8 * u[5]).view(-1, 1, 1, 1)), 0, 1)
        S = x.shape[-1]
        for n in range(len(x)):
            if u[6, n] < 0.5:
                x[n, :, S // 3 : S - S // 3, S // 3 : S - S // 3] = 0.5
        both.append(x)
    return torch.cat(both)
""",
    ("02", "encoder", "blocks appended in a loop, adaptive pooling"): """
class Encoder(nn.Module):
    def __init__(self, in_channels, widths):
        super().__init__()
        self.stem = nn.Conv2d(in_channels, widths[0], kernel_size=3, padding="same", bias=False)
        self.norm = nn.BatchNorm2d(widths[0])
        self.blocks = nn.ModuleList()
        last = widths[0]
        for width in widths:
            self.blocks.append(Block(last, width, 2))
            last = width

    def forward(self, x):
        x = torch.relu(self.norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        return F.adaptive_avg_pool2d(x, 1).flatten(1)
""",
    ("02", "nt_xent", "the diagonal removed"): """
def my_nt_xent(z, temperature):
    z = F.normalize(z, dim=1)
    e = torch.exp(z @ z.T / temperature)
    e = e * (1 - torch.eye(len(z), dtype=z.dtype))
    positive = (z * z.roll(len(z) // 2, 0)).sum(1) / temperature
    return (e.sum(1).log() - positive).mean()
""",
    ("02", "train", "a scheduler of PyTorch"): """
def my_train(model, batches, temperature, peak, report=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=len(batches))
    losses = torch.zeros(len(batches))
    for t, views in enumerate(batches):
        loss = my_nt_xent(model(views), temperature)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses[t] = loss.item()
    return losses
""",
    ("02", "knn", "distances of unit vectors, and one-hot votes"): """
def my_knn(h, stored, labels, k):
    distance = torch.cdist(F.normalize(h, dim=1), F.normalize(stored, dim=1))
    nearest = distance.topk(k, largest=False).indices
    return F.one_hot(labels)[nearest].sum(1).argmax(1)
""",
    ("02", "linear_probe", "autograd and SGD"): """
def my_linear_probe(h, labels, classes, decay):
    W = torch.zeros(classes, h.shape[1], dtype=h.dtype, requires_grad=True)
    b = torch.zeros(classes, dtype=h.dtype, requires_grad=True)
    optimizer = torch.optim.SGD([W, b], lr=0.5)
    for _ in range(200):
        loss = F.cross_entropy(F.linear(h, W, b), labels) + decay / 2 * (W**2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return W.detach(), b.detach()
""",
    ("03", "bptt", "gradients of all states first"): """
def my_bptt(W, h, dh):
    T = dh.shape[0]
    slope = 1 - h[1:].square()
    deltas = [dh[-1]]
    for t in range(T - 2, -1, -1):
        deltas.insert(0, dh[t] + (slope[t + 1] * deltas[0]) @ W)
    a = slope * torch.stack(deltas)
    return torch.einsum("ti,tj->ij", a, h[:-1])
""",
    ("03", "rnn", "a tensor that is filled"): """
class RNN(nn.Module):
    def __init__(self, input_dim, hidden_dim):
        super().__init__()
        self.ih, self.hh = nn.Linear(input_dim, hidden_dim), nn.Linear(hidden_dim, hidden_dim)
        self.hidden_dim = hidden_dim

    def forward(self, x, h=None):
        B, T, _ = x.shape
        h = torch.zeros(B, self.hidden_dim) if h is None else h
        inputs, states = self.ih(x), torch.zeros(B, T, self.hidden_dim)
        for t in range(T):
            h = (inputs[:, t] + F.linear(h, self.hh.weight, self.hh.bias)).tanh()
            states[:, t] = h
        return states
""",
    ("03", "recogniser", "gather"): """
class Recogniser(nn.Module):
    def __init__(self, vocab_size, num_classes, embed_dim, hidden_dim):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, embed_dim)
        self.rnn = RNN(embed_dim, hidden_dim)
        self.head = nn.Linear(hidden_dim, num_classes)

    def forward(self, tokens, valid=None):
        logits = self.head(self.rnn(self.embed(tokens)))
        if valid is None:
            valid = torch.ones_like(tokens, dtype=torch.bool)
        last = valid.long().sum(1, keepdim=True).sub(1)[..., None].expand(-1, -1, logits.shape[-1])
        return logits.gather(1, last).squeeze(1)
""",
    ("03", "train", "a module as the loss, gradients set to zero at the end"): """
def my_train(model, batches, lr):
    optimizer, criterion, losses = torch.optim.Adam(model.parameters(), lr), nn.CrossEntropyLoss(), []
    model.train()
    optimizer.zero_grad()
    for tokens, valid, labels in batches:
        loss = criterion(model(tokens, valid=valid), labels)
        losses += [loss.item()]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return torch.tensor(losses)
""",
    ("03", "train_text", "classes on axis 1, the state detached before it is used"): """
def my_train_text(model, pieces, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    h, losses = None, []
    for piece in pieces:
        h = h if h is None else h.detach()
        logits, h = model(piece[:, :-1], h=h)
        loss = nn.CrossEntropyLoss()(logits.transpose(1, 2), piece[:, 1:])
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(list(model.parameters()), 1)
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)
""",
    ("03", "generate", "the whole text read for each character"): """
def my_generate(model, tokens, count, temperature, draw):
    for _ in range(count):
        logits, _ = model(tokens)
        new = draw(torch.softmax(logits[:, -1, :] / temperature, -1))
        tokens = torch.hstack([tokens, new.unsqueeze(1)])
    return tokens
""",
    ("03", "sample", "a loop over the rows"): """
def my_sample(logits, temperature, u):
    probs = F.softmax(logits / temperature, dim=1)
    return torch.tensor([int(torch.searchsorted(p.cumsum(0), r, right=True)) for p, r in zip(probs, u)])
""",
    ("04", "lstm", "all inputs projected at once, gates cut by hand"): """
class LSTM(nn.Module):
    def __init__(self, input_dim, hidden_dim):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.ih = nn.Linear(input_dim, 4 * hidden_dim)
        self.hh = nn.Linear(hidden_dim, 4 * hidden_dim)

    def forward(self, x, state=None):
        B, T, D = x.shape
        h, c = state if state is not None else (torch.zeros(B, self.hidden_dim), torch.zeros(B, self.hidden_dim))
        a, out = self.ih(x), torch.empty(B, T, self.hidden_dim)
        for t in range(T):
            i, f, g, o = torch.split(a[:, t] + self.hh(h), self.hidden_dim, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            out[:, t] = h
        return out, (h, c)
""",
    ("04", "gru", "torch.lerp"): """
class GRU(nn.Module):
    def __init__(self, input_dim, hidden_dim):
        super().__init__()
        self.ih, self.hh = nn.Linear(input_dim, 3 * hidden_dim), nn.Linear(hidden_dim, 3 * hidden_dim)

    def forward(self, x, h=None):
        H, outputs = self.hh.in_features, []
        h = torch.zeros(len(x), H) if h is None else h
        for t in range(x.shape[1]):
            a, u = self.ih(x[:, t]), self.hh(h)
            gates = torch.sigmoid(a[:, : 2 * H] + u[:, : 2 * H])
            h = torch.lerp(torch.tanh(a[:, 2 * H :] + gates[:, :H] * u[:, 2 * H :]), h, gates[:, H:])
            outputs.append(h)
        return torch.stack(outputs, 1), outputs[-1]
""",
    ("04", "character_model", "one-hot vectors times a table"): """
class CharacterModel(nn.Module):
    def __init__(self, vocab_size, embed_dim, hidden_dim, layer=LSTM):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, embed_dim)
        self.rnn = layer(embed_dim, hidden_dim)
        self.head = nn.Linear(hidden_dim, vocab_size)

    def forward(self, tokens, state=None):
        x = F.one_hot(tokens, self.embed.num_embeddings).float() @ self.embed.weight
        states, last = self.rnn(x, state=state)
        return torch.einsum("bth,vh->btv", states, self.head.weight) + self.head.bias, last
""",
    ("06", "residual", "what the sublayer reads, chosen first"): """
def residual(x, norm, sublayer, pre_norm):
    after = x + sublayer(norm(x) if pre_norm else x)
    return after if pre_norm else norm(after)
""",
    ("06", "schedule", "two pieces"): """
def schedule(step, peak, warmup):
    return peak * step / warmup if step < warmup else peak * math.sqrt(warmup / step)
""",
    ("06", "beam_step", "a stable argsort"): """
def beam_step(totals, lengths, ended, log_probs, penalty):
    N, V = log_probs.shape
    sums = totals[:, None] + log_probs
    sums[ended] = -torch.inf
    sums[ended, 0] = totals[ended]
    scores = sums / (lengths + ~ended)[:, None] ** penalty
    best = scores.flatten().argsort(descending=True, stable=True)[:N]
    return torch.stack([best // V, best % V], dim=1)
""",
    ("06", "smoothed_loss", "the whole target distribution"): """
def smoothed_loss(logits, targets, smoothing, real):
    V = logits.shape[-1]
    wanted = (1 - smoothing) * F.one_hot(targets, V) + smoothing / V
    return -(wanted * logits.log_softmax(-1)).sum(-1)[real].mean()
""",
    ("07", "block", "PyTorch's own functions, other order of parts"): """
class Ffn(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.down_proj = nn.Linear(dim * 4, dim)
        self.up_proj = nn.Linear(dim, dim * 4)

    def forward(self, x):
        y = F.linear(x, self.up_proj.weight, self.up_proj.bias)
        y = y * 0.5 * (1 + torch.erf(y / 2**0.5))
        return F.linear(y, self.down_proj.weight, self.down_proj.bias)

class EncoderBlock(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.norm2 = nn.LayerNorm(dim, eps=1e-12)
        self.norm1 = nn.LayerNorm(dim, eps=1e-12)
        self.ffn = Ffn(dim)
        self.attn = MultiHeadAttention(dim, num_heads)

    def forward(self, x, mask=None):
        for norm, sublayer in ((self.norm1, lambda v: self.attn(v, mask=mask)), (self.norm2, self.ffn)):
            x = norm(sublayer(x) + x)
        return x
""",
    ("07", "bert", "one-hot segments, a mask of all pairs"): """
class BERT(nn.Module):
    def __init__(self, vocab_size, context_length, dim, depth, num_heads):
        super().__init__()
        self.blocks = nn.ModuleList([EncoderBlock(dim, num_heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim, eps=1e-12)
        self.pos_embed = nn.Embedding(context_length, dim)
        self.segment_embed = nn.Embedding(2, dim)
        self.token_embed = nn.Embedding(vocab_size, dim)

    def forward(self, tokens, segments=None, valid=None):
        B, T = tokens.shape
        valid = torch.ones(B, T, dtype=torch.bool) if valid is None else valid
        segments = tokens * 0 if segments is None else segments
        x = self.token_embed.weight[tokens] + self.pos_embed.weight[:T]
        x = self.norm(x + F.one_hot(segments, 2).float() @ self.segment_embed.weight)
        for block in self.blocks:
            x = block(x, valid[:, None, None].expand(-1, -1, T, -1))
        return x
""",
    ("07", "masked_lm", "F.linear and einsum"): """
class MaskedLM(nn.Module):
    def __init__(self, vocab_size, context_length, dim, depth, num_heads):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(vocab_size))
        self.norm = nn.LayerNorm(dim, 1e-12)
        self.transform = nn.Linear(dim, dim)
        self.bert = BERT(vocab_size, context_length, dim, depth, num_heads)

    def forward(self, tokens, segments=None, valid=None):
        h = self.norm(nn.GELU()(self.transform(self.bert(tokens, segments=segments, valid=valid))))
        return torch.einsum("btd,vd->btv", h, self.bert.token_embed.weight).add(self.bias)
""",
    ("07", "mask_words", "a clone and boolean assignments"): """
def mask_words(tokens, noise, maskable, mask_id, word_ids):
    which, what, number = noise
    chosen = torch.logical_and(which < 0.15, maskable)
    given = tokens.clone()
    given[chosen & (what < 0.8)] = mask_id
    swapped = chosen & (what >= 0.8) & (what < 0.9)
    low, high = word_ids
    given[swapped] = low + torch.floor(number[swapped] * (high - low)).to(tokens.dtype)
    return given, chosen
""",
    ("07", "hidden_loss", "an ignored label"): """
def hidden_loss(logits, tokens, chosen):
    labels = tokens.masked_fill(~chosen, -100)
    return F.cross_entropy(logits.transpose(1, 2), labels)
""",
    ("07", "sentence_head", "select and a Tanh module"): """
class SentenceHead(nn.Module):
    def __init__(self, dim, num_classes):
        super().__init__()
        self.classifier = nn.Linear(dim, num_classes)
        self.pooler = nn.Linear(dim, dim)
        self.act = nn.Tanh()

    def forward(self, features):
        return self.classifier(self.act(self.pooler(features.select(1, 0))))
""",
    ("07", "fine_tune", "a LambdaLR scheduler"): """
def fine_tune(model, batches, peak):
    n = len(batches)
    w = max(1, n // 10)
    opt = torch.optim.AdamW(model.parameters(), lr=peak, weight_decay=0.01)
    plan = torch.optim.lr_scheduler.LambdaLR(opt, lambda t: min((t + 1) / w, (n - t) / (n - w + 1)))
    losses = torch.zeros(n)
    for t in range(n):
        inputs, labels = batches[t]
        opt.zero_grad()
        logits = model(*inputs)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1)
        opt.step()
        plan.step()
        losses[t] = loss.item()
    return losses
""",
    ("07", "best_span", "three loops"): """
def best_span(start, end, allowed, longest):
    found = []
    for s, e, ok in zip(start.tolist(), end.tolist(), allowed.tolist()):
        ends = [i for i in range(len(s)) if ok[i]]
        spans = [(s[i] + e[j], i, j) for i in ends for j in ends if i <= j < i + longest]
        found.append(max(spans)[1:])
    return torch.tensor(found)
""",
    ("07", "longest_match", "letters taken off the end"): """
def longest_match(word, vocabulary):
    pieces, sign = [], ""
    while word:
        piece = word
        while piece and sign + piece not in vocabulary:
            piece = piece[:-1]
        if not piece:
            return ["[UNK]"]
        pieces, word, sign = [*pieces, sign + piece], word[len(piece):], "##"
    return pieces
""",
    ("07", "mean_pooling", "row by row"): """
def mean_pooling(features, valid):
    rows = [x[real].sum(0) / max(1, len(x[real])) for x, real in zip(features, valid)]
    return torch.stack(rows)
""",
    ("08", "attention", "PyTorch's own attention"): """
class CausalSelfAttention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(dim, dim) for _ in range(4))
        self.heads = num_heads

    def forward(self, x):
        projections = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (proj(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for proj in projections)
        return self.o_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
""",
    ("08", "block", "a sequence of layers by name"): """
class Block(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.attn = CausalSelfAttention(dim, num_heads)
        self.ffn = nn.Sequential()
        self.ffn.add_module("up_proj", nn.Linear(dim, 4 * dim))
        self.ffn.add_module("gelu", nn.GELU(approximate="tanh"))
        self.ffn.add_module("down_proj", nn.Linear(4 * dim, dim))
        self.norm1 = nn.LayerNorm(dim)
        self.norm2 = nn.LayerNorm(dim)

    def forward(self, x):
        y = self.attn(self.norm1(x)) + x
        return self.ffn(self.norm2(y)) + y
""",
    ("08", "gpt", "tied the other way round, a buffer of positions"): """
class MyGPT(nn.Module):
    def __init__(self, vocab_size, context_length, dim, depth, num_heads):
        super().__init__()
        self.head = nn.Linear(dim, vocab_size, bias=False)
        self.token_embed = nn.Embedding(vocab_size, dim)
        self.token_embed.weight = self.head.weight
        self.pos_embed = nn.Embedding(context_length, dim)
        self.blocks = nn.ModuleList([Block(dim, num_heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.register_buffer("positions", torch.arange(context_length))

    def forward(self, tokens):
        x = self.token_embed(tokens) + self.pos_embed(self.positions[: tokens.size(1)])[None]
        for i in range(len(self.blocks)):
            x = self.blocks[i](x)
        return self.head(self.norm(x))
""",
    ("08", "top_p", "one row after another"): """
def top_p(logits, p):
    kept = torch.full_like(logits, -torch.inf).flatten(0, -2)
    for row, out in zip(logits.flatten(0, -2), kept):
        total = 0.0
        for i in sorted(range(len(row)), key=lambda i: -row[i]):
            if total >= p:
                break
            out[i] = row[i]
            total += row.softmax(-1)[i]
    return kept.view_as(logits)
""",
    ("08", "cached_step", "new keys in front, under a mask that fits"): """
def cached_step(q, k, v, past_k, past_v):
    keys, values = torch.cat([k, past_k], dim=-2), torch.cat([v, past_v], dim=-2)
    new, past = q.shape[-2], past_k.shape[-2]
    seen = torch.cat([torch.ones(new, new).tril(), torch.ones(new, past)], dim=1).bool()
    return ((q @ keys.mT) / q.shape[-1] ** 0.5).masked_fill(~seen, -torch.inf).softmax(-1) @ values
""",
    ("09", "law", "powers in place of logsumexp"): """
class ScalingLaw(nn.Module):
    def __init__(self, log_E, log_A, log_B, alpha, beta):
        super().__init__()
        start = torch.tensor([log_E, log_A, log_B, alpha, beta], dtype=torch.float64)
        self.log_E, self.log_A, self.log_B, self.alpha, self.beta = (nn.Parameter(one.clone()) for one in start)

    def forward(self, N, D):
        return (self.log_E.exp() + self.log_A.exp() * N**-self.alpha + self.log_B.exp() * D**-self.beta).log()
""",
    ("09", "lifetime", "a loop over the sizes"): """
def my_lifetime(log_E, log_A, log_B, alpha, beta, loss, inference, sizes):
    best = None
    for N in sizes.tolist():
        room = loss - math.exp(log_E) - math.exp(log_A) / N**alpha
        if room > 0:
            D = (math.exp(log_B) / room) ** (1 / beta)
            cost = 6 * N * D + 2 * N * inference
            if best is None or cost < best[2]:
                best = N, D, cost
    return torch.tensor(best, dtype=torch.float64)
""",
    ("09", "best_size", "numbers of 32 bits"): """
def best_size(parameters, losses):
    u = parameters.float().log()
    columns = torch.stack([u**2, u, torch.ones_like(u)], dim=1)
    p, q, _ = torch.linalg.lstsq(columns, losses.float()[:, None]).solution[:, 0]
    return (-q / (2 * p)).exp().item()
""",
    ("10", "sft_loss", "cross_entropy that ignores what is not scored"): """
def my_sft_loss(logits, tokens, answer):
    labels = tokens.masked_fill(~answer, -100)[:, 1:]
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), labels, ignore_index=-100)
""",
    ("10", "reward_model", "gather and the largest position"): """
class RewardModel(nn.Module):
    def __init__(self, gpt):
        super().__init__()
        self.backbone = copy.deepcopy(gpt)
        self.backbone.head = nn.Linear(gpt.head.in_features, 1)

    def values(self, tokens):
        return self.backbone(tokens).squeeze(-1)

    def forward(self, tokens, valid):
        last = (torch.arange(tokens.shape[1]) * valid).argmax(dim=1, keepdim=True)
        return self.values(tokens).gather(1, last)[:, 0]
""",
    ("10", "gae", "a sum with powers"): """
def my_gae(rewards, values, lam, gamma=1.0):
    T = rewards.shape[1]
    after = torch.cat([values[:, 1:], torch.zeros_like(values[:, :1])], dim=1)
    delta = rewards + gamma * after - values
    gap = torch.arange(T)[None] - torch.arange(T)[:, None]
    weights = torch.where(gap >= 0, (gamma * lam) ** gap.clamp(min=0).to(rewards), 0.0)
    return delta @ weights.T
""",
    ("10", "clipped", "a where on the sign"): """
def my_clipped(log_probs, old, advantage, clip):
    rho = torch.exp(log_probs - old)
    limit = torch.where(advantage > 0, torch.clamp(rho, max=1 + clip), torch.clamp(rho, min=1 - clip))
    return (limit * advantage).mean()
""",
    ("10", "group_advantage", "row by row"): """
def my_group_advantage(rewards):
    return torch.stack([(row - row.mean()) / (torch.std(row) + 1e-4) for row in rewards])
""",
    ("10", "grpo_loss", "sums divided by the number of real tokens"): """
def my_grpo_loss(log_probs, old, reference, advantage, valid, clip, beta):
    count = valid.sum()
    rho = torch.exp(log_probs - old)
    A = advantage.unsqueeze(1)
    J = torch.min(rho * A, torch.clamp(rho, 1 - clip, 1 + clip) * A)
    ratio = torch.exp(reference - log_probs)
    k3 = ratio - torch.log(ratio) - 1
    return ((beta * k3 - J) * valid).sum() / count
""",
    ("11", "kernel", "an einsum and a view"): """
def kernel(E, p):
    return torch.einsum("ijcd->dcij", E.view(p, p, -1, E.shape[1]))
""",
    ("11", "tokens", "the positions in two parts"): """
def tokens(patches, cls_token, pos_embed):
    first = (cls_token + pos_embed[:, :1]).repeat(patches.shape[0], 1, 1)
    return torch.hstack([first, patches + pos_embed[:, 1:]])
""",
    ("11", "block", "the sums one by one, nn.GELU"): """
class Block(nn.Module):
    def __init__(self, dim, num_heads, mlp_dim):
        super().__init__()
        self.attn = MultiHeadAttention(dim, num_heads)
        self.up_proj, self.down_proj = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)
        self.norm1, self.norm2 = (nn.LayerNorm(dim, eps=1e-6) for _ in range(2))
        self.gelu = nn.GELU()

    def forward(self, x):
        h = self.norm1(x)
        y = torch.add(x, self.attn(h, h))
        return y + F.linear(self.gelu(self.up_proj(self.norm2(y))), self.down_proj.weight, self.down_proj.bias)
""",
    ("11", "vit", "einsum for the patches, Sequential for the blocks, an index for the class token"): """
class ViT(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, num_classes, dim, depth, num_heads, mlp_dim):
        super().__init__()
        self.patch_embed = nn.Conv2d(in_channels, dim, kernel_size=patch_size, stride=patch_size)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.empty(1, (image_size // patch_size) ** 2 + 1, dim))
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        self.blocks = nn.Sequential(*[Block(dim, num_heads, mlp_dim) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, num_classes)
        with torch.no_grad():
            self.head.weight.fill_(0)
            self.head.bias.fill_(0)

    def features(self, images):
        x = torch.einsum("bdhw->bhwd", self.patch_embed(images))
        return self.norm(self.blocks(tokens(x.reshape(len(x), -1, x.shape[-1]), self.cls_token, self.pos_embed)))

    def forward(self, images):
        return self.head(self.features(images).select(1, 0))
""",
    ("11", "mixup", "torch.lerp"): """
def mixup(images, targets, partner, weight):
    mixed = torch.lerp(images[partner], images, weight.view(-1, 1, 1, 1))
    return mixed, torch.lerp(targets[partner], targets, weight.view(-1, 1))
""",
    ("11", "attention_distance", "torch.cdist and a mean over pairs"): """
def attention_distance(weights, height, width, patch_size):
    where = torch.cartesian_prod(torch.arange(height), torch.arange(width)).to(weights)
    distance = patch_size * torch.cdist(where, where, compute_mode="donot_use_mm_for_euclid_dist")
    among = F.normalize(weights[..., 1:, 1:], p=1, dim=-1)
    return torch.einsum("...qk,qk->...", among, distance) / (height * width)
""",
    ("11", "effective", "a small number inside of the logarithm"): """
def effective(weights):
    H = -(weights * torch.log(weights.clamp(min=1e-20))).sum(dim=-1)
    return torch.exp(H).mean(dim=-1)
""",
    ("11", "fit_positions", "unflatten and movedim"): """
def fit_positions(table, grid, new_grid):
    first, rest = table.split([1, table.shape[1] - 1], dim=1)
    image = rest.mT.unflatten(2, grid)
    new = F.interpolate(image, new_grid, mode="bicubic", align_corners=False)
    return torch.cat((first, new.flatten(2).mT), 1)
""",
    ("11", "patchify", "Tensor.unfold"): """
def patchify(image, p):
    B, C = image.shape[:2]
    return image.unfold(2, p, p).unfold(3, p, p).permute(0, 2, 3, 4, 5, 1).reshape(B, -1, p * p * C)
""",
    ("11", "unpatchify", "F.fold"): """
def unpatchify(patches, p, height, width):
    B, N = patches.shape[:2]
    columns = patches.reshape(B, N, p * p, -1).permute(0, 3, 2, 1).reshape(B, -1, N)
    return F.fold(columns, (height, width), p, stride=p)
""",
    ("12", "shift_mask", "the nine regions of the released code"): """
def my_shift_mask(height, width, size, shift):
    regions, count = torch.zeros(height, width), 0
    cuts = (slice(0, -size), slice(-size, -shift or None), slice(-shift, None) if shift else slice(0, 0))
    for rows in cuts:
        for columns in cuts:
            regions[rows, columns] = count
            count += 1
    windows = regions.view(height // size, size, width // size, size).permute(0, 2, 1, 3).flatten(2).flatten(0, 1)
    return windows.unsqueeze(1) - windows.unsqueeze(2) == 0
""",
    ("12", "position_index", "a loop over pairs"): """
def my_position_index(size):
    n = size * size
    found = torch.zeros(n, n, dtype=torch.long)
    for i in range(n):
        for j in range(n):
            down, right = i // size - j // size, i % size - j % size
            found[i, j] = (down + size - 1) * (2 * size - 1) + right + size - 1
    return found
""",
    ("12", "window_attention", "fused attention with a float mask"): """
class WindowAttention(nn.Module):
    def __init__(self, dim, num_heads, size):
        super().__init__()
        self.heads = num_heads
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(dim, dim))
        self.bias_table = nn.Parameter(torch.zeros((2 * size - 1) ** 2, num_heads))
        nn.init.trunc_normal_(self.bias_table, std=0.02)
        self.register_buffer("index", position_index(size), persistent=False)

    def forward(self, x, mask=None):
        q, k, v = (p(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for p in (self.q_proj, self.k_proj, self.v_proj))
        bias = self.bias_table[self.index.flatten()].view(*self.index.shape, -1).permute(2, 0, 1)[None]
        if mask is not None:
            hidden = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
            bias = bias[None] + hidden[None, :, None]
            bias = bias.expand(len(x) // len(mask), -1, -1, -1, -1).flatten(0, 1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.o_proj(y.transpose(1, 2).flatten(2))
""",
    ("12", "block", "the roll around both ways in one place"): """
class SwinBlock(nn.Module):
    def __init__(self, dim, num_heads, size, shift):
        super().__init__()
        self.size, self.shift = size, shift
        self.norm1 = nn.LayerNorm(dim)
        self.attn = WindowAttention(dim, num_heads, size)
        self.norm2 = nn.LayerNorm(dim)
        self.ffn = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        H, W = x.shape[1:3]
        s = self.shift if H > self.size and W > self.size else 0
        mask = shift_mask(H, W, self.size, s)
        y = torch.roll(self.norm1(x), shifts=(-s, -s), dims=(1, 2))
        y = torch.roll(in_windows(y, self.size, lambda w: self.attn(w, mask)), shifts=(s, s), dims=(1, 2))
        x = x + y
        return x + self.ffn(self.norm2(x))
""",
    ("12", "patch_merging", "by a reshape"): """
class PatchMerging(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.proj = nn.LayerNorm(4 * dim), nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        B, H, W, C = x.shape
        if H % 2 or W % 2:
            x = F.pad(x, (0, 0, 0, W % 2, 0, H % 2))
        x = x.view(B, (H + 1) // 2, 2, (W + 1) // 2, 2, C).permute(0, 1, 3, 4, 2, 5).flatten(3)
        return F.linear(self.norm(x), self.proj.weight)
""",
    ("12", "swin", "lists of layers and a flattened mean"): """
class MySwin(nn.Module):
    def __init__(self, in_channels, num_classes, patch_size, dim, depths, num_heads, size, grid=None):
        super().__init__()
        self.patch_embed = nn.Conv2d(in_channels, dim, kernel_size=patch_size, stride=patch_size)
        self.patch_norm = nn.LayerNorm(dim)
        self.pos_embed = None if grid is None else nn.Parameter(torch.zeros(1, grid**2, dim))
        widths = [dim * 2**i for i in range(len(depths))]
        self.stages = nn.ModuleList(
            nn.Sequential(*[SwinBlock(w, h, size, 0 if i % 2 == 0 else size // 2) for i in range(n)])
            for w, h, n in zip(widths, num_heads, depths))
        self.merges = nn.ModuleList(PatchMerging(w) for w in widths[:-1])
        self.norm, self.head = nn.LayerNorm(widths[-1]), nn.Linear(widths[-1], num_classes)

    def feature_maps(self, images):
        x = self.patch_embed(images)
        h, w = x.shape[2:]
        x = self.patch_norm(x.flatten(2).transpose(1, 2))
        if self.pos_embed is not None:
            x = x + self.pos_embed
        x, maps = x.unflatten(1, (h, w)), []
        for i, stage in enumerate(self.stages):
            x = stage(x if i == 0 else self.merges[i - 1](x))
            maps.append(x)
        return maps

    def forward(self, images):
        return self.head(self.norm(self.feature_maps(images)[-1].flatten(1, 2)).mean(1))
""",
    ("12", "in_windows", "cut by slices, given at once"): """
def in_windows(x, size, work):
    B, H, W, D = x.shape
    corners = [(b, i, j) for b in range(B) for i in range(0, H, size) for j in range(0, W, size)]
    cut = torch.stack([x[b, i : i + size, j : j + size].reshape(-1, D) for b, i, j in corners])
    done = work(cut).reshape(-1, size, size, D)
    out = torch.zeros_like(x)
    for (b, i, j), window in zip(corners, done):
        out[b, i : i + size, j : j + size] = window
    return out
""",
    ("13", "restore_order", "scatter by the order of the noise"): """
def restore_order(features, mask_token, restore, positions):
    (B, K, D), N = features.shape, restore.shape[1]
    kept = restore.argsort(dim=1)[:, :K, None].expand(B, K, D)
    return mask_token.expand(B, N, D).scatter(1, kept, features) + positions
""",
    ("13", "hidden_loss", "patch by patch in a loop"): """
def hidden_loss(predicted, target, masked):
    errors = [(p - t).square().mean() for p, t in zip(predicted[masked.bool()], target[masked.bool()])]
    return torch.stack(errors).mean()
""",
    ("14", "transposed_convolution", "F.fold"): """
def transposed_convolution(image, kernel, stride):
    (h, w), (rows, columns) = image.shape[-2:], kernel.shape[-2:]
    stamps = torch.einsum("bcn,cdij->bdijn", image.flatten(2), kernel).flatten(1, 3)
    size = (h - 1) * stride + rows, (w - 1) * stride + columns
    return F.fold(stamps, size, (rows, columns), stride=stride)
""",
    ("14", "conv_block", "modules for the ReLU, unsqueeze for the condition"): """
class ConvBlock(nn.Module):
    def __init__(self, in_channels, out_channels, condition_dim=0):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.norm1 = nn.GroupNorm(num_groups=8, num_channels=out_channels)
        self.norm2 = nn.GroupNorm(num_groups=8, num_channels=out_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, kernel_size=3, padding="same", bias=False)
        self.conv2 = nn.Conv2d(out_channels, out_channels, kernel_size=3, padding="same", bias=False)
        self.condition = nn.Linear(condition_dim, out_channels) if condition_dim else None

    def forward(self, x, condition=None):
        h = self.norm1(self.conv1(x))
        if condition is not None and self.condition is not None:
            h += self.condition(condition).unsqueeze(-1).unsqueeze(-1)
        return self.relu(self.norm2(self.conv2(self.relu(h))))
""",
    ("14", "fcn", "recursion"): """
class FCN(nn.Module):
    def __init__(self, in_channels, num_classes, widths):
        super().__init__()
        self.blocks = nn.ModuleList([ConvBlock(([in_channels] + widths)[i], w) for i, w in enumerate(widths)])
        self.scores = nn.ModuleList([nn.Conv2d(w, num_classes, 1) for w in widths])

    def from_level(self, x, i):
        x = self.blocks[i](x)
        own = self.scores[i](x)
        if i == len(self.blocks) - 1:
            return own
        return own + nn.Upsample(scale_factor=2, mode="bilinear")(self.from_level(F.max_pool2d(x, 2), i + 1))

    def forward(self, images):
        return self.from_level(images, 0)
""",
    ("14", "unet", "recursion"): """
class UNet(nn.Module):
    def __init__(self, in_channels, out_channels, widths, condition_dim=0):
        super().__init__()
        pairs = [(widths[i + 1], widths[i]) for i in range(len(widths) - 1)][::-1]
        self.down = nn.ModuleList(ConvBlock(a, b, condition_dim) for a, b in zip([in_channels] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.merge = nn.ModuleList(ConvBlock(b + b, b, condition_dim) for a, b in pairs)
        self.head = nn.Conv2d(widths[0], out_channels, 1)

    def level(self, x, condition, i):
        skip = self.down[i](x, condition)
        if i + 1 == len(self.down):
            return skip
        lower = self.level(F.max_pool2d(skip, 2), condition, i + 1)
        back = len(self.up) - 1 - i
        return self.merge[back](torch.cat([skip, self.up[back](lower)], dim=1), condition)

    def forward(self, images, condition=None):
        return self.head(self.level(images, condition, 0))
""",
    ("14", "augment", "indices for the whole batch"): """
def my_augment(images, labels, flip, shift, ignore):
    B, C, H, W = images.shape
    images = torch.where(flip[:, None, None, None], images.flip(3), images)
    labels = torch.where(flip[:, None, None], labels.flip(2), labels)
    rows, columns = torch.arange(H) - shift[:, :1], torch.arange(W) - shift[:, 1:]
    inside = ((rows >= 0) & (rows < H))[:, :, None] & ((columns >= 0) & (columns < W))[:, None]
    b, i, j = torch.arange(B)[:, None, None], rows.clamp(0, H - 1)[:, :, None], columns.clamp(0, W - 1)[:, None]
    moved = images.movedim(1, -1)[b, i, j].movedim(-1, 1) * inside[:, None]
    return moved, labels[b, i, j].masked_fill(~inside, ignore)
""",
    ("14", "segmentation_loss", "nn.CrossEntropyLoss and einsum"): """
def my_segmentation_loss(logits, labels, ignore):
    m = (labels != ignore).float()
    hot = torch.stack([(labels == k).float() for k in range(logits.shape[1])], dim=1)
    p = torch.softmax(logits, 1)
    both = torch.einsum("bkhw,bkhw->k", p, hot)
    area = torch.einsum("bkhw,bhw->k", p, m) + hot.sum((0, 2, 3))
    dice = 1 - torch.mean((2 * both + 1) / (area + 1))
    return nn.CrossEntropyLoss(ignore_index=ignore)(logits, labels) + dice
""",
    ("14", "add_noise", "image by image"): """
def my_add_noise(images, noise, t, alpha_bars):
    rows = []
    for x, e, step in zip(images, noise, t):
        left = alpha_bars[step].item()
        rows.append(math.sqrt(left) * x + math.sqrt(1 - left) * e)
    return torch.stack(rows)
""",
    ("14", "denoise_step", "by the estimate of the clean image, eq. (7)"): """
def my_denoise_step(noisy, predicted, fresh, t, betas):
    alphas = 1 - betas
    bar = torch.cat([torch.ones(1), torch.cumprod(alphas, 0)])
    now, before = bar[t + 1], bar[t]
    clean = (noisy - (1 - now).sqrt() * predicted) / now.sqrt()
    mean = before.sqrt() * betas[t] * clean + alphas[t].sqrt() * (1 - before) * noisy
    return mean / (1 - now) + torch.sqrt((1 - before) / (1 - now) * betas[t]) * fresh
""",
    ("15", "bucket", "as in the released code"): """
def my_bucket(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
    relative_buckets = 0
    if bidirectional:
        num_buckets //= 2
        relative_buckets += (relative_position > 0).to(torch.long) * num_buckets
        relative_position = torch.abs(relative_position)
    else:
        relative_position = -torch.min(relative_position, torch.zeros_like(relative_position))
    max_exact = num_buckets // 2
    is_small = relative_position < max_exact
    if_large = max_exact + (torch.log(relative_position.float() / max_exact) / math.log(max_distance / max_exact)
                            * (num_buckets - max_exact)).to(torch.long)
    if_large = torch.min(if_large, torch.full_like(if_large, num_buckets - 1))
    relative_buckets += torch.where(is_small, relative_position, if_large)
    return relative_buckets
""",
    ("15", "t5_attention", "fused attention with one float mask"): """
class T5Attention(nn.Module):
    def __init__(self, dim, num_heads, head_dim):
        super().__init__()
        self.h, self.d = num_heads, head_dim
        for name in ("q_proj", "k_proj", "v_proj"):
            setattr(self, name, nn.Linear(dim, num_heads * head_dim, bias=False))
        self.out_proj = nn.Linear(num_heads * head_dim, dim, bias=False)

    def forward(self, x, context=None, mask=None, bias=None):
        c = x if context is None else context
        q, k, v = (p(y).view(len(y), -1, self.h, self.d).transpose(1, 2)
                   for p, y in ((self.q_proj, x), (self.k_proj, c), (self.v_proj, c)))
        added = torch.zeros(x.shape[0], self.h, x.shape[1], c.shape[1])
        added = added if bias is None else added + bias
        added = added if mask is None else added.masked_fill(mask.logical_not(), float("-inf"))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=added, scale=1.0)
        return self.out_proj(y.transpose(1, 2).reshape(*x.shape[:2], -1))
""",
    ("15", "t5_block", "the norm by hand, sums one by one"): """
class T5Block(nn.Module):
    def __init__(self, dim, num_heads, head_dim, mlp_dim, decoder=False):
        super().__init__()
        self.decoder = decoder
        self.attn, self.attn_norm = T5Attention(dim, num_heads, head_dim), nn.RMSNorm(dim, eps=1e-6)
        if self.decoder:
            self.cross_attn, self.cross_norm = T5Attention(dim, num_heads, head_dim), nn.RMSNorm(dim, eps=1e-6)
        self.up_proj, self.down_proj = nn.Linear(dim, mlp_dim, bias=False), nn.Linear(mlp_dim, dim, bias=False)
        self.ffn_norm = nn.RMSNorm(dim, eps=1e-6)

    def forward(self, x, mask=None, bias=None, context=None, context_mask=None):
        norm = lambda part, h: h * (h.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * part.weight
        h = norm(self.attn_norm, x)
        x = torch.add(x, self.attn(h, h, mask, bias))
        if self.decoder:
            x = x + self.cross_attn(norm(self.cross_norm, x), context, context_mask)
        return x + self.down_proj(self.up_proj(norm(self.ffn_norm, x)).clamp(min=0))
""",
    ("15", "t5", "no head module, the product with the table"): """
class T5(nn.Module):
    def __init__(self, vocab_size, dim, depth, num_heads, head_dim, mlp_dim, num_buckets=32, max_distance=128):
        super().__init__()
        self.dim = dim
        self.token_embed = nn.Embedding(vocab_size, dim)
        self.encoder_norm, self.decoder_norm = nn.RMSNorm(dim, eps=1e-6), nn.RMSNorm(dim, eps=1e-6)
        self.encoder, self.decoder = nn.ModuleList(), nn.ModuleList()
        for _ in range(depth):
            self.encoder.append(T5Block(dim, num_heads, head_dim, mlp_dim))
            self.decoder.append(T5Block(dim, num_heads, head_dim, mlp_dim, True))
        self.encoder_bias = RelativeBias(num_heads, num_buckets, max_distance, bidirectional=True)
        self.decoder_bias = RelativeBias(num_heads, num_buckets, max_distance, bidirectional=False)

    def forward(self, source, target, source_valid):
        x, real = self.token_embed(source), source_valid.view(len(source), 1, 1, -1)
        for block in self.encoder:
            x = block(x, mask=real, bias=self.encoder_bias(source.shape[1]))
        context, y = self.encoder_norm(x), F.embedding(target, self.token_embed.weight)
        steps = torch.arange(target.shape[1])
        for block in self.decoder:
            y = block(y, mask=steps <= steps[:, None], bias=self.decoder_bias(len(steps)), context=context,
                      context_mask=real)
        return self.decoder_norm(y) @ self.token_embed.weight.T / math.sqrt(self.dim)
""",
    ("15", "collapse", "unique_consecutive"): """
def my_collapse(path, blank=0):
    symbols = torch.unique_consecutive(torch.tensor(path))
    return symbols[symbols != blank]
""",
    ("15", "ctc_loss", "probabilities that are scaled at each frame, section 4.1"): """
def my_ctc_loss(log_probs, target, blank=0):
    probs = log_probs.double().exp()
    states = torch.tensor([blank] + [x for label in target for x in (int(label), blank)])
    allowed = torch.tensor([s > 1 and states[s] != blank and states[s] != states[s - 2] for s in range(len(states))])
    alpha = probs[0, states] * (torch.arange(len(states)) < 2)
    log_p = 0.0
    for t in range(1, len(probs)):
        total = alpha.sum()
        log_p, alpha = log_p + total.log(), alpha / total
        one = torch.cat([torch.zeros(1), alpha])[: len(states)]
        two = torch.cat([torch.zeros(2), alpha])[: len(states)]
        alpha = probs[t, states] * (alpha + one + two * allowed)
    return (-log_p - alpha[-2:].sum().log()).float()
""",
    ("15", "conv_module", "padding same, the mask before the gate, nn.GLU and nn.SiLU"): """
class ConvModule(nn.Module):
    def __init__(self, dim, kernel_size):
        super().__init__()
        self.in_proj = nn.Linear(dim, 2 * dim, bias=False)
        self.glu, self.act = nn.GLU(), nn.SiLU()
        self.depthwise = nn.Conv1d(dim, dim, kernel_size, padding="same", groups=dim, bias=False)
        self.norm = nn.BatchNorm1d(dim)
        self.out_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x, valid=None):
        x = x if valid is None else torch.where(valid[:, :, None], x, 0.0)
        x = self.glu(self.in_proj(x)).transpose(1, 2)
        return self.out_proj(self.act(self.norm(self.depthwise(x))).transpose(1, 2))
""",
    ("15", "conformer", "the mask by a maximum over four frames"): """
class Conformer(nn.Module):
    def __init__(self, frame_dim, num_classes, dim, depth, num_heads, mlp_dim, kernel_size):
        super().__init__()
        self.dim, self.head = dim, nn.Linear(dim, num_classes)
        self.blocks = nn.ModuleList()
        while len(self.blocks) < depth:
            self.blocks.append(ConformerBlock(dim, num_heads, mlp_dim, kernel_size))
        self.subsampling = Subsampling(frame_dim, dim, num_halvings=2, dropout=0.0)

    def shorter(self, valid):
        return F.max_pool1d(valid[:, None].float(), 4, ceil_mode=True)[:, 0] > 0

    def forward(self, frames, valid=None):
        x = self.subsampling(frames, valid)
        far = relative_sinusoids(x.size(1), self.dim)
        for block in self.blocks:
            x = block(x, far, valid=None if valid is None else self.shorter(valid))
        return F.linear(x, self.head.weight, self.head.bias)
""",
    ("16", "imitation_reward", "NumPy"): """
def my_imitation_reward(logits):
    return np.logaddexp(0, -logits.detach().numpy())
""",
    ("16", "dagger", "one state at a time"): """
def my_dagger(states, actions, visited, taken, expert):
    for state in visited:
        states = torch.vstack([states, state])
        actions = torch.hstack([actions, expert(state)])
    return [states, actions]
""",
    ("16", "to_go", "the whole return minus the past"): """
def my_to_go(rewards):
    return rewards.sum(1, keepdim=True) - rewards.cumsum(1) + rewards
""",
    ("16", "to_go", "lists"): """
def my_to_go(rewards):
    return [[sum(row[t:]) for t in range(len(row))] for row in rewards.tolist()]
""",
    ("16", "interleave", "concatenated features, then a view"): """
def my_interleave(returns, states, actions):
    B, K, D = states.shape
    return torch.cat([returns, states, actions], dim=-1).view(B, 3 * K, D)
""",
    ("16", "clip_loss", "by hand"): """
def my_clip_loss(images, texts, log_scale):
    images = images / images.norm(dim=1, keepdim=True)
    texts = texts / texts.pow(2).sum(1, keepdim=True).sqrt()
    z = torch.einsum("id,jd->ij", images, texts) * torch.exp(log_scale)
    right = z.diagonal()
    return (z.logsumexp(0) + z.logsumexp(1) - 2 * right).mean() / 2
""",
    ("16", "media_mask", "one-hot, without the column of no image"): """
def my_media_mask(tokens, image_token):
    return F.one_hot((tokens == image_token).int().cumsum(1))[..., 1:].bool()
""",
    ("16", "decision_transformer", "strides, and indices of the states"): """
class DecisionTransformer(nn.Module):
    def __init__(self, state_dim, num_actions, max_steps, dim, depth, num_heads):
        super().__init__()
        self.head, self.norm, self.embed_norm = nn.Linear(dim, num_actions), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.time_embed = nn.Embedding(max_steps, dim)
        self.return_embed, self.state_embed = nn.Linear(1, dim), nn.Linear(state_dim, dim)
        self.action_embed = nn.Linear(num_actions, dim)
        self.blocks = nn.Sequential(*[ReLUBlock(dim, num_heads) for _ in range(depth)])

    def forward(self, to_go, states, actions, times):
        (B, K), D = to_go.shape, self.time_embed.embedding_dim
        x = torch.zeros(B, 3 * K, D)
        x[:, 0::3], x[:, 1::3] = self.return_embed(to_go.unsqueeze(-1)), self.state_embed(states)
        x[:, 2::3] = self.action_embed(actions)
        x = self.blocks(self.embed_norm(x + self.time_embed(times.repeat_interleave(3, dim=1))))
        return self.head(self.norm(x[:, torch.arange(K) * 3 + 1]))
""",
    ("16", "gated_cross_attention", "products and sums at once"): """
class GatedCrossAttention(nn.Module):
    def __init__(self, dim, media_dim, num_heads):
        super().__init__()
        self.attn = MultiHeadAttention(dim, num_heads, context_dim=media_dim, bias=False)
        self.ffn = FeedForward(dim, 4 * dim, activation="gelu", bias=False)
        for i in (1, 2):
            setattr(self, f"norm{i}", nn.LayerNorm(dim))
        self.alpha_attn, self.alpha_ffn = (nn.Parameter(torch.tensor(0.0)) for _ in range(2))

    def forward(self, x, media, mask=None):
        mask = None if mask is None else mask.unsqueeze(1)
        x = torch.addcmul(x, torch.tanh(self.alpha_attn), self.attn(self.norm1(x), media, mask=mask))
        return torch.addcmul(x, torch.tanh(self.alpha_ffn), self.ffn(self.norm2(x)))
""",
    ("16", "resampler", "latents repeated"): """
class Resampler(nn.Module):
    def __init__(self, dim, num_latents, num_heads, head_dim):
        super().__init__()
        self.latents = nn.Parameter(torch.empty(num_latents, dim).normal_(std=0.02))
        self.norm1, self.norm2, self.norm, self.norm_features = (nn.LayerNorm(dim) for _ in range(4))
        self.attn = MultiHeadAttention(dim, num_heads, head_dim=head_dim, bias=False)
        self.ffn = FeedForward(dim, 4 * dim, activation="gelu", bias=False)

    def forward(self, features):
        z = self.latents.unsqueeze(0).repeat(features.shape[0], 1, 1)
        q = self.norm1(z)
        z = torch.add(z, self.attn(q, torch.cat((self.norm_features(features), q), 1)))
        return self.norm(torch.add(z, self.ffn(self.norm2(z))))
""",
    ("16", "flamingo", "image by image, parameters frozen in a loop"): """
class Flamingo(nn.Module):
    def __init__(self, vocab_size, context_length, dim, depth, num_heads, vision_dim, num_latents):
        super().__init__()
        self.language = MyGPT(vocab_size, context_length, dim, depth, num_heads)
        for p in self.language.parameters():
            p.requires_grad = False
        self.resampler = Resampler(vision_dim, num_latents, num_heads, dim // num_heads)
        self.gated = nn.ModuleList([GatedCrossAttention(dim, vision_dim, num_heads) for _ in range(depth)])

    def forward(self, tokens, images, seen=None):
        media = torch.cat([self.resampler(images[:, m]) for m in range(images.shape[1])], dim=1)
        R = media.shape[1] // images.shape[1]
        mask = None if seen is None else seen.unsqueeze(-1).expand(-1, -1, -1, R).flatten(2)
        x = self.language.token_embed(tokens) + self.language.pos_embed.weight[: tokens.shape[1]]
        for gated, block in zip(self.gated, self.language.blocks):
            x = block(gated(x, media, mask))
        return F.linear(self.language.norm(x), self.language.token_embed.weight)
""",
    ("17", "linear_attention", "cumulative sums"): """
def phi(x):
    return x.clamp(min=0) + x.clamp(max=0).exp()

def my_linear_attention(q, k, v):
    q, k = phi(q), phi(k)
    s = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(dim=-3)
    z = k.cumsum(dim=-2)
    return torch.einsum("bhtk,bhtkv->bhtv", q, s) / (q * z).sum(-1, keepdim=True)
""",
    ("17", "linear_step", "axes and a dot product"): """
def my_linear_step(q, k, v, s, z):
    phi = lambda x: x.clamp(min=0) + x.clamp(max=0).exp()
    s_new = s + phi(k)[:, None] * v[None, :]
    z_new = z + phi(k)
    return [phi(q).matmul(s_new) / torch.dot(phi(q), z_new), s_new, z_new]
""",
    ("17", "local_mask", "a list of lists"): """
def my_local_mask(length, window):
    return [[0 <= i - j <= window for j in range(length)] for i in range(length)]
""",
    ("17", "online_softmax", "the first block begins the sums"): """
def my_online_softmax(q, keys, values):
    scale = q.shape[-1] ** -0.5
    s = (keys[0] @ q) * scale
    m = s.max()
    e = torch.exp(s - m)
    l, o = e.sum(), e @ values[0]
    for k, v in zip(keys[1:], values[1:]):
        s = (k @ q) * scale
        m_new = max(m, s.max())
        e = torch.exp(s - m_new)
        l = l * torch.exp(m - m_new) + e.sum()
        o = o * torch.exp(m - m_new) + e @ v
        m = m_new
    return o / l
""",
    ("17", "online_softmax", "logarithms of the normalisers"): """
def my_online_softmax(q, keys, values):
    out, total = torch.zeros(values[0].shape[1]), torch.tensor(-math.inf)
    for i in range(len(keys)):
        s = keys[i].mv(q) / math.sqrt(len(q))
        block = torch.logsumexp(s, 0)
        new = torch.logaddexp(total, block)
        out = (total - new).exp() * out + (block - new).exp() * (s.softmax(0) @ values[i])
        total = new
    return out
""",
    ("17", "ssm", "a convolution by Fourier transforms"): """
def my_ssm(a, b, c, x):
    T = x.shape[1]
    kernel = (c * b * a ** torch.arange(T)[:, None]).sum(dim=1)
    return torch.fft.irfft(torch.fft.rfft(x, 2 * T) * torch.fft.rfft(kernel, 2 * T), 2 * T)[:, :T]
""",
    ("17", "route", "probabilities of all, divided by their sum"): """
def my_route(logits, k):
    p = F.softmax(logits, dim=-1)
    order = logits.argsort(dim=-1, descending=True)[:, :k]
    mask = F.one_hot(order, logits.shape[-1]).sum(dim=1)
    p = p * mask
    return p if k == 1 else p / p.sum(dim=-1, keepdim=True)
""",
    ("17", "balance", "one-hot vectors"): """
def my_balance(logits, k):
    N, E = logits.shape
    hot = F.one_hot(logits.topk(k).indices, E).float().sum(dim=1)
    return E * torch.dot(hot.mean(0) / k, F.softmax(logits, 1).mean(0))
""",
    ("17", "free_energy", "logaddexp and einsum"): """
def my_free_energy(v, W, b, c):
    x = torch.einsum("bv,hv->bh", v, W) + c
    return -torch.logaddexp(x, torch.zeros_like(x)).sum(1) - (v * b).sum(1)
""",
    ("17", "gibbs", "truth values"): """
def my_gibbs(v, W, b, c, noise_h, noise_v):
    h = noise_h <= torch.sigmoid(torch.einsum("bi,ji->bj", v, W) + c)
    return h, noise_v <= torch.sigmoid(torch.einsum("bj,ji->bi", h.float(), W) + b)
""",
    ("17", "cd_step", "bernoulli, hidden samples in both phases"): """
def my_cd_step(v, W, b, c, k, generator):
    prob = lambda v: torch.sigmoid(F.linear(v, W, c))
    h0 = torch.bernoulli(prob(v), generator=generator)
    h = h0
    for _ in range(k):
        vk = torch.bernoulli(torch.sigmoid(h @ W + b), generator=generator)
        h = torch.bernoulli(prob(vk), generator=generator)
    B = v.shape[0]
    dW = torch.einsum("bh,bv->hv", h0, v) / B - torch.einsum("bh,bv->hv", h, vk) / B
    return dW, v.mean(0) - vk.mean(0), h0.mean(0) - h.mean(0)
""",
    ("17", "RBM", "everything by hand, without gradients in the dream"): """
class RBM(nn.Module):
    def __init__(self, num_visible, num_hidden):
        super().__init__()
        self.W = nn.Parameter(torch.empty(num_hidden, num_visible).normal_(0, 0.01))
        self.c = nn.Parameter(torch.zeros(num_hidden))
        self.b = nn.Parameter(torch.zeros(num_visible))

    def forward(self, v):
        x = F.linear(v, self.W, self.c)
        return -torch.mv(v, self.b) - torch.log1p(x.exp()).sum(1)

    free_energy = forward

    def hidden(self, v):
        return F.linear(v, self.W, self.c).sigmoid()

    def visible(self, h):
        return F.linear(h, self.W.T, self.b).sigmoid()

    @torch.no_grad()
    def dream(self, v, steps, generator):
        for step in range(steps):
            h = torch.bernoulli(self.hidden(v), generator=generator)
            p = self.visible(h)
            if step < steps - 1:
                v = torch.bernoulli(p, generator=generator)
        return p
""",
}


@pytest.mark.parametrize(("lesson", "task", "style"), RIGHT)
def test_a_right_answer_in_another_style_passes(lesson, task, style):
    assert told(lesson, task, RIGHT[lesson, task, style]) == []


ONE_LINE = "def answer({}):\n    return {}\n"
READY_MADE = [  # what a task asks for, and the function or class that does it
    ("14", "transposed_convolution", "image, kernel, stride", "F.conv_transpose2d(image, kernel, stride=stride)"),
    ("14", "transposed_convolution", "image, kernel, stride", "nn.ConvTranspose2d(1, 1, 2, stride)(image)"),
    (
        "14",
        "transposed_convolution",
        "image, kernel, stride",
        "nn.grad.conv2d_input(image.shape, kernel, image, stride)",
    ),
    ("15", "ctc_loss", "log_probs, target, blank=0", "F.ctc_loss(log_probs[:, None], target[None], [9], [3])"),
]


@pytest.mark.parametrize(("lesson", "task", "asks", "call"), READY_MADE)
def test_a_ready_made_function_is_no_answer(lesson, task, asks, call):
    assert told(lesson, task, ONE_LINE.format(asks, call)) == [FORBIDDEN]


LOOP = """
def unpool(values, positions, height, width):
    image = torch.zeros(*values.shape[:2], height, width)
    for b in range(len(values)):
        for c in range(values.shape[1]):
            for value, q in zip(values[b, c].flatten(), positions[b, c].flatten().tolist()):
                image[b, c, q {row}, q {column}] += value
    return image
"""


@pytest.mark.parametrize(
    ("row", "column", "name"),
    [("// height", "% height", "rows counted by the height"), ("% width", "// width", "row and column exchanged")],
)
def test_an_index_outside_of_the_image_is_told_its_name_where_all_sizes_are_one(row, column, name):
    assert told("14", "unpool", LOOP.format(row=row, column=column)) == [name]


FREEZE = "    copied.requires_grad_(not frozen)\n"
HEAD = "    copied.head = nn.Linear(copied.head.in_features, num_classes)\n"
SLIPS = [  # a part of the shown solution, what it becomes, and what is said of it (test_every_lesson.py tries none)
    ("01", "new_head", FREEZE + HEAD, HEAD + FREEZE, "head frozen"),
    ("04", "lstm", "outputs.append(h)", "outputs.append(h.detach())", CUT_OFF),
    ("15", "ctc_loss", "= log_probs[0][states]", "= log_probs.detach()[0][states]", GRADIENT_DIFFERS),
    ("15", "t5_attention", "bias=False", "bias=True", OTHER_PARAMETERS),
    ("17", "RBM", "return p\n", "return torch.bernoulli(p)\n", "dream returns a sample"),
    ("17", "RBM", "def visible", "def up", "method missing"),
]


@pytest.mark.parametrize(("lesson", "task", "old", "new", "name"), SLIPS)
def test_a_slip_in_the_solution_is_told_its_name(lesson, task, old, new, name):
    solution = tasks(lesson)[task].solution
    assert old in solution
    assert told(lesson, task, solution.replace(old, new)) == [name]
