"""The page with a learner's answers: as plain files, and in two kernels."""

from tests.lessons.answered import kernels
from tests.lessons.modern import numbers_alone

T5_DRIVER = """
bucket = my_bucket

V, LENGTH = 12, 8                                        # symbols 1 to 8; sentinels 11, 10
rows = [[(first + i) % 8 + 1 for i in range(LENGTH)] for first in range(8)]      # each symbol follows the one before
pairs = [my_corrupt(row, [(i, i + 2), (i + 4, i + 5)], 11) for row in rows for i in range(3)]
source, target = (torch.tensor(list(part)) for part in zip(*pairs))
real = torch.ones_like(source, dtype=torch.bool)
data = SimpleNamespace(source=source, source_valid=real, target=target, target_valid=torch.ones_like(target).bool())
model, losses = T5(V, 32, 1, 2, 16, 64), []
fine_tune(model, 150, screen)
right = model(source, previous(target), real).argmax(dim=-1) == target
print(losses[0], losses[-1], right.float().mean().item())
"""
CONFORMER_DRIVER = """
def FeedForward(dim, mlp_dim, activation):
    return nn.Sequential(nn.Linear(dim, mlp_dim), nn.SiLU(), nn.Linear(mlp_dim, dim))

class RelativeAttention(nn.Module):                      # here without positions: each frame says its symbol
    def __init__(self, dim, num_heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, num_heads, batch_first=True)

    def forward(self, x, distances, mask=None):
        return self.attn(x, x, x, None if mask is None else ~mask[:, 0, 0], need_weights=False)[0]

class Subsampling(nn.Module):
    def __init__(self, frame_dim, dim, num_halvings, dropout):
        super().__init__()
        self.proj = nn.Linear(frame_dim, dim)

    def forward(self, frames, valid):
        return self.proj(frames[:, ::4])

def relative_sinusoids(length, dim):
    return None

class learner:
    def melodies(count, step):                           # three symbols in 12 frames each, quiet between them
        labels = torch.randint(1, 4, (count, 3))
        frames = 4 * F.one_hot(labels, 4).float().repeat_interleave(12, dim=1)
        frames[:, 8::12] = frames[:, 9::12] = 0
        valid = torch.ones(frames.shape[:2], dtype=torch.bool)
        return SimpleNamespace(frames=frames, valid=valid, labels=labels, num_labels=torch.full((count,), 3))

torch.manual_seed(0)
model, losses = Conformer(4, 4, 16, 1, 2, 32, 3), []
listen(model, 60, screen)
new = learner.melodies(20, 0)
log_probs = model.eval()(new.frames, new.valid).log_softmax(dim=-1)
mine = torch.stack([my_ctc_loss(*one) for one in zip(log_probs, new.labels)])
theirs = F.ctc_loss(log_probs.transpose(0, 1), new.labels, torch.full((20,), 9), new.num_labels, reduction="none")
text = [my_collapse(row) == said for row, said in zip(log_probs.argmax(dim=-1).tolist(), new.labels.tolist())]
print(losses[0], losses[-1], sum(text) / 20, (mine - theirs).abs().max().item())
"""


def test_a_plain_file_of_her_t5_and_the_page_s_loop_fills_gaps_without_the_course(tmp_path):
    names = ("corrupt", "bucket", "t5_attention", "t5_block", "t5")
    first, last, right = numbers_alone(
        tmp_path, "15", solutions=names, cells=("RelativeBias", "previous", "fine_tune"), driver=T5_DRIVER, lines=200
    )
    assert first > 2 and last < 0.2 and right > 0.95, (first, last, right)


def test_a_plain_file_of_her_conformer_and_the_page_s_loop_transcribes_without_the_course(tmp_path):
    names = ("collapse", "ctc_loss", "conv_module", "conformer_block", "conformer")
    first, last, right, apart = numbers_alone(
        tmp_path, "15", solutions=names, cells=("listen",), driver=CONFORMER_DRIVER, lines=190
    )
    assert first > 2 and last < 0.5 and right > 0.9 and apart < 1e-3, (first, last, right, apart)


def test_her_models_open_the_trained_weights_and_go_on_in_a_new_kernel(tmp_path, monkeypatch):
    few = (("steps=200", "steps=2"), ("steps=250", "steps=2"))
    first, second = kernels(tmp_path, monkeypatch, "15", end="opened_by_both", shorter=few)
    assert "your T5 passes its check" in first and "the page runs on your model" in first
    assert "T5 opens the trained weights. 199,040 parameters are copied" in first
    assert "negate: the law is new . -> the law is not new ." in first
    assert "Your T5 goes on here." in second and "your Conformer passes its check" in second
    assert "Conformer opens the trained weights. 149,721 parameters are copied" in second
