"""The page with a learner's answers: as a plain file, in two kernels, and in another lesson."""

from tests.lessons.answered import BACKWARDS, READ_BACKWARDS, alone, kernels, shown, unsaid

MODEL = "layernorm mlp residual encoder_block decoder_block transformer"
DRIVER = f"""
attention, positions, residual = my_attention, my_positions, my_residual
schedule, smoothed_loss = my_schedule, my_smoothed_loss

{BACKWARDS}
torch.manual_seed(0)
model = Transformer(9, 9, 32, 1, 4, 64)
for parameter in model.parameters():
    if parameter.dim() > 1:
        nn.init.xavier_uniform_(parameter)
for table in (model.source_embed, model.target_embed):
    nn.init.normal_(table.weight, std=32**-0.5)
train(model, 300, screen, peak=0.005, warmup=50)
{READ_BACKWARDS}"""
OTHER = "from course_lib.lessons.lesson_07 import page\nblock = page.from_lesson('06', 'encoder_block')"


def test_a_plain_file_of_the_solutions_and_the_page_s_loop_learns_without_the_course(tmp_path):
    solutions = f"attention multi_head positions {MODEL} greedy schedule smoothed_loss"
    parts = {"others": ("05",), "solutions": solutions, "cells": "loss_of train"}
    loss, right = alone(tmp_path, "06", driver=DRIVER, lines=240, **parts)
    assert float(loss) < 0.9 and float(right) > 0.9


def test_her_transformer_goes_on_in_new_kernels(tmp_path, monkeypatch):
    few = (("steps=1000", "steps=3"), ("range(80)", "range(2)"))
    cut = {"begin": 1, "end": "hard = (", "left_out": ("data.test", "learner.gradient_norms"), "shorter": few}
    first, second = kernels(tmp_path, monkeypatch, "06", **cut)
    parts, opened = "LayerNorm MLP EncoderBlock DecoderBlock Transformer", "the page runs on your model"
    assert not unsaid(first, opened, passes=parts, runs_on=parts, opens="Transformer")
    assert not unsaid(second, opened, goes_on="Transformer my_greedy", opens="Transformer")
    assert "Your EncoderBlock goes on here, of lesson 06." in shown([OTHER])
