import pytest
import torch
from torch import nn

from course_lib.layers.recurrent import BidirectionalGRU

VALID = torch.tensor([[True, True, True, True], [True, True, False, False]])


def make_layer():
    torch.manual_seed(0)
    return BidirectionalGRU(3, 5).double(), torch.randn(2, 4, 3, dtype=torch.float64)


def test_a_padded_row_equals_the_row_alone():
    layer, x = make_layer()
    states, final = layer(x, VALID)
    alone, alone_final = layer(x[1:, :2], VALID[1:, :2])
    torch.testing.assert_close(states[1:, :2], alone, rtol=0, atol=1e-12)
    torch.testing.assert_close(final[1:], alone_final, rtol=0, atol=1e-12)
    assert (states[1, 2:] == 0).all()


def test_the_states_are_those_of_one_gru_from_each_end():
    layer, x = make_layer()
    forward, backward = nn.GRU(3, 5, batch_first=True).double(), nn.GRU(3, 5, batch_first=True).double()
    weights = layer.gru.state_dict()
    forward.load_state_dict({name: w for name, w in weights.items() if not name.endswith("reverse")})
    backward.load_state_dict(
        {name.removesuffix("_reverse"): w for name, w in weights.items() if name.endswith("reverse")}
    )
    states, final = layer(x[:1], VALID[:1])
    there, there_last = forward(x[:1])
    back, back_last = backward(x[:1].flip(1))
    torch.testing.assert_close(states, torch.cat([there, back.flip(1)], dim=-1), rtol=0, atol=1e-12)
    torch.testing.assert_close(final, torch.cat([there_last[0], back_last[0]], dim=-1), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("valid", "message"),
    [
        ([[True, True], [False, False]], "row 1 has none"),
        ([[True, True], [False, True]], "row 1 has it before a token"),
    ],
)
def test_rows_that_are_empty_or_padded_in_front_are_refused(valid, message):
    with pytest.raises(ValueError, match=message):
        BidirectionalGRU(3, 5)(torch.zeros(2, 2, 3), torch.tensor(valid))
