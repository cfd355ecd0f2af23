"""Recurrent layers over batches of unequal length.

Cho et al., "Learning phrase representations using RNN encoder-decoder", EMNLP 2014, arXiv 1406.1078 (the GRU).
Schuster & Paliwal, "Bidirectional recurrent neural networks", IEEE Transactions on Signal Processing 45(11), 1997.
"""

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class BidirectionalGRU(nn.Module):
    """Reads a sentence from both ends: h_j = [forward h_j; backward h_j], Bahdanau et al. 2015, section 3.2.

    Padding at the end of a row does not reach any state: the backward GRU starts at the row's last real token.
    """

    def __init__(self, input_dim: int, hidden_dim: int):
        super().__init__()
        self.gru = nn.GRU(input_dim, hidden_dim, batch_first=True, bidirectional=True)

    def forward(
        self, x: Float[Tensor, "B T D"], valid: Bool[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T two_H"], Float[Tensor, "B two_H"]]:
        """Returns the states at each token (zeros at padding), and the two final states side by side.

        Raises ValueError for a row without a token, or with padding before a token.
        """
        lengths = check_right_padded(valid)
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, final = self.gru(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])
        return states, rearrange(final, "direction b h -> b (direction h)")


def check_right_padded(valid: Bool[Tensor, "B T"]) -> Tensor:
    """The number of tokens in each row of `valid`; raises ValueError unless they all stand at its beginning."""
    lengths = valid.sum(dim=1)
    if (lengths == 0).any():
        raise ValueError(f"each row needs at least one valid token, row {int((lengths == 0).nonzero()[0])} has none")
    expected = torch.arange(valid.shape[1], device=valid.device) < lengths[:, None]
    if not torch.equal(valid, expected):
        row = int((valid != expected).any(dim=1).nonzero()[0])
        raise ValueError(f"padding must stand at the end of a row, row {row} has it before a token")
    return lengths
