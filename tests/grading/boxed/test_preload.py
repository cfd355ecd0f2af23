"""What a zygote does before it forks boxes; each test in a Python of its own, which it leaves changed."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.needs("linux")

TRAINING = """
import torch
torch.set_num_threads(1)
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
x = torch.randn(16, 4)
for make in (torch.optim.Adam, torch.optim.SGD, torch.optim.AdamW):
    optimizer = make(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for _ in range(5):
        optimizer.zero_grad()
        (model(x) - x[:, :1]).square().mean().backward()
        optimizer.step()
        schedule.step()
print([value.item().hex() for parameter in model.parameters() for value in parameter.flatten()])
"""


def said(source):
    """What a program prints."""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def after_preload(source, before=""):
    """What a program prints after the preparation of boxes."""
    return said(f"from course_lib.grading.boxed import preload, worker\n{before}\npreload.preload()\n{source}")


def test_boxes_begin_with_their_seeds_and_an_empty_notebook():
    source = """
import sys, numpy, torch
def drawn(): return torch.rand(1).item(), numpy.random.rand()
first = drawn()
worker.settle()
print(first == drawn(), hasattr(sys.modules["__main__"], "preload"), torch.get_num_threads())
"""
    assert after_preload(source) == ["True True 1"]


def test_optimizers_do_without_the_compiler_and_train_the_same_to_the_last_bit():
    imported = 'import sys; print("torch._dynamo.convert_frame" in sys.modules)'
    assert after_preload(TRAINING + imported) == [*said(TRAINING), "False"]


def test_who_compiles_gets_the_compiler():
    source = """
import sys, torch
compiled = torch.compile(lambda x: 2 * x + 1, backend="eager")
print(compiled(torch.ones(2)).tolist(), "torch._dynamo.convert_frame" in sys.modules)
"""
    assert after_preload(source + TRAINING) == ["[3.0, 3.0] True", *said(TRAINING)]


def test_who_wants_a_part_of_the_compiler_gets_it():
    source = "import torch._dynamo.config\nprint(torch._dynamo.config.verbose, torch._dynamo.is_compiling())"
    assert after_preload(source) == ["False False"]


def test_a_rehearsal_that_fails_says_so():
    with pytest.raises(subprocess.CalledProcessError) as failed:
        after_preload("", before='preload.REHEARSAL = "raise ZeroDivisionError"')
    assert failed.value.stderr.endswith("RuntimeError: the rehearsal of boxes stopped: ZeroDivisionError\n")


def test_memory_goes_into_huge_pages_where_the_kernel_can_and_keeps_what_is_in_it():
    source = """
import os
from pathlib import Path
def huge():
    return sum(int(line.split()[1]) for line in Path("/proc/self/smaps").open() if line.startswith("AnonHugePages:"))
kept = [bytes([number % 251]) * 500 for number in range(60_000)]
before = huge()
preload.gather_pages()
pages = Path("/sys/kernel/mm/transparent_hugepage/enabled")
new = tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 1)
can = new and pages.exists() and "[never]" not in pages.read_text()
print(huge() - before > 16 << 10 or not can, all(part == bytes([n % 251]) * 500 for n, part in enumerate(kept)))
"""
    assert said(f"from course_lib.grading.boxed import preload\n{source}") == ["True True"]
