"""Lesson 13's masked autoencoders in JavaScript."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_13.looking import hiding
from tests.engine.modules import relative_error

pytestmark = pytest.mark.needs("chromium")


@pytest.mark.parametrize("name", ["mae", "mae_scenes"])
@pytest.mark.parametrize("seen", [0.02, 0.25, 0.9])
def test_hidden_patches_are_reconstructed_as_in_pytorch(engine, name, seen):
    model, generator = load_trained(name).model, torch.Generator().manual_seed(0)
    side, count = model.config.encoder.image_size, model.config.encoder.grid[0] ** 2
    image, noise = torch.randn(1, 1, side, side, generator=generator), torch.rand(1, count, generator=generator)
    with torch.inference_mode(), hiding(model, 1 - max(seen, 1.5 / count)):
        patches, masked = model(image, noise)
        painted = model.reconstruct(image, noise)
    visible = (~masked[0]).nonzero()[:, 0].tolist()
    found = engine.run(
        f"""const {{ weights, config }} = await exported("{name}"), mae = new MAE(weights, config);
        const image = Float32Array.from(given.image);
        return ["predict", "reconstruct"].map((what) => Array.from(mae[what](image, given.visible)));""",
        {"image": image.flatten().tolist(), "visible": visible},
    )
    assert relative_error(found[0], patches) < 1e-4
    assert relative_error(found[1], painted) < 1e-4
