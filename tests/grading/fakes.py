"""A box without walls, in this process, for fast tests of the judge's own logic."""

import torch

from course_lib.grading.sandbox import Box, BoxEnded, Gradients, StudentError, Zygote


class FakeBox(Box):
    """Runs code here; `raise SystemExit("time")` in it plays an end of the box for that reason."""

    def __init__(self):
        self.ended, self.printed = None, b""
        self.names = {"print": self._print}

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
            function = self.names[target] if isinstance(target, str) else target
            return (getattr(function, method) if method else function)(*args, **kwargs)

        return self._do(work)  # what is kept is its own handle

    def parameters(self, handle, *, seconds=5):
        return self._do(handle.state_dict)

    def set_parameters(self, handle, values, *, seconds=5):
        self._do(lambda: handle.load_state_dict(values))

    def gradients(self, target, *args, output_gradient, seconds=5, **kwargs):
        def work():
            leaves = [value.detach().requires_grad_() for value in args]
            target.zero_grad()
            target(*leaves, **kwargs).backward(output_gradient)
            named = {name: value.grad for name, value in target.named_parameters() if value.grad is not None}
            return Gradients(inputs=[leaf.grad for leaf in leaves], parameters=named)

        return self._do(work)

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
