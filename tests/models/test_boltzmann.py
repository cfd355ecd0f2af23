import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.neural_network import BernoulliRBM
from torch import nn

from course_lib.models.boltzmann import DBN, RBM, DBNConfig, RBMConfig
from course_lib.weights import own


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


def test_one_unit_in_each_layer_by_hand():
    rbm = make(1, 1)
    with torch.no_grad():
        for parameter, value in ((rbm.weight, 2.0), (rbm.visible_bias, -1.0), (rbm.hidden_bias, 0.5)):
            parameter.fill_(value)
    v, h = torch.ones(1, 1).double(), torch.ones(1, 1).double()
    assert rbm.energy(v, h).item() == pytest.approx(-1.5)  # 1 - 0.5 - 2
    weights = {(0, 0): 1.0, (0, 1): np.exp(0.5), (1, 0): np.exp(-1.0), (1, 1): np.exp(1.5)}
    assert rbm.log_partition().item() == pytest.approx(np.log(sum(weights.values())))
    assert rbm.features(v).item() == pytest.approx(weights[1, 1] / (weights[1, 0] + weights[1, 1]))
    assert rbm.visible(h).item() == pytest.approx(weights[1, 1] / (weights[0, 1] + weights[1, 1]))
    assert rbm.log_prob(v).exp().item() == pytest.approx((weights[1, 0] + weights[1, 1]) / sum(weights.values()))


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
def test_gibbs_steps_lead_to_the_distribution_of_the_machine():
    rbm, v = make(4, 3), rows(40_000, 4)
    for _ in range(20):
        v = rbm.gibbs(v)
    numbers = (v @ torch.tensor([8.0, 4.0, 2.0, 1.0]).double()).long()
    shares = numbers.bincount(minlength=16) / len(v)
    same(shares.double(), rbm.log_prob(states(4)).exp(), tolerance=0.01)


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


def test_the_gradient_of_the_likelihood_is_data_less_model():
    rbm, v = make(), rows(6, 5)
    found = gradients(rbm, rbm.log_prob(v).mean())
    every = states(5)
    share = rbm.log_prob(every).exp().detach()
    h, model_h = rbm.features(v).detach(), rbm.features(every).detach()
    expected = [
        h.T @ v / 6 - model_h.T @ (every * share[:, None]),
        v.mean(dim=0) - share @ every,
        h.mean(dim=0) - share @ model_h,
    ]
    same(found, torch.cat([each.flatten() for each in expected]))
    assert torch.autograd.gradcheck(lambda *_: rbm.log_prob(v), tuple(rbm.parameters()))


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


@pytest.mark.parametrize(("chains", "least"), [(0, -4.2), (500, -3.6)], ids=["CD-1", "persistent"])
def test_it_learns_bars_of_three_by_three_pixels(chains, least):
    bars = torch.stack([pattern.expand(3, 3) for pattern in states(3)]).flatten(1).float()  # rows, all alike
    patterns = torch.cat([bars, bars.view(8, 3, 3).mT.flatten(1)]).unique(dim=0)
    assert len(patterns) == 14  # at best -ln 14 = -2.64 nats; 9 coins -6.24
    torch.manual_seed(0)
    rbm = RBM(RBMConfig(num_visible=9, num_hidden=12, num_chains=chains))
    optimizer = torch.optim.SGD(rbm.parameters(), lr=0.4, momentum=0.5)
    for step in range(700):
        optimizer.param_groups[0]["lr"] = 0.4 * (1 - step / 700)
        optimizer.zero_grad()
        rbm.loss(patterns).backward()
        optimizer.step()
    assert rbm.log_prob(patterns).mean().item() > least


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


@pytest.mark.parametrize("model", [make(chains=4), make(), stack(num_classes=3)], ids=["chains", "RBM", "DBN"])
def test_it_is_saved_and_loaded(model, tmp_path):
    own.save(model.float(), tmp_path / "model.safetensors")
    loaded = own.load(tmp_path / "model.safetensors")
    assert loaded.config == model.config
    assert all(torch.equal(loaded.state_dict()[name], tensor) for name, tensor in model.state_dict().items())


def test_what_makes_no_sense_is_refused():
    for wrong in ({"num_visible": 0}, {"num_hidden": 0}, {"num_chains": -1}):
        with pytest.raises(ValueError, match="units in both layers"):
            RBMConfig(**{"num_visible": 2, "num_hidden": 2} | wrong)
    for wrong in ({"dims": (3,)}, {"dims": (3, 0)}, {"num_classes": 0}):
        with pytest.raises(ValueError, match="two layers or more"):
            DBNConfig(**{"dims": (3, 2)} | wrong)
    with pytest.raises(ValueError, match="1 step or more, got 0"):
        make().loss(rows(2, 5), steps=0)
    with pytest.raises(ValueError, match="2\\^21 states"):
        make(21, 22).log_partition()


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
    with pytest.raises(ValueError, match="1 Gibbs step or more, got 0"):
        rbm.dream(rows(2, 4), 0)
