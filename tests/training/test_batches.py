import numpy as np
import pytest
import torch

from course_lib.training.batches import bucketed_batches, shuffled_batches

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


@pytest.mark.parametrize(("count", "size"), [(0, 4), (10, 0)])
def test_nothing_to_draw_is_refused(count, size):
    with pytest.raises(ValueError, match=f"{count} examples and batch size {size}"):
        shuffled_batches(count, size, 0)
    with pytest.raises(ValueError, match=f"{count} examples and batch size {size}"):
        bucketed_batches([1] * count, size, 0)
