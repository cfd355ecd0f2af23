"""The page with a learner's answers: as a plain file that trains without the course, and in two kernels."""

from tests.lessons.answered import alone, kernels, unsaid

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
    solutions = "attention multi_head block bert masked_lm mask_words hidden_loss sentence_head fine_tune best_span"
    parts = {"others": ("05",), "solutions": solutions, "cells": "SpanHead WithHead init_weights"}
    first, last, tuned, right = map(float, alone(tmp_path, "07", driver=DRIVER, lines=240, **parts))
    assert 2.2 < first < 2.8 and last < 1 and tuned < 0.5 and right > 0.9


def test_her_encoder_and_her_loops_go_on_in_a_new_kernel(tmp_path, monkeypatch):
    few = (("steps=1500", "steps=2"), ("batches(150)", "batches(2)"), ("batches(300)", "batches(2)"))
    few += (("learner.held_out_loss(model)", "0.0"), ("batch(200)", "batch(2)"))
    left_out = ("unnormalized eigenvalues", "longest_match")
    cut = {"end": 'page.predict("zero_shot")', "left_out": left_out, "shorter": few}
    first, second = kernels(tmp_path, monkeypatch, "07", **cut)
    parts, own = "EncoderBlock BERT MaskedLM", "my_mask_words my_hidden_loss SentenceHead my_fine_tune my_best_span"
    assert not unsaid(first, "the page runs on your model", passes=parts, runs_on=parts, opens="MaskedLM")
    told = ("chosen: 760 of 5,032 tokens, 15.1%", "both ends right:")
    assert not unsaid(second, *told, goes_on="BERT MaskedLM", runs_on=own, opens="BERT")
