"""How weights lie in memory while a model writes."""

from typing import TypeVar

from torch import nn

Model = TypeVar("Model", bound=nn.Module)


def store_by_columns(model: Model) -> Model:
    """Stores the matrix of every linear layer column by column, in place, and returns the model.

    Values and names stay the same; only the order in memory changes, and with it perhaps the last bit of an output. A
    step that writes one token multiplies each matrix by one vector and waits for memory: on a CPU it reads columns up
    to 1.5 times as fast as rows. For a model that only writes from now on: in training, looking up embeddings in a
    tied matrix gets slower.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            layer.weight.data = layer.weight.data.t().contiguous().t()
    return model
