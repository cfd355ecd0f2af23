import torch

from course_lib.functional.language import mean_pool, sentence_embeddings


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
