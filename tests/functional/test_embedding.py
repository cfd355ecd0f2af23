import pytest
import torch

from course_lib.functional.embedding import lookup, lookup_pair


@pytest.mark.parametrize("tied", [False, True])
def test_a_tied_table_gets_the_gradient_of_both_its_uses(tied):
    table = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    tokens = torch.tensor([[1, 1, 6], [0, 6, 1]])
    scale = torch.randn(2, 3, 7, dtype=torch.float64)
    ((lookup(tokens, table, tied=tied).sin() @ table.T) * scale).sum().backward()
    given, table.grad = table.grad, None
    ((table[tokens].sin() @ table.T) * scale).sum().backward()
    assert given.layout == torch.strided
    torch.testing.assert_close(given, table.grad, rtol=0, atol=1e-12)


def test_an_untied_table_gets_a_dense_gradient():
    table = torch.randn(7, 3, requires_grad=True)
    lookup(torch.tensor([2, 2]), table).sum().backward()
    assert table.grad.layout == torch.strided and table.grad[2].tolist() == [2, 2, 2]


def test_a_tied_lookup_writes_only_the_rows_that_it_read():
    table = torch.randn(7, 3, requires_grad=True)
    lookup(torch.tensor([2, 5]), table, tied=True).sum().backward()
    assert table.grad.layout == torch.sparse_coo and table.grad._nnz() == 2


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_a_pair_gets_the_rows_and_gradients_of_two_lookups(shared, tied):
    torch.manual_seed(0)
    tables = [torch.randn(7, 3, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    one, other = (tables[0], tables[0]) if shared else tables
    source, target = torch.tensor([[1, 1, 6], [0, 6, 1]]), torch.tensor([[6, 2], [3, 3]])

    def gradients(x, y):
        ((y.sin() @ other.T).cos().sum() + (x.exp() * 3).sum()).backward()
        given = [table.grad for table in (one, other)]
        one.grad = other.grad = None
        return given

    x, y = lookup_pair(source, target, one, other, tied=tied)
    assert torch.equal(x, one[source]) and torch.equal(y, other[target])
    given, expected = gradients(x, y), gradients(one[source], other[target])
    torch.testing.assert_close(given, expected, rtol=0, atol=1e-12)
