"""Lesson 14's U-Nets in JavaScript."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from tests.engine.modules import relative_error

pytestmark = pytest.mark.needs("chromium")


@pytest.mark.parametrize("name", ["unet", "unet_no_skips"])
@pytest.mark.parametrize("height, width", [(32, 32), (64, 40)])
def test_the_logits_of_each_pixel_are_those_of_pytorch(engine, name, height, width):
    model = load_trained(name).model
    image = torch.randn(1, 1, height, width, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = model(image)[0].permute(1, 2, 0)  # (H, W, K)
    found = engine.run(
        f"""const {{ weights, config }} = await exported("{name}"), data = Float32Array.from(given.data);
        const map = new UNet(weights, config).logits({{ ...given, data }});
        return [map.height, map.width, Array.from(map.data)];""",
        {"height": height, "width": width, "data": image.flatten().tolist()},
    )
    assert found[:2] == [height, width]
    assert relative_error(found[2], expected) < 1e-4


def test_a_size_that_cannot_be_halved_three_times_is_refused(engine):
    said = engine.run(
        """const { weights, config } = await exported("unet"), data = new Float32Array(30 * 32);
        const unet = new UNet(weights, config);
        try { unet.logits({ height: 30, width: 32, data }); } catch (error) { return error.message; }"""
    )
    assert said == "30 x 32 pixels are no multiples of 8"
