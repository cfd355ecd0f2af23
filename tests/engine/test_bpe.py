"""The byte-level BPE in JavaScript cuts texts into the tokens of course_lib.text, and joins them as it does."""

import unicodedata

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_08.definitions import entries
from course_lib.text.bpe import ByteLevelBPE

pytestmark = pytest.mark.needs("chromium")
LOAD = """
    const { tokenizers } = await exported("dictionary");
    const tokenizer = new ByteLevelBPE(tokenizers.text);
"""
HARD = [
    "", " ", "  ", "\n", "\n\n a", " \t\r\n", "a ", "a  b", "   a", "it's we'll I'M don't 've", "'", "''s", "x'sy",
    "naïve café", "cafe\u0301", "ÄÖÜß", "中文字符", "日本語テキスト", "한국어", "עברית", "العربية ٣٤٥", "हिन्दी", "ไทย",
    "🙂", "🙂🙃 🙂", "👩\u200d👩\u200d👧 family", "🇫🇷🇩🇪", "👍🏽", "½ ² Ⅷ ①", "1,234.50 €", "x²+y²=z²", "𝒳 𝔸 𝟙",
    "\u200b\u200d\u2060", "\x00\x01\x1b[0m\x7f", "\x1c\x1d\x1e\x1f", "\x85\x85a", "\ufeffbom", "a\ufeff b",
    "\u00a0nbsp\u00a0", "\u2028\u2029\u3000", "\u180e\u1680", "\ufffd", "Ġthe Ċ", "a" * 300, "ab" * 150, "!?" * 60,
    " " * 50 + "x", "\U0010ffff\U000f0000", "<|endoftext|>",
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer():
    return ByteLevelBPE.from_state_dict(load_trained("dictionary").extra["tokenizer"])


@pytest.fixture(scope="module")
def texts():
    """2,000: entries that the tokenizer was not trained on, the hard ones, and characters drawn at random."""
    generator = torch.Generator().manual_seed(0)
    lines = [entry.group() for entry in entries("test")[:1200]]
    known = [chr(i) for i in range(0x110000) if unicodedata.category(chr(i)) not in ("Cn", "Cs")]  # Python's Unicode
    rare = [[known[i] for i in torch.randint(len(known), (12,), generator=generator)] for _ in range(400)]
    signs = [letter for letter in known if letter < "\u3000"] + 300 * [" "] + 100 * ["'"] + 100 * ["\n"]
    mixed = [[signs[i] for i in torch.randint(len(signs), (30,), generator=generator)] for _ in range(400 - len(HARD))]
    return HARD + lines + ["".join(letters) for letters in rare + mixed]


def test_2000_texts_become_the_ids_and_tokens_of_python_and_come_back(engine, tokenizer, texts):
    assert len(set(texts)) == 2000
    found = engine.run(
        LOAD
        + """return given.map((text) => {
            const ids = tokenizer.encode(text);
            return [ids, tokenizer.tokens(text), tokenizer.decode(ids)];
        });""",
        texts,
    )
    expected = [[tokenizer.encode(text), tokenizer.tokens(text), text] for text in texts]
    assert [each for each, one, other in zip(texts, found, expected, strict=True) if one != other] == []


def test_any_ids_become_the_text_of_python(engine, tokenizer):
    """Also those whose bytes are not UTF-8: parts of characters, in any order."""
    ids = torch.randint(len(tokenizer), (500, 12), generator=torch.Generator().manual_seed(1))
    ids[:250] %= 256  # single bytes
    found = engine.run(LOAD + "return given.map((ids) => tokenizer.decode(ids));", ids.tolist())
    assert found == [tokenizer.decode(row) for row in ids]


def test_special_tokens_in_a_text_are_found_where_python_finds_them(engine, tokenizer):
    special = ByteLevelBPE(
        [*tokenizer.vocabulary, "<|end|>", "<|end|>>", "$^"], tokenizer.merges, specials=["<|end|>", "<|end|>>", "$^"]
    )
    texts = ["<|end|>", "a <|end|> b", "<|end|>>", "<|end|>>>", "x$^y $", "<|en<|end|>d|>", ""]
    found = engine.run(
        """const tokenizer = new ByteLevelBPE(given.state), each = (make) => given.texts.map(make);
        return [
            each((text) => tokenizer.encode(text)),
            each((text) => tokenizer.encode(text, { specials: false })),
            each((text) => tokenizer.decode(tokenizer.encode(text))),
            each((text) => tokenizer.decode(tokenizer.encode(text), { stripSpecials: true })),
        ];""",
        {"state": special.state_dict(), "texts": texts},
    )
    assert found[0] == [special.encode(text) for text in texts]
    assert found[1] == [special.encode(text, specials=False) for text in texts]
    assert found[2] == texts
    assert found[3] == [special.decode(special.encode(text), strip_specials=True) for text in texts]


def test_an_id_outside_the_vocabulary_is_refused(engine):
    assert engine.refusal(LOAD + "tokenizer.decode([2048]);") == "ids run from 0 to 2047, got 2048"
