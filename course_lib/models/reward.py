"""A reward model: how good an answer is, in one number, learned from which of several answers people prefer.

Ouyang et al., "Training language models to follow instructions with human feedback", NeurIPS 2022, arXiv 2203.02155,
section 3.5. The loss is `course_lib.functional.preference.ranking_loss`.
"""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.models.gpt import GPT, GPTConfig


class RewardModel(nn.Module):
    """r(x, y): a GPT without its head, and one number made of what it knows at the last token of prompt and answer.

    Read at every token it is a value function: what may still be expected when so much has been written. The number
    begins at 0 for every text. Raises ValueError for a config with a head, and as `GPT` does.
    """

    def __init__(self, config: GPTConfig):
        super().__init__()
        if config.head is not None:
            raise ValueError(f"a reward model has a head of its own: set head=None in place of {config.head!r}")
        self.config = config
        self.backbone = GPT(config)
        self.head = nn.Linear(config.dim, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, tokens: Int[Tensor, "B T"], valid: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, " B"]:
        """The reward of each text. `valid` is True at real tokens, all if not given; the last of them counts."""
        values = self.values(tokens, valid=valid)
        if valid is None:
            return values[:, -1]
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return values.gather(1, (positions * valid).argmax(dim=1, keepdim=True))[:, 0]

    def features(
        self, tokens: Int[Tensor, "B T"], *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T D"]:
        """What the backbone knows at each token."""
        return self.backbone.features(tokens, valid=valid)

    def values(self, tokens: Int[Tensor, "B T"], *, valid: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B T"]:
        """The number at each token, which has seen itself and those before it."""
        return self.head(self.features(tokens, valid=valid))[..., 0]


def reward_model_on(gpt: GPT) -> RewardModel:
    """A reward model that begins with what a language model has learned: section 3.5. The GPT stays as it is."""
    model = RewardModel(replace(gpt.config, head=None))
    model.backbone.load_state_dict({name: tensor for name, tensor in gpt.state_dict().items() if name != "head.weight"})
    return model
