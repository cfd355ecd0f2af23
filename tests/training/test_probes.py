import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from torch import nn

from course_lib.training import probes
from course_lib.training.probes import Labelled, label_draw, logistic_regression, nearest_neighbours


def blobs(count, dim, classes, seed, *, noise=1.0, units=2.0):
    """Features in units from 10^-units to 10^units, around one centre for each class."""
    centres = torch.randn(classes, dim, generator=torch.Generator().manual_seed(99))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (count,), generator=generator)
    features = centres[labels] + noise * torch.randn(count, dim, generator=generator)
    return Labelled(3.0 + features * torch.logspace(-units, units, dim), labels)


@pytest.mark.parametrize("scale", ["each", "all"])
@pytest.mark.parametrize("l2", [0.03, 1.0, 300.0])
@pytest.mark.parametrize(("count", "dim", "classes"), [(40, 6, 3), (25, 60, 4), (30, 5, 2)])
def test_logistic_regression_equals_scikit_learn(count, dim, classes, l2, scale):
    train, new = blobs(count, dim, classes, 0), blobs(50, dim, classes, 1)
    probe = logistic_regression(*train, l2=l2, scale=scale)
    scaler = StandardScaler().fit(train.features.double().numpy())
    if scale == "all":
        scaler.scale_ = np.full(dim, np.sqrt(scaler.var_.mean()))
    # two classes have two weight vectors here and one there: w = w_1 - w_0 costs half as much
    strength = l2 / 2 if classes == 2 else l2
    official = LogisticRegression(C=1 / strength, solver="newton-cg", tol=1e-11, max_iter=1000)
    official.fit(scaler.transform(train.features.double().numpy()), train.labels.numpy())
    weight, bias = probe.weight.numpy(), probe.bias.numpy()
    if classes == 2:
        weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
    np.testing.assert_allclose(weight * scaler.scale_, official.coef_, rtol=0, atol=1e-7)
    np.testing.assert_allclose(bias + weight @ scaler.mean_, official.intercept_, rtol=0, atol=1e-7)
    assert np.abs(official.coef_).max() > 1e-3
    x = scaler.transform(new.features.double().numpy())
    assert probe.predict(new.features).tolist() == official.predict(x).tolist()
    assert probe.accuracy(*new) == pytest.approx(official.score(x, new.labels.numpy()))


@pytest.mark.parametrize("k", [1, 4, 9])
def test_nearest_neighbours_equal_scikit_learn(k):
    train, new = blobs(40, 5, 4, 0, noise=2.0), blobs(60, 5, 4, 1, noise=2.0)
    train = train._replace(labels=train.labels + 3)
    official = KNeighborsClassifier(n_neighbors=k, metric="cosine").fit(train.features.double(), train.labels)
    assert nearest_neighbours(*train, k=k).predict(new.features).tolist() == official.predict(new.features).tolist()


def test_of_equally_common_neighbours_the_smallest_label_wins_and_length_does_not_count():
    features = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 50.0]])
    probe = nearest_neighbours(features, torch.tensor([7, 2, 0]), k=2)
    assert probe.predict(torch.tensor([[100.0, 0.0], [0.0, 0.01]])).tolist() == [2, 0]


def test_a_feature_that_is_constant_in_training_but_for_rounding_gets_no_weight():
    train = blobs(40, 4, 3, 0)
    rounded = 1000.1 + 1e-4 * torch.rand(40, 1, generator=torch.Generator().manual_seed(0))
    assert len(rounded.unique()) > 1
    features = torch.cat([train.features, rounded, torch.zeros(40, 1)], dim=1)
    probe = logistic_regression(features, train.labels)
    assert (probe.weight[:, 4:] == 0).all()
    torch.testing.assert_close(probe.weight[:, :4], logistic_regression(*train).weight)


def test_a_class_that_training_did_not_show_is_never_predicted():
    train = blobs(40, 4, 3, 0)
    probe = logistic_regression(train.features, 2 * train.labels + 1)
    assert probe.classes.tolist() == [1, 3, 5]
    assert set(probe.predict(blobs(50, 4, 3, 1).features).tolist()) == {1, 3, 5}


def test_no_gradient_is_kept_and_none_is_needed():
    train = blobs(20, 4, 3, 0)
    features = train.features.requires_grad_()
    with torch.no_grad():
        probe = logistic_regression(features, train.labels)
    assert not probe.weight.requires_grad


def test_the_tuned_probe_is_the_one_that_validation_likes_best():
    train, validation = blobs(30, 40, 4, 0, noise=3.0), blobs(300, 40, 4, 1, noise=3.0)
    strengths = (0.01, 1.0, 100.0, 1e4)
    by_strength = {l2: logistic_regression(*train, l2=l2).accuracy(*validation) for l2 in strengths}
    tuned = probes.tuned_probe(train, validation, strengths=strengths, scales=("each",))
    assert tuned.accuracy(*validation) == max(by_strength.values()) > min(by_strength.values())
    assert tuned.l2 == max(l2 for l2, accuracy in by_strength.items() if accuracy == max(by_strength.values()))
    torch.testing.assert_close(tuned.weight, logistic_regression(*train, l2=tuned.l2).weight, rtol=0, atol=1e-8)


def test_the_scale_is_tuned_too():
    sets = [blobs(count, 60, 4, seed, noise=2.0, units=0.5) for seed, count in enumerate((12, 300))]
    # features that are nothing but noise and vary little: to be kept small
    noise = [0.3 * torch.randn(len(s.labels), 200, generator=torch.Generator().manual_seed(5)) for s in sets]
    sets = [Labelled(torch.cat([s.features, n], dim=1), s.labels) for s, n in zip(sets, noise, strict=True)]
    each, together = (probes.tuned_probe(*sets, scales=(scale,)).accuracy(*sets[1]) for scale in ("each", "all"))
    tuned = probes.tuned_probe(*sets)
    assert tuned.scale == "all" and tuned.accuracy(*sets[1]) == together > each


def test_of_equally_good_probes_the_strongest_penalty_is_chosen():
    train, validation = blobs(30, 40, 4, 0, noise=0.1), blobs(50, 40, 4, 1, noise=0.1)
    tuned = probes.tuned_probe(train, validation, strengths=(1.0, 3.0, 0.1))
    assert tuned.l2 == 3.0 and tuned.scale == "each"


def test_the_tuned_neighbours_are_the_ones_that_validation_likes_best():
    train, validation = blobs(8, 10, 2, 0, noise=4.0), blobs(300, 10, 2, 1, noise=4.0)
    by_k = {k: nearest_neighbours(*train, k=k).accuracy(*validation) for k in (1, 3, 5)}
    tuned = probes.tuned_neighbours(train, validation, neighbours=(1, 3, 5, 10))  # there are no ten
    assert tuned.accuracy(*validation) == max(by_k.values()) > min(by_k.values())
    assert by_k[tuned.k] == max(by_k.values())


def test_a_draw_has_as_many_labels_of_each_class_and_grows_without_change():
    labels = torch.tensor([4, 0, 0, 4, 0, 4, 4, 0, 9, 9, 9, 9])
    small, large = (label_draw(labels, n, seed=3) for n in (2, 3))
    assert labels[small].tolist() == [0, 0, 4, 4, 9, 9] and labels[large].tolist() == [0] * 3 + [4] * 3 + [9] * 3
    assert len(set(large.tolist())) == 9 and set(small.tolist()) < set(large.tolist())
    assert torch.equal(large, label_draw(labels, 3, seed=3))
    assert len({tuple(label_draw(labels, 3, seed=seed).tolist()) for seed in range(5)}) == 5


def test_few_labels_are_drawn_tuned_and_scored_for_each_draw():
    train, validation, test = (blobs(200, 20, 3, seed, noise=2.0) for seed in range(3))
    accuracies = probes.few_label_accuracies(train, validation, test, per_class=2, draws=3)
    chosen = label_draw(train.labels, 2, seed=1)
    probe = probes.tuned_probe(Labelled(train.features[chosen], train.labels[chosen]), validation)
    assert len(accuracies) == 3 and accuracies[1] == probe.accuracy(*test) and len(set(accuracies)) > 1
    neighbours = probes.few_label_accuracies(
        train, validation, test, per_class=2, draws=1, tuned=probes.tuned_neighbours
    )
    assert neighbours != accuracies[:1]


def test_features_come_from_evaluation_mode_in_parts_and_flat():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Dropout(0.5)).train()
    pixels = torch.rand(5, 1, 4, 4)
    given = probes.features_of(model, pixels, batch_size=2)
    assert model.training and given.shape == (5, 8) and not given.requires_grad
    torch.testing.assert_close(given, model[0]((pixels - 0.5) / 0.25).flatten(1))
    tripled = probes.features_of(model, pixels, encode=lambda x: 3 * model(x))
    torch.testing.assert_close(tripled, 3 * given)
