"""The page with a learner's answers: as a plain file that trains without the course, and in two kernels."""

from tests.lessons.answered import alone, kernels, unsaid

# Four shapes at random positions. Nothing in the training says which is which; three labelled images of each do.
DRIVER = """
def shapes(count):
    images, labels = torch.zeros(count, 1, 20, 20), torch.arange(count) % 4
    for n, label in enumerate(labels.tolist()):
        y, x = torch.randint(3, 7, (2,)).tolist()
        if label == 0:
            images[n, 0, y : y + 10 : 3, x : x + 10] = 1.0
        if label == 1:
            images[n, 0, y : y + 10, x : x + 10 : 3] = 1.0
        if label == 2:
            images[n, 0, y : y + 10, x : x + 10] = torch.eye(10)
        if label == 3:
            images[n, 0, y : y + 10, x : x + 10] = 1.0
    return images, labels

torch.manual_seed(0)
model = SimCLR(1, (8, 16), 8)
batches = [my_views(shapes(32)[0], torch.rand(2, 7, 32)) for _ in range(80)]
losses = my_train(model, batches, 0.5, 5e-3)
model.eval()
with torch.no_grad():
    (few, known), (many, labels) = shapes(12), shapes(200)
    h, stored = model.encoder(many), model.encoder(few)
votes = (my_knn(h, stored, known, 3) == labels).float().mean().item()
W, b = my_linear_probe(stored / stored.std(), known, 4, 0.1)
probe = ((h / stored.std() @ W.T + b).argmax(1) == labels).float().mean().item()
print(losses[0].item(), losses[-10:].mean().item(), votes, probe)
"""


def test_a_plain_file_of_the_solutions_trains_without_the_course(tmp_path):
    solutions = "random_crop views encoder simclr nt_xent train knn linear_probe"
    printed = alone(tmp_path, "02", solutions=solutions, cells="Block", driver=DRIVER, lines=200)
    first, last, votes, probe = map(float, printed)
    assert 3.9 < first < 4.4 and last < first - 0.3 and votes > 0.8 and probe > 0.8


def test_her_network_and_her_loss_go_on_in_a_new_kernel(tmp_path, monkeypatch):
    few = (("steps=100", "steps=2"), ("size=128", "size=8"), ("steps=60", "steps=2"))
    first, second = kernels(tmp_path, monkeypatch, "02", end='page.predict("labels")', shorter=few)
    parts = "my_random_crop my_views Encoder SimCLR my_nt_xent"
    assert not unsaid(first, "332,368 parameters", passes=parts, opens="SimCLR")
    assert not unsaid(second, goes_on="SimCLR", runs_on="my_knn my_train my_linear_probe")
