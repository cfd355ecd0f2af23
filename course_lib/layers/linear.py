"""The layer that most of a network's time goes into."""

from jaxtyping import Float
from torch import Tensor, nn

from course_lib.functional.linear import linear


class Linear(nn.Linear):
    """y = x W^T + b, as `torch.nn.Linear`, by the faster of the CPU's two matrix products."""

    def forward(self, x: Float[Tensor, "*B D_in"]) -> Float[Tensor, "*B D_out"]:
        return linear(x, self.weight, self.bias)
