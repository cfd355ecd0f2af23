import pytest
import torch

from course_lib.functional.language import corrupt_spans, random_spans


def restored(source, target, first_sentinel):
    """The text that a pair was made of: each sentinel of the source gives way to what follows it in the target."""
    filling, spans = target.tolist(), {}
    for token in filling:
        if token > 50:
            spans[token] = here = []
        else:
            here.append(token)
    return [t for token in source.tolist() for t in (spans[token] if token > 50 else [token])], list(spans)


def test_the_example_of_the_paper():
    """Figure 2: "Thank you for inviting me to your party last week" loses "for inviting" and "last"."""
    tokens = torch.arange(1, 11)
    dropped = torch.tensor([0, 0, 1, 1, 0, 0, 0, 0, 1, 0]).bool()
    source, target = corrupt_spans(tokens, dropped, first_sentinel=99)
    assert source.tolist() == [1, 2, 99, 5, 6, 7, 8, 98, 10]
    assert target.tolist() == [99, 3, 4, 98, 9, 97]


@pytest.mark.parametrize("length", [2, 3, 10, 47])
@pytest.mark.parametrize(("rate", "mean_span"), [(0.15, 3.0), (0.5, 1.0), (0.9, 2.0), (0.15, 10.0)])
def test_source_and_target_together_hold_the_whole_text(length, rate, mean_span):
    generator = torch.Generator().manual_seed(length)
    tokens = torch.randint(0, 50, (length,), generator=generator)
    dropped = random_spans(length, rate=rate, mean_span=mean_span, generator=generator)
    source, target = corrupt_spans(tokens, dropped, first_sentinel=199)
    text, sentinels = restored(source, target, 199)
    assert text == tokens.tolist()
    assert sentinels == list(range(199, 199 - len(sentinels), -1)) and target[-1] == sentinels[-1]


def test_edges_and_extremes():
    tokens = torch.tensor([5, 6, 7])
    everything, nothing = torch.ones(3).bool(), torch.zeros(3).bool()
    assert [part.tolist() for part in corrupt_spans(tokens, everything, first_sentinel=99)] == [[99], [99, 5, 6, 7, 98]]
    assert [part.tolist() for part in corrupt_spans(tokens, nothing, first_sentinel=99)] == [[5, 6, 7], [99]]
    ends = torch.tensor([True, False, True])
    assert [part.tolist() for part in corrupt_spans(tokens, ends, first_sentinel=99)] == [
        [99, 6, 98],
        [99, 5, 98, 7, 97],
    ]


def test_spans_have_the_share_and_the_mean_length_that_were_asked_for():
    generator = torch.Generator().manual_seed(0)
    masks = torch.stack([random_spans(100, generator=generator) for _ in range(2000)])
    assert (masks.sum(dim=1) == 15).all() and not masks[:, 0].any()
    starts = masks[:, 1:] & ~masks[:, :-1]
    assert (starts.sum(dim=1) == 5).all()
    lengths = [run for mask in masks for run in runs(mask)]
    share_of_one = sum(length == 1 for length in lengths) / len(lengths)
    assert share_of_one == pytest.approx(4 / 14, abs=0.02)  # 1 of 5 pieces of 15: C(13, 3) of C(14, 4) cuts
    assert masks[:, -1].all()


def runs(mask):
    """The lengths of the runs of True."""
    return [len(run) for run in "".join("x" if m else " " for m in mask.tolist()).split()]


def test_a_draw_can_be_replayed():
    first, again, other = (random_spans(40, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
