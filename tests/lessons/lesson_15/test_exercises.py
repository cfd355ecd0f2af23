"""The exercises of lesson 15 ask for what the library does, its solutions open the library's models, styles pass."""

import itertools
import linecache
import math
import re
from collections import defaultdict

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.classroom.opening import DoesNotOpen, compare, copy_weights
from course_lib.functional import ctc
from course_lib.functional.language import corrupt_spans
from course_lib.functional.positions import relative_buckets
from course_lib.layers.relative_attention import relative_sinusoids
from course_lib.lessons.lesson_15.models import MODELS, NAMES, opened, sizes_of_conformer
from course_lib.lessons.lesson_15.recipes import speech, text_to_text
from course_lib.lessons.lesson_15.tasks import TASKS, RelativeBias
from course_lib.models.conformer import ConformerBlock, ConformerConfig, ConvModule
from course_lib.models.t5 import T5, T5Config
from course_lib.tasks import Draw
from course_lib.tasks.findings import GRADIENT_DIFFERS, OTHER_PARAMETERS

KNOWN = {"math": math, "np": np, "torch": torch, "F": F, "nn": nn, "itertools": itertools, "defaultdict": defaultdict}
corrupt, bucket, prefix_mask, ctc_loss, beam = (
    TASKS[name].reference for name in ("corrupt", "bucket", "prefix_mask", "ctc_loss", "beam")
)


@pytest.fixture
def few_sentences(monkeypatch):
    """A tokenizer of few sentences, which is learned quickly."""
    monkeypatch.setattr(text_to_text, "PLAIN", 60)
    text_to_text.tokenizer.cache_clear()
    yield
    text_to_text.tokenizer.cache_clear()


def drawn(name):
    """The inputs of each case of a task."""
    return [case.inputs(Draw(seed)) for case in TASKS[name].cases for seed in (1, 2)]


# ------------------------------------------------------------------------------------- the library's, by hand


def test_corruption_is_the_librarys():
    for ids, spans, first_sentinel in drawn("corrupt"):
        dropped = torch.zeros(len(ids), dtype=torch.bool)
        for first, end in spans:
            dropped[first:end] = True
        wanted = corrupt_spans(torch.tensor(ids), dropped, first_sentinel=first_sentinel)
        assert [list(part) for part in corrupt(ids, spans, first_sentinel)] == [part.tolist() for part in wanted]


def test_buckets_are_the_librarys_also_where_rounding_decides():
    for given in drawn("bucket"):
        names = dict(zip(("bidirectional", "num_buckets", "max_distance"), given[1:], strict=False))
        assert torch.equal(bucket(*given), relative_buckets(given[0], **names))
    everything = torch.arange(-300, 301)
    for sizes in ((32, 128), (16, 32), (8, 16)):
        for both in (True, False):
            names = {"bidirectional": both, "num_buckets": sizes[0], "max_distance": sizes[1]}
            assert torch.equal(bucket(everything, **names), relative_buckets(everything, **names))
            assert torch.equal(bucket(everything.int(), **names).long(), relative_buckets(everything, **names))


def test_the_buckets_worked_out_in_the_lesson():
    distance = torch.tensor([0, -1, -7, -8, -16, -127, -500, 1, 16])
    assert bucket(distance).tolist() == [0, 1, 7, 8, 10, 15, 15, 17, 26]
    assert bucket(distance, bidirectional=False).tolist() == [0, 1, 7, 8, 16, 31, 31, 0, 0]


def test_the_prefix_is_bidirectional_and_the_target_causal():
    assert prefix_mask(2, 2).int().tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert torch.equal(prefix_mask(0, 4), torch.ones(4, 4).tril().bool())


@pytest.mark.parametrize("labels", [[], [1], [1, 2], [1, 1], [1, 2, 2, 1]])
def test_the_loss_is_pytorchs_in_value_and_gradient_and_the_librarys(labels):
    torch.manual_seed(len(labels))
    logits = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([9]), torch.tensor([len(labels)])
    target = torch.tensor(labels, dtype=torch.long)
    found = ctc_loss(logits.log_softmax(-1), target)
    wanted = F.ctc_loss(logits.log_softmax(-1)[:, None], target[None], *lengths, reduction="sum")
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(found[None], ctc.ctc_loss(logits.log_softmax(-1)[None], target[None], *lengths))
    mine, theirs = (torch.autograd.grad(loss, logits)[0] for loss in (found, wanted))
    torch.testing.assert_close(mine, theirs)


def test_the_loss_sums_over_all_paths():
    torch.manual_seed(0)
    log_probs = torch.randn(5, 3).log_softmax(-1)
    total = defaultdict(float)
    for path in itertools.product(range(3), repeat=5):
        p = sum(log_probs[t, symbol].item() for t, symbol in enumerate(path))
        total[tuple(TASKS["collapse"].reference(list(path)))] += math.exp(p)
    for labels, p in total.items():
        assert ctc_loss(log_probs, torch.tensor(labels, dtype=torch.long)).item() == pytest.approx(-math.log(p), 1e-4)
    assert sum(total.values()) == pytest.approx(1)
    assert ctc_loss(log_probs, torch.tensor([1, 1, 1, 1])) == math.inf


def test_prefix_beam_search_is_the_librarys():
    for log_probs, width, *blank in drawn("beam"):
        wanted = ctc.prefix_beam_search(log_probs, width=width, blank=blank[0] if blank else 0)
        found = beam(log_probs, width, *blank)
        assert [tuple(labels) for labels, _ in found] == [labels for labels, _ in wanted]
        assert [p for _, p in found] == pytest.approx([p for _, p in wanted], abs=1e-4)


def randomised(model):
    """The model with other numbers in its norms and biases, which would be identities."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight += 0.3 * torch.randn_like(weight) if weight.dim() == 1 or "bias" in name else 0
    return model


@pytest.mark.parametrize("training", [True, False])
def test_the_parts_of_the_conformer_are_the_librarys(training):
    torch.manual_seed(0)
    config = ConformerConfig(dim=8, num_heads=2, mlp_dim=12, kernel_size=5, dropout=0.0)
    valid, x = torch.arange(9) < torch.tensor([[9], [4], [6]]), torch.randn(3, 9, 8)
    pairs = (
        (TASKS["conv_module"].module(8, 5), ConvModule(8, 5), ()),
        (TASKS["conformer_block"].module(8, 2, 12, 5), ConformerBlock(config), (relative_sinusoids(9, 8),)),
    )
    for mine, ours, more in pairs:
        mine.load_state_dict(randomised(ours).state_dict())
        for mask in (None, valid):
            mine.train(training), ours.train(training)
            torch.testing.assert_close(mine(x, *more, mask), ours(x, *more, mask))


def test_the_given_bias_is_the_librarys():
    model = T5(T5Config(vocab_size=9, dim=8, num_heads=2, head_dim=4, mlp_dim=8, num_buckets=8, max_distance=16))
    for theirs, bidirectional in ((model.encoder_bias, True), (model.decoder_bias, False)):
        mine = RelativeBias(2, 8, 16, bidirectional)
        mine.table.weight.data.copy_(theirs.table)
        assert torch.equal(mine(11), theirs(11))


# ---------------------------------------------------------------------------------------------- models open


small_vocabulary = pytest.mark.usefixtures("few_sentences")


def of_t5():
    return opened(randomised(text_to_text.build(text_to_text.TextSettings(seed=1))).eval())


def of_conformer():
    return randomised(speech.build(speech.SpeechSettings(seed=1))).eval()


@small_vocabulary
@pytest.mark.parametrize(("name", "build"), [("t5", of_t5), ("conformer", of_conformer)])
def test_the_solution_opens_a_model_of_the_library(name, build):
    torch.manual_seed(0)
    ours, known = build(), MODELS[name]
    mine = TASKS[name].module(**known.sizes(ours)).eval()
    assert copy_weights(ours, mine, known.names) == sum(p.numel() for p in ours.parameters())
    compare(ours, mine, known.inputs(), known.names)
    with torch.no_grad():
        found, wanted = mine(*known.inputs()), ours(*known.inputs())
    assert (found - wanted).abs().max() < 1e-5 * wanted.abs().max()


@small_vocabulary
def test_a_t5_of_the_library_computes_the_same_in_the_learners_class():
    torch.manual_seed(0)
    ours = randomised(text_to_text.build(text_to_text.TextSettings(seed=1))).double().eval()
    mine = opened(ours).double()
    copy_weights(ours, mine, NAMES)
    source, target, valid = MODELS["t5"].inputs()
    with torch.no_grad():
        found, wanted = mine(source, target, valid), ours(source, target, source_valid=valid)
    assert not valid.all() and (found - wanted).abs().max() < 1e-10 * wanted.abs().max()
    assert mine.head.weight is mine.token_embed.weight


@pytest.mark.parametrize("depth", [2, (2, 2)])
def test_a_t5_in_the_released_sizes_opens(depth):
    ours = T5(T5Config(vocab_size=40, dim=16, depth=depth, num_heads=3, head_dim=8, mlp_dim=24)).eval()
    mine = opened(ours)
    tokens, valid = torch.randint(1, 40, (2, 3, 150)), torch.ones(3, 150, dtype=torch.bool)
    torch.testing.assert_close(mine(*tokens, valid), ours(*tokens), rtol=1e-4, atol=1e-4)


@small_vocabulary
@pytest.mark.parametrize(
    ("name", "build", "change", "said"),
    [
        (
            "t5",
            of_t5,
            ("x = block(x, causal, bias,", "x = block(x, causal, None,"),
            "`decoder.0.attn.out_proj` differs",
        ),
        ("t5", of_t5, ("self.encoder_bias(x.shape[1])", "self.decoder_bias(x.shape[1])"), "differs"),
        ("conformer", of_conformer, ("block(x, distances, valid)", "block(x, distances)"), "`blocks.0"),
    ],
)
def test_a_model_that_does_not_open_is_told_where_it_differs(name, build, change, said):
    torch.manual_seed(0)
    ours, known = build(), MODELS[name]
    mine = TASKS[name].reference.changed((change,))(**known.sizes(ours)).eval()
    copy_weights(ours, mine, known.names)
    with pytest.raises(DoesNotOpen, match=re.escape(said)):
        compare(ours, mine, known.inputs(), known.names)


@small_vocabulary
def test_the_learners_names_are_the_librarys_in_both_stacks():
    ours = text_to_text.build(text_to_text.SETTINGS)
    mine = TASKS["t5"].module(**opened(ours).sizes)
    assert {name: NAMES[name] for name in NAMES if name.startswith("encoder.0")} == {
        "encoder.0.attn_norm": "encoder.0.norm1",
        "encoder.0.ffn_norm": "encoder.0.norm2",
        "encoder.0.attn.out_proj": "encoder.0.attn.o_proj",
        "encoder.0.up_proj": "encoder.0.ffn.up_proj",
        "encoder.0.down_proj": "encoder.0.ffn.down_proj",
    }
    assert len([*mine.parameters()]) == len([*ours.parameters()])


def test_a_fresh_conformer_learns_to_say_a_melody_with_the_learners_loss():
    torch.manual_seed(0)
    model = TASKS["conformer"].module(24, 9, 16, 1, 2, 16, 3)
    melodies = speech.Tones(noise=0.1, num_tones=(2, 2)).batch(2, 0)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=1e-2), []
    for _ in range(25):
        log_probs = model(melodies.frames, melodies.valid).log_softmax(dim=-1)
        lengths = model.shorter(melodies.valid).sum(dim=1)
        rows = zip(log_probs, lengths, melodies.labels, melodies.num_labels, strict=True)
        loss = sum(ctc_loss(row[:n], labels[:count]) for row, n, labels, count in rows) / 4
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_the_learners_conformer_is_read_off_as_the_librarys():
    ours = speech.build(speech.SpeechSettings()).eval()
    mine = TASKS["conformer"].module(**sizes_of_conformer(ours)).eval()
    copy_weights(ours, mine, {})
    melodies = speech.TONES.batch(3, 1)
    with torch.no_grad():
        log_probs = mine(melodies.frames, melodies.valid).log_softmax(dim=-1)
    labels = ctc.greedy_decode(log_probs, mine.shorter(melodies.valid).sum(dim=1))
    assert labels == speech.labels_of(ours, melodies)


# ------------------------------------------------------------------------------------------------- answers


def told(task, text):
    """What a check says of an answer, given as text."""
    file, names = f"<{task} {hash(text)}>", KNOWN | dict(getattr(TASKS[task].reference, "names", {}))
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    return TASKS[task].run(names[re.findall(r"^(?:def|class) (\w+)", text, flags=re.MULTILINE)[-1]]).misconceptions


RIGHT = {
    ("corrupt", "token by token"): """
def my_corrupt(ids, spans, first_sentinel):
    inside = {}
    for number, (first, end) in enumerate(spans):
        for i in range(first, end):
            inside[i] = number
    source, target, last = [], [], -1
    for i, token in enumerate(ids):
        if i not in inside:
            source.append(token)
            continue
        if inside[i] != last:
            last = inside[i]
            source.append(first_sentinel - last)
            target.append(first_sentinel - last)
        target.append(token)
    target.append(first_sentinel - last - 1)
    return source, target
""",
    ("corrupt", "slices assigned from the end, in a copy"): """
def my_corrupt(ids, spans, first_sentinel):
    source, target = list(ids), []
    for n, (a, b) in reversed(list(enumerate(spans))):
        source[a:b] = [first_sentinel - n]
        target = [first_sentinel - n, *ids[a:b], *target]
    return [source, target + [first_sentinel - len(spans)]]
""",
    ("corrupt", "tensors"): """
def my_corrupt(ids, spans, first_sentinel):
    x, source, target, start = torch.tensor(ids), [], [], 0
    for n, (a, b) in enumerate(spans):
        mark = torch.tensor([first_sentinel - n])
        source += [x[start:a], mark]
        target += [mark, x[a:b]]
        start = b
    return torch.cat([*source, x[start:]]), torch.cat([*target, torch.tensor([first_sentinel - len(spans)])])
""",
    ("bucket", "NumPy in 64 bits"): """
def my_bucket(distance, bidirectional=True, num_buckets=32, max_distance=128):
    d = np.asarray(distance)
    n = num_buckets // 2 if bidirectional else num_buckets
    past = np.abs(d) if bidirectional else np.maximum(-d, 0)
    exact = n // 2
    far = exact + np.floor(np.log(np.maximum(past, 1) / exact) / np.log(max_distance / exact) * (n - exact))
    bucket = np.where(past < exact, past, np.minimum(far, n - 1)).astype(int)
    return bucket + n * (d > 0) if bidirectional else bucket
""",
    ("bucket", "a loop over numbers"): """
def my_bucket(distance, bidirectional=True, num_buckets=32, max_distance=128):
    def one(d):
        first, n = 0, num_buckets
        if bidirectional:
            n //= 2
            first, d = (n if d > 0 else 0), abs(d)
        else:
            d = max(-d, 0)
        e = n // 2
        if d < e:
            return first + d
        return first + min(n - 1, e + int(math.log(d / e) / math.log(max_distance / e) * (n - e)))
    return torch.tensor([one(d) for d in distance.flatten().tolist()]).view(distance.shape)
""",
    ("bucket", "the bounds of the buckets, searched"): """
def my_bucket(distance, bidirectional=True, num_buckets=32, max_distance=128):
    n = num_buckets // (2 if bidirectional else 1)
    e = n // 2
    edges = torch.tensor([float(i) for i in range(1, e + 1)] +
                         [e * (max_distance / e) ** (k / (n - e)) for k in range(1, n - e)], dtype=torch.float64)
    past = distance.abs() if bidirectional else torch.relu(-distance)
    found = torch.bucketize(past.double(), edges, right=True)
    return torch.where(distance > 0, found + n, found) if bidirectional else found
""",
    ("bucket", "as in the released code"): """
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
    ("prefix_mask", "positions compared"): """
def my_prefix_mask(source_length, target_length):
    i = torch.arange(source_length + target_length)
    return (i <= i[:, None]) | (i < source_length)
""",
    ("prefix_mask", "four blocks"): """
def my_prefix_mask(source_length, target_length):
    S, T = source_length, target_length
    top = torch.cat([torch.ones(S, S), torch.zeros(S, T)], dim=1)
    below = torch.cat([torch.ones(T, S), torch.ones(T, T).tril()], dim=1)
    return torch.cat([top, below]).bool()
""",
    ("prefix_mask", "two loops"): """
def my_prefix_mask(source_length, target_length):
    n = source_length + target_length
    return [[j < source_length or j <= i for j in range(n)] for i in range(n)]
""",
    ("t5_attention", "fused attention with one float mask"): """
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
    ("t5_attention", "einsum, weights by hand, a large negative number"): """
class T5Attention(nn.Module):
    def __init__(self, dim, num_heads, head_dim):
        super().__init__()
        self.shape = num_heads, head_dim
        inner = num_heads * head_dim
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(dim, inner, bias=False) for _ in range(3))
        self.out_proj = nn.Linear(inner, dim, bias=False)

    def forward(self, x, context=None, mask=None, bias=None):
        if context is None:
            context = x
        q = self.q_proj(x).unflatten(2, self.shape)
        k, v = self.k_proj(context).unflatten(2, self.shape), self.v_proj(context).unflatten(2, self.shape)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k)
        if bias is not None:
            scores += bias
        if mask is not None:
            scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
        weights = torch.exp(scores - scores.amax(-1, keepdim=True))
        weights = weights / weights.sum(-1, keepdim=True)
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))
""",
    ("t5_block", "the norm by hand, sums one by one"): """
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
    ("t5", "no head module, the product with the table"): """
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
    ("t5", "the head's weight is the table, registered first"): """
class T5(nn.Module):
    def __init__(self, vocab_size, dim, depth, num_heads, head_dim, mlp_dim, num_buckets=32, max_distance=128):
        super().__init__()
        self.head = nn.Linear(dim, vocab_size, bias=False)
        nn.init.normal_(self.head.weight)
        self.token_embed = nn.Embedding(vocab_size, dim)
        self.token_embed.weight = self.head.weight
        self.encoder = nn.ModuleList([T5Block(dim, num_heads, head_dim, mlp_dim) for _ in range(depth)])
        self.decoder = nn.ModuleList([T5Block(dim, num_heads, head_dim, mlp_dim, True) for _ in range(depth)])
        self.encoder_norm = nn.RMSNorm(dim, 1e-6)
        self.decoder_norm = nn.RMSNorm(dim, 1e-6)
        self.encoder_bias = RelativeBias(num_heads, num_buckets, max_distance, True)
        self.decoder_bias = RelativeBias(num_heads, num_buckets, max_distance, False)
        self.scale = dim**-0.5

    def encode(self, source, source_valid):
        x, bias = self.token_embed(source), self.encoder_bias(source.size(1))
        for block in self.encoder:
            x = block(x, source_valid[:, None, None, :], bias)
        return self.encoder_norm(x)

    def decode(self, target, context, source_valid):
        y, bias = self.token_embed(target), self.decoder_bias(target.size(1))
        causal = ~torch.triu(torch.ones(target.size(1), target.size(1), dtype=torch.bool), diagonal=1)
        for block in self.decoder:
            y = block(y, causal[None, None], bias, context, source_valid[:, None, None, :])
        return self.head(self.decoder_norm(y)) * self.scale

    def forward(self, source, target, source_valid):
        return self.decode(target, self.encode(source, source_valid), source_valid)
""",
    ("collapse", "groupby"): """
def my_collapse(path, blank=0):
    return [symbol for symbol, _ in itertools.groupby(path) if symbol != blank]
""",
    ("collapse", "neighbours in pairs"): """
def my_collapse(path, blank=0):
    return [b for a, b in zip([None] + path[:-1], path) if a != b and b != blank]
""",
    ("collapse", "unique_consecutive"): """
def my_collapse(path, blank=0):
    symbols = torch.unique_consecutive(torch.tensor(path))
    return symbols[symbols != blank]
""",
    ("ctc_loss", "a loop over states that can be reached, without any infinity"): """
def my_ctc_loss(log_probs, target, blank=0):
    states = [blank]
    for label in target.tolist():
        states += [label, blank]
    alpha = {s: log_probs[0, states[s]] for s in range(min(2, len(states)))}
    for t in range(1, len(log_probs)):
        new = {}
        for s, symbol in enumerate(states):
            before = [alpha[s - k] for k in (0, 1) if s - k in alpha]
            if s >= 2 and symbol != blank and symbol != states[s - 2] and s - 2 in alpha:
                before.append(alpha[s - 2])
            if before:
                new[s] = log_probs[t, symbol] + torch.logsumexp(torch.stack(before), 0)
        alpha = new
    ends = [alpha[s] for s in (len(states) - 1, len(states) - 2) if s in alpha]
    return -torch.logsumexp(torch.stack(ends), 0) if ends else math.inf
""",
    ("ctc_loss", "probabilities that are scaled at each frame, section 4.1"): """
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
    ("ctc_loss", "the recursion from the end, by logaddexp"): """
def my_ctc_loss(log_probs, target, blank=0):
    S, NEVER = len(target), torch.tensor(-1e30)
    states = torch.stack([torch.full((S,), blank), target], 1).flatten()
    states = torch.cat([states, torch.tensor([blank])])
    L = 2 * S + 1
    beta = torch.where(torch.arange(L) >= L - 2, log_probs[-1, states], NEVER)
    skip = torch.tensor([s + 2 < L and states[s] != blank and states[s] != states[s + 2] for s in range(L)])
    for y in log_probs.flip(0)[1:]:
        one = torch.cat([beta[1:], NEVER[None]])
        two = torch.cat([beta[2:], NEVER[None], NEVER[None]])[:L]
        beta = y[states] + torch.logaddexp(torch.logaddexp(beta, one), torch.where(skip, two, NEVER))
    log_p = torch.logsumexp(beta[:2], 0)
    return -log_p if log_p > -1e20 else torch.tensor(float("inf"))
""",
    ("ctc_loss", "a table that is filled in place"): """
def my_ctc_loss(log_probs, target, blank=0):
    T, S = log_probs.shape[0], target.numel()
    symbols = [blank if s % 2 == 0 else int(target[s // 2]) for s in range(2 * S + 1)]
    rows = [[torch.tensor(-1e30)] * len(symbols) for _ in range(T)]
    rows[0][0] = log_probs[0, blank]
    if S:
        rows[0][1] = log_probs[0, symbols[1]]
    for t in range(1, T):
        for s in range(len(symbols)):
            total = rows[t - 1][s]
            if s > 0:
                total = torch.logaddexp(total, rows[t - 1][s - 1])
            if s > 1 and s % 2 == 1 and symbols[s] != symbols[s - 2]:
                total = torch.logaddexp(total, rows[t - 1][s - 2])
            rows[t][s] = total + log_probs[t, symbols[s]]
    last = rows[-1][-1] if S == 0 else torch.logaddexp(rows[-1][-1], rows[-1][-2])
    return -last if last > -1e29 else -last * math.inf
""",
    ("conv_module", "the gate by hand, einops and F.conv1d"): """
class ConvModule(nn.Module):
    def __init__(self, dim, kernel_size):
        super().__init__()
        self.out_proj, self.in_proj = nn.Linear(dim, dim, False), nn.Linear(dim, 2 * dim, False)
        self.depthwise = nn.Conv1d(dim, dim, kernel_size, groups=dim, bias=False)
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, x, valid=None):
        values, gates = self.in_proj(x).chunk(2, dim=2)
        x = values / (1 + torch.exp(-gates))
        if valid is not None:
            x = x * valid.unsqueeze(-1)
        half = self.depthwise.kernel_size[0] // 2
        x = self.norm(self.depthwise(F.pad(x.permute(0, 2, 1), (half, half)))).permute(0, 2, 1)
        return self.out_proj(x * torch.sigmoid(x))
""",
    ("conv_module", "padding same, the mask before the gate, nn.GLU and nn.SiLU"): """
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
    ("conformer_block", "a loop over the sublayers"): """
class ConformerBlock(nn.Module):
    def __init__(self, dim, num_heads, mlp_dim, kernel_size):
        super().__init__()
        for i in range(1, 6):
            setattr(self, f"norm{i}", nn.LayerNorm(dim))
        self.attn, self.conv = RelativeAttention(dim, num_heads), ConvModule(dim, kernel_size)
        self.ffn1, self.ffn2 = (FeedForward(dim, mlp_dim, activation="silu") for _ in range(2))

    def forward(self, x, distances, valid=None):
        mask = valid if valid is None else valid.view(valid.shape[0], 1, 1, valid.shape[1])
        parts = (lambda h: self.ffn1(h) / 2, lambda h: self.attn(h, distances, mask=mask),
                 lambda h: self.conv(h, valid), lambda h: self.ffn2(h) / 2)
        for part, norm in zip(parts, (self.norm1, self.norm2, self.norm3, self.norm4)):
            x = torch.add(x, part(norm(x)))
        return self.norm5(x)
""",
    ("conformer", "the mask by a maximum over four frames"): """
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
    ("beam", "probabilities, as there are few frames"): """
def my_prefix_beam(log_probs, width, blank=0):
    beam = {(): (1.0, 0.0)}
    for frame in log_probs.exp().tolist():
        new = defaultdict(lambda: [0.0, 0.0])
        for prefix, (b, nb) in beam.items():
            new[prefix][0] += (b + nb) * frame[blank]
            if prefix:
                new[prefix][1] += nb * frame[prefix[-1]]
            for s in range(len(frame)):
                if s != blank:
                    new[prefix + (s,)][1] += frame[s] * (b if prefix and s == prefix[-1] else b + nb)
        beam = dict(sorted(new.items(), key=lambda item: sum(item[1]), reverse=True)[:width])
    return [(prefix, math.log(sum(p))) for prefix, p in beam.items()]
""",
    ("beam", "NumPy's logaddexp, text as prefix"): """
def my_prefix_beam(log_probs, width, blank=0):
    frames = log_probs.numpy()
    ends, labels = {"": 0.0}, {"": -np.inf}
    for y in frames:
        e, l = {}, {}
        for p in ends:
            both = np.logaddexp(ends[p], labels[p])
            e[p] = np.logaddexp(e.get(p, -np.inf), both + y[blank])
            for s in range(len(y)):
                if s == blank:
                    continue
                if p and int(p[-1]) == s:
                    l[p] = np.logaddexp(l.get(p, -np.inf), labels[p] + y[s])
                    l[p + str(s)] = np.logaddexp(l.get(p + str(s), -np.inf), ends[p] + y[s])
                else:
                    l[p + str(s)] = np.logaddexp(l.get(p + str(s), -np.inf), both + y[s])
        score = {p: np.logaddexp(e.get(p, -np.inf), l.get(p, -np.inf)) for p in {*e, *l}}
        kept = sorted(score, key=score.get)[::-1][:width]
        ends, labels = ({p: d.get(p, -np.inf) for p in kept} for d in (e, l))
    return [([int(c) for c in p], score[p]) for p in kept]
""",
}


@pytest.mark.parametrize(("task", "style"), RIGHT)
def test_a_right_answer_in_another_style_passes(task, style):
    assert told(task, RIGHT[task, style]) == []


CTC = """
def my_ctc_loss(log_probs, target, blank=0):
    states = [blank]
    for label in target.tolist():
        states += [label, blank]
    L = len(states)
    alpha = [log_probs[0, states[s]] if s < {begins} else torch.tensor({never}) for s in range(L)]
    for frame in log_probs[{first}:]:
        new = []
        for s, symbol in enumerate(states):
            total = alpha[s]
            if s > 0:
                total = torch.logaddexp(total, alpha[s - 1])
            if s > 1 and {skips}:
                total = torch.logaddexp(total, alpha[s - 2])
            new.append(total + frame[symbol])
        alpha = new
    last = {last}
    return -last if last > -1e29 else torch.tensor(math.inf)
"""
CTC_RIGHT = {
    "begins": "2",
    "never": "-1e30",
    "first": "1",
    "skips": "symbol != blank and symbol != states[s - 2]",
    "last": "torch.logsumexp(torch.stack(alpha[-2:]), 0)",
}
PROBABILITIES = """
def my_ctc_loss(log_probs, target, blank=0):
    states = torch.tensor([blank] + [x for label in target.tolist() for x in (label, blank)])
    p, alpha = log_probs.exp(), torch.zeros(len(states))
    alpha[:2] = p[0, states[:2]]
    for y in p[1:]:
        new = alpha.clone()
        new[1:] += alpha[:-1]
        new[2:] += torch.where((states[2:] != blank) & (states[2:] != states[:-2]), alpha[:-2], 0.0)
        alpha = new * y[states]
    return -torch.log(alpha[-2:].sum())
"""
CONVOLUTION = """
class ConvModule(nn.Module):
    def __init__(self, dim, kernel_size):
        super().__init__()
        self.in_proj, self.out_proj = nn.Linear(dim, 2 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.depthwise = nn.Conv1d(dim, dim, kernel_size, padding=kernel_size // 2, groups=dim, bias=False)
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, x, valid=None):
        a, b = self.in_proj(x).split(x.shape[-1], dim=-1)
        x = {gate}
        if valid is not None:
            x = x * {valid}[..., None]
        x = F.silu(self.norm(self.depthwise(x.transpose(1, 2)))).transpose(1, 2)
        return self.out_proj(x)
"""
BIAS = """
class T5Attention(nn.Module):
    def __init__(self, dim, num_heads, head_dim):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(dim, num_heads * head_dim, bias={bias}) for _ in range(3))
        self.out_proj = nn.Linear(num_heads * head_dim, dim, bias={bias})

    def forward(self, x, context=None, mask=None, bias=None):
        c = x if context is None else context
        q, k, v = (z.unflatten(-1, (self.num_heads, -1)).movedim(2, 1)
                   for z in (self.q_proj(x), self.k_proj(c), self.v_proj(c)))
        s = q @ k.transpose(-1, -2) * {scale}
        s = s if bias is None else s + bias
        s = s if mask is None else s.masked_fill({mask}, -1e9)
        return self.out_proj((F.softmax(s, -1) @ v).movedim(1, 2).flatten(2))
"""
LOG_PROBABILITY = "log-probability instead of the loss"
GATE = "halves of the gate exchanged"
SCALED = "scores divided by the root of the width"
WRONG = [  # a task, an answer, and what is said of it
    *(
        ("ctc_loss", CTC.format(**CTC_RIGHT | changed), name)
        for changed, name in (
            ({"skips": "False"}, "blanks cannot be skipped"),
            ({"skips": "symbol != blank"}, "skip between equal labels"),
            ({"skips": "True"}, "labels skipped"),
            ({"begins": "1"}, "begins in one state only"),
            ({"begins": "L"}, "begins anywhere"),
            ({"first": "0"}, "first frame counted twice"),
            ({"last": "alpha[-1]"}, "ends in the last blank only"),
            ({"last": "alpha[max(len(alpha) - 2, 0)]"}, "ends in the last label only"),
            ({"last": "torch.logsumexp(torch.stack(alpha), 0)"}, "ends anywhere"),
            ({"last": "alpha[-1] + alpha[max(len(alpha) - 2, 0)]"}, "logarithms added"),
            ({"never": "-math.inf"}, "gradient is NaN"),
        )
    ),
    ("ctc_loss", PROBABILITIES, "probabilities underflow"),
    ("ctc_loss", PROBABILITIES.replace("-torch.log(alpha[-2:].sum())", "torch.log(alpha[-2:].sum())"), LOG_PROBABILITY),
    (
        "ctc_loss",
        """
def my_ctc_loss(log_probs, target, blank=0):
    lengths = torch.tensor([len(log_probs)]), torch.tensor([len(target)])
    return F.ctc_loss(log_probs[:, None], target[None], *lengths, blank=blank, reduction="sum")
""",
        "a ready-made function",
    ),
    ("ctc_loss", CTC.format(**CTC_RIGHT).replace("log_probs[0,", "log_probs.detach()[0,"), GRADIENT_DIFFERS),
    ("conv_module", CONVOLUTION.format(gate="a.sigmoid() * b", valid="valid"), GATE),
    ("conv_module", CONVOLUTION.format(gate="a * b.sigmoid()", valid="~valid"), "real frames set to 0"),
    ("t5_attention", BIAS.format(bias=False, scale="q.shape[-1] ** -0.5", mask="~mask"), SCALED),
    ("t5_attention", BIAS.format(bias=False, scale="1", mask="mask"), "mask inverted"),
    ("t5_attention", BIAS.format(bias=True, scale="1", mask="~mask"), OTHER_PARAMETERS),
    (
        "bucket",
        """
def my_bucket(distance, bidirectional=True, num_buckets=32, max_distance=128):
    n = num_buckets // 2 if bidirectional else num_buckets
    e = n // 2
    past = abs(distance)
    far = (e + torch.log(past.clamp(min=1) / e) / math.log(max_distance / e) * (n - e)).long().clamp(max=n - 1)
    return torch.where(past < e, past, far) + n * (distance > 0) * bidirectional
""",
        "future treated as past",
    ),
    (
        "prefix_mask",
        """
def my_prefix_mask(source_length, target_length):
    i = torch.arange(source_length + target_length)
    return (i <= i[:, None]) | (i[:, None] < source_length)
""",
        "source attends to the target",
    ),
    (
        "conformer",
        RIGHT["conformer", "the mask by a maximum over four frames"]
        .replace("    def shorter", "    def short")
        .replace("self.shorter", "self.short"),
        "no method shorter",
    ),
    (
        "beam",
        RIGHT["beam", "probabilities, as there are few frames"].replace("b if prefix and s == prefix[-1] else ", ""),
        "the two ends not kept apart",
    ),
]


@pytest.mark.parametrize(("task", "text", "name"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong_with_it(task, text, name):
    assert told(task, text) == [name]
