"""The exercises of lesson 17 ask for what the library does, its solutions open the library's models, styles pass."""

import itertools
import linecache
import math
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.classroom.opening import DoesNotOpen, compare, copy_weights
from course_lib.functional.attention import attention, causal_mask, local_mask
from course_lib.functional.linear_attention import LinearState, linear_attention, linear_step
from course_lib.functional.local_attention import local_attention
from course_lib.lessons.lesson_17.models import MODELS
from course_lib.lessons.lesson_17.tasks import CHAINS, NEAR, OF_GRADIENTS, TASKS, chosen_machine, generator
from course_lib.models import boltzmann
from course_lib.tasks import Draw

NAMES = {"math": math, "torch": torch, "F": F, "nn": nn}
ATTEND, STEP, MASK, ONLINE, SSM, ROUTE, BALANCE, FREE, GIBBS, CD = (
    TASKS[name].reference
    for name in (
        "linear_attention",
        "linear_step",
        "local_mask",
        "online_softmax",
        "ssm",
        "route",
        "balance",
        "free_energy",
        "gibbs",
        "cd_step",
    )
)
close = torch.testing.assert_close


def drawn(name):
    """The inputs of each case of a task."""
    return [case.inputs(Draw(seed)) for case in TASKS[name].cases for seed in (1, 2)]


@pytest.fixture
def machine():
    """A machine of the library whose biases are not zero."""
    torch.manual_seed(0)
    rbm = boltzmann.RBM(boltzmann.RBMConfig(num_visible=5, num_hidden=3))
    with torch.no_grad():
        for weight in rbm.parameters():
            weight.normal_()
    return rbm


def weights_of(rbm):
    return rbm.weight.detach(), rbm.visible_bias.detach(), rbm.hidden_bias.detach()


# what the solutions compute -----------------------------------------------------------------------------------


def test_linear_attention_is_that_of_the_library_at_once_and_step_by_step():
    for q, k, v in drawn("linear_attention"):
        close(ATTEND(q, k, v), linear_attention(q, k, v, causal=True))
        s, z = q.new_zeros(q.shape[-1], v.shape[-1]), q.new_zeros(q.shape[-1])
        for t in range(q.shape[2]):
            output, s, z = STEP(q[0, 0, t], k[0, 0, t], v[0, 0, t], s, z)
            close(output, ATTEND(q, k, v)[0, 0, t])


def test_a_step_is_one_of_the_library():
    for q, k, v, s, z in drawn("linear_step"):
        output, state = linear_step(q, k, v, LinearState(s, z))
        close(STEP(q, k, v, s, z), (output, state.s, state.z))


@pytest.mark.parametrize("window", [0, 1, 3, 20])
def test_the_window_counts_as_in_the_librarys_local_attention(window):
    assert torch.equal(MASK(9, window), local_mask(9, window=window) & causal_mask(9))
    q, k, v = torch.randn(3, 2, 9, 4)
    close(local_attention(q, k, v, window=window, causal=True), attention(q, k, v, mask=MASK(9, window)))
    assert MASK(9, 2)[-1].sum() == 3


def test_online_softmax_is_exact_attention():
    for q, keys, values in drawn("online_softmax"):
        whole = attention(q[None].double(), torch.cat(keys).double(), torch.cat(values).double())[0]
        close(ONLINE(q, keys, values), whole.float(), atol=1e-4, rtol=1e-4)
        assert whole.isfinite().all()


def test_a_state_space_model_is_a_convolution_with_the_kernel_of_the_text():
    for a, b, c, x in drawn("ssm"):
        kernel = torch.stack([(c * a**j * b).sum() for j in range(x.shape[1])])
        padded = F.pad(x[:, None], (x.shape[1] - 1, 0))
        close(SSM(a, b, c, x), F.conv1d(padded, kernel.flip(0)[None, None])[:, 0], atol=1e-5, rtol=1e-5)


def test_gates_are_those_of_shazeer_and_of_switch():
    for logits, k in drawn("route"):
        gates = ROUTE(logits, k)
        kept = logits.masked_fill(logits < logits.topk(k).values[:, -1:], float("-inf"))
        close(gates, kept.softmax(-1) if k > 1 else logits.softmax(-1) * kept.isfinite())
        assert (gates > 0).sum(dim=1).eq(k).all()


def test_the_balance_loss_is_1_for_a_uniform_router_and_e_for_one_that_always_takes_the_same_expert():
    even = 10 * torch.eye(4) - 5
    close(BALANCE(even.repeat(3, 1), 1), torch.tensor(1.0))
    close(BALANCE(torch.tensor([[100.0, 0, 0, 0]] * 6), 1), torch.tensor(4.0))
    logits = torch.randn(8, 4, requires_grad=True)
    (slope,) = torch.autograd.grad(BALANCE(logits, 2), logits)
    assert slope.abs().sum() > 0


class Mixture(nn.Module):
    """A mixture of experts with the names of the library's, in which every expert computes every token."""

    def __init__(self, dim, mlp_dim, num_experts, k):
        super().__init__()
        self.k = k
        self.router = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, dim)) for _ in range(num_experts)
        )

    def forward(self, x):
        gates = ROUTE(self.router(x.flatten(0, -2)), self.k).view(*x.shape[:-1], -1)
        return sum(gates[..., e, None] * expert(x) for e, expert in enumerate(self.experts))


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_mixture_opens_a_dense_weighted_sum_of_the_same_names(k):
    torch.manual_seed(0)
    ours, x = Mixture(6, 10, 4, k).eval(), torch.randn(2, 5, 6)
    mine = TASKS["MoE"].module(**MODELS["MoE"].sizes(ours)).eval()
    assert copy_weights(ours, mine, MODELS["MoE"].names) == sum(p.numel() for p in ours.parameters())
    compare(ours, mine, (x,), MODELS["MoE"].names)
    close(mine(x), ours(x))


def test_an_expert_that_nobody_chooses_does_no_harm_and_an_expert_sees_its_own_tokens_only():
    torch.manual_seed(0)
    layer, rows = TASKS["MoE"].module(4, 8, 5, 2), []
    with torch.no_grad():
        layer.router.weight[0] = 0
        layer.router.weight[1:] = layer.router.weight[1:].abs()
    for expert in layer.experts:
        expert.register_forward_hook(lambda _part, given, _made: rows.append(len(given[0])))
    assert layer(torch.rand(3, 4, 4)).isfinite().all()
    assert sum(rows) == 2 * 12 and rows[0] == 0


def states(count):
    return torch.tensor([*itertools.product([0.0, 1.0], repeat=count)])


def test_the_free_energy_is_the_librarys_and_the_sum_over_all_hidden_states(machine):
    v, h = states(5), states(3)
    energy = machine.energy(v[:, None].expand(-1, 8, -1), h.expand(32, -1, -1))
    close(FREE(v, *weights_of(machine)), machine(v))
    close(FREE(v, *weights_of(machine)), -(-energy).logsumexp(dim=1))


def test_a_gibbs_step_is_one_of_the_library_and_samples_the_conditionals_of_the_energy(machine):
    v, noise = states(5), torch.rand(32, 8)
    h, new = GIBBS(v, *weights_of(machine), noise[:, :3], noise[:, 3:])
    assert torch.equal(new, machine.gibbs(v, noise)) and h.shape == (32, 3)
    energy = machine.energy(v[:, None].expand(-1, 8, -1), states(3).expand(32, -1, -1))
    joint = (-energy).softmax(dim=1) @ states(3)
    some = [GIBBS(v, *weights_of(machine), torch.rand(32, 3), torch.rand(32, 5))[0] for _ in range(4000)]
    close(torch.stack(some).mean(0), joint, atol=0.05, rtol=0)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_contrastive_divergence_is_minus_the_gradient_of_the_librarys_contrast(machine, k):
    v, random = states(5), generator(3)
    fantasy = v
    for _ in range(k):
        noise = [torch.rand(32, size, generator=random) for size in (3, 5)]
        fantasy = machine.gibbs(fantasy, torch.cat(noise, dim=1))
    machine.contrast(v, fantasy).backward()
    slopes = (-machine.weight.grad, -machine.visible_bias.grad, -machine.hidden_bias.grad)
    close(CD(v, *weights_of(machine), k, generator(3)), slopes)


@pytest.mark.parametrize("k", [1, 3])
def test_the_mean_of_many_chains_is_what_all_paths_of_a_chain_come_to(k):
    v, W, b, c = chosen_machine(*OF_GRADIENTS)
    every, hidden = states(4), states(3)

    def chance(p, outcome):
        return torch.where(outcome == 1, p, 1 - p).prod(dim=-1)

    given_v = chance((every @ W.T + c).sigmoid()[:, None], hidden[None])
    given_h = chance((hidden @ W + b).sigmoid()[:, None], every[None])
    starts = (v[:, None] == every).all(dim=-1).float().mean(dim=0)
    end = starts @ torch.matrix_power(given_v @ given_h, k)
    p, change = (every @ W.T + c).sigmoid(), (starts - end)[:, None]
    wanted = (p * change).T @ every, (every * change).sum(0), (p * change).sum(0)
    for seed in range(5):
        close(CD(v, W, b, c, k, generator(seed)), wanted, atol=NEAR / 2, rtol=0)
    assert len(v) == CHAINS


def test_the_solution_opens_a_machine_of_the_library_and_dreams_as_it_does(machine):
    known = MODELS["RBM"]
    mine = TASKS["RBM"].module(**known.sizes(machine))
    assert copy_weights(machine, mine, known.names) == 15 + 5 + 3
    v = states(5)
    compare(machine, mine, (v,), known.names)
    with torch.no_grad():
        close(mine.hidden(v), machine.features(v))
        close(mine.visible(mine.hidden(v)), machine.visible(machine.features(v)))
        dream, random = mine.dream(v, 2, generator(1)), generator(1)
        noise = [torch.rand(32, size, generator=random) for size in (3, 5, 3)]
        first = machine.gibbs(v, torch.cat(noise[:2], dim=1))
        close(dream, machine.visible((noise[2] < machine.features(first)).float()))


def test_the_solution_opens_the_trained_machine():
    known = MODELS["RBM"]
    ours = known.model()
    mine = TASKS["RBM"].module(**known.sizes(ours))
    assert copy_weights(ours, mine, known.names) == sum(p.numel() for p in ours.parameters())
    compare(ours, mine, known.inputs(), known.names)
    assert set(known.inputs()[0].unique().tolist()) == {0.0, 1.0}
    wrong = TASKS["RBM"].reference.changed((("return self.free_energy(v)", "return -self.free_energy(v)"),))
    wrong = wrong(**known.sizes(ours))
    copy_weights(ours, wrong, known.names)
    with pytest.raises(DoesNotOpen, match=re.escape("Look in `RBM.forward`")):
        compare(ours, wrong, known.inputs(), known.names)


def test_contrastive_divergence_learns_two_patterns():
    torch.manual_seed(0)
    v = torch.tensor([[1.0, 1, 0, 0, 0, 1], [0, 0, 1, 1, 1, 0]])
    rbm, random = TASKS["RBM"].module(6, 4), generator(0)
    with torch.no_grad():
        for _ in range(400):
            slopes = CD(v.repeat(10, 1), rbm.W, rbm.b, rbm.c, 1, random)
            for parameter, slope in zip((rbm.W, rbm.b, rbm.c), slopes, strict=True):
                parameter += 0.3 * slope
        likely = (-rbm(states(6))).softmax(dim=0)
        assert likely[(states(6)[:, None] == v).all(-1).any(-1)].sum() > 0.6


# what learners write ------------------------------------------------------------------------------------------


def told(task, text):
    """What a check says of an answer, given as text."""
    file, names = f"<{task} {hash(text)}>", NAMES | dict(TASKS[task].reference.names)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    return TASKS[task].run(names[re.findall(r"^(?:def|class) (\w+)", text, flags=re.MULTILINE)[-1]]).misconceptions


ONLINE_HEAD = "def my_online_softmax(q, keys, values):\n"
RIGHT = {
    ("linear_attention", "cumulative sums"): """
def phi(x):
    return x.clamp(min=0) + x.clamp(max=0).exp()

def my_linear_attention(q, k, v):
    q, k = phi(q), phi(k)
    s = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(dim=-3)
    z = k.cumsum(dim=-2)
    return torch.einsum("bhtk,bhtkv->bhtv", q, s) / (q * z).sum(-1, keepdim=True)
""",
    ("linear_attention", "einsum and a mask of booleans"): """
def my_linear_attention(q, k, v):
    q, k = [torch.where(x > 0, x + 1, torch.exp(torch.minimum(x, torch.zeros_like(x)))) for x in (q, k)]
    T = q.shape[2]
    later = torch.ones(T, T, dtype=torch.bool).triu(1)
    a = torch.einsum("bhik,bhjk->bhij", q, k).masked_fill(later, 0.0)
    return torch.einsum("bhij,bhjv->bhiv", a, v) / a.sum(-1).unsqueeze(-1)
""",
    ("linear_attention", "a loop over the positions"): """
def my_linear_attention(q, k, v):
    def phi(x):
        return torch.where(x > 0, x + 1, x.clamp(max=0).exp())
    B, H, T, K = q.shape
    s, z, out = torch.zeros(B, H, K, v.shape[-1]), torch.zeros(B, H, K), []
    for t in range(T):
        f = phi(k[:, :, t])
        s = s + f[..., None] * v[:, :, t, None, :]
        z = z + f
        p = phi(q[:, :, t])
        out.append((p[..., None, :] @ s)[..., 0, :] / (p * z).sum(-1, keepdim=True))
    return torch.stack(out, dim=2)
""",
    ("linear_attention", "a result filled in place"): """
def my_linear_attention(q, k, v):
    q, k = (torch.where(x > 0, 1 + x, torch.exp(x.clamp(max=0))) for x in (q, k))
    out = torch.zeros_like(v)
    for t in range(v.shape[2]):
        w = (q[:, :, t, None] * k[:, :, : t + 1]).sum(-1)
        w = w / w.sum(-1, keepdim=True)
        out[:, :, t] = (w[..., None] * v[:, :, : t + 1]).sum(2)
    return out
""",
    ("linear_step", "axes and a dot product"): """
def my_linear_step(q, k, v, s, z):
    phi = lambda x: x.clamp(min=0) + x.clamp(max=0).exp()
    s_new = s + phi(k)[:, None] * v[None, :]
    z_new = z + phi(k)
    return [phi(q).matmul(s_new) / torch.dot(phi(q), z_new), s_new, z_new]
""",
    ("local_mask", "two triangles"): """
def my_local_mask(length, window):
    ones = torch.ones(length, length, dtype=torch.bool)
    return ones.tril() & ones.triu(-window)
""",
    ("local_mask", "two loops"): """
def my_local_mask(length, window):
    mask = torch.zeros(length, length, dtype=torch.bool)
    for i in range(length):
        for j in range(max(0, i - window), i + 1):
            mask[i, j] = True
    return mask
""",
    ("local_mask", "a list of lists"): """
def my_local_mask(length, window):
    return [[0 <= i - j <= window for j in range(length)] for i in range(length)]
""",
    ("local_mask", "zeros and ones"): """
def my_local_mask(length, window):
    return torch.ones(length, length).tril().triu(-window)
""",
    ("online_softmax", "the first block begins the sums"): ONLINE_HEAD
    + """
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
    ("online_softmax", "logarithms of the normalisers"): ONLINE_HEAD
    + """
    out, total = torch.zeros(values[0].shape[1]), torch.tensor(-math.inf)
    for i in range(len(keys)):
        s = keys[i].mv(q) / math.sqrt(len(q))
        block = torch.logsumexp(s, 0)
        new = torch.logaddexp(total, block)
        out = (total - new).exp() * out + (block - new).exp() * (s.softmax(0) @ values[i])
        total = new
    return out
""",
    ("online_softmax", "Python's numbers"): ONLINE_HEAD
    + """
    m, l, o = -1e30, 0.0, [0.0] * values[0].shape[1]
    for k, v in zip(keys, values):
        for key, value in zip(k.tolist(), v.tolist()):
            z = sum(a * b for a, b in zip(q.tolist(), key)) / len(key) ** 0.5
            new = max(m, z)
            f, w = math.exp(m - new), math.exp(z - new)
            l, o, m = l * f + w, [a * f + w * b for a, b in zip(o, value)], new
    return torch.tensor(o) / l
""",
    ("online_softmax", "sums in place, 64 bits, divided in each step"): ONLINE_HEAD
    + """
    K = q.numel()
    m = torch.full((1,), -torch.inf, dtype=torch.float64)
    l = torch.zeros(1, dtype=torch.float64)
    o = torch.zeros(values[0].size(1), dtype=torch.float64)
    for index, key_block in enumerate(keys):
        s = (key_block.double() * q.double()).sum(dim=-1) / K**0.5
        m_new = torch.cat([m, s]).max()
        p = (s - m_new).exp()
        l_new = l * (m - m_new).exp() + p.sum()
        o *= l * (m - m_new).exp() / l_new
        o += (p[:, None] * values[index].double()).sum(0) / l_new
        m[:], l[:] = m_new, l_new
    return o.float()
""",
    ("ssm", "a convolution by Fourier transforms"): """
def my_ssm(a, b, c, x):
    T = x.shape[1]
    kernel = (c * b * a ** torch.arange(T)[:, None]).sum(dim=1)
    return torch.fft.irfft(torch.fft.rfft(x, 2 * T) * torch.fft.rfft(kernel, 2 * T), 2 * T)[:, :T]
""",
    ("ssm", "a matrix of the kernel"): """
def my_ssm(a, b, c, x):
    T = x.shape[1]
    lag = torch.arange(T)[:, None] - torch.arange(T)
    kernel = torch.stack([(c * a.pow(j) * b).sum() for j in range(T)])
    return x @ (kernel[lag.clamp(min=0)] * (lag >= 0)).T
""",
    ("ssm", "one sequence after the other"): """
def my_ssm(a, b, c, x):
    rows = []
    for sequence in x:
        h, y = torch.zeros_like(a), []
        for number in sequence:
            h = a * h + b * number
            y.append(torch.dot(c, h))
        rows.append(torch.stack(y))
    return torch.stack(rows)
""",
    ("route", "-inf for the others"): """
def my_route(logits, k):
    smallest = logits.topk(k).values[:, -1:]
    chosen = logits >= smallest
    if k == 1:
        return torch.softmax(logits, dim=1) * chosen
    return torch.softmax(logits.masked_fill(~chosen, float("-inf")), dim=1)
""",
    ("route", "probabilities of all, divided by their sum"): """
def my_route(logits, k):
    p = F.softmax(logits, dim=-1)
    order = logits.argsort(dim=-1, descending=True)[:, :k]
    mask = F.one_hot(order, logits.shape[-1]).sum(dim=1)
    p = p * mask
    return p if k == 1 else p / p.sum(dim=-1, keepdim=True)
""",
    ("route", "a loop over the tokens"): """
def my_route(logits, k):
    out = torch.zeros(logits.shape)
    for i, row in enumerate(logits):
        best = row.sort(descending=True).indices[:k]
        out[i, best] = row.softmax(0)[best] if k == 1 else row[best].softmax(0)
    return out
""",
    ("balance", "one-hot vectors"): """
def my_balance(logits, k):
    N, E = logits.shape
    hot = F.one_hot(logits.topk(k).indices, E).float().sum(dim=1)
    return E * torch.dot(hot.mean(0) / k, F.softmax(logits, 1).mean(0))
""",
    ("balance", "a loop over the experts"): """
def my_balance(logits, k):
    chosen, p = logits.argsort(1, descending=True)[:, :k], logits.softmax(1)
    loss = 0.0
    for e in range(logits.shape[1]):
        loss = loss + (chosen == e).float().mean() * p[:, e].mean()
    return logits.shape[1] * loss
""",
    ("MoE", "index_add, as the library does"): """
class MoE(nn.Module):
    def __init__(self, dim, hidden, num_experts, k):
        super().__init__()
        self.router = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList()
        for _ in range(num_experts):
            self.experts.append(nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim)))
        self.num_chosen = k

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        gates, chosen = my_route(self.router(flat), self.num_chosen).topk(self.num_chosen)
        out = torch.zeros_like(flat)
        for number in range(len(self.experts)):
            rows, ranks = torch.where(chosen == number)
            if len(rows) == 0:
                continue
            out = out.index_add(0, rows, gates[rows, ranks].unsqueeze(1) * self.experts[number](flat[rows]))
        return out.reshape(x.shape)
""",
    ("MoE", "one token after the other"): """
class MoE(nn.Module):
    def __init__(self, dim, hidden, num_experts, k):
        super().__init__()
        self.k = k
        self.router = nn.Linear(dim, num_experts, False)
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim)) for _ in range(num_experts)])

    def forward(self, x):
        B, T, D = x.shape
        gates = my_route(self.router(x.view(B * T, D)), self.k).view(B, T, -1)
        rows = [
            sum(gates[i, t, e] * self.experts[e](x[i, t]) for e in gates[i, t].nonzero()[:, 0].tolist())
            for i in range(B) for t in range(T)
        ]
        return torch.stack(rows).view(B, T, D)
""",
    ("MoE", "the chosen weights gathered"): """
class MoE(nn.Module):
    def __init__(self, dim, hidden, num_experts, k):
        super().__init__()
        self.k = k
        self.router = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim)) for _ in range(num_experts))

    def forward(self, x):
        logits = self.router(x)
        largest, chosen = logits.topk(self.k, dim=-1)
        gates = largest.softmax(-1) if self.k > 1 else logits.softmax(-1).gather(-1, chosen)
        W1, b1 = (torch.stack([getattr(e[0], n) for e in self.experts])[chosen] for n in ("weight", "bias"))
        W2, b2 = (torch.stack([getattr(e[2], n) for e in self.experts])[chosen] for n in ("weight", "bias"))
        h = F.gelu(torch.einsum("btkhd,btd->btkh", W1, x) + b1)
        return (gates[..., None] * (torch.einsum("btkdh,btkh->btkd", W2, h) + b2)).sum(dim=2)
""",
    ("free_energy", "logaddexp and einsum"): """
def my_free_energy(v, W, b, c):
    x = torch.einsum("bv,hv->bh", v, W) + c
    return -torch.logaddexp(x, torch.zeros_like(x)).sum(1) - (v * b).sum(1)
""",
    ("free_energy", "a maximum taken out, one row after the other"): """
def my_free_energy(v, W, b, c):
    rows = []
    for row in v:
        x = W.mv(row) + c
        rows.append(-b.dot(row) - (x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))).sum())
    return torch.stack(rows)
""",
    ("gibbs", "F.linear and where"): """
def my_gibbs(v, W, b, c, noise_h, noise_v):
    p_h = F.linear(v, W, c).sigmoid()
    h = torch.where(noise_h < p_h, 1.0, 0.0)
    p_v = 1 / (1 + torch.exp(-(F.linear(h, W.T, b))))
    return h, (p_v > noise_v).to(v.dtype)
""",
    ("gibbs", "truth values"): """
def my_gibbs(v, W, b, c, noise_h, noise_v):
    h = noise_h <= torch.sigmoid(torch.einsum("bi,ji->bj", v, W) + c)
    return h, noise_v <= torch.sigmoid(torch.einsum("bj,ji->bi", h.float(), W) + b)
""",
    ("cd_step", "bernoulli, hidden samples in both phases"): """
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
    ("cd_step", "the gradient of the free energy"): """
def my_cd_step(v, W, b, c, k, generator):
    W, b, c = (one.detach().clone().requires_grad_() for one in (W, b, c))
    end = v.clone()
    with torch.no_grad():
        for _ in range(k):
            noise_h = torch.rand(len(v), len(c), generator=generator)
            noise_v = torch.rand(v.shape, generator=generator)
            h = (noise_h < torch.sigmoid(end @ W.T + c)).float()
            end = (noise_v < torch.sigmoid(h @ W + b)).float()
    def F_(v):
        return (-(v @ b) - F.softplus(v @ W.T + c).sum(1)).mean()
    return torch.autograd.grad(F_(end) - F_(v), (W, b, c))
""",
    ("cd_step", "all noise first, a list returned"): """
def my_cd_step(v, W, b, c, k, generator):
    B, (H, V) = len(v), W.shape
    noise = torch.rand(k, B, H + V, generator=generator)
    u = v
    for step in noise:
        h = (step[:, :H] < torch.sigmoid(u @ W.T + c)).to(v.dtype)
        u = (step[:, H:] < torch.sigmoid(h @ W + b)).to(v.dtype)
    p, q = torch.sigmoid(v @ W.T + c), torch.sigmoid(u @ W.T + c)
    return [(p[:, :, None] * v[:, None]).mean(0) - (q[:, :, None] * u[:, None]).mean(0),
            (v - u).mean(0), (p - q).mean(0)]
""",
    ("RBM", "everything by hand, without gradients in the dream"): """
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


@pytest.mark.parametrize(("task", "style"), RIGHT)
def test_a_right_answer_in_another_style_passes(task, style):
    assert told(task, RIGHT[task, style]) == []


CD_TEXT = """
def my_cd_step(v, W, b, c, k, generator):
    u = v
    for _ in range(k):
        h = torch.bernoulli({hidden})
        u = torch.bernoulli({visible})
    p, q = torch.sigmoid(v @ W.T + c), torch.sigmoid(u @ W.T + c)
    return {sign} (p.T @ v - q.T @ u) / len(v), {sign} (v - u).mean(0), {sign} (p - q).mean(0)
"""
HIDDEN, VISIBLE = "torch.sigmoid(u @ W.T + c)", "torch.sigmoid(h @ W + b)"
RBM_TEXT = RIGHT["RBM", "everything by hand, without gradients in the dream"]
MOE_TEXT = RIGHT["MoE", "index_add, as the library does"]
WRONG = [  # a task, an answer, and what is said of it
    (
        "linear_attention",
        """
def my_linear_attention(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    s = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(dim=2)
    return torch.einsum("bhtk,bhtkv->bhtv", q, s) / (q * k.cumsum(dim=2)).sum(-1, keepdim=True)
""",
        "rounded to zero",
    ),
    (
        "linear_attention",
        """
def my_linear_attention(q, k, v):
    q, k = (torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (q, k))
    s = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(dim=2)
    return torch.einsum("bhtk,bhtkv->bhtv", q, s) / ((q * k.cumsum(dim=2)).sum(-1, keepdim=True) + 1e-6)
""",
        "a constant in the denominator",
    ),
    (
        "linear_attention",
        """
def my_linear_attention(q, k, v):
    q, k = (torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (q, k))
    s = torch.einsum("bhtk,bhtv->bhkv", k, v)
    return torch.einsum("bhtk,bhkv->bhtv", q, s) / (q @ k.sum(2)[..., None])
""",
        "later keys are attended to",
    ),
    (
        "linear_attention",
        """
def my_linear_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)
""",
        "softmax attention",
    ),
    (
        "local_mask",
        """
def my_local_mask(length, window):
    mask = torch.zeros(length, length, dtype=torch.bool)
    for i in range(length):
        mask[i, max(0, i - window) : i] = True
    return mask
""",
        "position itself hidden",
    ),
    (
        "local_mask",
        """
def my_local_mask(length, window):
    mask = torch.zeros(length, length, dtype=torch.bool)
    for i in range(length):
        mask[i, max(0, i - window + 1) : i + 1] = True
    return mask
""",
        "window includes the position itself",
    ),
    (
        "online_softmax",
        ONLINE_HEAD + "    return F.scaled_dot_product_attention(q[None], torch.cat(keys), torch.cat(values))[0]\n",
        "all scores at once",
    ),
    (
        "online_softmax",
        ONLINE_HEAD
        + """
    scores = []
    for k in keys:
        scores += (k @ q / len(q) ** 0.5).tolist()
    weights, out, start = torch.tensor(scores).softmax(0), 0, 0
    for v in values:
        out = out + weights[start : start + len(v)] @ v
        start += len(v)
    return out
""",
        "all scores at once",
    ),
    (
        "online_softmax",
        ONLINE_HEAD
        + """
    m = max((k @ q / len(q) ** 0.5).max().item() for k in keys)
    total, out = 0, 0
    for k, v in zip(keys, values):
        w = torch.exp(k @ q / len(q) ** 0.5 - m)
        total, out = total + w.sum(), out + w @ v
    return out / total
""",
        "two passes",
    ),
    (
        "online_softmax",
        ONLINE_HEAD
        + """
    total, out = 0, 0
    for k, v in zip(keys, values):
        w = torch.exp(k @ q / len(q) ** 0.5)
        total, out = total + w.sum(), out + w @ v
    return out / total
""",
        "overflow without a maximum",
    ),
    (
        "online_softmax",
        ONLINE_HEAD
        + """
    m, total, out = 0.0, 0.0, torch.zeros(values[0].shape[1])
    for k, v in zip(keys, values):
        s = k @ q / len(q) ** 0.5
        new = max(m, s.max().item())
        w, f = torch.exp(s - new), math.exp(m - new)
        total, out, m = f * total + w.sum(), f * out + w @ v, new
    return out / total
""",
        "maximum starts at 0",
    ),
    (
        "route",
        """
def my_route(logits, k):
    smallest = logits.topk(k).values[:, -1:]
    return logits.masked_fill(logits < smallest, 0.0).softmax(-1)
""",
        "zeros before the softmax",
    ),
    (
        "route",
        """
def my_route(logits, k):
    smallest = logits.topk(k).values[:, -1:]
    return logits.masked_fill(logits < smallest, float("-inf")).softmax(-1)
""",
        "always 1 for one expert",
    ),
    (
        "route",
        """
def my_route(logits, k):
    p = logits.softmax(-1)
    return p * (p >= p.topk(k).values[:, -1:])
""",
        "softmax over all experts",
    ),
    ("MoE", MOE_TEXT.replace("gates[rows, ranks].unsqueeze(1) * ", ""), "gates left out"),
    (
        "MoE",
        MOE_TEXT[: MOE_TEXT.index("        flat =")]
        + """
        gates = my_route(self.router(x.flatten(0, 1)), self.num_chosen).view(*x.shape[:2], -1)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=-1)
        return (outputs * gates.unsqueeze(-2)).sum(-1)
""",
        "every expert computes every token",
    ),
    (
        "MoE",
        MOE_TEXT.replace(
            "my_route(self.router(flat), self.num_chosen).topk(self.num_chosen)",
            "self.router(flat).topk(self.num_chosen)",
        ).replace("out = torch.zeros_like(flat)", "gates, out = gates.softmax(-1), torch.zeros_like(flat)"),
        "always 1 for one expert",
    ),
    ("MoE", MOE_TEXT.replace("num_experts, bias=False)", "num_experts)"), "parameters of other names or shapes"),
    (
        "free_energy",
        """
def my_free_energy(v, W, b, c):
    return -v @ b - torch.log(1 + torch.exp(v @ W.T + c)).sum(1)
""",
        "overflow",
    ),
    (
        "gibbs",
        """
def my_gibbs(v, W, b, c, noise_h, noise_v):
    h = torch.sigmoid(v @ W.T + c)
    return (noise_h < h).float(), (noise_v < torch.sigmoid(h @ W + b)).float()
""",
        "visible units from probabilities",
    ),
    (
        "ssm",
        """
def my_ssm(a, b, c, x):
    T = x.shape[1]
    kernel = (c * b * a ** torch.arange(T)[:, None]).sum(dim=1)
    return torch.fft.ifft(torch.fft.fft(x) * torch.fft.fft(kernel)).real
""",
        "circular convolution",
    ),
    ("cd_step", CD_TEXT.format(hidden=HIDDEN, visible=VISIBLE, sign=""), "generator not used"),
    (
        "cd_step",
        CD_TEXT.format(hidden=f"{HIDDEN}, generator=generator", visible=f"{VISIBLE}, generator=generator", sign="-"),
        "sign",
    ),
    (
        "cd_step",
        CD_TEXT.format(
            hidden=f"{HIDDEN}, generator=generator", visible=f"{VISIBLE}, generator=generator", sign=""
        ).replace("u = torch.bernoulli(torch.sigmoid(h @ W + b), generator=generator)", "u = torch.sigmoid(h @ W + b)"),
        "visible probabilities in the chain",
    ),
    (
        "cd_step",
        CD_TEXT.format(
            hidden=f"{HIDDEN}, generator=generator", visible=f"{VISIBLE}, generator=generator", sign=""
        ).replace("range(k)", "range(1)"),
        "one step only",
    ),
    ("RBM", RBM_TEXT.replace("self.W.T, self.b)", "self.W.T)"), "visible probabilities"),
    ("RBM", RBM_TEXT.replace("def visible", "def up").replace("self.visible", "self.up"), "method missing"),
    ("RBM", RBM_TEXT.replace("torch.bernoulli(self.hidden(v), generator=generator)", "self.hidden(v)"), "dream"),
    ("RBM", RBM_TEXT.replace("        return p\n", "        return torch.bernoulli(p)\n"), "dream returns a sample"),
    ("RBM", RBM_TEXT.replace(", generator=generator", ""), "generator not used"),
    ("RBM", RBM_TEXT.replace("self.W", "self.weight"), "parameters of other names or shapes"),
    ("RBM", RBM_TEXT.replace("normal_(0, 0.01)", "zero_()"), "first weights"),
    ("RBM", RBM_TEXT.replace("if step < steps - 1", "if False"), "dream makes one step only"),
]


@pytest.mark.parametrize(("task", "text", "name"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong_with_it(task, text, name):
    assert told(task, text) == [{"dream": "dream without sampling"}.get(name, name)]
