"""The page with a learner's answers: as a plain file, and in three kernels."""

from tests.lessons.answered import alone, kernels, tasks_of, unsaid

DRIVER = """
in_windows, shift_mask, position_index = my_in_windows, my_shift_mask, my_position_index

class learner:
    def batch(size, step):
        torch.manual_seed(step)
        labels = torch.randint(0, 4, (size,))
        images = 0.3 * torch.randn(size, 1, 16, 16)
        for image, label in zip(images, labels):          # stripes in none, one or both directions
            image[:, ::2] += label % 2
            image[:, :, ::2] += label // 2
        return images, labels

class page:
    stopped = False
    def watch(*_, **__): return page
    def update(done, steps, loss): page.losses.append(loss)
    def close(): pass

page.losses, example = [], None
sizes = {"in_channels": 1, "num_classes": 4, "patch_size": 2, "dim": 8,
         "depths": (2, 2), "num_heads": (1, 2), "size": 4, "grid": 8}
_, steps = training(MySwin, sizes, steps=120, peak=1e-2)
print(page.losses[0], page.losses[-1], steps)
page.stopped = True
print(training(MySwin, sizes)[1])
"""


def test_a_plain_file_of_the_solutions_and_the_page_s_loop_learns_without_the_course(tmp_path):
    solutions = " ".join(name for name in tasks_of("12") if name != "attention_cost")
    printed = alone(tmp_path, "12", solutions=solutions, cells="training", driver=DRIVER, lines=190)
    first, last, steps, stopped = map(float, printed)
    assert 1 < first < 2 and last < 0.5, (first, last)  # ln 4 = 1.39
    assert (steps, stopped) == (120, 1)


def test_her_parts_go_on_in_new_kernels(tmp_path, monkeypatch):
    few = (("steps=600", "steps=2"), ("shifted=True", "shifted=True, steps=2"))
    few += (("shifted=False", "shifted=False, steps=2"), ("1000)", "40)"))
    second, third = kernels(tmp_path, monkeypatch, "12", begin=1, end="page.close()", shorter=few)
    parts = "my_in_windows my_shift_mask my_position_index WindowAttention SwinBlock PatchMerging"
    assert not unsaid(second, "the same result: True", passes=parts, opens="MySwin")
    assert not unsaid(third, "one batch is memorised: True", goes_on="MySwin")
