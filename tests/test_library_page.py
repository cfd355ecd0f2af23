"""The Python of docs/library.md runs as typed, from top to bottom; what needs the network gets small stand-ins."""

import re
from pathlib import Path

import huggingface_hub
import pytest
import torch

from course_lib import weights
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.text.bpe import ByteLevelBPE

DOCS = Path(__file__).parents[1] / "docs"


def test_every_block_of_the_library_page_runs_as_typed(tmp_path, monkeypatch, capsys):
    ByteLevelBPE.train(["The meaning of life is a question of many words."], vocab_size=270).save_files(tmp_path)
    torch.manual_seed(0)
    small = GPT(GPTConfig(vocab_size=270, context_length=64, dim=16, depth=1, num_heads=2)).eval()
    monkeypatch.setattr(weights, "from_pretrained", {"gpt2": small}.__getitem__)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name, allow_patterns: str(tmp_path))
    names = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / "library.md").read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)
    assert names["record"].maps().ndim == 5
    printed = capsys.readouterr().out.splitlines()
    (by_hand,) = (i for i, line in enumerate(printed) if re.fullmatch(r"tensor\(\d\.\d+\)", line))
    assert float(printed[by_hand - 1]) == pytest.approx(float(printed[by_hand][7:-1]), abs=1e-4)
    assert printed[-1].split(" (")[1].startswith(("noun): ", "verb): ", "adjective): ", "adverb): "))


@pytest.mark.parametrize(
    ("page", "installs", "uses"),
    [("library.md", "pip install 'huggingface_hub", "from_pretrained(\"gpt2\")"),
     ("data.md", "pip install 'pooch", "course data fetch")],
)  # fmt: skip
def test_a_page_says_what_to_install_before_it_is_used(page, installs, uses):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert 0 < text.index(installs) < text.index(uses)
