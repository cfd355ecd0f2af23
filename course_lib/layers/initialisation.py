"""First weights that BERT and GPT share (Devlin et al. 2019, arXiv 1810.04805, in its released code)."""

from torch import nn


def normal_weights(module: nn.Module, std: float = 0.02) -> nn.Module:
    """All matrices of linear layers and embeddings inside `module` from N(0, std^2), their biases 0; the module."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=std)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
    return module
