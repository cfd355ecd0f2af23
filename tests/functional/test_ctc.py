"""Our CTC beside PyTorch's, and beside the sum over all paths written out one by one."""

import math
from collections import defaultdict
from itertools import product

import pytest
import torch
import torch.nn.functional as F

from course_lib.functional import ctc


def random_case(seed=0, *, rows=6, frames=20, labels=7, symbols=5, blank=0, dtype=torch.float64):
    """Logits, targets of all lengths with repetitions, and both lengths; every row can be reached."""
    g = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(rows, frames, symbols, generator=g, dtype=dtype)
    targets = (torch.randint(symbols - 1, (rows, labels), generator=g) + blank + 1) % symbols
    target_lengths = torch.arange(rows) % (labels + 1)
    return logits.requires_grad_(), targets, frames - torch.arange(rows), target_lengths


def tiny(seed, *, frames=4, symbols=3, sharp=1.0):
    logits = sharp * torch.randn(frames, symbols, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return logits.log_softmax(dim=-1)


def labellings_of(log_probs, blank=0):
    """The probability of each labelling: the sum over its paths."""
    found = defaultdict(float)
    for path in product(range(log_probs.shape[1]), repeat=len(log_probs)):
        log_p = sum(log_probs[t, symbol].item() for t, symbol in enumerate(path))
        found[tuple(ctc.collapse(path, blank=blank))] += math.exp(log_p)
    return found


def loss_of_one(log_probs, labels, **options):
    length = torch.tensor([len(labels)])
    targets = torch.tensor([list(labels)], dtype=torch.long).reshape(1, -1)
    return ctc.ctc_loss(log_probs[None], targets, torch.tensor([len(log_probs)]), length, **options).item()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-9)])
@pytest.mark.parametrize("blank", [0, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradient_are_pytorchs(dtype, tolerance, blank, seed):
    logits, *rest = random_case(seed, blank=blank, dtype=dtype)
    ours = ctc.ctc_loss(logits.log_softmax(dim=-1), *rest, blank=blank)
    weights = torch.linspace(0.5, 2, len(ours), dtype=dtype)
    (our_gradient,) = torch.autograd.grad((ours * weights).sum(), logits)
    theirs = F.ctc_loss(logits.log_softmax(dim=-1).transpose(0, 1), *rest, blank=blank, reduction="none")
    (their_gradient,) = torch.autograd.grad((theirs * weights).sum(), logits)
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(our_gradient, their_gradient, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("blank", [0, 2])
def test_the_loss_is_the_sum_over_all_paths_written_out(blank):
    log_probs = tiny(0, frames=5)
    expected = labellings_of(log_probs, blank)
    assert len(expected) > 20 and sum(expected.values()) == pytest.approx(1)
    for labels, p in expected.items():
        assert loss_of_one(log_probs, labels, blank=blank) == pytest.approx(-math.log(p), abs=1e-12)


def test_what_padding_holds_does_not_matter():
    logits, targets, frames, lengths = random_case()
    log_probs, changed, others = logits.log_softmax(-1).detach(), logits.detach().clone(), targets.clone()
    for row in range(len(changed)):
        changed[row, frames[row] :] = 99.0
        others[row, lengths[row] :] = -7
    changed = changed.where(changed == 99.0, log_probs)
    expected = ctc.ctc_loss(log_probs, targets, frames, lengths)
    assert torch.equal(ctc.ctc_loss(changed, others, frames, lengths), expected)
    found, lattice = (
        ctc.ctc_lattice(changed, others, frames, lengths),
        ctc.ctc_lattice(log_probs, targets, frames, lengths),
    )
    assert torch.equal(found.posterior, lattice.posterior)


@pytest.mark.parametrize(("frames", "labels"), [(1, (1, 2)), (2, (1, 1)), (4, (1, 1, 1)), (3, (1, 2, 1, 2))])
def test_labels_that_no_path_spells_have_an_infinite_loss_like_pytorchs_and_no_gradient(frames, labels):
    logits = torch.zeros(1, frames, 3, requires_grad=True)
    rest = torch.tensor([labels]), torch.tensor([frames]), torch.tensor([len(labels)])
    loss = ctc.ctc_loss(logits.log_softmax(-1), *rest)
    assert loss.item() == F.ctc_loss(logits.log_softmax(-1).transpose(0, 1), *rest, reduction="none").item() == math.inf
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    assert not gradient.any()  # PyTorch's is NaN
    assert not ctc.ctc_lattice(logits.log_softmax(-1), *rest).posterior.any()


def test_a_symbol_of_probability_zero_is_no_obstacle():
    log_probs = torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]).double().log()
    assert loss_of_one(log_probs, (1,)) == pytest.approx(-math.log(0.75))
    assert loss_of_one(log_probs, (2,)) == math.inf


def test_a_frame_that_is_sure_of_another_symbol_leaves_the_gradient_a_number():
    log_probs = torch.full((1, 3, 4), 0.25).double().log()
    log_probs[0, 1] = torch.tensor([0.0, 0.0, 0.0, 1.0]).log()  # neither the blank nor a label that is sought
    log_probs.requires_grad_()
    loss = ctc.ctc_loss(log_probs, torch.tensor([[1, 2]]), torch.tensor([3]), torch.tensor([2]))
    (gradient,) = torch.autograd.grad(loss.sum(), log_probs)
    assert loss.item() == math.inf and not gradient.any()


def test_the_states_are_labels_between_blanks():
    assert ctc.with_blanks(torch.tensor([[3, 3, 1]])).tolist() == [[0, 3, 0, 3, 0, 1, 0]]
    assert ctc.with_blanks(torch.tensor([[0]]), blank=4).tolist() == [[4, 0, 4]]


def test_the_gradient_of_logits_is_softmax_minus_posterior():
    logits, *rest = random_case(3)
    log_probs = logits.log_softmax(dim=-1)
    (gradient,) = torch.autograd.grad(ctc.ctc_loss(log_probs, *rest).sum(), logits)
    real = torch.arange(logits.shape[1]) < rest[1][:, None]
    expected = (log_probs.exp() - ctc.ctc_lattice(log_probs, *rest).of_symbols(5)) * real[..., None]
    torch.testing.assert_close(gradient, expected.detach(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("blank", [0, 3])
def test_at_every_frame_forward_times_backward_gives_the_same_probability(blank):
    logits, targets, frames, lengths = random_case(4, blank=blank)
    log_probs = logits.log_softmax(dim=-1).detach()
    loss = ctc.ctc_loss(log_probs, targets, frames, lengths, blank=blank)
    lattice = ctc.ctc_lattice(log_probs, targets, frames, lengths, blank=blank)
    for row, (end, labels) in enumerate(zip(frames.tolist(), lengths.tolist(), strict=True)):
        states = 2 * labels + 1
        log_y = log_probs[row, :end][:, lattice.states[row, :states]]
        joint = (lattice.log_alpha + lattice.log_beta)[row, :end, :states] - log_y
        torch.testing.assert_close(joint.logsumexp(dim=1), -loss[row].expand(end), rtol=0, atol=1e-9)
        torch.testing.assert_close(lattice.posterior[row, :end].sum(dim=1), torch.ones(end).double())
        assert not lattice.posterior[row, end:].any() and not lattice.posterior[row, :, states:].any()


@pytest.mark.parametrize(
    ("path", "labels"),
    [([], []), ([0, 0], []), ([1, 1, 1], [1]), ([1, 0, 1], [1, 1]), ([0, 2, 2, 1, 0, 0, 1, 1], [2, 1, 1])],
)
def test_collapse_merges_repetitions_first_and_then_drops_blanks(path, labels):
    assert ctc.collapse(path) == labels


def test_greedy_decoding_collapses_the_likeliest_path_up_to_the_length():
    path = torch.tensor([[1, 1, 0, 1, 2, 2], [2, 0, 0, 2, 1, 1]])
    log_probs = F.one_hot(path, 3).float().log_softmax(dim=-1)
    assert ctc.greedy_decode(log_probs, torch.tensor([6, 4])) == [[1, 1, 2], [2, 2]]
    assert ctc.greedy_decode(log_probs, torch.tensor([6, 4]), blank=1) == [[0, 2], [2, 0, 2]]


@pytest.mark.parametrize("blank", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_without_limit_finds_all_labellings_with_their_probabilities(seed, blank):
    log_probs = tiny(seed, frames=5)
    expected = labellings_of(log_probs, blank)
    found = ctc.prefix_beam_search(log_probs, width=10**6, blank=blank)
    assert [log_p for _, log_p in found] == sorted((log_p for _, log_p in found), reverse=True)
    assert {labels: math.exp(log_p) for labels, log_p in found if log_p > -math.inf} == pytest.approx(expected)


def test_beam_search_finds_the_likeliest_labelling_where_greedy_decoding_does_not():
    log_probs = torch.tensor([[0.6, 0.4], [0.6, 0.4]]).double().log()  # "" has 0.36, a: 0.24 + 0.24 + 0.16
    assert ctc.greedy_decode(log_probs[None], torch.tensor([2])) == [[]]
    (best, log_p), *_ = ctc.prefix_beam_search(log_probs, width=2)
    assert best == (1,) and math.exp(log_p) == pytest.approx(0.64)


@pytest.mark.parametrize("width", [1, 2, 4])
def test_a_narrow_beam_never_claims_more_than_the_labelling_has(width):
    for seed in range(20):
        log_probs = tiny(seed, frames=5)
        expected = labellings_of(log_probs)
        found = ctc.prefix_beam_search(log_probs, width=width)
        assert len(found) <= width
        assert all(math.exp(log_p) <= expected[labels] + 1e-12 for labels, log_p in found)


@pytest.mark.parametrize(
    ("first", "second", "edits"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "acb", 2), ("abcd", "bcd", 1), ("flaw", "lawn", 2)],
)
def test_edit_distances_known_by_hand(first, second, edits):
    one, other = [*map(ord, first)], [*map(ord, second)]
    assert ctc.edit_distance(one, other) == ctc.edit_distance(other, one) == edits


def test_the_error_rate_counts_edits_per_label_of_all_references():
    assert ctc.error_rate([[1, 2], [1]], [[1, 3], [1, 1, 1, 1]]) == pytest.approx(4 / 6)
    assert ctc.error_rate([[1, 2, 3]], [[4]]) == 3.0


def test_a_beam_holds_no_labelling_that_is_impossible():
    never = -math.inf
    log_probs = torch.tensor([[never, 0.0, never], [never, 0.0, never]])  # label 1, and again
    assert ctc.prefix_beam_search(log_probs, width=8) == [((1,), 0.0)]
    log_probs[1] = never
    assert ctc.prefix_beam_search(log_probs, width=8) == []
