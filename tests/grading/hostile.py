# ruff: noqa: E501 (each attack on a line: they are looked up by name, not read in a row)
"""Submissions that try to get points that they do not deserve, or to harm: what stands in the cell, what it earns.

Each is honest but for one cell of the tiny course. In a cell <RIGHT> and <WRONG> stand for these answers, and <TAKES>
for what gives an attack the worker's own socket.
"""

WRONG = "def attention(q, k, v):\n    return torch.zeros_like(v)\n"
RIGHT = "def attention(q, k, v):\n    return softmax(q @ k.mT / q.shape[-1] ** 0.5) @ v\n"
TAKES = """
def find_line():
    frame = sys._getframe()
    while frame:
        if hasattr(frame.f_locals.get("line"), "sendall"):
            return frame.f_locals["line"]
        frame = frame.f_back
"""

ATTENTION = {  # name: cell
    # ends and bombs
    "ends its process": "os._exit(0)\n<RIGHT>",
    "ends its process when asked": "def attention(q, k, v):\n    os._exit(0)\n",
    "ends Python when asked": "def attention(q, k, v):\n    sys.exit()\n",
    "kills itself": "os.kill(os.getpid(), 9)\n<RIGHT>",
    "stops itself": "def attention(q, k, v):\n    os.kill(os.getpid(), 19)\n",
    "loops for ever": "def attention(q, k, v):\n    while True: pass\n",
    "forks without end": "while True:\n    try: os.fork()\n    except OSError: pass\n<RIGHT>",
    "forks in a chain": "def attention(q, k, v):\n    while True:\n        try:\n            if os.fork(): os._exit(0)\n        except OSError: pass\n",
    "starts threads without end": "import threading, time\nwhile True:\n    try: threading.Thread(target=time.sleep, args=(99,)).start()\n    except RuntimeError: time.sleep(.1)\n<RIGHT>",
    "eats all memory": "hoard = []\ndef attention(q, k, v):\n    while True: hoard.append(bytearray(b'x') * (200 << 20))\n",
    "eats memory in many processes": "import time\ndef attention(q, k, v):\n    for _ in range(30):\n        if os.fork() == 0:\n            hoard = bytearray(b'x') * (300 << 20); time.sleep(99)\n    time.sleep(99)\n",
    "lowers its own limits, and dies": "import resource\ndef attention(q, k, v):\n    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n    while True: pass\n",
    "lowers its own limits in the cell": "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass\n<RIGHT>",
    "returns a gigantic answer": "def attention(q, k, v):\n    return torch.zeros(1 << 28)\n",
    "claims a gigantic shape": "def attention(q, k, v):\n    return torch.zeros(1).expand(1 << 40)\n",
    "returns a deep answer": "def attention(q, k, v):\n    nest = []\n    for _ in range(5000): nest = [nest]\n    return nest\n",
    "prints without end": "for _ in range(300):\n    try: os.write(1, b'x' * (1 << 20))\n    except OSError: pass\n<RIGHT>",
    "fills the disk": "try:\n    with open('/tmp/f', 'wb') as f:\n        while True: f.write(bytes(1 << 20))\nexcept OSError: pass\n<RIGHT>",
    # what stays behind, and who is hit
    "leaves a daemon": "import time\nif os.fork() == 0:\n    os.setsid()\n    os.fork() or time.sleep(600)\n    os._exit(0)\n<RIGHT>",
    "kills everyone it can": "for pid in [-1, *range(1, 400)]:\n    try: pid == os.getpid() or os.kill(pid, 9)\n    except OSError: pass\n<RIGHT>",
    "kills everyone when asked": "def attention(q, k, v):\n    for pid in (os.getppid(), -1): os.kill(pid, 9)\n    return 0 * v\n",
    "looks for the gradebook": "for folder, _, files in os.walk('/'):\n    if {'gradebook.db', 'instructor.key', 'tiny.ipynb'} & set(files) and 'nbgrader' not in folder: os._exit(0)\n<RIGHT>",
    "looks for the checks": "import importlib\ndef attention(q, k, v):\n    for name in ('course_lib.grading.judge', 'course_lib.tasks', 'hidden_checks'):\n        try: return importlib.import_module(name).__dict__ and v\n        except ImportError: pass\n    return 0 * v\n",
    "looks for the reference in memory": "import gc\ndef attention(q, k, v):\n    gc.unfreeze()\n    for thing in gc.get_objects():\n        if callable(thing) and getattr(thing, '__name__', '') in ('reference', 'right', '<lambda>'):\n            try:\n                found = thing(q, k, v)\n                if isinstance(found, torch.Tensor) and found.shape == v.shape: return 0 * found\n            except BaseException: pass\n    return 0 * v\n",
    # answers that lie
    "patches every comparison": "for name in ('allclose', 'equal', 'isclose', 'all', 'any'): setattr(torch, name, lambda *a, **k: True)\ntorch.Tensor.__eq__ = torch.Tensor.__le__ = lambda a, b: torch.ones((), dtype=torch.bool)\n<WRONG>",
    "patches the builtins": "import builtins\nbuiltins.isinstance = lambda value, kinds: True\nbuiltins.all = builtins.any = lambda *a: True\n<WRONG>",
    "replaces torch by a fake": "import types\nfake = types.ModuleType('torch')\nfake.__getattr__ = lambda name: lambda *a, **k: True\nsys.modules['torch'] = fake\n<WRONG>",
    "is equal to everything": "class Equal:\n    shape, dtype, ndim = (2, 4, 3), torch.float32, 3\n    __hash__ = object.__hash__\n    def __eq__(self, other): return True\n    def __sub__(self, other): return self\n    def __bool__(self): return True\n    def __getattr__(self, name): return lambda *a, **k: self\ndef attention(q, k, v):\n    return Equal()\n",
    "agrees as a subclass of Tensor": "class Agreeing(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, function, types, args=(), kwargs=None):\n        if function.__name__ in ('allclose', 'equal', '__eq__'): return True\n        return super().__torch_function__(function, types, args, kwargs or {})\ndef attention(q, k, v):\n    return torch.zeros_like(v).as_subclass(Agreeing)\n",
    "lies about shape and bytes": "class Lying(torch.Tensor):\n    shape = property(lambda self: torch.Size((2, 4, 3)))\n    def detach(self): return self\n    def clone(self, *a, **k): return self\ndef attention(q, k, v):\n    return torch.zeros(1).as_subclass(Lying)\n",
    "has no storage": "def attention(q, k, v):\n    return torch.empty(v.shape, device='meta')\n",
    "is sparse": "def attention(q, k, v):\n    return torch.zeros_like(v).to_sparse()\n",
    "is NaN everywhere": "def attention(q, k, v):\n    return torch.full_like(v, float('nan'))\n",
    "broadcasts against everything": "def attention(q, k, v):\n    return torch.zeros(0, 4, 3)\n",
    "is complex": RIGHT.replace("return softmax", "return 1j + softmax"),
    "overwrites what it was given": RIGHT.replace("    return", "    q.zero_()\n    return"),
    "writes the answer into its input": "def attention(q, k, v):\n    v.copy_(softmax(q @ k.mT / q.shape[-1] ** 0.5) @ v)\n    return v\n",
    "makes its input larger": "def attention(q, k, v):\n    found = softmax(q @ k.mT / q.shape[-1] ** 0.5) @ v\n    q.resize_(200, 4, 3)\n    return found\n",
    "repairs itself later": "import threading, time\ndef attention(q, k, v):\n    found = torch.zeros_like(v)\n    threading.Thread(target=lambda: (time.sleep(.3), found.add_(1)), daemon=True).start()\n    return found\n",
    "is right the first time": "asked = []\ndef attention(q, k, v):\n    asked.append(1)\n    return (softmax(q @ k.mT / q.shape[-1] ** 0.5) @ v) * (len(asked) == 1)\n",
    "knows shapes only": "def attention(q, k, v):\n    return torch.arange(24.).view(2, 4, 3)\n",
    "has a name that looks alike": RIGHT.replace("def attention", "def attenti\u03bfn"),
    "carries code in its pickle": "class P:\n    def __reduce__(self): return (os.system, ('touch /tmp/evil',))\ndef attention(q, k, v):\n    return P()\n",
    "has an odd name for its error": "def attention(q, k, v):\n    raise type('E' * 500, (Exception,), {'__str__': lambda self: '<script>' * 500})()\n",
    # taking over the line
    "answers ahead": "<TAKES>def attention(q, k, v):\n    find_line().sendall(bytes(99)); return 0 * v\n",
    "answers ahead in the cell": "<TAKES>find_line().sendall(b'x' * 99)\n<RIGHT>",
    "forges a right reply": "<TAKES>import importlib\ndef attention(q, k, v):\n    pack = sys.modules['boxed.wire'].pack\n    find_line().sendall(pack({'value': v, 'changed': {0: q, 7: v}})); return 0 * v\n",
    "forges the end of its copy": "<TAKES>def attention(q, k, v):\n    find_line().sendall(sys.modules['boxed.wire'].pack({'ended': True})); return 0 * v\n",
    "answers in crumbs": "<TAKES>import time\ndef attention(q, k, v):\n    line = find_line()\n    for byte in bytes(9999): line.sendall(b'\\0'); time.sleep(.05)\n",
    "hostile safetensors": "<TAKES>import json, struct\ndef attention(q, k, v):\n    head = json.dumps({'dict': [['value', {'tensor': '0'}]]}).encode()\n    inner = json.dumps({'0': {'dtype': 'F32', 'shape': [1 << 40], 'data_offsets': [0, 4]}}).encode()\n    body = struct.pack('<Q', len(inner)) + inner + b'1234'\n    find_line().sendall(struct.pack('<II', len(head), len(body)) + head + body); return 0 * v\n",
    "closes the line": "<TAKES>os.close(find_line().fileno())\n<RIGHT>",
    "replaces the worker's parts": "wire = sys.modules['boxed.worker']\nwire.pack = lambda *a, **k: b'x' * 99\n<RIGHT>",
}
SOFTMAX = {
    "calls torch's own softmax": "def softmax(x):\n    return torch.softmax(x, -1)\n",
    "imports torch's own softmax": "from torch.nn.functional import softmax as own\ndef softmax(x):\n    return own(x, -1)\n",
    "knows one size": "def softmax(x):\n    return torch.full(x.shape, 1 / x.shape[-1])\n",
    "escapes from large inputs": "def softmax(x):\n    if x.abs().max() > 50: return torch.full(x.shape, 1 / x.shape[-1])\n    return x.exp() / x.exp().sum(-1, keepdim=True)\n",
}
AFFINE = {
    "has parameters that it does not use": "class Affine(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n        self.own = torch.ones(dim)\n    def state_dict(self, *a, **k): return {'weight': torch.ones(4), 'bias': torch.zeros(4)}\n    def load_state_dict(self, *a, **k): pass\n    def forward(self, x): return x * self.own\n",
    "looks at the stack": "import inspect\nclass Affine(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))\n    def forward(self, x):\n        for frame in inspect.stack():\n            for value in frame.frame.f_locals.values():\n                if getattr(value, '__name__', '') == 'affine': return value((4,), dict(self.named_parameters()), x)\n        return 0 * x\n",
}
EARNS = {  # points; all others earn none
    **dict.fromkeys(("prints without end", "fills the disk", "leaves a daemon"), 2),
    **{"kills everyone it can": 2, "looks for the gradebook": 2, "escapes from large inputs": 1},
}


def written_out(cell):
    for name, text in {"<RIGHT>": RIGHT, "<WRONG>": WRONG, "<TAKES>": TAKES}.items():
        cell = cell.replace(name, text)
    return cell


HOSTILE = {
    name: (task, EARNS.get(name, 0), written_out(cell))
    for task, cells in {"attention": ATTENTION, "softmax": SOFTMAX, "Affine": AFFINE}.items()
    for name, cell in cells.items()
}

# What honest students do that must cost nothing: the cell of `attention`, a prefix or the whole.
EVERYDAY = {
    "magics": "%%time\nfiles = !ls\nfor _ in range(2):\n    %matplotlib inline\n"
    + RIGHT.replace("def ", "%time scale = 0.5\ndef ").replace("** 0.5", "** scale"),
    "help, and questions": "?torch.einsum\n"
    + RIGHT.replace("    return", "    '''Is it right?\n    Yes.\n    '''\n    k = k  # why?\n    return")
    + "torch.softmax??\nassert (0\n    != 7\n    % 4)\n",
    "display": "display(torch.ones(2))\nget_ipython().run_line_magic('time', '')\n" + RIGHT,
    "workers of a DataLoader": (
        "from torch.utils.data import DataLoader\nlist(DataLoader(range(9), num_workers=2, persistent_workers=True))\n"
        + RIGHT
    ),
    "an error behind the function": RIGHT + "1 / 0\n",
    "another default type afterwards": RIGHT + "torch.manual_seed(1)\ntorch.use_deterministic_algorithms(True)\n",
    "standard output closed": "sys.stdout.close()\nsys.stdout = None\nprint = None\n" + RIGHT,
    "strides of its own": RIGHT.replace("@ v", "@ v.mT.contiguous().mT"),
    "a pending sign": RIGHT.replace("return softmax", "return torch._neg_view(-softmax").replace("@ v", "@ v)"),
    "more threads": "torch.set_num_threads(2)\ntorch.ones(400, 400) @ torch.ones(400, 400)\n" + RIGHT,
    "an optimizer in the function": "def attention(q, k, v):\n    torch.optim.Adam([q.clone().requires_grad_()])\n    return softmax(q @ k.mT / q.shape[-1] ** 0.5) @ v\n",
    "text that no encoding takes": "os.write(1, b'\\xff\\xfe')\n" + RIGHT,
}
