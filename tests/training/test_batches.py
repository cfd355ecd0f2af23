import numpy as np
import pytest
import torch
from torch import nn

from course_lib.training import FitConfig, fit
from course_lib.training.batches import Rollouts, bucketed_batches, shuffled_batches, text_windows

LENGTHS = np.random.default_rng(0).integers(3, 40, size=5003)
SAMPLERS = {
    "shuffled": lambda seed: shuffled_batches(5003, 32, seed),
    "bucketed": lambda seed: bucketed_batches(LENGTHS, 32, seed),
}
STEPS_PER_EPOCH = 157  # 5003 / 32, rounded up


def epoch(indices_at, number):
    start = number * STEPS_PER_EPOCH
    return [indices_at(step) for step in range(start, start + STEPS_PER_EPOCH)]


@pytest.mark.parametrize("name", SAMPLERS)
def test_an_epoch_holds_every_example_once(name):
    indices_at = SAMPLERS[name](7)
    for number in (0, 1, 5):
        batches = epoch(indices_at, number)
        assert sorted(torch.cat(batches).tolist()) == list(range(5003))
        assert sorted(map(len, batches)) == [5003 - 156 * 32] + [32] * 156


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_batch_depends_on_step_and_seed_only(name):
    forwards, jumping, other = SAMPLERS[name](7), SAMPLERS[name](7), SAMPLERS[name](8)
    steps = [0, 1, 400, 156, 157, 0]
    in_order = {step: forwards(step) for step in range(401)}
    assert all(torch.equal(jumping(step), in_order[step]) for step in steps)
    assert not torch.equal(other(0), in_order[0])
    assert not torch.equal(in_order[0], in_order[157])


def test_buckets_waste_little_padding_and_still_mix():
    def padding(batches):
        return sum(int(LENGTHS[b].max()) * len(b) for b in batches) / LENGTHS.sum() - 1

    bucketed, shuffled = (epoch(SAMPLERS[name](7), 0) for name in ("bucketed", "shuffled"))
    assert padding(shuffled) > 0.6
    assert padding(bucketed) < 0.05
    means = [LENGTHS[b].mean() for b in bucketed]
    assert abs(np.corrcoef(means, range(len(means)))[0, 1]) < 0.3  # short and long batches come in no order


def test_lengths_may_be_a_list_or_a_tensor():
    lengths = LENGTHS[:100].tolist()
    as_list, as_tensor = bucketed_batches(lengths, 8, 0), bucketed_batches(torch.tensor(lengths), 8, 0)
    assert all(torch.equal(as_list(step), as_tensor(step)) for step in range(13))


def test_windows_are_parts_of_the_text_and_depend_on_seed_and_step_alone():
    ids, sizes = torch.arange(500), {"batch_size": 4, "length": 17}
    batch_at = text_windows(ids, **sizes, seed=0)
    batch = batch_at(3)
    assert batch.shape == (4, 17) and torch.equal(batch - batch[:, :1], torch.arange(17).expand(4, 17))
    assert torch.equal(batch, text_windows(ids, **sizes, seed=0)(3)) and not torch.equal(batch, batch_at(4))
    assert not torch.equal(batch, text_windows(ids, **sizes, seed=1)(3))
    starts = torch.cat([text_windows(torch.arange(20), **sizes, seed=0)(step)[:, 0] for step in range(40)])
    assert set(starts.tolist()) == {0, 1, 2, 3}  # the first and the last window, too
    assert text_windows(torch.arange(17), **sizes, seed=0)(5).tolist() == [list(range(17))] * 4


def test_windows_are_those_that_the_stored_models_were_trained_on():
    starts = {seed: text_windows(torch.arange(500), batch_size=4, length=17, seed=seed)(3)[:, 0] for seed in (0, 3)}
    assert starts[0].tolist() == [243, 433, 462, 416] and starts[3].tolist() == [152, 49, 144, 154]


class Bandit(nn.Module):
    """A policy for two arms; the second one pays more often."""

    def __init__(self):
        super().__init__()
        self.logits, self.dropout = nn.Parameter(torch.zeros(2)), nn.Dropout(0.1)

    def forward(self, arms):
        return self.dropout(self.logits).log_softmax(-1)[arms]


def pull(model, round):
    assert not model.training and not torch.is_grad_enabled()
    arms = torch.multinomial(model.logits.softmax(-1), 50, replacement=True)
    pays = (torch.rand(50) < torch.tensor([0.3, 0.7])[arms]).float()
    return {"place": torch.arange(50) + 50 * round, "arms": arms, "old": model(arms), "advantage": pays - pays.mean()}


def clipped_loss(model, batch):  # Schulman et al. 2017, eq. (7)
    assert model.training
    ratio = (model(batch["arms"]) - batch["old"]).exp()
    return -torch.minimum(ratio * batch["advantage"], ratio.clamp(0.8, 1.2) * batch["advantage"]).mean()


def play(*, steps=240, watch=None, **settings):
    model = Bandit()
    config = FitConfig(steps=steps, learning_rate=0.05, checkpoint_every=12, seed=2)
    fit(model, Rollouts(pull, epochs=3, minibatches=4), watch or clipped_loss, config=config, **settings)
    return model


def test_a_policy_learns_from_its_own_actions_which_arm_pays():
    assert play().logits.softmax(-1)[1] > 0.9


def test_an_epoch_goes_through_the_rollout_once_and_each_in_a_new_order():
    seen = []

    def watch(model, batch):
        seen.append(batch["place"].tolist())
        return clipped_loss(model, batch)

    play(steps=24, watch=watch)
    assert [len(places) for places in seen] == [13, 13, 12, 12] * 6
    epochs = [sum(seen[start : start + 4], []) for start in range(0, 24, 4)]
    for number, places in enumerate(epochs):
        first = 50 * (number // 3)  # a rollout of its own in each round of three epochs
        assert sorted(places) == list(range(first, first + 50))
    assert len({tuple(place % 50 for place in places) for places in epochs}) == 6


def test_an_interrupted_play_ends_as_one_that_was_not(tmp_path):
    calls = []

    def stops(model, batch):
        calls.append(1)
        if len(calls) == 31:
            raise KeyboardInterrupt
        return clipped_loss(model, batch)

    with pytest.raises(KeyboardInterrupt):
        play(steps=48, watch=stops, checkpoint=tmp_path)
    assert torch.equal(play(steps=48, watch=stops, checkpoint=tmp_path).logits, play(steps=48).logits)
    assert len(calls) == 31 + 24  # the checkpoint is that of step 24


def test_rollouts_that_make_no_sense_are_refused():
    config = FitConfig(steps=24, checkpoint_every=18)
    with pytest.raises(ValueError, match=r"checkpoint_every=18 .*round of 12 steps \(3 epochs .*multiple of 12"):
        fit(Bandit(), Rollouts(pull, epochs=3, minibatches=4), clipped_loss, config=config)
    for made in ({"a": torch.ones(5), "b": torch.ones(6)}, {"a": torch.ones(3)}, {}):
        with pytest.raises(ValueError, match="one number of examples, at least its 4 minibatches, got {"):
            fit(Bandit(), Rollouts(lambda model, round, made=made: made, epochs=1, minibatches=4), clipped_loss,
                config=FitConfig(steps=4))  # fmt: skip
