"""Assignment 07: its references are what the library does, and its cells are what the grader has."""

import nbformat
import pytest
import torch

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_07.assignment import guess, language
from course_lib.tasks import Draw

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "07")
LOADED = load(FILES)
TABLES = {table.name: table for table in LOADED.assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)


def test_the_loss_of_replaced_tokens_is_that_of_the_changed_text():
    tokens, chosen, samples, logits, valid = TABLES["replaced_loss"].cases[0].inputs(Draw(0))
    text = torch.where(chosen, samples, tokens)
    p = torch.where(text != tokens, logits, -logits).sigmoid()
    found = TABLES["replaced_loss"].reference(tokens, chosen, samples, logits, valid)
    assert found.item() == pytest.approx(-p.log()[valid].mean().item(), abs=1e-5)


def test_spans_lie_in_the_text_and_use_up_the_budget():
    starts, lengths, real, fraction = TABLES["span_mask"].cases[0].inputs(Draw(0))
    masked = TABLES["span_mask"].reference(starts, lengths, real, fraction)
    budget = (fraction * real.sum(dim=1)).round()
    assert not (masked & ~real).any()
    assert (masked.sum(dim=1) <= budget).all() and (masked.sum(dim=1) > budget / 2).all()


def test_the_distillation_loss_is_that_of_torch():
    student, teacher, valid, tau = TABLES["distillation_loss"].cases[0].inputs(Draw(0))
    p, q = ((logits[valid] / tau).log_softmax(dim=1) for logits in (teacher, student))
    expected = tau**2 * torch.nn.functional.kl_div(q, p, reduction="batchmean", log_target=True)
    torch.testing.assert_close(TABLES["distillation_loss"].reference(student, teacher, valid, tau), expected)


def test_a_step_of_mask_predict_fills_as_many_positions_as_it_keeps():
    E, tokens, masked, keep, mask_id = TABLES["mask_predict"].cases[0].inputs(Draw(0))
    found = TABLES["mask_predict"].reference(E, tokens, masked, keep, mask_id)
    assert torch.equal(found[~masked], tokens[~masked])
    assert ((found == mask_id).sum(dim=1) == masked.sum(dim=1) - keep).all()


def test_the_cells_of_the_notebook_are_what_the_grader_has():
    names = {}
    sources = {cell.id: cell.source for cell in NOTEBOOK.cells}
    exec("\n".join(sources[name] for name in ("setup", "guess", "language")), names)
    E, tokens = torch.randn(7, 3), torch.randint(7, (2, 5))
    assert torch.equal(names["guess"](tokens, E), guess(tokens, E))
    for speak in (names["language"](seed=3), language(Draw(3).generator)):
        tokens, tags = speak(5000, 8)
        pairs = torch.zeros(60, 4).index_put((tokens, tags), torch.ones(()), accumulate=True)
        follows = torch.zeros(4, 4).index_put((tags[:, :-1], tags[:, 1:]), torch.ones(()), accumulate=True)
        assert sorted((pairs > 0).sum(dim=1).tolist()) == 50 * [1] + 10 * [2]
        torch.testing.assert_close(follows.amax(dim=1) / follows.sum(dim=1), torch.full((4,), 0.925), atol=0.02, rtol=0)
