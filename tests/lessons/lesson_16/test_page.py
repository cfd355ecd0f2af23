"""The page with a learner's answers: as plain files, and in two kernels."""

from course_lib.lessons.lesson_10.tasks import TASKS as TASKS_10
from tests.lessons.answered import kernels
from tests.lessons.modern import numbers_alone

ACTING_DRIVER = """
to_go, interleave, cloning_loss = my_to_go, my_interleave, my_cloning_loss
gae, clipped, imitation_reward, discriminator_loss = my_gae, my_clipped, my_imitation_reward, my_discriminator_loss

class ReLUBlock(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(dim, num_heads, 4 * dim, 0.0, batch_first=True, norm_first=True)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.layer(x, src_mask=mask)

def randomly(policy, count):                             # four cells at random; an expert takes the cell's action
    cells = torch.randint(4, (count, 5))
    states = F.one_hot(cells, 150).float()
    actions = cells if policy is None else torch.distributions.Categorical(logits=policy(states)).sample()
    pairs = torch.cat([states, F.one_hot(actions, 4).float()], dim=-1)
    valid = torch.ones_like(actions, dtype=torch.bool)
    return SimpleNamespace(states=states, actions=actions, pairs=pairs, valid=valid, cells=cells)

class acting:
    SCALE, ACTIONS = 6, 2
    rollout = randomly

    def success(policy):
        states = F.one_hot(torch.arange(4), 150).float()
        return (policy(states).argmax(dim=-1) == torch.arange(4)).float().mean().item()

    def windows(valid, count):
        rows, first = torch.randint(len(valid), (count, 1)), torch.randint(valid.shape[1] - 1, (count, 1))
        return rows.expand(-1, 2), first + torch.arange(2)

kind = torch.arange(60) % 2                              # action 1 in every step costs 1 each, action 0 nothing
actions, valid = kind[:, None].expand(-1, 6), torch.ones(60, 6, dtype=torch.bool)
states = F.one_hot(torch.randint(3, (60, 6)), 3).float()
data = SimpleNamespace(states=states, actions=actions, rewards=-actions.float(), valid=valid)
returns, losses = to_go(data.rewards) / acting.SCALE, []
model = DecisionTransformer(3, 2, 6, 16, 1, 2)
train(model, 200, screen)
first = returns[:, :1], states[:, :1], torch.zeros(60, 1, 2), torch.zeros(60, 1, dtype=torch.long)
obeys = (model.eval()(*first)[:, 0].argmax(dim=-1) == kind).float().mean().item()
expert = randomly(None, 200).pairs.flatten(0, 1)
log = imitate(20, mlp, rollout, gail)
print(losses[0], losses[-1], obeys, log[0][2], log[-1][2], log[-1][1])
"""
CLIP_DRIVER = """
clip_loss = my_clip_loss
torch.manual_seed(0)
features, names = torch.randn(200, 128), torch.randperm(1 + 3 * 200)[: 2 * 200].view(200, 2)

class words:
    def random_pairs(count):
        rows = torch.randperm(200)[:count]
        return features[rows] + 0.3 * torch.randn(count, 128), names[rows]

model, losses = Towers(601, 32), []
contrast(model, 60, screen)
with torch.no_grad():
    images, texts = (F.normalize(one, dim=-1) for one in model.eval()(features, names))
found = (images @ texts.T).argmax(dim=1) == torch.arange(200)
print(losses[0], losses[-1], found.float().mean().item())
"""


def test_a_plain_file_of_her_agents_and_the_page_s_loops_learns_without_the_course(tmp_path):
    names = ("cloning_loss", "to_go", "interleave", "decision_transformer", "discriminator_loss", "imitation_reward")
    first, last, obeys, before, after, told_apart = numbers_alone(
        tmp_path,
        "16",
        more_tasks={name: TASKS_10[name] for name in ("gae", "clipped")},
        solutions=("gae", "clipped", *names),
        cells=("train", "mlp", "chosen", "rollout", "gail", "imitate"),
        driver=ACTING_DRIVER,
        lines=260,
    )
    assert first > 0.5 and last < 0.1 and obeys == 1, (first, last, obeys)
    assert before < 0.8 and after == 1 and told_apart < 0.8, (before, after, told_apart)


def test_a_plain_file_of_her_loss_and_the_page_s_towers_finds_images_without_the_course(tmp_path):
    first, last, found = numbers_alone(
        tmp_path, "16", solutions=("clip_loss",), cells=("Towers", "contrast"), driver=CLIP_DRIVER, lines=80
    )
    assert 4.7 < first < 5 and last < first - 1 and found > 0.95, (first, last, found)  # ln 128 = 4.85


def test_her_models_open_the_trained_weights_and_go_on_in_a_new_kernel(tmp_path, monkeypatch):
    few = (("steps=500", "steps=2"), ("rounds=40", "rounds=1"), ("steps=1000", "steps=2"))
    first, second = kernels(tmp_path, monkeypatch, "16", end="page.close", shorter=few)
    assert "your DecisionTransformer passes its check" in first and "the page runs on your model" in first
    assert "DecisionTransformer opens the trained weights." in first and "asked for -22: " in first
    assert "Your DecisionTransformer goes on here." in second and "your CoAttention passes its check" in second
    assert "your Flamingo passes its check" in second and "Flamingo opens the trained weights." in second
