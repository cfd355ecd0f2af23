"""The page with a learner's answers: as plain files, and in two kernels."""

from tests.lessons.answered import kernels
from tests.lessons.modern import numbers_alone

EXPERTS_DRIVER = """
from contextlib import contextmanager

balance, k = my_balance, 2
routed = []

class learner:
    def windows(ids, count, length):                     # each symbol follows the one before
        return (torch.randint(6, (count, 1)) + torch.arange(length)) % 6

    @contextmanager
    def record_routers(model):
        routers = []
        handle = model[1].router.register_forward_hook(lambda part, given, made: routers.append(made))
        yield routers
        routed.append(my_route(routers[0], 2))
        handle.remove()

ids, losses = None, []
model = nn.Sequential(nn.Embedding(6, 16), MoE(16, 32, 4, k), nn.Linear(16, 6))
train(model, 120, 0.01, screen)
loads = (routed[-1] > 0).float().mean(dim=0)

q, k, v = torch.randn(3, 2, 9, 8).unbind()
s, z = torch.zeros(8, 8), torch.zeros(8)
for i in range(9):
    out, s, z = my_linear_step(q[0, i], k[0, i], v[0, i], s, z)
apart = (out - my_linear_attention(q, k, v)[0, -1]).abs().max()
blocks = my_online_softmax(q[0, 0], k[0].split(4), v[0].split(4))
exact = F.scaled_dot_product_attention(q[0, :1], k[0], v[0])[0]
print(losses[0], losses[-1], loads.min().item(), apart.item(), (blocks - exact).abs().max().item())
"""
MACHINE_DRIVER = """
cd_step = my_cd_step
torch.manual_seed(0)
labels = torch.arange(200) % 4                           # a bar in one of four rows
pixels = F.one_hot(labels, 4).float().repeat_interleave(4, dim=1)

class learner:
    def drawn(pixels): return (torch.rand(pixels.shape) < pixels).float()
    def with_labels(pixels, labels): return torch.cat([pixels, F.one_hot(labels, 4).float()], dim=1)

machine = RBM(20, 12)
errors = train_machine(machine, digits_with_labels, 600, 1)
bars = learner.with_labels(pixels[:4], labels[:4])
noise = (torch.rand(200, 20) < 0.4).float()
with torch.no_grad():
    lower = machine(bars).max() < machine(noise).mean()
    dreams = machine.dream(noise, 200, torch.Generator().manual_seed(0))
    near = (dreams[:, None] - bars).abs().mean(dim=2).min(dim=1).values
    h, v = my_gibbs(bars, machine.W, machine.b, machine.c, torch.rand(4, 12), torch.rand(4, 20))
mine, upper = machine, RBM(12, 12)                       # a second machine on hidden units of the first
train_machine(upper, hidden_of_digits, 2000, 1)
def of_bars(v): return (v[:, None] - bars).abs().mean(dim=2).min(dim=1).values.mean().item()
start = torch.rand(200, 12).round()
stacked = of_bars(dream_of_stack(start, 100, torch.Generator().manual_seed(0)))
upper = RBM(12, 12)
untrained = of_bars(dream_of_stack(start, 100, torch.Generator().manual_seed(0)))
print(errors[0], sum(errors[-50:]) / 50, int(lower), (near < 0.1).float().mean().item(), (v - bars).abs().mean().item())
print(stacked, untrained)
"""


def test_a_plain_file_of_her_experts_and_the_page_s_loop_learns_without_the_course(tmp_path):
    names = ("linear_attention", "linear_step", "online_softmax", "route", "balance", "MoE")
    first, last, least, *apart = numbers_alone(
        tmp_path, "17", solutions=names, cells=("train",), driver=EXPERTS_DRIVER, lines=160
    )
    assert first > 1.5 and last < 0.1 and max(apart) < 1e-4, (first, last, apart)
    assert least > 0.2  # of the symbols; 0.5 would be balanced


def test_a_plain_file_of_her_machine_and_the_page_s_loop_dreams_without_the_course(tmp_path):
    names = ("free_energy", "gibbs", "cd_step", "RBM")
    loop = ("digits_with_labels", "train_machine", "hidden_of_digits", "dream_of_stack")
    first, last, lower, dreams, apart, stacked, untrained = numbers_alone(
        tmp_path, "17", solutions=names, cells=loop, driver=MACHINE_DRIVER, lines=150
    )
    assert first > 0.2 and last < 0.05 and lower, (first, last, lower)
    assert dreams > 0.8 and apart < 0.2, (dreams, apart)
    assert stacked < untrained / 2, (stacked, untrained)


def test_her_models_open_the_trained_weights_and_go_on_in_a_new_kernel(tmp_path, monkeypatch):
    few = (("steps=250", "steps=2"), ("steps=3000", "steps=3"))
    first, second = kernels(tmp_path, monkeypatch, "17", end="page.close", shorter=few)
    assert "your MoE passes its check" in first and "the page runs on your model" in first
    assert "MoE opens the trained weights." in first and "experts, 2 for each character" in first
    assert "Your MoE goes on here." in second and "your RBM passes its check" in second
    assert "RBM opens the trained weights." in second
