"""A box without walls, in this process, for fast tests of the judge's own logic."""

import torch

from course_lib.grading.sandbox import Box, BoxEnded, Gradients, Handle, StudentError, Zygote


class FakeBox(Box):
    """Runs code here; `raise SystemExit("time")` in it plays an end of the box for that reason."""

    def __init__(self):
        self.ended, self.printed = None, b""
        self.names, self.kept = {"print": self._print}, []

    @property
    def log(self):
        return self.printed

    def close(self):
        self.ended = self.ended or "closed"

    def load(self, source, *, seconds=10):
        try:
            self._do(lambda: exec(compile(source, "cell", "exec"), self.names))
        except BoxEnded:
            raise
        except StudentError as error:
            return error.kind

    def call(self, target, *args, method=None, keep=False, seconds=5, **kwargs):
        def work():
            function = self._find(target)
            result = (getattr(function, method) if method else function)(*args, **kwargs)
            if keep:
                self.kept.append(result)
            return Handle(len(self.kept) - 1) if keep else result

        return self._do(work)

    def parameters(self, handle, *, seconds=5):
        return self._do(lambda: self._find(handle).state_dict())

    def set_parameters(self, handle, values, *, seconds=5):
        self._do(lambda: self._find(handle).load_state_dict(values))

    def gradients(self, target, *args, output_gradient, seconds=5, **kwargs):
        def work():
            module = self._find(target)
            leaves = [value.detach().requires_grad_() if torch.is_tensor(value) else value for value in args]
            module.zero_grad()
            module(*leaves, **kwargs).backward(output_gradient)
            named = {name: value.grad for name, value in module.named_parameters() if value.grad is not None}
            return Gradients(inputs=[getattr(leaf, "grad", None) for leaf in leaves], parameters=named)

        return self._do(work)

    def _find(self, target):
        if isinstance(target, str) and target not in self.names:
            raise NameError(target)
        return self.names[target] if isinstance(target, str) else self.kept[target.number]

    def _print(self, *values):
        self.printed += " ".join(map(str, values)).encode() + b"\n"

    def _do(self, work):
        if self.ended:
            raise BoxEnded(self.ended)
        try:
            with torch.enable_grad():
                return work()
        except SystemExit as end:
            self.ended = str(end.code)
            raise BoxEnded(self.ended) from None
        except BaseException as error:
            raise StudentError(type(error).__name__) from None


class FakeZygote(Zygote):
    """Makes boxes without walls, and remembers them."""

    def __init__(self, *, trusted=False):
        self.trusted, self.boxes = trusted, []

    def box(self, limits=None):
        self.boxes.append(FakeBox())
        return self.boxes[-1]

    def close(self):
        pass
