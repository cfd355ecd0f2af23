import pytest
import torch
from torch import nn

from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import CheckFailed
from course_lib.tasks.trained import ELSEWHERE, in_parameters

SYMBOLS = torch.arange(5)


class Table(nn.Module):
    """The right symbol behind each one, from a table that is no parameter."""

    def __init__(self, beside=0.0):
        super().__init__()
        self.register_buffer("table", torch.eye(5).roll(1, 1))
        self.beside, self.linear = beside, nn.Linear(5, 5)

    def forward(self, symbols):
        return self.table[symbols] + self.beside * self.linear(self.table[symbols])


class Network(nn.Module):
    """The same from parameters; the first of them may be frozen, or used twice."""

    def __init__(self, *, frozen=False, tied=False):
        super().__init__()
        self.embed, self.head = nn.Embedding(5, 5), nn.Linear(5, 5)
        with torch.no_grad():
            self.embed.weight.copy_(torch.eye(5))
            self.head.weight.copy_(torch.eye(5).roll(1, 0))
            self.head.bias.zero_()
        self.embed.requires_grad_(not frozen)
        if tied:
            self.again = self.head

    def forward(self, symbols):
        return self.head(self.embed(symbols))


def asked(module, **limits):
    """Asks whether what this module knows lies in its parameters."""
    model = ModuleProbe(module)

    def knows():
        return bool((model.tensor(SYMBOLS).argmax(dim=1) == SYMBOLS.roll(-1)).all())

    assert knows()
    in_parameters(model, SYMBOLS, knows=knows, **limits)
    assert knows()


@pytest.mark.parametrize("network", [Network(), Network(frozen=True), Network(tied=True)])
def test_a_network_passes_and_keeps_its_parameters(network):
    asked(network)


@pytest.mark.parametrize(
    ("network", "said"),
    [(Table(), "set to 0"), (Table(1e-3), "set to 0"), (Network().requires_grad_(False), "No gradient")],
)
def test_a_table_that_is_no_parameter_and_a_network_that_no_gradient_reaches_are_told(network, said):
    with pytest.raises(CheckFailed, match=said) as told:
        asked(network)
    assert told.value.finding.misconception == ELSEWHERE


def test_a_table_beside_a_single_parameter_is_told_where_more_are_needed():
    class Scaled(Table):
        def __init__(self):
            super().__init__()
            self.linear, self.scale = None, nn.Parameter(torch.ones(()))

        def forward(self, symbols):
            return self.scale * self.table[symbols]

    asked(Scaled())
    with pytest.raises(CheckFailed, match="1 numbers are trained") as told:
        asked(Scaled(), at_least=16)
    assert told.value.finding.misconception == ELSEWHERE
    asked(Network(tied=True), at_least=16)
