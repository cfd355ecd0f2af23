import pytest
import torch

from course_lib.functional.embedding import lookup


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
