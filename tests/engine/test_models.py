"""The models of lessons 07, 11, 13, 14 and 15 in JavaScript, beside PyTorch."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.images import restore, standardise
from course_lib.layers.recording import record_attention
from course_lib.lessons.lesson_11.playground import look
from course_lib.lessons.lesson_13.looking import hiding
from course_lib.text.tokenizer import Tokenizer
from tests.engine.modules import relative_error

pytestmark = pytest.mark.needs("chromium")
BERT = """
    const { weights, config, tokenizers } = await exported("bert");
    const bert = new BERT(weights, config), tokenizer = new WordTokenizer(tokenizers.text);
"""
TEXTS = [
    *("[CLS] the minister [MASK] the law . [SEP]", "[CLS] la [MASK] est nouvelle . [SEP]"),
    *("[CLS] elle ne [MASK] voit pas . [SEP]", "[CLS] the zebra [MASK] . [SEP]"),
    "[CLS] " + "the [MASK] . " * 26 + "[SEP]",
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_logits_features_and_heads_of_bert_are_those_of_pytorch(engine, text):
    trained = load_trained("bert")
    ids = Tokenizer.from_state_dict(trained.extra["vocabulary"]).encode(text)
    with torch.inference_mode(), record_attention(trained.model) as record:
        features = trained.model.features(torch.tensor([ids]))
        logits = trained.model.logits(features)
    found = engine.run(
        BERT
        + """const ids = tokenizer.encode(given), output = bert.encode(ids), list = (floats) => Array.from(floats);
        return [ids, list(output.features), list(bert.logits(output.features)), output.weights.map(list)];""",
        text,
    )
    assert found[0] == ids
    for one, expected in zip(found[1:], (features, logits, record.maps()[0]), strict=True):
        assert relative_error(one, expected) < 1e-4


HIDDEN = [frozenset(), frozenset({3, 7, 8, 16}), frozenset(range(1, 17)) - {6}, frozenset(range(1, 17))]


@pytest.mark.parametrize("name", ["vit", "vit_digits"])
@pytest.mark.parametrize("hidden", HIDDEN, ids=len)
def test_classes_heads_and_rollout_of_vit_are_those_of_the_playground(engine, name, hidden):
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
    image = torch.randn(1, 1, 32, 32, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected = load_trained("vit").model(image)
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


@pytest.mark.parametrize("name", ["mae", "mae_scenes"])
@pytest.mark.parametrize("seen", [0.02, 0.25, 0.9])
def test_mae_reconstructs_hidden_patches_as_in_pytorch(engine, name, seen):
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


@pytest.mark.parametrize("name", ["unet", "unet_no_skips"])
@pytest.mark.parametrize("height, width", [(32, 32), (64, 40)])
def test_the_logits_of_u_nets_at_each_pixel_are_those_of_pytorch(engine, name, height, width):
    image = torch.randn(1, 1, height, width, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = load_trained(name).model(image)[0].permute(1, 2, 0)  # (H, W, K)
    found = engine.run(
        f"""const {{ weights, config }} = await exported("{name}"), data = Float32Array.from(given.data);
        const map = new UNet(weights, config).logits({{ ...given, data }});
        return [map.height, map.width, Array.from(map.data)];""",
        {"height": height, "width": width, "data": image.flatten().tolist()},
    )
    assert found[:2] == [height, width]
    assert relative_error(found[2], expected) < 1e-4


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_logits_of_the_decision_transformer_are_those_of_pytorch_within_its_context_and_beyond(engine, steps):
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


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (BERT + "bert.encode(Array(81).fill(5));", "index 80 is outside of a table of 80 rows"),
        (
            """const { weights, config } = await exported("unet"), data = new Float32Array(30 * 32);
            new UNet(weights, config).logits({ height: 30, width: 32, data });""",
            "30 x 32 pixels are no multiples of 8",
        ),
    ],
)
def test_more_tokens_than_positions_and_sizes_that_cannot_be_halved_are_refused(engine, body, expected):
    assert engine.refusal(body) == expected
