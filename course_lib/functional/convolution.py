"""A fully connected layer is a convolution whose window is the whole map.

Long, Shelhamer & Darrell, "Fully convolutional networks for semantic segmentation", CVPR 2015, arXiv 1411.4038, section
3.1: the classifier then takes images of any size and answers with a map.
"""

from einops import rearrange
from jaxtyping import Float
from torch import Tensor


def fully_connected_as_convolution(
    weight: Float[Tensor, "D_out D_in"], height: int, width: int
) -> Float[Tensor, "D_out C {height} {width}"]:
    """The kernel that does to a (C, height, width) map what the matrix does to the flattened map: the same numbers.

    On a larger map the convolution gives what the layer would say of every window of height x width. Flattening goes
    channel by channel, row by row, as `torch.flatten`; the bias stays as it is.
    Raises ValueError unless D_in is a whole number of channels of that size.
    """
    if height < 1 or width < 1 or weight.shape[1] % (height * width):
        raise ValueError(
            f"{weight.shape[1]} inputs are no whole number of channels of {height} x {width}: give the height and "
            "width of the map that the layer was trained on"
        )
    return rearrange(weight, "d (c h w) -> d c h w", h=height, w=width)
