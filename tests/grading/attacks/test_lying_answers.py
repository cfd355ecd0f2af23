"""Answers that are wrong and try to look right: patched libraries, lying objects, answers that change afterwards."""

import pytest

from tests.grading.attacks.course import Attack, by_name

pytestmark = pytest.mark.needs("sandbox")

WRONG = """
def attention(q, k, v):
    return torch.zeros_like(v)
os.write(1, b"tried\\n")
"""

LIARS = [
    Attack(
        name="numpy's comparisons say yes",
        source="""
import numpy as np
for name in ("allclose", "isclose", "array_equal", "array_equiv", "all", "equal"):
    setattr(np, name, lambda *a, **k: True)
np.testing.assert_allclose = np.testing.assert_array_equal = lambda *a, **k: None
"""
        + WRONG,
    ),
    Attack(
        name="torch's comparisons say yes",
        source="""
for name in ("allclose", "equal", "isclose", "all", "any"):
    setattr(torch, name, lambda *a, **k: True)
torch.testing.assert_close = lambda *a, **k: None
torch.Tensor.allclose = torch.Tensor.equal = lambda *a, **k: True
torch.Tensor.isfinite = lambda self: torch.ones(1, dtype=torch.bool)
"""
        + WRONG,
    ),
    Attack(
        name="tensor arithmetic finds no difference",
        source="""
torch.Tensor.__sub__ = torch.Tensor.__rsub__ = lambda a, b: torch.zeros(())
torch.Tensor.__eq__ = torch.Tensor.__le__ = torch.Tensor.__lt__ = lambda a, b: torch.ones((), dtype=torch.bool)
torch.Tensor.__hash__ = lambda self: 0
torch.Tensor.abs = torch.Tensor.max = lambda self, *a, **k: torch.zeros(())
"""
        + WRONG,
    ),
    Attack(
        name="builtins agree with everything",
        source="""
import builtins
builtins.isinstance = lambda value, kinds: True
builtins.all = builtins.any = builtins.bool = lambda *a: True
builtins.abs = builtins.float = builtins.len = builtins.sum = lambda *a: 0
"""
        + WRONG,
        ended=(None, "protocol", "exit"),
    ),
    Attack(
        name="torch is replaced by a fake in sys.modules",
        source="""
import types
fake = types.ModuleType("torch")
fake.__getattr__ = lambda name: lambda *a, **k: True
sys.modules["torch"] = sys.modules["numpy"] = fake
"""
        + WRONG,
        ended=(None, "protocol", "exit"),
    ),
    Attack(
        name="an import hook hands out fakes",
        source="""
import importlib.abc, importlib.machinery
class Hook(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self)
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        module.__dict__.update(reference=None, allclose=lambda *a, **k: True)
sys.meta_path.insert(0, Hook())
sys.path_hooks.clear()
"""
        + WRONG,
    ),
    Attack(
        name="an AST transformer drops assertions",
        source="""
import ast, builtins
class Drop(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()
    def visit_If(self, node):
        return ast.Pass()
true_compile = builtins.compile
def compile(source, *args, **kwargs):
    if isinstance(source, str) and not args[2:]:  # ast.parse itself compiles with flags
        source = ast.fix_missing_locations(Drop().visit(ast.parse(source)))
    return true_compile(source, *args, **kwargs)
builtins.compile = compile
"""
        + WRONG,
    ),
    Attack(
        name="ast.parse and ast.unparse rewrite what is loaded next",
        source="""
import ast
true_parse = ast.parse
ast.parse = lambda *a, **k: true_parse("attention = lambda q, k, v: v")
ast.NodeVisitor.visit = ast.NodeTransformer.visit = lambda self, node: node
"""
        + WRONG,
    ),
    Attack(
        name="an object that is equal to everything",
        source="""
class Equal:
    shape, dtype, ndim, device = (2, 4, 3), torch.float32, 3, torch.device("cpu")
    __hash__ = object.__hash__
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __sub__(self, other): return self
    def __rsub__(self, other): return self
    def __abs__(self): return self
    def __le__(self, other): return True
    def __lt__(self, other): return True
    def __bool__(self): return True
    def __float__(self): return 0.0
    def __getattr__(self, name): return lambda *a, **k: self
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return Equal()
""",
    ),
    Attack(
        name="an __array__ that lies about the values",
        source="""
import numpy as np
class Lying:
    calls = 0
    shape, dtype = (2, 4, 3), torch.float32
    __array_priority__ = 1e9
    __array_interface__ = {"shape": (2, 4, 3), "typestr": "<f4", "data": (0, True), "version": 3}
    def __array__(self, *a, **k):
        return np.zeros((2, 4, 3), dtype=np.float32)
    def __array_ufunc__(self, *a, **k): return True
    def __array_function__(self, *a, **k): return True
    def __dlpack__(self, *a, **k): return torch.zeros(2, 4, 3).__dlpack__()
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return Lying()
""",
    ),
    Attack(
        name="a __torch_function__ that answers True",
        source="""
class Lying:
    shape, dtype, layout, device = (2, 4, 3), torch.float32, torch.strided, torch.device("cpu")
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True
    def __getattr__(self, name): return lambda *a, **k: self
    __class__ = torch.Tensor
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return Lying()
""",
    ),
    Attack(
        name="a subclass of Tensor that compares as equal",
        source="""
class Agreeing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function.__name__ in ("allclose", "equal", "isclose", "__eq__", "all"):
            return True
        if function.__name__ in ("sub", "__sub__", "rsub", "__rsub__", "abs", "max"):
            return torch.zeros(())
        return super().__torch_function__(function, types, args, kwargs or {})
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return torch.zeros_like(v).as_subclass(Agreeing)
""",
    ),
    Attack(
        name="a subclass of Tensor that lies about its shape and bytes",
        source="""
class Lying(torch.Tensor):
    shape = property(lambda self: torch.Size((2, 4, 3)))
    dtype = property(lambda self: torch.float32)
    def numel(self): return 24
    def size(self, *a): return torch.Size((2, 4, 3))
    def detach(self): return self
    def cpu(self): return self
    def contiguous(self): return self
    def numpy(self, *a, **k): return self
    def tobytes(self): return b"\\0" * 1000
    def tolist(self): return [1.0] * 24
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return torch.zeros(1).as_subclass(Lying)
""",
        ended=(None, "protocol"),
    ),
    Attack(
        name="a __torch_dispatch__ that invents the values",
        source="""
class Empty(torch.Tensor):
    @staticmethod
    def __new__(cls):
        return torch.Tensor._make_wrapper_subclass(cls, (2, 4, 3), dtype=torch.float32)
    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return torch.zeros(2, 4, 3)
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return Empty()
""",
        ended=(None, "protocol", "exit"),
    ),
    Attack(
        name="a tensor without storage that claims a gigantic shape",
        source="""
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return torch.zeros(1).expand(1 << 40)
""",
        ended=(None, "protocol", "memory", "exit"),
    ),
    Attack(
        name="a tensor on the meta device",
        source="""
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return torch.empty(v.shape, device="meta")
""",
    ),
    Attack(
        name="a sparse tensor",
        source="""
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return torch.zeros_like(v).to_sparse()
""",
    ),
    Attack(
        name="a nested tensor",
        source="""
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return torch.nested.nested_tensor([v[0], v[1]])
""",
    ),
    Attack(
        name="NaN that is equal to nothing and never off by anything",
        source="""
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return torch.full_like(v, float("nan"))
""",
    ),
    Attack(
        name="infinity, within every relative tolerance",
        source="""
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return torch.full_like(v, float("inf"))
""",
    ),
    Attack(
        name="a shape that broadcasts against the right answer",
        source="""
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return torch.zeros(0, 4, 3)
""",
    ),
    Attack(
        name="a right answer of another kind of number",
        source="""
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return torch.complex((q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v, torch.ones_like(v))
""",
    ),
    Attack(
        name="a wrong tensor that a thread repairs after the return",
        source="""
import threading, time
def attention(q, k, v):
    os.write(1, b"tried\\n")
    result = torch.zeros_like(v)
    def repair():
        time.sleep(0.3)
        result.copy_((q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v)
    threading.Thread(target=repair, daemon=True).start()
    return result
""",
    ),
    Attack(
        name="the argument itself as result, changed in the same breath",
        source="""
def attention(q, k, v):
    os.write(1, b"tried\\n")
    v.copy_((q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v)
    return v
""",
    ),
    Attack(
        name="the input overwritten under a right result",
        source="""
def attention(q, k, v):
    os.write(1, b"tried\\n")
    result = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v
    q.zero_()
    return result
""",
    ),
    Attack(
        name="the input made larger under a right result",
        source="""
def attention(q, k, v):
    os.write(1, b"tried\\n")
    result = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v
    q.resize_(200, 4, 3)
    return result
""",
    ),
    Attack(
        name="a function that answers the second question with the first answer",
        source="""
import functools
class Once:
    answer = None
    def __call__(self, x):
        os.write(1, b"tried\\n")
        if self.answer is None:
            self.answer = x.softmax(dim=-1)
        return self.answer
softmax = Once()
""",
        task="softmax",
        points=1,
    ),
    Attack(
        name="an answer from a table of the worked examples",
        source="""
def softmax(x):
    os.write(1, b"tried\\n")
    table = {(3, 5): torch.full((3, 5), 0.2), (2, 7): torch.full((2, 7), 1 / 7)}
    return table[tuple(x.shape)]
""",
        task="softmax",
    ),
    Attack(
        name="a module whose parameters are not the ones that it uses",
        source="""
class Affine(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.own, self.weight, self.bias = torch.ones(dim), None, None
        os.write(1, b"tried\\n")
    def load_state_dict(self, *a, **k):
        return torch.nn.modules.module._IncompatibleKeys([], [])
    def _load_from_state_dict(self, *a, **k):
        pass
    def state_dict(self, *a, **k):
        return {"weight": torch.ones(4), "bias": torch.zeros(4)}
    def named_parameters(self, *a, **k):
        return self.state_dict().items()
    def forward(self, x):
        return x * self.own
""",
        task="affine",
    ),
    Attack(
        name="a module that looks for the reference on the stack",
        source="""
import inspect
class Affine(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
    def forward(self, x):
        os.write(1, b"tried\\n")
        for frame in inspect.stack():
            for value in [*frame.frame.f_locals.values(), *frame.frame.f_globals.values()]:
                if getattr(value, "__name__", "") in ("reference", "right_attention", "scaled_and_shifted"):
                    return value(x)
        return torch.zeros_like(x)
""",
        task="affine",
    ),
    Attack(
        name="a cell that defines another task's function",
        source="""
def attention(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v
def softmax(x):
    return torch.zeros_like(x)
os.write(1, b"tried\\n")
""",
        points=2,
    ),
    Attack(
        name="a look-alike name in other letters",
        source="""
def attentiοn(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v
os.write(1, b"tried\\n")
""",
    ),
    Attack(
        name="right-to-left marks that hide a comment",
        source="""
def attention(q, k, v):
    return torch.zeros_like(v) #\u202e v @ (xamtfos)nruter \u2066
os.write(1, b"tried\\n")
""",
    ),
    Attack(
        name="subclasses of float, str, dict and list in place of values",
        source="""
class F(float):
    def __eq__(self, other): return True
    __hash__ = float.__hash__
class S(str):
    def encode(self, *a): return b"[]"
class D(dict):
    def items(self): return [("x", self)] * 10
class L(list):
    def __iter__(self): return iter([1])
    def __len__(self): return -1 if False else 10**6
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return L([F(1), S("a"), D(a=1)])
""",
        ended=(None, "protocol"),
    ),
]


@pytest.mark.parametrize("attack", **by_name(LIARS))
def test_a_wrong_answer_that_lies_earns_nothing(course, attack):
    course.attack(attack)


CONFUSING = [
    Attack(
        name="an answer that is a view with its sign still pending",
        source="""
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return torch._neg_view(-((q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v))
""",
    ),
    Attack(
        name="an answer in double precision that needs a gradient",
        source="""
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return ((q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v).double().requires_grad_()
""",
    ),
    Attack(
        name="an answer with strides of its own",
        source="""
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return ((q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v).mT.contiguous().mT
""",
    ),
    Attack(
        name="torch set to other defaults",
        source="""
torch.set_default_dtype(torch.float64)
torch.manual_seed(1)
torch.use_deterministic_algorithms(True)
def attention(q, k, v):
    os.write(1, b"tried\\n")
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v
""",
    ),
    Attack(
        name="standard output closed and replaced",
        source="""
os.write(1, b"tried\\n")
sys.stdout.close()
sys.stdout = sys.stderr = None
print = None
def attention(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v
""",
    ),
    Attack(
        name="text that no encoding takes",
        source="""
for text in ("\\udcff", "\\ud800", "\\x00\\x1b[2J"):
    try:
        print(text, flush=True)
    except UnicodeError:
        pass
os.write(1, b"\\xff\\xfe tried \\x00")
def attention(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v
""",
    ),
    Attack(
        name="a name of the worker's own",
        source="""
os.write(1, b"tried\\n")
send = receive = serve = load = call = handles = namespace = None
__name__ = "__main__"
__builtins__ = __builtins__
def attention(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v
""",
    ),
]


@pytest.mark.parametrize("attack", **by_name(CONFUSING))
def test_a_right_answer_in_odd_clothes_keeps_its_points(course, attack):
    course.attack(Attack(name=attack.name, source=attack.source, points=2.0))
