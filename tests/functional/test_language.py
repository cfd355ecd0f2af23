import pytest
import torch

from course_lib.functional.language import mask_tokens, next_sentence_pairs

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
