"""The page with a learner's answers: as a plain file that trains without the course, and in two kernels."""

from pathlib import Path

import nbformat

from course_lib.lessons.lesson_05.tasks import TASKS as BEFORE
from course_lib.lessons.lesson_07.tasks import TASKS
from tests.lessons.answered import run_alone, sittings

PAGE = Path(__file__).parents[3] / "notebooks" / "07_bert.ipynb"
# Rows count up modulo 10 from anywhere, so frequencies teach nothing. The loss stays at ln 10 = 2.3 until attention
# finds a neighbour, and then falls steeply, from step 100 to 400 with most seeds. A batch has about 38 chosen tokens,
# so its loss is noisy. Compared is therefore the mean of the last 50 steps of 500.
DRIVER = """
attention = my_attention
torch.manual_seed(0)
model = MaskedLM(12, 9, 32, 2, 4)
init_weights(model)
optimizer, losses = torch.optim.AdamW(model.parameters(), lr=3e-3), []
for _ in range(500):
    start = torch.randint(2, 12, (32, 1))
    tokens = 2 + (start + torch.arange(8)) % 10
    given, chosen = my_mask_words(tokens, torch.rand(3, 32, 8), tokens > 1, 1, (2, 12))
    loss = my_hidden_loss(model(given), tokens, chosen)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
rows = 2 + torch.randint(0, 10, (64, 8))
labels = torch.stack([(rows == rows.amin(1, keepdim=True)).int().argmax(1)] * 2, 1)
reader = WithHead(model.bert, SpanHead(32))
inputs = rows, torch.zeros_like(rows), torch.ones_like(rows, dtype=torch.bool)
tuned = my_fine_tune(reader, [(inputs, labels)] * 150, 1e-3)
logits = reader(*inputs)
right = (my_best_span(logits[:, 0], logits[:, 1], inputs[2], 3) == labels).all(1).float().mean()
print(losses[0], sum(losses[-50:]) / 50, tuned[-1].item(), right.item())
"""


def test_a_plain_file_of_the_solutions_trains_and_fine_tunes_without_the_course(tmp_path):
    tasks = {"attention": BEFORE["attention"], "multi_head": BEFORE["multi_head"], **TASKS}
    names = ("attention", "multi_head", "block", "bert", "masked_lm", "mask_words", "hidden_loss")
    first, last, tuned, right = run_alone(
        tmp_path,
        tasks,
        nbformat.read(PAGE, as_version=4),
        solutions=(*names, "sentence_head", "fine_tune", "best_span"),
        cells=("SpanHead", "WithHead", "init_weights"),
        driver=DRIVER,
        lines=240,
    ).split()
    assert 2.2 < float(first) < 2.8 and float(last) < 1
    assert float(tuned) < 0.5 and float(right) > 0.9


def test_her_encoder_and_her_loops_go_on_in_a_new_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    few = (("steps=1500", "steps=2"), ("batches(150)", "batches(2)"), ("batches(300)", "batches(2)"))
    few += (("learner.held_out_loss(model)", "0.0"), ("batch(200)", "batch(2)"))
    first, second = sittings(
        nbformat.read(PAGE, as_version=4),
        TASKS,
        end='page.predict("zero_shot")',
        left_out=("unnormalized eigenvalues", "longest_match"),
        shorter=few,
    )
    for name in ("EncoderBlock", "BERT", "MaskedLM"):
        assert f"your {name} passes its check" in first and f"the lesson runs on your {name}." in first
    assert "MaskedLM opens the trained weights." in first and "the page runs on your model" in first
    assert "Your BERT goes on here." in second and "Your MaskedLM goes on here." in second
    for name in ("my_mask_words", "my_hidden_loss", "SentenceHead", "my_fine_tune", "my_best_span"):
        assert f"the lesson runs on your {name}." in second
    assert "chosen: 760 of 5,032 tokens, 15.1%" in second
    assert "BERT opens the trained weights." in second and "both ends right:" in second
