import pytest
import torch

from course_lib.layers.windows import DropPath


def test_in_training_whole_examples_are_dropped_and_the_others_made_up_for_it():
    torch.manual_seed(0)
    x = torch.rand(4000, 2, 3) + 1
    kept = DropPath(0.2).train()(x)
    dropped = (kept == 0).flatten(1)
    assert torch.equal(dropped.all(1), dropped.any(1))
    torch.testing.assert_close(kept[~dropped.any(1)], x[~dropped.any(1)] / 0.8)
    assert 0.17 < dropped.any(1).float().mean() < 0.23


def test_in_use_and_at_rate_zero_nothing_is_dropped():
    x = torch.rand(50, 3)
    assert torch.equal(DropPath(0.9).eval()(x), x)
    assert torch.equal(DropPath(0.0).train()(x), x)


def test_a_dropped_branch_gets_no_gradient():
    torch.manual_seed(0)
    x = torch.rand(20, 3, requires_grad=True)
    y = DropPath(0.5).train()(x)
    y.sum().backward()
    assert torch.equal(x.grad == 0, y == 0) and (y == 0).any() and (y != 0).any()


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_a_rate_out_of_range_is_named(rate):
    with pytest.raises(ValueError, match=f"from 0 up to, but not including, 1; got {rate}"):
        DropPath(rate)
