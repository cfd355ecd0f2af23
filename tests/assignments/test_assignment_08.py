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


def test_typical_tokens_have_the_surprisal_nearest_to_the_entropy():
    logits, written = torch.tensor([[2.0, 1.0, 0.0, -1.0, 0.5, 9.0]]), torch.tensor([[3, 5, 1, 3]])
    p = TABLES["typical_odds"].reference(logits, written, 2, 0.4)[0]
    allowed = logits[0, :5].softmax(dim=0)
    distance = (allowed.log() - (allowed * allowed.log()).sum()).abs()
    kept = distance.argsort()[: int((p > 0).sum())]
    assert p[5] == 0 and p.sum().item() == pytest.approx(1) and set(kept.tolist()) == set(p.nonzero()[:, 0].tolist())
    assert allowed[kept].sum() >= 0.4 > allowed[kept[:-1]].sum()


def cuts(text, scores, byte_score):
    """Every cut of a text, with its sum of log-probabilities."""
    if not text:
        yield 0.0, []
    for end in range(1, len(text) + 1):
        for total, rest in cuts(text[end:], scores, byte_score):
            if text[:end] in scores:
                yield total + scores[text[:end]], [text[:end], *rest]
            if end == 1:
                yield total + byte_score * len(text[0].encode()), [*text[0].encode(), *rest]


def test_the_pieces_are_those_of_the_best_of_all_cuts():
    text, pieces, byte_score = TABLES["encode_unigram"].cases[0].inputs(Draw(1))
    for beginning in (text[:9], text[9:18]):
        best = max(cuts(beginning, dict(pieces), byte_score))[1]
        number = {piece: 256 + n for n, (piece, _) in enumerate(pieces)}
        assert TABLES["encode_unigram"].reference(beginning, pieces, byte_score) == [
            number.get(one, one) for one in best
        ]


def test_bits_of_documents_are_those_of_each_document_alone():
    logits, tokens, lengths, texts = TABLES["corpus_bits_per_byte"].cases[0].inputs(Draw(0))
    bits = 0.0
    for row, read, length in zip(logits, tokens, lengths, strict=True):
        bits -= sum(row[t].log_softmax(dim=0)[read[t + 1]].item() for t in range(length - 1)) / torch.tensor(2.0).log()
    wanted = bits.item() / len("".join(texts).encode())
    assert TABLES["corpus_bits_per_byte"].reference(logits, tokens, lengths, texts) == pytest.approx(wanted)
