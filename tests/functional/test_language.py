import pytest
import torch

from course_lib.functional.language import (
    corrupt_spans,
    mask_tokens,
    mean_pool,
    next_sentence_pairs,
    random_spans,
    sentence_embeddings,
)

MASK, FIRST, END = 4, 5, 50
WORDS = {"mask_id": MASK, "word_ids": (FIRST, END)}


def sentences(rows, length, seed=0):
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(FIRST, END, (rows, length), generator=generator)
    return tokens, torch.rand(3, rows, length, generator=generator)


def everywhere(tokens):
    return torch.ones_like(tokens, dtype=torch.bool)


def test_fifteen_per_cent_of_each_row_is_masked_and_at_least_one_word():
    tokens, noise = sentences(4, 40)
    maskable = torch.arange(40) < torch.tensor([40, 20, 3, 0])[:, None]
    given, masked = mask_tokens(tokens, noise, maskable=maskable, **WORDS)
    assert torch.equal(given[~masked], tokens[~masked])
    assert masked.sum(dim=1).tolist() == [6, 3, 1, 0]
    assert not (masked & ~maskable).any()


def test_the_words_of_the_smallest_noise_are_masked():
    tokens, noise = sentences(1, 20)
    masked = mask_tokens(tokens, noise, maskable=everywhere(tokens), **WORDS).masked
    assert set(masked[0].nonzero()[:, 0].tolist()) == set(noise[0, 0].argsort()[:3].tolist())


def test_the_noise_says_what_becomes_of_a_masked_word():
    tokens = torch.full((1, 5), 20)
    fate = torch.tensor([0.0, 0.79, 0.81, 0.89, 0.91])
    noise = torch.stack([torch.rand(5), fate, torch.tensor([0.5, 0.5, 0.0, 0.9999999, 0.5])])[:, None]
    given, masked = mask_tokens(tokens, noise, maskable=everywhere(tokens), ratio=1.0, **WORDS)
    assert masked.all() and given.tolist() == [[MASK, MASK, FIRST, END - 1, 20]]


DOCUMENT = torch.tensor([7, 7, 7, 3, 3, 9, 5, 5, 5, 5])


def pairs(seed):
    return next_sentence_pairs(DOCUMENT, torch.rand(2, len(DOCUMENT), generator=torch.Generator().manual_seed(seed)))


def test_every_sentence_but_the_last_of_a_document_is_once_sentence_a():
    assert pairs(0).first.tolist() == [0, 1, 3, 6, 7, 8]


def test_sentence_b_is_the_next_one_or_comes_from_another_document():
    for seed in range(50):
        first, second, follows = pairs(seed)
        assert torch.equal(second[follows], first[follows] + 1)
        assert (DOCUMENT[second[~follows]] != DOCUMENT[first[~follows]]).all()


def test_half_of_the_pairs_follow_and_every_other_sentence_can_be_drawn():
    drawn = [pairs(seed) for seed in range(400)]
    assert torch.cat([follows for *_, follows in drawn]).float().mean().item() == pytest.approx(0.5, abs=0.04)
    strangers = {int(second[2]) for _, second, follows in drawn if not follows[2]}  # of sentence 3
    assert strangers == {0, 1, 2, 5, 6, 7, 8, 9}


def test_the_mean_is_taken_over_real_tokens_only():
    features = torch.randn(2, 4, 3)
    features[1, 2:] = torch.nan
    valid = torch.tensor([[True] * 4, [True, True, False, False]])
    expected = torch.stack([features[0].mean(dim=0), features[1, :2].mean(dim=0)])
    torch.testing.assert_close(mean_pool(features, valid), expected)


def test_an_empty_row_gets_zeros_and_no_nan():
    features, valid = torch.randn(1, 3, 2), torch.zeros(1, 3, dtype=torch.bool)
    assert (sentence_embeddings(features, valid) == 0).all()


def test_dot_products_of_sentence_embeddings_are_cosines():
    features, valid = torch.randn(5, 6, 4), torch.rand(5, 6) < 0.7
    valid[:, 0] = True
    means = mean_pool(features, valid)
    embedded = sentence_embeddings(features, valid)
    expected = torch.cosine_similarity(means[:, None], means[None], dim=-1)
    torch.testing.assert_close(embedded @ embedded.T, expected)


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
