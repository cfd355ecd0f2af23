"""The page with a learner's answers: as a plain file, and in two kernels."""

from tests.lessons.answered import alone, kernels, unsaid

DRIVER = """
import copy

augment, parameter_groups = my_augment, my_parameter_groups

def drawn(kinds, count):
    labels = torch.randint(len(kinds), (count,))
    rgba = torch.zeros(count, 4, 16, 16)
    rgba[:, :3] = torch.rand(count, 3, 1, 1)
    for image, label in zip(rgba, labels.tolist()):
        kind = kinds[label]
        if kind in "-+":
            image[3, 7:9, 3:13] = 1
        if kind in "|+":
            image[3, 3:13, 7:9] = 1
        if kind == "o":
            image[3, 3:13, 3:13] = 1
            image[3, 6:10, 6:10] = 0
    return rgba, labels

def random_batch(size, kinds="-|o"):
    rgba, labels = drawn(kinds, size)
    views = augment(rgba, torch.rand(size) < 0.5, torch.randint(9, (size, 2)), torch.ones(size, 3))
    return (views - 0.5) / 0.25, labels

class screen:
    stopped = False
    def update(step, steps, loss): screen.loss = loss

torch.manual_seed(0)
model = ResNet(3, (8, 16), (1, 1))
train(model, 60, 0.01, screen)
new = my_new_head(model, 2, True)
losses = my_fine_tune(new, [random_batch(32, "+-") for _ in range(40)], 0.03, 0.5, True)
whole = my_new_head(model, 2, False)
all_losses = my_fine_tune(whole, [random_batch(32, "+-") for _ in range(40)], 0.01, 0.5, False)
print(screen.loss, losses[-5:].mean().item(), all_losses[-5:].mean().item())
"""


def test_a_plain_file_of_the_solutions_and_the_page_s_loop_learns_without_the_course(tmp_path):
    solutions = "block resnet augment new_head parameter_groups fine_tune"
    printed = alone(tmp_path, "01", solutions=solutions, cells="train", driver=DRIVER, lines=200)
    source, frozen, whole = map(float, printed)
    assert source < 0.5 and frozen < 0.6 and whole < 0.4


def test_her_resnet_goes_on_in_a_new_kernel(tmp_path, monkeypatch):
    few = (("steps=200", "steps=2"), ("steps=150", "steps=2"))
    few += (("learner.accuracy(shipped.model, 'test')", "0"), ("learner.accuracy(source, 'new designer')", "0"))
    cut = {"end": 'measured["few_labels"]', "left_out": ("def training(", "task.asked"), "shorter": few}
    first, second = kernels(tmp_path, monkeypatch, "01", **cut)
    assert not unsaid(first, "the page runs on your model", runs_on="BasicBlock ResNet my_augment", opens="ResNet")
    assert not unsaid(second, goes_on="ResNet my_augment", opens="ResNet", runs_on="my_fine_tune")
