"""Assignment 08: its references are what the library does, and its cells are what the grader has."""

import nbformat
import pytest
import torch

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_08.assignment import Language, scores, windows
from course_lib.tasks import Draw
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import RANDOM, CheckFailed
from course_lib.text.bpe import ByteLevelBPE, byte_letters

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "08")
LOADED = load(FILES)
TABLES = {table.name: table for table in LOADED.assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)


def test_tokens_are_those_of_the_library():
    tokenizer = ByteLevelBPE.train(["né en été, il a aidé: le café au lait, l'allée " * 5], vocab_size=280, specials=())
    number = {letter: byte for byte, letter in enumerate(byte_letters())}
    number |= {first + second: 256 + n for n, (first, second) in enumerate(tokenizer.merges)}
    merges = [(number[first], number[second]) for first, second in tokenizer.merges]
    for word in ("laité", "écafété", "aaaaalll"):  # GPT-2 cuts a text into such words first
        wanted = [number[tokenizer.vocabulary[token]] for token in tokenizer.encode(word)]
        assert TABLES["encode"].reference(word, merges) == wanted != list(word.encode())


def test_the_language_of_the_notebook_has_as_many_bits_as_that_of_the_grader():
    names = {}
    (source,) = (cell.source for cell in NOTEBOOK.cells if cell.id == "language")
    exec("import torch\n" + source, names)
    texts = [names["Language"](seed=1).text(20_000), Language(Draw(1)).text(Draw(2), 20_000)]
    for text in texts:
        assert text.shape == (20_000,) and set(text.tolist()) == set(range(9))
        counts = torch.zeros(81, 9).index_put((text[:-2] * 9 + text[1:-1], text[2:]), torch.ones(()), accumulate=True)
        before = counts.sum(1, keepdim=True)
        bits = -(counts * (counts / before.clamp(min=1)).clamp(min=1e-9).log2()).sum() / before.sum()
        assert 1.0 < bits < 1.4  # "that one needs about 1.2"


def test_a_model_whose_dropout_is_left_on_is_told_that_it_depends_on_chance():
    model = torch.nn.Sequential(torch.nn.Embedding(9, 9), torch.nn.Dropout(0.5))
    read, _ = windows(torch.arange(990) % 9, 32)
    with pytest.raises(CheckFailed) as told:
        scores(ModuleProbe(model), read, Draw(0))
    assert told.value.finding.misconception == RANDOM
    assert scores(ModuleProbe(model.eval()), read, Draw(0)).shape == (30, 32, 9)
