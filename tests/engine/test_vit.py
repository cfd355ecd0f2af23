"""Lesson 11's Vision Transformers in JavaScript: the classes and the attention, with all patches or some of them."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.images import restore, standardise
from course_lib.lessons.lesson_11.playground import look
from tests.engine.modules import relative_error

pytestmark = pytest.mark.needs("chromium")
HIDDEN = [frozenset(), frozenset({3, 7, 8, 16}), frozenset(range(1, 17)) - {6}, frozenset(range(1, 17))]


@pytest.mark.parametrize("name", ["vit", "vit_digits"])
@pytest.mark.parametrize("hidden", HIDDEN, ids=len)
def test_classes_heads_and_rollout_are_those_of_the_playground(engine, name, hidden):
    model = load_trained(name).model
    side = model.config.image_size
    pixels = torch.rand(side, side, generator=torch.Generator().manual_seed(0))
    expected = look(model, pixels, hidden)
    visible = [number - 1 for number in range(1, 17) if number not in hidden]
    found = engine.run(
        f"""const {{ weights, config }} = await exported("{name}"), vit = new ViT(weights, config);
        const seen = vit.classify(standardise(Float32Array.from(given.pixels)), given.visible);
        const rollout = attentionRollout(seen.weights, config.num_heads);
        return {{
            probs: Array.from(seen.probs),
            weights: seen.weights.map((heads) => Array.from(heads)),
            rollout: Array.from(rollout).slice(1, given.visible.length + 1),
        }};""",
        {"pixels": pixels.flatten().tolist(), "visible": visible},
    )
    heads = torch.tensor(found["weights"]).view(4, 4, len(visible) + 1, -1)[:, :, 0, 1:]
    assert relative_error(found["probs"], expected.probs) < 1e-4
    if visible:
        assert relative_error(heads, expected.heads[..., visible]) < 1e-4
        assert relative_error(found["rollout"], expected.rollout[visible]) < 1e-4


def test_logits_of_a_whole_image_are_those_of_pytorch(engine):
    model = load_trained("vit").model
    image = torch.randn(1, 1, 32, 32, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected = model(image)
    found = engine.run(
        """const { weights, config } = await exported("vit");
        return Array.from(new ViT(weights, config).classify(Float32Array.from(given)).logits);""",
        image.flatten().tolist(),
    )
    assert relative_error(found, expected) < 1e-4


def test_pixels_are_standardised_and_restored_as_in_python(engine):
    pixels = torch.linspace(0, 1, 11)
    found = engine.run(
        "return [standardise, restore].map((change) => Array.from(change(Float32Array.from(given))));", pixels.tolist()
    )
    assert relative_error(found[0], standardise(pixels)) < 1e-6
    assert relative_error(found[1], restore(pixels)) < 1e-6
