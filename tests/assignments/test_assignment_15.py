"""Assignment 15: its references are what the library does, and its cells are what the grader has."""

import contextlib
import io
import itertools
import re

import nbformat
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.data.place import course_folder
from course_lib.functional.ctc import collapse, ctc_lattice
from course_lib.functional.language import random_spans
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_15.assignment import (
    AHEAD,
    ONLY_BLANKS,
    TOGETHER,
    TOO_LATE,
    Code,
    errors,
    transcribed,
)
from course_lib.tasks import Draw, run_checks
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import RANDOM, CheckFailed
from course_lib.tasks.trained import ELSEWHERE
from course_lib.tasks.wrong import ignored
from tests.assignments.mistaken import passed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "15")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
CELLS = {cell.id: cell.source for cell in nbformat.reads(FILES.source_notebook.decode(), as_version=4).cells}


@pytest.fixture(scope="module")
def cells():
    """What the notebook's own cells define, with the references of two tasks."""
    names = {}
    for name in ("setup", "occupation", "code", "train"):
        exec(CELLS[name], names)
    return names


# spans and chunks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("T", "rate", "mean_length"), [(100, 0.15, 3.0), (40, 0.5, 2.0), (30, 0.8, 1.5), (5, 0.1, 3.0)]
)
def test_spans_are_as_many_and_as_long_as_in_the_library(T, rate, mean_length):
    ours = random_spans(T, rate=rate, mean_span=mean_length, generator=torch.Generator().manual_seed(0))
    found = TABLES["span_mask"].reference(torch.rand(6, T), torch.rand(6, T), rate, mean_length)
    assert (found.sum(dim=1) == ours.sum()).all() and not found[:, 0].any() and found[:, -1].all()
    starts = [(mask[1:] & ~mask[:-1]).sum() for mask in (*found, ours)]
    assert len(set(map(int, starts))) == 1


def test_all_ways_to_cut_the_text_are_equally_probable():
    u, v = torch.rand(2, 9_000, 6, generator=torch.Generator().manual_seed(0))
    masks = TABLES["span_mask"].reference(u, v, 0.5, 1.5)  # 3 tokens in 2 spans, 3 kept in 2 pieces: 2 x 2 ways
    _, counts = masks.unique(dim=0, return_counts=True)
    assert len(counts) == 4 and (counts - 2250).abs().max() < 200


def test_chunks_of_one_frame_are_causal_and_a_single_chunk_sees_all():
    mask = TABLES["chunk_mask"].reference
    assert torch.equal(mask(torch.tensor([7]), 7, 1, 7)[0], torch.ones(7, 7).tril().bool())
    assert mask(torch.tensor([7]), 7, 7, 0).all()


def test_infilling_removes_exactly_n_tokens_and_the_lengths_are_those_of_a_poisson_distribution():
    ids, random = torch.arange(1, 2001), torch.Generator().manual_seed(0)
    u, v = torch.rand(2000, generator=random), torch.rand(2001, generator=random)
    found = TABLES["text_infilling"].reference(ids, u, v, 0.3, 2.0, 0)
    kept = [0, *found[found > 0].tolist(), 2001]
    assert len(kept) == 1402 and kept == sorted(kept)
    masks = (found == 0).sum().item()
    removed = torch.tensor(kept).diff() - 1
    assert masks - (removed > 0).sum() == (u[:masks] < torch.tensor(-2.0).exp()).sum()  # spans without a token
    assert abs(600 / masks - 2.0) < 0.3
    lengths = torch.distributions.Poisson(2.0).log_prob(torch.arange(9.0)).exp()
    for length in range(1, 5):
        assert abs((removed == length).sum() / masks - lengths[length]) < 0.06


def test_gaps_of_infilling_are_those_of_a_loop():
    for case in TABLES["text_infilling"].cases:
        ids, u, v, rate, mean, mask_id = case.inputs(Draw(2))
        n, spans = round(rate * len(ids)), []
        while sum(spans) < n:
            length, below, p = 0, 0.0, 2.718281828459045**-mean
            while below + p <= u[len(spans)]:
                length, below, p = length + 1, below + p, p * mean / (length + 1)
            spans.append(min(length, n - sum(spans)))
        chosen = sorted(sorted(range(len(ids) - n + 1), key=lambda gap: v[gap].item())[: len(spans)])
        rest, wanted = ids.tolist(), []
        for gap in range(len(ids) - n + 1):
            if gap in chosen:
                wanted.append(mask_id)
                del rest[: spans[chosen.index(gap)]]
            wanted += rest[:1]
            del rest[:1]
        assert TABLES["text_infilling"].reference(ids, u, v, rate, mean, mask_id).tolist() == wanted


def test_with_copies_the_look_ahead_does_not_grow_with_the_blocks():
    T, size, left, right, blocks = 12, 3, 2, 2, 5
    mask = TABLES["look_ahead_mask"].reference(torch.tensor([T]), T, size, left, right)[0]
    start = len(mask) - T
    holds = [(i // right + 1) * size + i % right for i in range(start)] + list(range(T))
    reached = torch.eye(len(mask), dtype=torch.bool)
    for _ in range(blocks):
        reached = (mask.float() @ reached.float()) > 0
        for t in range(T):
            latest = max(holds[j] for j in reached[start + t].nonzero().flatten().tolist())
            assert latest == min((t // size + 1) * size + right, T) - 1


def test_the_mask_with_look_ahead_is_that_of_a_loop():
    for case in TABLES["look_ahead_mask"].cases:
        lengths, T, size, left, right = case.inputs(Draw(3))
        positions = [(c, (c + 1) * size + r, True) for c in range(-(-T // size)) for r in range(right)]
        positions += [(t // size, t, False) for t in range(T)]
        found = TABLES["look_ahead_mask"].reference(lengths, T, size, left, right)
        for b, length in enumerate(lengths.tolist()):
            for i, (chunk, *_) in enumerate(positions):
                for j, (other, frame, copy) in enumerate(positions):
                    before = not copy and chunk * size - left <= frame < chunk * size
                    assert found[b, i, j] == (frame < length and (chunk == other or before))


# alignments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [[1], [1, 2], [1, 1], [2, 1, 2]])
def test_the_best_path_is_the_best_of_all_that_collapse_to_the_text(target):
    log_probs = Draw(len(target))(1, 5, 3).log_softmax(dim=2)
    paths = [path for path in itertools.product(range(3), repeat=5) if collapse(path) == target]
    best = max(paths, key=lambda path: sum(log_probs[0, t, k].item() for t, k in enumerate(path)))
    assert TABLES["align"].reference(log_probs, torch.tensor([target])).tolist() == [list(best)]


@pytest.mark.parametrize("text", [[], [1], [2, 2, 1]])
def test_the_loss_of_a_transducer_sums_over_all_ways_to_write_the_text(text):
    U, T = len(text), 3
    log_probs = Draw(U)(1, T + 1, 4, 3).log_softmax(dim=-1)  # a frame and perhaps symbols of padding
    targets = torch.tensor([text + [0] * (3 - U)])
    total = 0.0
    for written in itertools.combinations_with_replacement(range(T), U):  # the frame of each symbol
        log_p = sum(log_probs[0, t, u, text[u]] for u, t in enumerate(written))
        log_p += sum(log_probs[0, t, sum(frame <= t for frame in written), 0] for t in range(T))
        total += log_p.exp()
    found = TABLES["transducer_loss"].reference(log_probs, targets, torch.tensor([T]), torch.tensor([U]))
    torch.testing.assert_close(found, -total.log()[None])


@pytest.mark.parametrize("seed", range(3))
def test_the_fractions_are_those_of_the_library_and_give_the_gradient_of_torch(seed):
    for case in TABLES["occupation"].cases:
        log_probs, targets = case.inputs(Draw(seed))
        B, T, V = log_probs.shape
        frames, lengths = torch.full((B,), T), torch.full((B,), targets.shape[1])
        found = TABLES["occupation"].reference(log_probs.double(), targets)
        ours = ctc_lattice(log_probs.double(), targets, frames, lengths).of_symbols(V)
        torch.testing.assert_close(found, ours)
        logits = log_probs.double().clone().requires_grad_()
        F.ctc_loss(logits.log_softmax(dim=2).transpose(0, 1), targets, frames, lengths, reduction="sum").backward()
        torch.testing.assert_close(log_probs.double().exp() - found, logits.grad, atol=1e-6, rtol=1e-4)


def test_the_cell_below_the_fractions_shows_that_blanks_come_first(cells):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(CELLS["try-occupation"], dict(cells))
    blanks = [float(re.search(r"blank +([\d.]+)", line)[1]) for line in said.getvalue().splitlines()]
    assert len(blanks) == 12 and blanks[::4] == [33.3] * 3 and blanks[3] < blanks[7] < blanks[11]
    for number in blanks[3::4]:  # as the answer that is graded by hand says
        assert f"{number:.1f}" in CELLS["in-your-own-words"]


# mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.cases])
def test_no_argument_can_be_ignored(name):
    assert list(ignored(TABLES[name])) == []


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("span_mask", "a gap behind the last token"),
        ("text_infilling", "spans without a token left out"),
        ("look_ahead_mask", "earlier copies visible"),
        ("align", "blank left out between equal symbols"),
        ("align", "blank between all symbols"),
        ("align", "probabilities multiplied"),
        ("transducer_loss", "frames of the padding"),
        ("transducer_loss", "probabilities multiplied"),
        ("occupation", "blank left out between equal symbols"),
        ("occupation", "probabilities multiplied"),
    ],
)
def test_a_mistake_that_the_example_does_not_show_costs_part_of_the_points(name, mistake):
    table = TABLES[name]
    right = passed(table, mistake)
    assert table.points / 5 <= sum(check.points for check in right) < table.points


def test_a_ready_made_loss_and_autograd_are_forbidden_where_the_recursion_is_asked_for():
    assert {"ctc_loss", "autograd", "backward", "grad"} <= set(TABLES["occupation"].forbids)


# recordings ----------------------------------------------------------------------------------------------------


def test_the_recordings_of_the_notebook_are_those_of_the_grader(cells):
    theirs, ours = cells["Code"](seed=3), Code(torch.Generator().manual_seed(3))
    assert torch.equal(theirs.vectors, ours.vectors)
    for T in (48, 96):
        for mine, other in zip(theirs.recordings(40, T), ours.recordings(40, T), strict=True):
            assert torch.equal(mine, other)
    frames, symbols, lengths = ours.recordings(200, 96)
    assert frames.shape == (200, 96, 8) and symbols.shape == (200, 12) and {4, 12} <= set(lengths.tolist())
    assert torch.equal((symbols > 0).sum(dim=1), lengths) and symbols.max() == 6
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(CELLS["look-at-some"], dict(cells))
    assert len(said.getvalue().splitlines()) == 2


# answers -----------------------------------------------------------------------------------------------------

RECORDINGS = Code(torch.Generator().manual_seed(0)).recordings(12)
OTHERS = torch.randn(48, 8, generator=torch.Generator().manual_seed(1))


class Shifted(nn.Module):
    """One convolution whose outputs see so many later frames."""

    def __init__(self, ahead):
        super().__init__()
        self.conv, self.ahead = nn.Conv1d(8, 7, ahead + 1), ahead

    def forward(self, frames):
        return self.conv(F.pad(frames.transpose(1, 2), (0, self.ahead))).transpose(1, 2)


def told(network):
    with pytest.raises(CheckFailed) as fault:
        transcribed(ModuleProbe(network), RECORDINGS[0], OTHERS)
    return fault.value.finding


def test_four_later_frames_are_allowed_and_a_fifth_is_told():
    torch.manual_seed(0)
    assert len(transcribed(ModuleProbe(Shifted(AHEAD)), RECORDINGS[0], OTHERS)) == 12
    assert told(Shifted(AHEAD + 1)) == TOO_LATE
    assert told(nn.Sequential(Shifted(3), nn.Linear(7, 8), Shifted(2))) == TOO_LATE


def test_a_network_in_training_mode_is_told():
    class Normed(Shifted):
        def __init__(self):
            super().__init__(2)
            self.norm = nn.BatchNorm1d(7)

        def forward(self, frames):
            return self.norm(super().forward(frames).transpose(1, 2)).transpose(1, 2)

    assert told(Normed()) == TOGETHER
    assert told(nn.Sequential(nn.Linear(8, 7), nn.Dropout())).misconception == RANDOM


def test_a_network_that_predicts_only_blanks_is_told():
    network = nn.Linear(8, 7)
    nn.init.zeros_(network.weight)
    network.bias.data[0] = 9.0
    with pytest.raises(CheckFailed) as fault:
        errors(ModuleProbe(network), RECORDINGS, OTHERS)
    assert fault.value.finding == ONLY_BLANKS


def test_what_the_vectors_are_has_to_be_learned_not_computed():
    vectors = []

    class Computed(nn.Module):
        def forward(self, frames):
            near = F.avg_pool1d(F.pad((frames @ vectors[0].T / 2.5).transpose(1, 2), (1, 1)), 3, 1).transpose(1, 2)
            return torch.cat([torch.full_like(near[..., :1], 1.2), near], dim=2)

    class Known(Code):
        def __init__(self, generator):
            super().__init__(generator)
            vectors[:] = [self.vectors]

    check = TABLES["train"].scored[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("course_lib.lessons.lesson_15.assignment.Code", Known)
        report = run_checks(lambda *_: Computed(), [check], asks="frames, symbols, lengths")
    assert report.misconceptions == [ELSEWHERE]
