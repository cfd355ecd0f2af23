"""The page with a learner's answers: as a plain file, and in two kernels."""

from tests.lessons.answered import alone, kernels, unsaid

DRIVER = """
N = torch.logspace(3.5, 5, 5).double().repeat_interleave(5)
D = torch.logspace(5.4, 6.3, 5).double().repeat(5)
L = 1.1 + 90 * N**-0.6 + 1600 * D**-0.62
theta = my_fit(N, D, L, [(0.0, 3.0, 6.0, 0.4, 0.4), (0.0, 6.0, 9.0, 0.7, 0.7)])
size, tokens = my_allocation(*theta[1:].tolist(), 1e12)
text, vocab = torch.arange(4000) % 7, 7
torch.manual_seed(0)

class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(7, 8), nn.Linear(8, 7)
    def forward(self, tokens):
        return self.out(self.embed(tokens))

class screen:
    stopped = False
    def update(step, steps, loss): screen.step, screen.loss = step, loss

train(Small(), 60 * 16 * 32, 0.05, screen)
print(screen.step, screen.loss)
screen.stopped = True
train(Small(), 60 * 16 * 32, 0.05, screen)
print(screen.step)
print(theta[0].exp().item(), theta[3].item(), theta[4].item(), (6 * size * tokens).item())
"""


def test_a_plain_file_of_the_solutions_fits_and_trains_without_the_course(tmp_path):
    printed = alone(tmp_path, "09", solutions="law fit_law allocation", cells="train", driver=DRIVER, lines=130)
    steps, loss, stopped, E, alpha, beta, budget = map(float, printed)
    assert (steps, stopped) == (60, 1)
    assert abs(E - 1.1) < 0.01 and abs(alpha - 0.6) < 0.01 and abs(beta - 0.62) < 0.01
    assert abs(budget / 1e12 - 1) < 1e-6 and loss < 0.1


def test_her_law_and_her_fit_go_on_in_a_new_kernel(tmp_path, monkeypatch):
    few = (("(12, 20, 32)", "(32,)"), ("(75_000, 150_000, 300_000)", "(2_000,)"), ("== 300_000", "== 2_000"))
    few += (("range(40)", "range(3)"),)
    first, second = kernels(tmp_path, monkeypatch, "09", begin=1, end="def plan", shorter=few)
    assert not unsaid(first, passes="ScalingLaw", opens="ScalingLaw")
    assert not unsaid(second, goes_on="my_power_law ScalingLaw my_fit", passes="my_allocation")
