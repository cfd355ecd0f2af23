"""Lesson 15: released models, T5 and the Decision Transformer, opened in our implementations."""

import tempfile
from importlib.util import find_spec

import torch
from torch import nn

from course_lib.models.decision_transformer import DecisionTransformer, DecisionTransformerConfig
from course_lib.models.t5 import T5, T5Config
from course_lib.weights import from_pretrained, save_pretrained


def small_models() -> dict[str, tuple[nn.Module, tuple]]:
    """A small one of each, of random weights, with something to read."""
    torch.manual_seed(0)
    t5 = T5(T5Config(vocab_size=50, dim=16, depth=2, num_heads=2, head_dim=8, mlp_dim=32, dropout=0.0))
    sizes = {"dim": 16, "depth": 2, "num_heads": 2, "state_dim": 5, "action_dim": 3, "max_steps": 20, "dropout": 0.0}
    walker = DecisionTransformer(DecisionTransformerConfig(**sizes))
    words = torch.randint(50, (2, 7)), torch.randint(50, (2, 4))
    walk = torch.randn(2, 6), torch.randn(2, 6, 5), torch.randn(2, 6, 3)
    return {"T5": (t5, words), "Decision Transformer": (walker, walk)}


@torch.no_grad()
def opened_by_both() -> str:
    """What small models compute after a way through the official layout, here and, if installed, in its library."""
    lines = []
    for name, (model, given) in small_models().items():
        model.eval()
        for parameter in model.parameters():
            parameter.normal_(std=0.2)
        with tempfile.TemporaryDirectory() as folder:
            save_pretrained(model, folder)
            again = from_pretrained(folder).eval()
            same = torch.equal(again(*given), model(*given))
            lines.append(f"{name}: written in the official layout and opened again, the same: {same}")
            if find_spec("transformers") is not None:
                lines.append(f"  opened by the official library, apart by less than 1e-3: {near(folder, model, given)}")
    if find_spec("transformers") is None:
        lines.append("(the library `transformers` is not installed here: with it this cell compares the two)")
    return "\n".join(lines)


def near(folder: str, model: nn.Module, given: tuple) -> bool:
    """Whether the official library computes the same from these files."""
    from transformers import DecisionTransformerModel, T5ForConditionalGeneration
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if isinstance(model, T5):
        official = T5ForConditionalGeneration.from_pretrained(folder).eval()
        theirs = official(input_ids=given[0], decoder_input_ids=given[1]).logits
    else:
        to_go, states, actions = given
        times = torch.arange(to_go.shape[1]).expand(len(to_go), -1)
        official = DecisionTransformerModel.from_pretrained(folder).eval()
        theirs = official(
            states=states, actions=actions, rewards=None, returns_to_go=to_go[..., None], timesteps=times,
            attention_mask=torch.ones_like(times),
        ).action_preds  # fmt: skip
    return bool((theirs - model(*given)).abs().max() < 1e-3)
