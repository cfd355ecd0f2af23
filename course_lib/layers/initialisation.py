"""First weights that models share: BERT's and GPT's (Devlin et al. 2019, arXiv 1810.04805, in its released code), ViT's
and MAE's (Glorot & Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010).
"""

from torch import nn


def normal_weights(module: nn.Module, std: float = 0.02) -> nn.Module:
    """All matrices of linear layers and embeddings inside `module` from N(0, std^2), their biases 0; the module."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=std)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
    return module


def xavier_weights(module: nn.Module) -> nn.Module:
    """All matrices of linear layers inside `module` from U(-a, a), a^2 = 6 / (inputs + outputs), biases 0; the module.

    Glorot & Bengio 2010, eq. (16).
    """
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
    return module
