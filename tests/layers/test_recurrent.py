from itertools import product

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_lib.functional.recurrent import LSTMState, map_state
from course_lib.layers.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell

VALID = torch.tensor([[True, True, True, True], [True, True, False, False]])

# Our layer, PyTorch's, and options that both know.
KINDS = {
    "rnn": (RNN, nn.RNN, {}, {}),
    "relu rnn": (RNN, nn.RNN, {"activation": "relu"}, {"nonlinearity": "relu"}),
    "lstm": (LSTM, nn.LSTM, {}, {}),
    "gru": (GRU, nn.GRU, {}, {}),
}
LENGTHS = [5, 2, 7, 1]
RIGHT = torch.arange(7) < torch.tensor(LENGTHS)[:, None]
each_kind = pytest.mark.parametrize("kind", KINDS)


def make_pair(
    kind, *, layers=1, bidirectional=False, bias=True, dropout=0.0, dtype=torch.float32, input_dim=3, width=4
):
    """Our layer and PyTorch's with the same weights, large enough to show faults."""
    our_type, their_type, our_options, their_options = KINDS[kind]
    torch.manual_seed(0)
    sizes = {"num_layers": layers, "bidirectional": bidirectional, "bias": bias, "dropout": dropout}
    ours = our_type(input_dim, width, **sizes, **our_options).to(dtype)
    theirs = their_type(input_dim, width, **sizes, **their_options, batch_first=True).to(dtype)
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.4)
    theirs.load_state_dict({their_name(name, ours): weight for name, weight in ours.state_dict().items()})
    return ours, theirs


def their_name(name, ours):
    """cells.3.weight_ih is weight_ih_l1_reverse where there are two directions."""
    _, number, weight = name.split(".")
    layer, direction = divmod(int(number), ours.num_directions)
    return f"{weight}_l{layer}" + "_reverse" * direction


def make_state(layer, batch_size):
    drawn = map_state(lambda each: torch.randn_like(each) / 2, layer.initial_state(batch_size))
    return map_state(lambda each: each.requires_grad_(), drawn)


def tensors(state):
    return [state] if isinstance(state, torch.Tensor) else list(state)


def gradients(results, inputs):
    """Of a mean over all results with weights that are the same for the same shapes."""
    torch.manual_seed(1)
    loss = sum((result * torch.randn(result.shape, dtype=result.dtype)).mean() for result in results)
    return torch.autograd.grad(loss, inputs)


def assert_equal(ours, theirs, atol=1e-6):
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=atol, rtol=0)


OPTIONS = list(product((1, 2), (False, True), (True, False), (False, True), (False, True)))


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-6), (torch.float64, 1e-13)])
@each_kind
def test_all_options_agree_with_pytorch(kind, dtype, atol):
    for layers, bidirectional, bias, padded, given_state in OPTIONS:
        ours, theirs = make_pair(kind, layers=layers, bidirectional=bidirectional, bias=bias, dtype=dtype)
        x = torch.randn(4, 7, 3, dtype=dtype, requires_grad=True)
        state = make_state(ours, 4) if given_state else None
        their_state = tuple(state) if isinstance(state, LSTMState) else state
        outputs, final = ours(x, state, valid=RIGHT if padded else None)
        if padded:
            packed = pack_padded_sequence(x, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
            their_outputs, their_final = theirs(packed, their_state)
            their_outputs, _ = pad_packed_sequence(their_outputs, batch_first=True)
        else:
            their_outputs, their_final = theirs(x, their_state)
        results, their_results = [outputs, *tensors(final)], [their_outputs, *tensors(their_final)]
        names = {their_name(name, ours): weight for name, weight in ours.named_parameters()}
        shared = [x, *(tensors(state) if given_state else [])]
        our_inputs = [*shared, *(names[name] for name, _ in theirs.named_parameters())]
        assert_equal(results, their_results, atol)
        assert_equal(gradients(results, our_inputs), gradients(their_results, [*shared, *theirs.parameters()]), atol)


@each_kind
def test_dropout_between_layers_is_pytorch_s(kind):
    ours, theirs = make_pair(kind, layers=3, bidirectional=True, dropout=0.4)
    x = torch.randn(2, 5, 3)
    torch.manual_seed(2)
    dropped = ours(x)[0]
    torch.manual_seed(2)
    assert_equal([dropped], [theirs(x)[0]])
    assert (dropped - ours.eval()(x)[0]).abs().max() > 0.01
    assert_equal([ours(x)[0]], [theirs.eval()(x)[0]])


@each_kind
def test_a_packed_sequence_comes_back_as_pytorch_s_does(kind):
    ours, theirs = make_pair(kind, layers=2, bidirectional=True)
    x = torch.randn(4, 7, 3)
    for lengths, is_sorted in (([5, 2, 7, 2], False), ([7, 6, 6, 1], True)):
        packed = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=is_sorted)
        outputs, final = ours(packed)
        their_outputs, their_final = theirs(packed)
        assert_equal([outputs.data, *tensors(final)], [their_outputs.data, *tensors(their_final)])
        assert torch.equal(outputs.batch_sizes, their_outputs.batch_sizes)
        padded, their_padded = (pad_packed_sequence(each, batch_first=True) for each in (outputs, their_outputs))
        assert_equal(padded, their_padded)
    with pytest.raises(ValueError, match="leave `valid` out"):
        ours(packed, valid=RIGHT)


def scattered(*shape):
    """Padding anywhere: in front, between, at the end; one row without a token."""
    torch.manual_seed(3)
    valid = torch.rand(*shape) < 0.6
    valid[0] = True
    valid[-1] = False
    return valid


@each_kind
def test_the_kernel_and_its_readable_twin_are_equal_wherever_padding_stands(kind):
    for bidirectional, valid in product((False, True), (None, scattered(4, 6))):
        layer, _ = make_pair(kind, layers=2, bidirectional=bidirectional, dtype=torch.float64)
        x = torch.randn(4, 6, 3, dtype=torch.float64, requires_grad=True)
        state = make_state(layer, 4)
        found = []
        for layer.readable in (False, True):
            outputs, final = layer(x, state, valid=valid)
            results = [outputs, *tensors(final)]
            found.append([*results, *gradients(results, [x, *tensors(state), *layer.parameters()])])
        assert_equal(*found, atol=1e-12)


@each_kind
def test_a_padded_row_equals_its_tokens_alone(kind):
    layer, _ = make_pair(kind, layers=2, bidirectional=True, dtype=torch.float64)
    x, valid = torch.randn(4, 6, 3, dtype=torch.float64), scattered(4, 6)
    start = make_state(layer, 4)
    outputs, final = layer(x, start, valid=valid)
    assert (outputs[~valid] == 0).all()
    for row in range(3):
        own = map_state(lambda each, row=row: each[:, row : row + 1], start)
        alone, alone_final = layer(x[row : row + 1, valid[row]], own)
        assert_equal([outputs[row, valid[row]]], [alone[0]], atol=1e-12)
        assert_equal([each[:, row] for each in tensors(final)], [each[:, 0] for each in tensors(alone_final)], 1e-12)
    assert_equal([each[:, 3] for each in tensors(final)], [each[:, 3] for each in tensors(start)], atol=0)


@each_kind
def test_padding_never_reaches_a_state_or_a_gradient(kind):
    layer, _ = make_pair(kind, layers=2, bidirectional=True)
    valid = scattered(4, 6)
    x = torch.randn(4, 6, 3)
    spoiled = x.masked_fill(~valid[..., None], torch.nan).requires_grad_()
    outputs, final = layer(spoiled, valid=valid)
    clean, clean_final = layer(x, valid=valid)
    assert_equal([outputs, *tensors(final)], [clean, *tensors(clean_final)], atol=0)
    grad_x, *grads = gradients([outputs, *tensors(final)], [spoiled, *layer.parameters()])
    assert all(grad.isfinite().all() for grad in grads)
    assert (grad_x[~valid] == 0).all() and (grad_x[valid] != 0).any()


@each_kind
def test_second_and_forward_derivatives_exist_and_are_those_of_the_readable_twin(kind):
    layer, _ = make_pair(kind)  # single precision: the kernel is another one than in double
    x, found = torch.randn(1, 3, 3, requires_grad=True), []
    for layer.readable in (False, True):
        (slope,) = torch.autograd.grad(layer(x)[0].square().sum(), x, create_graph=True)
        weights = dict(layer.named_parameters())
        _, along = torch.func.jvp(
            lambda weights, layer=layer: torch.func.functional_call(layer, weights, (x,))[0],
            (weights,),
            ({name: torch.ones_like(weight) for name, weight in weights.items()},),
        )
        _, along_x = torch.func.jvp(lambda x, layer=layer: layer(x)[0], (x,), (torch.ones_like(x),))
        found.append([torch.autograd.grad(slope.sum(), x)[0], along, along_x])
    assert_equal(*found, atol=1e-5)


def test_frozen_weights_and_inputs_get_no_gradient():
    for kind in KINDS:
        layer, _ = make_pair(kind)
        layer.cells[0].weight_ih.requires_grad_(False)
        layer.cells[0].bias_ih.requires_grad_(False)
        layer(torch.randn(2, 3, 3))[0].sum().backward()
        assert layer.cells[0].weight_ih.grad is None and layer.cells[0].bias_ih.grad is None
        assert layer.cells[0].weight_hh.grad is not None and layer.cells[0].bias_hh.grad is not None


@pytest.mark.parametrize("cell", [RNNCell, LSTMCell, GRUCell])
def test_a_cell_takes_the_weights_of_pytorch_s_cell(cell):
    torch.manual_seed(0)
    ours, theirs = cell(3, 4), getattr(nn, cell.__name__)(3, 4)
    ours.load_state_dict(theirs.state_dict())
    x, state = torch.randn(2, 3), map_state(torch.randn_like, ours.initial_state(2))
    expected = theirs(x, tuple(state) if isinstance(state, LSTMState) else state)
    assert_equal(tensors(ours(x, state)), [expected] if cell is not LSTMCell else expected)
    assert all(weight.abs().max() <= 0.5 and weight.std() > 0.2 for weight in cell(3, 4).parameters())


def test_gates_are_those_of_the_run():
    layer, _ = make_pair("lstm", layers=2, bidirectional=True, dtype=torch.float64)
    x, valid = torch.randn(2, 4, 3, dtype=torch.float64), VALID
    _, final = layer(x, valid=valid)
    for index in (0, 1):
        gates = layer.gates(x, valid=valid, layer=index)
        c = torch.zeros(2, 4, dtype=torch.float64)
        for i, f, g, keep in zip(*(gate.unbind(1) for gate in gates[:3]), valid.unbind(1), strict=True):
            c = torch.where(keep[:, None], f * c + i * g, c)
        assert_equal([c], [final.c[2 * index]], atol=1e-12)
        assert all(((0 < gate) & (gate < 1)).all() for gate in (gates.i, gates.f, gates.o))
    with pytest.raises(ValueError, match="counted from 0 to 1, got layer=2"):
        layer.gates(x, layer=2)


def test_the_forget_bias_is_the_sum_of_both_biases_in_every_cell():
    torch.manual_seed(0)
    layer = LSTM(3, 5, num_layers=2, bidirectional=True, forget_bias=2.5, input_bias=-1.25)
    plain = LSTM(3, 5)
    for cell in layer.cells:
        i, f, g, o = (cell.bias_ih + cell.bias_hh).detach().chunk(4)
        assert (f == 2.5).all() and (i == -1.25).all() and g.std() > 0 and o.std() > 0
    assert (plain.cells[0].bias_ih + plain.cells[0].bias_hh).abs().max() < 1
    with pytest.raises(ValueError, match="none to set to 1.0"):
        LSTM(3, 5, bias=False, forget_bias=1.0)
