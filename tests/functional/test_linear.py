import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from course_lib.functional import linear as module
from course_lib.functional.linear import ONEDNN, linear, linear_plus, onednn_pays

LARGE, SMALL = 128, 8  # rows: above and below what oneDNN is worth


def tensors(rows=LARGE, *, bias=True, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2, rows // 2, 96, generator=generator, requires_grad=True)
    weight = torch.randn(120, 96, generator=generator, requires_grad=True)
    return [x, weight] + ([torch.randn(120, generator=generator, requires_grad=True)] if bias else [])


@pytest.fixture
def calls(monkeypatch):
    """Counts the products that oneDNN is asked for."""
    counted = []
    product = module.onednn_product
    monkeypatch.setattr(module, "onednn_product", lambda *given: (counted.append(given), product(*given))[1])
    return counted


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("rows", "products"), [(LARGE, 3), (SMALL, 0)])
def test_values_and_gradients_are_those_of_torch(rows, products, bias, calls):
    ours, theirs = tensors(rows, bias=bias), tensors(rows, bias=bias)
    upstream = torch.randn(2, rows // 2, 120, generator=torch.Generator().manual_seed(1))
    results = [linear(*ours), F.linear(*theirs)]
    for result in results:
        result.backward(upstream)
    torch.testing.assert_close(*results, atol=1e-4, rtol=1e-5)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-4, rtol=1e-5)
    assert len(calls) == products


def test_an_expanded_gradient_is_understood(calls):
    ours, theirs = tensors(), tensors()
    linear(*ours).sum().backward()
    F.linear(*theirs).sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-4, rtol=1e-5)
    assert len(calls) == 3


def test_second_derivatives_are_those_of_torch(calls):
    gradients = []
    for function, given in ((linear, tensors()), (F.linear, tensors())):
        (dx,) = torch.autograd.grad(function(*given).square().sum(), given[0], create_graph=True)
        gradients.append(torch.autograd.grad(dx.square().sum(), given[:2]))
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, atol=0.1, rtol=1e-4)  # the numbers go up to 1e5
    assert len(calls) > 3


def test_only_the_gradients_that_are_needed_are_computed(calls):
    x, weight, bias = tensors()
    linear(x, weight.detach(), bias.detach()).sum().backward()
    assert len(calls) == 2 and x.grad is not None


def test_without_gradients_nothing_is_kept():
    with torch.no_grad():
        assert linear(*tensors()).grad_fn is None
    assert not linear(*(t.detach() for t in tensors())).requires_grad


def test_double_precision_and_small_products_stay_with_torch():
    x, weight, _ = tensors()
    assert onednn_pays(x, weight)
    assert not onednn_pays(x.double(), weight.double()) and not onednn_pays(x[:, :4], weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not onednn_pays(x, weight) and linear(x, weight).dtype == torch.bfloat16


@pytest.mark.parametrize("worth_it", [1, 10**12])
def test_a_term_is_added_by_either_product(worth_it, monkeypatch):
    monkeypatch.setattr(module, "WORTH_IT", worth_it)
    x, weight, _ = (t.detach() for t in tensors())
    term = torch.randn(LARGE // 2, 120, generator=torch.Generator().manual_seed(2))
    assert onednn_pays(x[0], weight) == (worth_it == 1 and ONEDNN is not None)
    torch.testing.assert_close(linear_plus(term, x[0], weight), term + x[0] @ weight.T, atol=1e-4, rtol=1e-5)
    double = linear_plus(term.double(), x[0].double(), weight.double())
    torch.testing.assert_close(double, term.double() + x[0].double() @ weight.double().T, atol=1e-12, rtol=0)


@pytest.mark.parametrize("worth_it", [1, 10**12])
def test_operations_of_a_product_with_a_term_are_those_of_the_product(worth_it, monkeypatch):
    monkeypatch.setattr(module, "WORTH_IT", worth_it)
    x, weight, _ = (t.detach() for t in tensors())
    with FlopCounterMode(display=False) as counter:
        linear_plus(torch.zeros(LARGE // 2, 120), x[0], weight)
    assert counter.get_total_flops() == 2 * (LARGE // 2) * 96 * 120


def test_its_operations_are_counted_as_those_of_torch():
    counts = []
    for function in (linear, F.linear):
        with FlopCounterMode(display=False) as counter:
            function(*tensors()).sum().backward()
        counts.append(counter.get_total_flops())
    assert counts[0] == counts[1] == 3 * 2 * LARGE * 96 * 120
