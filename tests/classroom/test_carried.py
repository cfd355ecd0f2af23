"""What passed its check in one kernel is there in the next, with all that it needs; what cannot be kept is ours."""

import json
import re

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.lessons.lesson_08 import page as lesson_08

FIRST = [
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\nfrom math import sqrt\n"
    "from torch import log_softmax\nfrom typing import Optional\n"
    "from course_lib.lessons.lesson_08 import page\npage.open()",
    'CALLS = 3\nprinted = open("/dev/null", "w")\n\ndef shifted(x):\n    return x[:, :-1]\n\nclass Base(nn.Module):\n'
    "    factor = CALLS / 3\n",
    """\
class Loss(Base):
    def __init__(self):
        super().__init__()
        self.parts = [torch.ones(CALLS) for _ in range(2)]

    def forward(self, logits, tokens: Optional[torch.Tensor]):
        logs = log_softmax(shifted(logits), dim=-1)
        losses = (F.nll_loss(logs.flatten(0, 1), tokens[:, 1:].flatten()) for _ in range(CALLS))
        return self.factor * sum(losses) / CALLS * sqrt(1)

def my_loss(logits, tokens, made=Loss):
    return made()(logits, tokens)

page.check("shifted_loss", my_loss)""",
    """\
def my_perplexity(nats, num_bytes, valid=None):
    valid = torch.ones_like(nats, dtype=torch.bool) if valid is None else valid
    total = nats[valid].sum()
    printed.write("")
    return torch.stack([(total / valid.sum()).exp(), total / num_bytes / torch.log(torch.tensor(2.0))])

page.check("perplexity", my_perplexity)""",
]
SECOND = [
    'from course_lib.lessons.lesson_08 import page\nmy_loss, my_perplexity = page.resume("shifted_loss", "perplexity")',
    "import torch\nfloat(my_loss(torch.zeros(2, 5, 7), torch.zeros(2, 5, dtype=torch.long)))",
    'from course_lib.lessons.lesson_05 import page as other\nother.from_lesson("08", "shifted_loss").__name__',
    'other.from_lesson("08", "no such exercise")',
    "my_loss(3, 4)",
]


def shown(cells):
    """What each cell shows in one kernel, without colours."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in cells])
    NotebookClient(notebook, kernel_name="python3", allow_errors=True).execute()
    assert nbformat.validate(notebook) is None
    texts = []
    for cell in notebook.cells:
        parts = [out.get("data", {}).get("text/plain") or "\n".join(out.get("traceback", ())) for out in cell.outputs]
        texts.append(re.sub(r"\x1b\[[\d;]*m", "", "\n".join(parts)))
    return texts


@pytest.fixture(scope="module")
def sittings(tmp_path_factory):
    """What two kernels show, one after the other, and the progress file behind them."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_HOME", str(home))
        first, second = shown(FIRST), shown(SECOND)
        kept = json.loads((home / "progress.json").read_text())["lessons"]["08"]["exercises"]
        (home / "progress.json").write_text(
            (home / "progress.json").read_text().replace("self.factor * sum(losses)", "self.factor * max(losses)")
        )
        return first, second, kept, shown(SECOND[:1])


def test_what_passed_is_kept_with_its_helpers_imports_and_values(sittings):
    first, _, kept, _ = sittings
    assert "All right" in first[2] and "All right" in first[3]
    source = kept["shifted_loss"]["written"]["source"]
    assert all(part in source for part in ("def shifted(x)", "class Base", "CALLS = 3", "from math import sqrt"))
    assert "from torch import log_softmax" in source and "page" not in source
    assert kept["perplexity"]["passed"] and kept["perplexity"]["written"] is None  # it uses an open file


def test_the_second_sitting_runs_on_it(sittings):
    _, second, _, _ = sittings
    assert "Your my_loss goes on here." in second[0] and "`perplexity`" not in second[0]
    assert "perplexity: yours is not kept, so the page takes ours." in second[0]
    assert float(second[1].splitlines()[-1]) == pytest.approx(1.9459, abs=1e-3)


def test_another_lesson_gets_it_too(sittings):
    _, second, _, _ = sittings
    assert "Your my_loss goes on here, of lesson 08." in second[2] and second[2].endswith("'my_loss'")
    assert "has no 'no such exercise'" in second[3]


def test_its_errors_show_her_own_lines(sittings):
    _, second, _, _ = sittings
    assert "return made()(logits, tokens)" in second[4]


def test_a_source_that_was_changed_in_the_file_is_not_run(sittings):
    *_, third = sittings
    assert "shifted_loss: yours no longer passes its check" in third[0]


def test_the_exercises_are_there():
    assert {"shifted_loss", "perplexity"} <= lesson_08.tasks.keys()
