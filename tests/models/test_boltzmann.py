import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.neural_network import BernoulliRBM
from torch import nn

from course_lib.models.boltzmann import DBN, RBM, DBNConfig, RBMConfig


def make(visible=5, hidden=3, *, std=0.8, chains=0, seed=0):
    torch.manual_seed(seed)
    rbm = RBM(RBMConfig(num_visible=visible, num_hidden=hidden, num_chains=chains)).double()
    for parameter in rbm.parameters():
        nn.init.normal_(parameter, std=std)
    return rbm


def states(units):
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=units)), dtype=torch.float64)


def rows(count, units, seed=0):
    return torch.rand(count, units, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).round()


def same(found, expected, tolerance=1e-12):
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


def theirs(rbm, chains=4, **settings):
    """scikit-learn's machine with the weights of ours."""
    peer = BernoulliRBM(n_components=rbm.config.num_hidden, random_state=0, **settings)
    peer.components_ = rbm.weight.detach().numpy().copy()
    peer.intercept_hidden_ = rbm.hidden_bias.detach().numpy().copy()
    peer.intercept_visible_ = rbm.visible_bias.detach().numpy().copy()
    peer.h_samples_ = rows(chains, rbm.config.num_hidden).numpy()
    peer.n_features_in_, peer.random_state_ = rbm.config.num_visible, np.random.RandomState(0)
    return peer


# ------------------------------------------------------------------------------- what the machine says


@torch.no_grad()
@pytest.mark.parametrize(("visible", "hidden"), [(5, 3), (3, 5)])
def test_free_energy_conditionals_and_partition_are_sums_of_the_energy_over_all_states(visible, hidden):
    rbm = make(visible, hidden)
    v, h = states(visible), states(hidden)
    joint = -rbm.energy(v[:, None].expand(-1, len(h), -1), h.expand(len(v), -1, -1))  # (2^V, 2^H)
    same(-rbm(v), joint.logsumexp(dim=1))
    same(rbm.log_partition(), joint.logsumexp(dim=(0, 1)))
    same(rbm.features(v), joint.softmax(dim=1) @ h)
    same(rbm.visible(h), joint.softmax(dim=0).T @ v)
    same(rbm.log_prob(v).exp().sum(), torch.tensor(1.0).double())


@torch.no_grad()
def test_pseudo_likelihood_is_the_sum_of_the_conditionals():
    rbm, v = make(), rows(6, 5)
    likelihood = rbm.log_prob(states(5)).view(*[2] * 5)
    expected = []
    for row in v.long().tolist():
        lines = [likelihood[tuple(slice(None) if i == j else row[j] for j in range(5))] for i in range(5)]
        expected.append(sum(line.log_softmax(0)[row[i]] for i, line in enumerate(lines)))
    found = torch.stack([rbm.pseudo_log_likelihood(v, torch.full((6,), i)) for i in range(5)]).mean(dim=0)
    same(found, torch.stack(expected))


# -------------------------------------------------------------------------------------------- learning


def gradients(rbm, loss):
    return torch.cat([each.flatten() for each in torch.autograd.grad(loss, list(rbm.parameters()))])


@pytest.mark.parametrize(("steps", "least"), [(1, 0.7), (20, 0.98)])
def test_contrastive_divergence_points_where_the_likelihood_rises_the_more_exactly_the_longer_it_walks(steps, least):
    rbm, v = make(std=0.5), rows(6, 5, seed=3)
    exact = gradients(rbm, -rbm.log_prob(v).mean())
    found = gradients(rbm, rbm.loss(v.repeat(5000, 1), steps=steps))
    assert F.cosine_similarity(found, exact, dim=0) > least


def test_persistent_chains_go_on_where_they_stood_and_the_others_begin_at_the_data():
    persistent, plain, v = make(chains=7), make(), rows(3, 5)
    before = persistent.chains.clone()
    torch.manual_seed(5)
    expected = persistent.gibbs(before)
    torch.manual_seed(5)
    persistent.loss(v)
    same(persistent.chains, expected)
    torch.manual_seed(5)
    fantasy = plain.gibbs(plain.gibbs(v))
    torch.manual_seed(5)
    same(plain.loss(v, steps=2), plain.contrast(v, fantasy))
    assert "chains" in persistent.state_dict() and "chains" not in plain.state_dict()


# ---------------------------------------------------------------------------- beside scikit-learn


@torch.no_grad()
def test_conditionals_free_energy_and_scores_are_those_of_scikit_learn():
    rbm, v = make(8, 6), rows(10, 8)
    peer = theirs(rbm)
    same(rbm.features(v), torch.from_numpy(peer.transform(v.numpy())))
    same(rbm(v), torch.from_numpy(peer._free_energy(v.numpy())))
    flipped = torch.from_numpy(np.random.RandomState(0).randint(0, 8, 10))
    same(rbm.pseudo_log_likelihood(v, flipped), torch.from_numpy(peer.score_samples(v.numpy())))


@torch.no_grad()
def test_a_gibbs_step_is_that_of_scikit_learn_with_the_same_noise():
    rbm, v = make(8, 6), rows(10, 8)
    random = np.random.RandomState(0)
    noise = torch.from_numpy(np.concatenate([random.uniform(size=(10, 6)), random.uniform(size=(10, 8))], axis=1))
    assert torch.equal(rbm.gibbs(v, noise), torch.from_numpy(theirs(rbm).gibbs(v.numpy())).double())


def test_the_step_of_stochastic_maximum_likelihood_is_that_of_scikit_learn():
    rbm, v = make(8, 6), rows(10, 8)
    peer = theirs(rbm, chains=10, learning_rate=0.3)
    with torch.no_grad():
        noise = torch.from_numpy(np.random.RandomState(0).uniform(size=(10, 8)))
        fantasy = (noise < rbm.visible(torch.from_numpy(peer.h_samples_))).double()
    rbm.contrast(v, fantasy).backward()
    peer._fit(v.numpy(), np.random.RandomState(0))
    for parameter, name in (
        (rbm.weight, "components_"),
        (rbm.visible_bias, "intercept_visible_"),
        (rbm.hidden_bias, "intercept_hidden_"),
    ):
        same(parameter.detach() - 0.3 * parameter.grad, torch.from_numpy(getattr(peer, name)))


# --------------------------------------------------------------------------------------------- the stack


def stack(**changes):
    torch.manual_seed(0)
    dbn = DBN(DBNConfig(**{"dims": (6, 5, 4)} | changes)).double()
    for parameter in dbn.parameters():
        nn.init.normal_(parameter, std=0.8)
    return dbn


def test_a_layer_learns_of_what_the_layers_below_make_and_they_get_no_gradient():
    dbn, v = stack(), rows(4000, 6)
    dbn.layer_loss(v, 1).backward()
    assert all(each.grad is None for each in dbn.layers[0].parameters())
    assert all(each.grad.any() for each in dbn.layers[1].parameters())
    seen = []
    dbn.layers[1].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    dbn.layer_loss(v[:1].expand(4000, -1), 1)
    assert set(seen[0].unique().tolist()) == {0.0, 1.0}
    same(seen[0].mean(dim=0), dbn.layers[0].features(v[0]).detach(), tolerance=0.03)


@torch.no_grad()
def test_features_go_up_layer_by_layer_and_the_head_reads_the_top():
    dbn, v = stack(num_classes=3), rows(2, 6)
    top = dbn.layers[1].features(dbn.layers[0].features(v))
    same(dbn.features(v), top)
    same(dbn(v), dbn.head(top))
    same(stack()(v), stack().features(v))


@torch.no_grad()
def test_a_dream_is_gibbs_steps_at_the_top_and_one_way_down():
    dbn, v = stack(), rows(3, 6)
    torch.manual_seed(1)
    found = dbn.dream(v, 2)
    torch.manual_seed(1)
    top = dbn.layers[1].gibbs(dbn.layers[1].gibbs(dbn.layers[0].features(v)))
    same(found, dbn.layers[0].visible(top))


# ------------------------------------------------------------------------------- dreams with clamped units


def test_clamped_units_keep_their_values_and_the_others_come_from_their_conditional():
    rbm = make(4, 3)
    clamped = torch.tensor([False, False, True, True])
    v = rows(1, 4).repeat(40_000, 1)
    torch.manual_seed(0)
    found = rbm.dream(v, 60, clamped=clamped)
    assert torch.equal(found[:, 2:], v[:, 2:])
    possible = torch.cat([states(2), v[:4, 2:]], dim=1)
    exact = (-rbm(possible)).softmax(dim=0) @ possible
    same(found.mean(dim=0), exact, 0.01)


def test_a_dream_without_clamped_units_is_a_sample_of_the_machine():
    rbm = make(4, 3)
    torch.manual_seed(0)
    found = rbm.dream(rows(40_000, 4), 60)
    exact = (-rbm(states(4))).softmax(dim=0) @ states(4)
    same(found.mean(dim=0), exact, 0.01)
