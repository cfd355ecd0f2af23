"""Lesson 07's BERT in JavaScript: what it would put into a blank, and where its heads look."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.layers.recording import record_attention
from course_lib.text.tokenizer import Tokenizer
from tests.engine.modules import relative_error

pytestmark = pytest.mark.needs("chromium")
LOAD = """
    const { weights, config, tokenizers } = await exported("bert");
    const bert = new BERT(weights, config), tokenizer = new WordTokenizer(tokenizers.text);
"""
TEXTS = [
    "[CLS] the minister [MASK] the law . [SEP]",
    "[CLS] la [MASK] est nouvelle . [SEP]",
    "[CLS] elle ne [MASK] voit pas . [SEP]",
    "[CLS] the zebra [MASK] . [SEP]",
    "[CLS] " + "the [MASK] . " * 26 + "[SEP]",
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_logits_features_and_heads_are_those_of_pytorch(engine, text):
    trained = load_trained("bert")
    ids = Tokenizer.from_state_dict(trained.extra["vocabulary"]).encode(text)
    with torch.inference_mode(), record_attention(trained.model) as record:
        features = trained.model.features(torch.tensor([ids]))
        logits = trained.model.logits(features)
    found = engine.run(
        LOAD
        + """const ids = tokenizer.encode(given), output = bert.encode(ids), list = (floats) => Array.from(floats);
        return [ids, list(output.features), list(bert.logits(output.features)), output.weights.map(list)];""",
        text,
    )
    assert found[0] == ids
    assert relative_error(found[1], features) < 1e-4
    assert relative_error(found[2], logits) < 1e-4
    assert relative_error(found[3], record.maps()[0]) < 1e-4


def test_more_tokens_than_positions_are_refused(engine):
    said = engine.run(LOAD + "try { bert.encode(Array(81).fill(5)); } catch (error) { return error.message; }")
    assert said == "index 80 is outside of a table of 80 rows"
