"""The translators of lesson 05 in JavaScript: their words, logits, translations and attention weights."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.data.translation import detokenize_french, tokenize_english
from course_lib.text.words import WordTokenizer
from course_lib.training.translation import splits, translate, vocabularies
from tests.engine.modules import relative_error

pytestmark = pytest.mark.needs("chromium")
TYPED = [
    "They don't sign it!", "She WON'T, he's; they’ll — the “minister” can't.", "", " . ", "snake_case x2 ½ Ⅷ 中文",
    "café cafe\u0301", "n't 'll 'tis rock'n'roll '' constructor toString cannot", "İstanbul ΟΔΟΣ ΣΑΣ 🙂",
]  # fmt: skip


def load(name):
    return f"""
        const {{ weights, config, tokenizers }} = await exported("{name}");
        const model = new Seq2Seq(weights, config);
        const [english, french] = [tokenizers.english, tokenizers.french].map((state) => new WordTokenizer(state));
    """


@pytest.fixture(scope="module")
def pairs():
    """No translator was trained on them."""
    return splits(1).test[:200]


@pytest.fixture(scope="module")
def sentences(pairs):
    return [" ".join(pair.english) for pair in pairs[:60]]


@pytest.mark.parametrize("name", ["attention", "fixed_vector"])
def test_logits_and_weights_are_those_of_pytorch_at_each_step(engine, pairs, name):
    model, (english, french) = load_trained(name).model, vocabularies()
    pair = max(pairs, key=lambda pair: len(pair.english))
    source, target = english.encode(" ".join(pair.english)), french.encode(" ".join(pair.french), start=True)
    with torch.inference_mode():
        encoded = model.encode(model.embed(torch.tensor([source])), torch.ones(1, len(source), dtype=torch.bool))
        decoded = model.decoder(model.target_embed(torch.tensor([target])), encoded, model.start(encoded))
        logits = model.readout(decoded.features)
    found = engine.run(
        load(name)
        + """const source = model.encode(given.source), rows = [];
        let state = model.start(source);
        for (const word of given.target) {
            const step = model.step(word, state, source);
            state = step.state;
            rows.push([Array.from(step.logits), step.weights && Array.from(step.weights)]);
        }
        return rows;""",
        {"source": source, "target": target},
    )
    assert relative_error([row for row, _ in found], logits[0]) < 1e-4
    if name == "attention":
        assert relative_error([weights for _, weights in found], decoded.weights[0]) < 1e-4
    else:
        assert decoded.weights is None and all(weights is None for _, weights in found)


@pytest.mark.parametrize("name", ["attention", "fixed_vector"])
def test_sentences_are_translated_as_in_python(engine, name, sentences):
    model, sentences = load_trained(name).model, [*sentences, "The zebra eats a zebra, doesn't she?"]
    found = engine.run(
        load(name)
        + """return given.map((text) => {
            const { weights, ...said } = translate(model, english, french, text);
            return { ...said, weights: weights && weights.map((row) => Array.from(row)) };
        });""",
        sentences,
    )
    for text, said in zip(sentences, found, strict=True):
        expected = translate(model, text)
        assert (said["source"], said["target"]) == (list(expected.source), list(expected.target))
        assert said["unknown"] == list(expected.unknown)
        assert (said["weights"] is None) == (expected.weights is None)
        if expected.weights is not None:
            assert relative_error(said["weights"], expected.weights) < 1e-4


def test_a_text_without_a_word_is_refused(engine):
    said = engine.refusal(load("attention") + "translate(model, english, french, '?!');")
    assert said == "There is no word to translate: type an English sentence."


def test_english_is_cut_and_french_joined_as_in_python(engine, pairs, sentences):
    typed = TYPED + [text.title() for text in sentences]
    french = [list(pair.french) for pair in pairs]
    found = engine.run("return [given[0].map(tokenizeEnglish), given[1].map(detokenizeFrench)];", [typed, french])
    assert found[0] == [list(tokenize_english(text)) for text in typed]
    assert found[1] == [detokenize_french(words) for words in french]


@pytest.mark.parametrize("options", [{}, {"lower": True}, {"cut_punctuation": False}])
def test_words_have_the_ids_of_python(engine, options):
    texts = TYPED + ["a\u0301b \u200d\u200cx \u00a0y\x85z a_b-c d'e ... </s> <unk>x", "\x1c\ufeff a"]
    tokenizer = WordTokenizer.train(texts[::2], **options)
    found = engine.run(
        """const tokenizer = new WordTokenizer(given.state);
        return given.texts.map((text) => [tokenizer.encode(text), tokenizer.decode(tokenizer.encode(text))]);""",
        {"state": tokenizer.state_dict(), "texts": texts},
    )
    assert found == [[tokenizer.encode(text), tokenizer.decode(tokenizer.encode(text))] for text in texts]
