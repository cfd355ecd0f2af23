"""The Decision Transformer in JavaScript gives PyTorch's logits, within its context and beyond."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from tests.engine.modules import relative_error

pytestmark = pytest.mark.needs("chromium")


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_logits_are_those_of_pytorch(engine, steps):
    model, draws = load_trained("mazes").model, torch.Generator().manual_seed(steps)
    to_go, states = torch.rand(1, steps, generator=draws), torch.rand(1, steps, 150, generator=draws)
    actions, times = torch.rand(1, steps, 4, generator=draws), torch.arange(steps)[None]
    with torch.inference_mode():
        expected = model(*(each[:, -2:] for each in (to_go, states, actions, times)))[0, -1]
    found = engine.run(
        """const { weights, config } = await exported("mazes");
        return Array.from(new DecisionTransformer(weights, config).act(...given));""",
        [to_go[0].tolist(), states[0].tolist(), actions[0, :-1].tolist()],
    )
    assert relative_error(found, expected) < 1e-4
