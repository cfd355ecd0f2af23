"""GPT in JavaScript gives PyTorch's logits, with its cache and without."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from tests.engine.modules import relative_error

pytestmark = pytest.mark.needs("chromium")
NAME = "dictionary"
LOAD = f"""
    const {{ weights, config }} = await exported("{NAME}");
    const gpt = new GPT(weights, config);
"""


@pytest.fixture(scope="module")
def model():
    return load_trained(NAME).model


@pytest.fixture(scope="module")
def ids():
    return torch.randint(2048, (24,), generator=torch.Generator().manual_seed(0)).tolist()


@pytest.fixture(scope="module")
def expected(model, ids):
    with torch.inference_mode():
        return model(torch.tensor([ids]))[0]


def test_all_weights_are_read_as_pytorch_reads_them(engine, model):
    sums = engine.run(
        f"""const {{ weights }} = await exported("{NAME}");
        return [...weights].map(([name, {{ shape, data }}]) => [name, shape, data.reduce((sum, x) => sum + x, 0)]);"""
    )
    stored = model.state_dict()
    assert {name for name, _, _ in sums} | {"head.weight"} == set(stored)
    for name, shape, total in sums:
        assert tuple(shape) == stored[name].shape
        assert total == pytest.approx(stored[name].double().sum().item(), rel=1e-9, abs=1e-9)


def test_logits_at_each_position_are_those_of_pytorch(engine, ids, expected):
    found = engine.run(LOAD + "return Array.from(gpt.allLogits(given));", ids)
    assert relative_error(found, expected) < 1e-4


def test_a_whole_context_fits_and_one_more_token_is_refused(engine, model):
    ids = [i % 2048 for i in range(0, 128 * 7, 7)]
    with torch.inference_mode():
        expected = model(torch.tensor([ids]))[0, -1]
    assert relative_error(engine.run(LOAD + "return Array.from(gpt.logits(given));", ids), expected) < 1e-4
    refused = engine.run(
        LOAD + "try { gpt.logits([...given, 0]); } catch (error) { return `${error.name}: ${error.message}`; }", ids
    )
    assert refused == "RangeError: this model reads 1 to 128 tokens, got 129"


def test_logits_with_a_cache_are_those_of_the_whole_text(engine, ids):
    """The prompt at once, then token by token."""
    found, whole = engine.run(
        LOAD
        + """const cache = gpt.newCache(), rows = [];
        for (let end = 8; end <= given.length; end++) rows.push(...gpt.logits(given.slice(0, end), cache));
        return [rows, Array.from(gpt.allLogits(given)).slice(7 * config.vocab_size)];""",
        ids,
    )
    assert relative_error(found, whole) < 1e-6


def test_a_cache_is_used_again_only_as_far_as_the_text_is_the_same(engine, ids, expected):
    """Once more the same text, then another one that begins as it, then the first again."""
    found = engine.run(
        LOAD
        + """const cache = gpt.newCache(), logits = (ids) => Array.from(gpt.logits(ids, cache));
        return [given, given, [...given.slice(0, 9), 5, 6, 7], given].map(logits);""",
        ids,
    )
    for number in (0, 1, 3):
        assert relative_error(found[number], expected[-1]) < 1e-4
    assert relative_error(found[2], expected[-1]) > 1e-2


def test_a_cache_is_read_and_not_computed_anew(engine, ids):
    """With the keys and values of the past set to zero the answer is another one."""
    found, changed = engine.run(
        LOAD
        + """const cache = gpt.newCache();
        gpt.logits(given.slice(0, -1), cache);
        const found = gpt.logits(given, cache);
        cache.layers.forEach(([keys, values]) => { keys.fill(0); values.fill(0); });
        return [found, gpt.logits(given, cache)].map((row) => Array.from(row));""",
        ids,
    )
    assert relative_error(changed, found) > 1e-2


def test_a_token_is_written_within_a_fraction_of_a_second(engine, ids):
    """Some 6 ms on a quiet machine; the bound leaves room for a busy one."""
    milliseconds = engine.run(
        LOAD
        + """const cache = gpt.newCache(), times = [];
        for (let end = 1; end <= given.length; end++) {
            const start = performance.now();
            gpt.logits(given.slice(0, end), cache);
            times.push(performance.now() - start);
        }
        return times.sort((a, b) => a - b)[times.length >> 1];""",
        ids,
    )
    print(f"{milliseconds:.1f} ms per token")
    assert milliseconds < 200
