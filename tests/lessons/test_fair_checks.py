"""A right answer in another style passes its check, and a wrong one that used to pass, or was misnamed, is named."""

import importlib
import linecache
import math
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

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
    ("12", "in_windows", "unfold and a loop on the way back"): """
def my_in_windows(x, size, work):
    B, H, W, C = x.shape
    cut = x.unfold(1, size, size).unfold(2, size, size).permute(0, 1, 2, 4, 5, 3)
    done = work(cut.reshape(-1, size * size, C))
    out, n = torch.empty_like(x), 0
    rows = []
    for b in range(B):
        rows.append(torch.cat([torch.cat([done[n + i * (W // size) + j].view(size, size, C)
                                          for j in range(W // size)], 1) for i in range(H // size)], 0))
        n += (H // size) * (W // size)
    return torch.stack(rows)
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
    ("12", "shift_mask", "two masks, of rows and of columns"): """
def my_shift_mask(height, width, size, shift):
    masks = []
    for i in range(0, height, size):
        for j in range(0, width, size):
            row = torch.arange(i, i + size).repeat_interleave(size) >= height - shift
            column = torch.arange(j, j + size).repeat(size) >= width - shift
            masks.append((row[:, None] == row) & (column[:, None] == column))
    return torch.stack(masks)
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
    ("12", "shift_mask", "the number of windows that were crossed, as in the released code"): """
def shift_mask(height, width, size, shift):
    number, count = torch.zeros(height, width), 0
    ends = lambda length: (slice(0, length - shift), slice(length - shift, length))
    for rows in ends(height):
        for columns in ends(width):
            number[rows, columns] = count
            count += 1
    number = number.reshape(height // size, size, width // size, size).transpose(1, 2).reshape(-1, size * size)
    return (number[:, None] - number[:, :, None]) == 0
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
    ("11", "patchify", "a loop over the patches"): """
def patchify(image, p):
    rows = []
    for top in range(0, image.shape[2], p):
        for left in range(0, image.shape[3], p):
            patch = image[:, :, top : top + p, left : left + p]
            rows.append(patch.movedim(1, -1).flatten(1))
    return torch.stack(rows, dim=1)
""",
    ("11", "kernel", "an einsum and a view"): """
def kernel(E, p):
    return torch.einsum("ijcd->dcij", E.view(p, p, -1, E.shape[1]))
""",
    ("11", "kernel", "a loop over the pixels"): """
def kernel(E, p):
    C = len(E) // p**2
    by_pixel = [E[n * C : (n + 1) * C].T for n in range(p * p)]
    return torch.stack(by_pixel, dim=2).reshape(-1, C, p, p)
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
    ("11", "mixup", "image by image"): """
def mixup(images, targets, partner, weight):
    x, y = [], []
    for i in range(len(images)):
        x.append(weight[i] * images[i] + (1 - weight[i]) * images[partner[i]])
        y.append(weight[i] * targets[i] + (1 - weight[i]) * targets[partner[i]])
    return torch.stack(x), torch.stack(y)
""",
    ("11", "attention_distance", "torch.cdist and a mean over pairs"): """
def attention_distance(weights, height, width, patch_size):
    where = torch.cartesian_prod(torch.arange(height), torch.arange(width)).to(weights)
    distance = patch_size * torch.cdist(where, where, compute_mode="donot_use_mm_for_euclid_dist")
    among = F.normalize(weights[..., 1:, 1:], p=1, dim=-1)
    return torch.einsum("...qk,qk->...", among, distance) / (height * width)
""",
    ("11", "effective", "entr"): """
def effective(weights):
    return torch.special.entr(weights).sum(-1).exp().mean(-1)
""",
    ("11", "effective", "torch.distributions"): """
def effective(weights):
    return torch.distributions.Categorical(probs=weights).entropy().exp().mean(-1)
""",
    ("11", "effective", "a small number inside of the logarithm"): """
def effective(weights):
    H = -(weights * torch.log(weights.clamp(min=1e-20))).sum(dim=-1)
    return torch.exp(H).mean(dim=-1)
""",
    ("11", "effective", "a product of powers"): """
def effective(weights):
    return (weights ** -weights).prod(dim=-1).mean(dim=-1)
""",
    ("11", "fit_positions", "unflatten and movedim"): """
def fit_positions(table, grid, new_grid):
    first, rest = table.split([1, table.shape[1] - 1], dim=1)
    image = rest.mT.unflatten(2, grid)
    new = F.interpolate(image, new_grid, mode="bicubic", align_corners=False)
    return torch.cat((first, new.flatten(2).mT), 1)
""",
    ("11", "patchify", "F.unfold"): """
def patchify(image, p):
    B, C = image.shape[:2]
    return F.unfold(image, p, stride=p).reshape(B, C, p * p, -1).permute(0, 3, 2, 1).flatten(2)
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
    ("02", "nt_xent", "logsumexp and a loop over views"): """
def my_nt_xent(z, temperature):
    n, total = len(z), 0.0
    for i in range(n):
        s = F.cosine_similarity(z[i : i + 1], z, dim=1) / temperature
        others = [k for k in range(n) if k != i]
        total = total + torch.logsumexp(s[others], 0) - s[(i + n // 2) % n]
    return total / n
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
    ("10", "sft_loss", "cross_entropy that ignores what is not scored"): """
def my_sft_loss(logits, tokens, answer):
    labels = tokens.masked_fill(~answer, -100)[:, 1:]
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), labels, ignore_index=-100)
""",
    ("10", "sft_loss", "a loop over texts"): """
def my_sft_loss(logits, tokens, answer):
    total, count = 0.0, 0
    for row in range(len(tokens)):
        for t in range(1, tokens.shape[1]):
            if answer[row, t]:
                total = total - torch.log(torch.softmax(logits[row, t - 1], dim=0)[tokens[row, t]])
                count += 1
    return total / count
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
    ("06", "residual", "what the sublayer reads, chosen first"): """
def residual(x, norm, sublayer, pre_norm):
    after = x + sublayer(norm(x) if pre_norm else x)
    return after if pre_norm else norm(after)
""",
    ("06", "schedule", "two pieces"): """
def schedule(step, peak, warmup):
    return peak * step / warmup if step < warmup else peak * math.sqrt(warmup / step)
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
    ("04", "lstm", "one product of both inputs, a list as state"): """
class LSTM(nn.Module):
    def __init__(self, input_dim, hidden_dim):
        super().__init__()
        self.ih, self.hh = nn.Linear(input_dim, 4 * hidden_dim), nn.Linear(hidden_dim, 4 * hidden_dim)

    def forward(self, x, state=None):
        W = torch.cat([self.ih.weight, self.hh.weight], dim=1)
        h, c = state or [torch.zeros(len(x), self.hh.in_features)] * 2
        outputs = []
        for x_t in x.transpose(0, 1):
            h, c = lstm_cell(F.linear(torch.cat([x_t, h], dim=-1), W, self.ih.bias + self.hh.bias), c)
            outputs += [h]
        return torch.stack(outputs).transpose(0, 1), [h, c]
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
    ("06", "beam_step", "loops and a sorted list"): """
def beam_step(totals, lengths, ended, log_probs, penalty):
    N, V = log_probs.shape
    found = []
    for beam in range(N):
        for word in range(1 if ended[beam] else V):
            total = totals[beam] if ended[beam] else totals[beam] + log_probs[beam, word]
            found.append((float(total / (lengths[beam] + ~ended[beam]) ** penalty), beam, word))
    found.sort(reverse=True)
    return torch.tensor([[beam, word] for _, beam, word in found[:N]])
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
    ("08", "attention", "einsum, a mask that is added"): """
class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        for name in ("q", "k", "v", "o"):
            setattr(self, name + "_proj", nn.Linear(dim, dim))
        self.num_heads = num_heads

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (p(x).reshape(B, T, self.num_heads, -1) for p in (self.q_proj, self.k_proj, self.v_proj))
        scores = torch.einsum("bihd,bjhd->bhij", q, k) * (D // self.num_heads) ** -0.5
        scores = scores + torch.full((T, T), -1e9).triu(1)
        out = torch.einsum("bhij,bjhd->bihd", torch.softmax(scores, -1), v)
        return self.o_proj(out.reshape(B, T, D))
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
    ("08", "gpt", "the head without a module"): """
class MyGPT(nn.Module):
    def __init__(self, vocab_size, context_length, dim, depth, num_heads):
        super().__init__()
        self.token_embed = nn.Embedding(vocab_size, dim)
        self.pos_embed = nn.Embedding(context_length, dim)
        self.blocks = nn.ModuleList([Block(dim, num_heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)

    def forward(self, tokens):
        x = self.token_embed(tokens) + self.pos_embed.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.token_embed.weight.T
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
    ("14", "transposed_convolution", "zeros between the pixels, and a turned kernel"): """
def transposed_convolution(image, kernel, stride):
    (B, C, h, w), (rows, columns) = image.shape, kernel.shape[-2:]
    wide = torch.zeros(B, C, (h - 1) * stride + 1, (w - 1) * stride + 1)
    wide[..., ::stride, ::stride] = image
    wide = F.pad(wide, (columns - 1, columns - 1, rows - 1, rows - 1))
    return F.conv2d(wide, kernel.flip(-2, -1).transpose(0, 1))
""",
    ("14", "transposed_convolution", "F.fold"): """
def transposed_convolution(image, kernel, stride):
    (h, w), (rows, columns) = image.shape[-2:], kernel.shape[-2:]
    stamps = torch.einsum("bcn,cdij->bdijn", image.flatten(2), kernel).flatten(1, 3)
    size = (h - 1) * stride + rows, (w - 1) * stride + columns
    return F.fold(stamps, size, (rows, columns), stride=stride)
""",
    ("16", "to_go", "NumPy: rewards are data"): """
def to_go(rewards):
    return torch.from_numpy(rewards.numpy()[:, ::-1].cumsum(1)[:, ::-1].copy())
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
    ("07", "hidden_loss", "logsumexp"): """
def hidden_loss(logits, tokens, chosen):
    right = logits.gather(-1, tokens[..., None]).squeeze(-1)
    return (logits.logsumexp(-1) - right)[chosen].mean()
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
    ("01", "conv_size", "places counted in a loop"): """
def conv_size(size, kernel, stride, padding):
    return len(range(0, size + 2 * padding - kernel + 1, stride))
""",
    ("06", "smoothed_loss", "the whole target distribution"): """
def smoothed_loss(logits, targets, smoothing, real):
    V = logits.shape[-1]
    wanted = (1 - smoothing) * F.one_hot(targets, V) + smoothing / V
    return -(wanted * logits.log_softmax(-1)).sum(-1)[real].mean()
""",
    ("14", "unpool", "rows and columns by hand"): """
def unpool(values, positions, height, width):
    image = torch.zeros(*values.shape[:2], height, width)
    for b in range(len(values)):
        for c in range(values.shape[1]):
            for value, q in zip(values[b, c].flatten(), positions[b, c].flatten().tolist()):
                image[b, c, q // width, q % width] += value
    return image
""",
    ("08", "cached_step", "new keys in front, under a mask that fits"): """
def cached_step(q, k, v, past_k, past_v):
    keys, values = torch.cat([k, past_k], dim=-2), torch.cat([v, past_v], dim=-2)
    new, past = q.shape[-2], past_k.shape[-2]
    seen = torch.cat([torch.ones(new, new).tril(), torch.ones(new, past)], dim=1).bool()
    return ((q @ keys.mT) / q.shape[-1] ** 0.5).masked_fill(~seen, -torch.inf).softmax(-1) @ values
""",
}


@pytest.mark.parametrize(("lesson", "task", "style"), RIGHT)
def test_a_right_answer_in_another_style_passes(lesson, task, style):
    assert told(lesson, task, RIGHT[lesson, task, style]) == []


WRONG = {
    ("12", "shift_mask", "judged by the distance"): """
def shift_mask(height, width, size, shift):
    rows = ((torch.arange(height) + shift) % height)[:, None].expand(height, width)
    columns = ((torch.arange(width) + shift) % width).expand(height, width)
    near = True
    for old in (rows, columns):
        old = old.reshape(height // size, size, width // size, size).transpose(1, 2).reshape(-1, size * size)
        near = near & ((old[:, :, None] - old[:, None]).abs() < size)
    return near
""",
    ("12", "in_windows", "work called several times"): """
def in_windows(x, size, work):
    out = torch.zeros_like(x)
    for i in range(0, x.shape[1], size):
        for j in range(0, x.shape[2], size):
            window = x[:, i : i + size, j : j + size]
            out[:, i : i + size, j : j + size] = work(window.flatten(1, 2)).view(window.shape)
    return out
""",
    ("11", "patchify", "channels not together"): """
def patchify(image, p):
    return F.unfold(image, p, stride=p).mT
""",
    ("01", "new_head", "head frozen"): """
def new_head(model, num_classes, frozen):
    new = copy.deepcopy(model)
    new.head = nn.Linear(new.head.in_features, num_classes)
    for parameter in new.parameters():
        parameter.requires_grad = not frozen
    return new
""",
    ("01", "conv_size", "kernel not subtracted"): """
def conv_size(size, kernel, stride, padding):
    return (size + 2 * padding) // stride
""",
    ("06", "smoothed_loss", "large logits overflow"): """
def smoothed_loss(logits, targets, smoothing, real):
    log_p = (logits.exp() / logits.exp().sum(-1, keepdim=True)).log()
    right = log_p.gather(-1, targets[..., None])[..., 0]
    return -((1 - smoothing) * right + smoothing * log_p.mean(-1))[real].mean()
""",
    ("07", "longest_match", "goes back to shorter sub-words"): """
def longest_match(word, vocabulary):
    def cut(done):
        for end in range(len(word), done, -1):
            piece = "##" * (done > 0) + word[done:end]
            if piece in vocabulary:
                rest = cut(end)
                if rest is not None:
                    return [piece, *rest]
        return [] if done == len(word) else None
    return cut(0) or ["[UNK]"]
""",
    ("07", "mean_pooling", "padding multiplied by zero"): """
def mean_pooling(features, valid):
    real = valid[:, :, None].float()
    return (features * real).sum(1) / real.sum(1).clamp(min=1)
""",
    ("08", "shifted_loss", "flattened before the shift"): """
def shifted_loss(logits, tokens):
    return F.cross_entropy(logits.flatten(0, 1)[:-1], tokens.flatten()[1:])
""",
    ("08", "shifted_loss", "bits instead of nats"): """
def shifted_loss(logits, tokens):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()) / math.log(2)
""",
    ("08", "cached_step", "mask after the softmax"): """
def cached_step(q, k, v, past_k, past_v):
    keys, values = torch.cat([past_k, k], dim=-2), torch.cat([past_v, v], dim=-2)
    seen = torch.ones(q.shape[-2], keys.shape[-2]).tril(past_k.shape[-2])
    return ((q @ keys.mT / q.shape[-1] ** 0.5).softmax(-1) * seen) @ values
""",
    ("08", "top_p", "all of equally likely tokens kept"): """
def top_p(logits, p):
    ordered, probs = logits.softmax(-1).sort(-1, descending=True).values, logits.softmax(-1)
    last = ordered.masked_fill(ordered.cumsum(-1) - ordered >= p, 2.0).amin(-1, keepdim=True)
    return logits.masked_fill(probs < last, -torch.inf)
""",
    ("14", "unpool", "rows counted by the height"): """
def unpool(values, positions, height, width):
    image = torch.zeros(*values.shape[:2], height, width)
    for b in range(len(values)):
        for c in range(values.shape[1]):
            for value, q in zip(values[b, c].flatten(), positions[b, c].flatten().tolist()):
                image[b, c, q // height, q % height] += value
    return image
""",
    ("14", "transposed_convolution", "kernel flipped or transposed"): """
def transposed_convolution(image, kernel, stride):
    (B, C, h, w), (rows, columns) = image.shape, kernel.shape[-2:]
    wide = torch.zeros(B, C, (h - 1) * stride + 1, (w - 1) * stride + 1)
    wide[..., ::stride, ::stride] = image
    return F.conv2d(F.pad(wide, (columns - 1, columns - 1, rows - 1, rows - 1)), kernel.transpose(0, 1))
""",
    ("14", "transposed_convolution", "a ready-made function"): """
def transposed_convolution(image, kernel, stride):
    return F.conv_transpose2d(image, kernel, stride=stride)
""",
    ("16", "to_go", "sum of the past"): """
def to_go(rewards):
    return torch.from_numpy(rewards.numpy().cumsum(1))
""",
}


@pytest.mark.parametrize(("lesson", "task", "name"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong_with_it(lesson, task, name):
    assert told(lesson, task, WRONG[lesson, task, name]) == [name]


SWAPPED = "return arrived * f, arrived * c_before * f * (1 - f)"
K3 = "((reference - log_probs).exp() - 1 + log_probs - reference)"
SWAPPED = "return total * f, total * c_before * f * (1 - f)"
CHANGED = [  # a part of the shown solution, what it becomes, and what is said of it
    ("04", "lstm_cell", "i, f, g, o =", "i, g, f, o =", "gates taken from the wrong columns"),
    ("04", "lstm_cell", "return h, c", "return c, h", "cell state and hidden state exchanged"),
    ("04", "forget_backward", "dh * o * ", "dh * ", "output gate left out"),
    ("04", "forget_backward", "return total * c_before * f * (1 - f), total * f", SWAPPED, "gradients exchanged"),
    ("04", "lstm", "outputs.append(h)", "outputs.append(h.detach())", "cut off from its inputs"),
    ("04", "lstm", "(h, c)\n", "(c, h)\n", "returned state exchanged"),
    ("04", "gru", "(1 - z) * n + z * h", "z * n + (1 - z) * h", "update gate the wrong way round"),
    ("04", "gru", "r * h_n", "h_n", "reset gate left out"),
    ("10", "token_rewards", "valid.sum(dim=1) - 1", "-1", "score in the last column"),
    ("10", "token_rewards", "+= scores", "+= beta * scores", "the score scaled, too"),
    ("10", "token_rewards", "(log_probs - reference)", "log_probs - reference", "beta on one logarithm only"),
    ("10", "token_rewards", "(log_probs - reference)", K3, "an estimate of the divergence"),
    (
        "10",
        "direct_loss",
        "beta * (chosen - reference_chosen)",
        "chosen - reference_chosen",
        "beta in the wrong factor",
    ),
    ("10", "direct_loss", "mean()", "sum()", "sum instead of mean"),
    (
        "10",
        "best_policy",
        "probabilities.log() + rewards",
        "(probabilities.log() + rewards)",
        "everything divided by beta",
    ),
    ("10", "best_policy", "probabilities.log()", "probabilities", "no logarithm of the reference"),
]


@pytest.mark.parametrize(("lesson", "task", "old", "new", "name"), CHANGED)
def test_a_slip_in_the_solution_is_told_its_name(lesson, task, old, new, name):
    solution = tasks(lesson)[task].solution
    assert old in solution
    assert told(lesson, task, solution.replace(old, new)) == [name]
