import sys

import numpy as np
import pytest
import torch

from course_lib.grading.boxed.wire import Handle
from course_lib.grading.boxed.worker import CUT_OFF, OWN_ERROR, Box, error_name


@pytest.fixture
def box(monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # the box puts its own there
    return Box()


def load(box, source):
    return box.answer({"operation": "load", "source": source})


def call(box, target, *args, method=None, keep=False, **kwargs):
    request = {"operation": "call", "target": target, "args": list(args), "kwargs": kwargs}
    return box.answer(request | {"method": method, "keep": keep})


def test_cells_share_their_names(box):
    load(box, "a = 2")
    load(box, "def double(x):\n    return a * x")
    assert call(box, "double", 3) == {"value": 6, "changed": {}}


def test_classes_find_the_module_that_they_are_defined_in(box):
    load(box, "from dataclasses import dataclass\n@dataclass\nclass Point:\n    x: 'int'\n")
    assert call(box, "Point", 3)["value"].x == 3
    assert load(box, "import __main__\nassert __main__.Point is Point") == {"value": None}


def test_future_statements_of_ours_do_not_reach_the_cell(box):
    load(box, "def f(x: int): pass\nkinds = list(f.__annotations__.values())")
    assert call(box, "kinds", method="pop")["value"] is int


def test_arrays_that_were_changed_are_told_by_their_place(box):
    load(box, "def spoil(a, b, c):\n    a[0] = 9\n    c['x'][0] = 9\n    return b")
    reply = call(box, "spoil", torch.zeros(2), torch.zeros(2), c={"x": np.zeros(2)})
    assert reply["changed"].keys() == {0, 2}
    assert reply["changed"][0].tolist() == reply["changed"][2].tolist() == [9, 0]


def test_a_kept_value_is_named_by_a_handle_and_can_be_given_back(box):
    load(
        box, "class Counter:\n    n = 0\n    def up(self, by): self.n += by; return self.n\ndef read(c): return c[0].n"
    )
    kept = call(box, "Counter", keep=True)["value"]
    assert kept == Handle(0)
    assert call(box, kept, 2, method="up")["value"] == 2
    assert call(box, "read", [kept])["value"] == 2
    load(box, "def read_named(*, counters): return counters['first'].n")
    assert call(box, "read_named", counters={"first": kept})["value"] == 2


def test_parameters_are_read_and_written_by_name(box):
    load(box, "from torch import nn")
    linear = call(box, "nn", 2, 1, method="Linear", keep=True)["value"]
    weights = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    assert box.answer({"operation": "set_parameters", "handle": linear, "values": weights}) == {"value": None}
    assert call(box, linear, torch.ones(1, 2))["value"].item() == 2
    assert box.answer({"operation": "parameters", "handle": linear})["value"]["weight"].tolist() == [[1, 1]]
    for wrong in (
        {"weight": torch.ones(1, 2)},
        weights | {"weight": torch.ones(2, 2)},
        weights | {"more": torch.ones(1)},
    ):
        assert box.answer({"operation": "set_parameters", "handle": linear, "values": wrong}) == {
            "error": "RuntimeError"
        }


def gradients(box, target, *args, output_gradient, **kwargs):
    request = {"operation": "gradients", "target": target, "args": list(args), "kwargs": kwargs}
    return box.answer(request | {"output_gradient": output_gradient})


def test_gradients_are_those_of_autograd(box):
    load(box, "def f(x, n, unused, scale=1):\n    return scale * x ** n")
    x, unused = torch.tensor([1.0, 2.0]), torch.ones(1)
    found = gradients(box, "f", x, torch.tensor(3), unused, output_gradient=torch.tensor([1.0, 10.0]), scale=2)["value"]
    assert found["inputs"][0].tolist() == [6, 240] and found["inputs"][1:] == [None, None]
    assert found["parameters"] == {}


def test_gradients_of_a_module_are_by_the_names_of_its_parameters(box):
    load(box, "from torch import nn\nmodel = nn.Linear(2, 1)\nmodel.bias.requires_grad_(False)")
    model = call(box, "model", method="eval", keep=True)["value"]
    found = gradients(box, model, torch.tensor([[3.0, 4.0]]), output_gradient=torch.ones(1, 1))["value"]
    assert {name: value.tolist() for name, value in found["parameters"].items()} == {"weight": [[3, 4]]}


def test_a_module_with_methods_of_its_own_is_still_read_and_written_as_torch_does(box):
    load(
        box,
        "from torch import nn\nclass Own(nn.Linear):\n    state_dict = load_state_dict = named_parameters = None\n"
        "model = Own(2, 1)",
    )
    model = call(box, "model", method="eval", keep=True)["value"]
    weights = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    assert box.answer({"operation": "set_parameters", "handle": model, "values": weights}) == {"value": None}
    assert box.answer({"operation": "parameters", "handle": model})["value"].keys() == weights.keys()
    found = gradients(box, model, torch.ones(1, 2), output_gradient=torch.ones(1, 1))["value"]
    assert found["parameters"].keys() == weights.keys()


@pytest.mark.parametrize(
    "result",
    [
        "x.detach()",
        "torch.tensor(x.tolist())",
        "torch.ones(1)",
        "torch.from_numpy(x.numpy())",
        "torch.tensor(np.exp(x))",
    ],
)
def test_a_result_that_no_gradient_can_flow_back_from_is_told_apart_from_other_errors(box, result):
    load(box, f"import numpy as np, torch\ndef f(x): return {result}")
    assert gradients(box, "f", torch.ones(1), output_gradient=torch.ones(1)) == {"error": CUT_OFF}


def test_other_errors_of_gradients_keep_their_names(box):
    load(box, "import torch\ndef f(x): return x @ torch.ones(3)")
    assert gradients(box, "f", torch.ones(2), output_gradient=torch.ones(1)) == {"error": "RuntimeError"}


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("raise ValueError('the hidden input is 42')", "ValueError"),
        ("1 +", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("unknown", "NameError"),
        ("open('/no/such/file')", "FileNotFoundError"),
        ("raise OSError", "OSError"),
        ("import sys; sys.exit(3)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def f(): f()\nf()", "RecursionError"),
        ("import torch; torch.ones(2, 3) @ torch.ones(2, 3)", "RuntimeError"),
        ("import torch; torch.linalg.inv(torch.zeros(2, 2))", "LinAlgError"),
        ("import numpy; numpy.linalg.inv(numpy.zeros((2, 2)))", "LinAlgError"),
        ("import einops, torch; einops.rearrange(torch.ones(2), 'a b -> b a')", "EinopsError"),
        ("class ValueError(Exception): pass\nraise ValueError", OWN_ERROR),
        ("class Custom(ValueError): pass\nraise Custom", OWN_ERROR),
    ],
)
def test_an_error_becomes_its_kind(box, source, kind):
    assert load(box, source) == {"error": kind}


def test_a_hostile_error_does_no_harm(box):
    class Meta(type):
        def __hash__(cls):
            raise SystemExit

        def __eq__(cls, other):
            raise SystemExit

    class Hostile(Exception, metaclass=Meta):
        __class__ = property(lambda self: ValueError)

        def __str__(self):
            raise SystemExit

    assert error_name(Hostile()) == OWN_ERROR


def test_an_unknown_name_or_operation_is_an_error_and_not_the_end(box):
    assert call(box, "missing") == {"error": "NameError"}
    assert box.answer({"operation": "missing"}) == {"error": "KeyError"}
    assert box.answer({}) == {"error": "KeyError"}
