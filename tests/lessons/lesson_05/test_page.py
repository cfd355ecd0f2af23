"""The page with a learner's answers: as a plain file, in four kernels, and in another lesson."""

from tests.lessons.answered import BACKWARDS, READ_BACKWARDS, alone, kernels, shown, unsaid

DRIVER = f"""
attention = my_attention

{BACKWARDS}
torch.manual_seed(0)
model = Seq2Seq(9, 9, 32)
train(model, 200, screen)
{READ_BACKWARDS}"""
OTHER = "from course_lib.lessons.lesson_08 import page\nlayer = page.from_lesson('05', 'multi_head')"


def test_a_plain_file_of_the_solutions_and_the_page_s_loop_learns_without_the_course(tmp_path):
    solutions = "attention encoder decoder seq2seq greedy"
    loss, right = alone(tmp_path, "05", solutions=solutions, cells="loss_of train", driver=DRIVER, lines=150)
    assert float(loss) < 0.2 and float(right) > 0.9


def test_her_translator_and_her_heads_go_on_in_new_kernels(tmp_path, monkeypatch):
    few = (("steps=1000", "steps=3"), ("range(80)", "range(2)"))
    cut = {"begin": 1, "end": "neighbours.train_reader", "left_out": ("data.test",), "shorter": few}
    first, second, third = kernels(tmp_path, monkeypatch, "05", **cut)
    parts = "Encoder Decoder Seq2Seq"
    assert not unsaid(first, "the page runs on your model", passes=parts, runs_on=parts, opens="Seq2Seq")
    assert not unsaid(second, goes_on="my_attention Seq2Seq my_greedy")
    assert not unsaid(third, goes_on="my_attention", passes="MultiHeadAttention")
    assert "Your MultiHeadAttention goes on here, of lesson 05." in shown([OTHER])
