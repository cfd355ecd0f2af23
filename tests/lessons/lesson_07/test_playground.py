"""The blank and the search of lesson 07 show what the model says, and know when a goal is reached."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.data.checkpoints import load_trained
from course_lib.layers.recording import record_attention
from course_lib.lessons.lesson_07.blank import BARS, MAX_WORDS, Word, blank, fill, other_gender, words_of
from course_lib.lessons.lesson_07.recipes.pretraining import PretrainingSettings, build, encode, fill_in
from course_lib.lessons.lesson_07.search import QUESTIONS, search, sentences
from course_lib.lessons.lesson_07.sentences import Passage, passages
from tests.lessons.common import reached

# ------------------------------------------------------------------ the blank


@pytest.fixture(scope="module")
def bert():
    return load_trained("bert").model


@pytest.fixture
def explorer(bert):
    return blank(bert)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The minister [signs] the law.", ["the", "minister", "[signs]", "the", "law"]),
        ("L’accord n'est pas nouveau !", ["l'", "accord", "n'", "est", "pas", "nouveau"]),
        ("She doesn't see ___", ["she", "does", "not", "see", "[?]"]),
        ("[MASK] loi, [Mask]", ["[?]", "loi", "[mask]"]),
        ("[l'] accord [L'accord", ["[l']", "accord", "l'", "accord"]),
        ("[ ]", ["[?]"]),
    ],
)
def test_a_sentence_in_either_language_becomes_the_grammars_words(text, words):
    found = words_of(text)
    assert found[-1] == Word(".", hidden=False)
    assert [f"[{word.text or '?'}]" if word.hidden else word.text for word in found[:-1]] == words


def test_the_answer_is_the_models(bert):
    filled = fill(bert, "le [ministre] signe la [loi]")
    expected = fill_in(bert, "le [MASK] signe la [MASK] .".split(), most=BARS)
    for number, bars in enumerate(expected):
        assert [word for word, _ in filled.best(number)] == [word for word, _ in bars]
        assert filled.likeliest(number)[1] == pytest.approx(bars[0][1], abs=1e-5)


def test_the_map_shows_the_heads_at_the_first_blank(bert):
    filled = fill(bert, "le [ministre] signe la [loi]")
    with record_attention(bert) as record, torch.no_grad():
        bert(torch.tensor([encode("le [MASK] signe la [MASK] .".split()).ids]))
    for layer in range(3):
        for head in range(4):
            row = record.maps()[0, layer, head, 2]  # [CLS] le [MASK]
            torch.testing.assert_close(torch.from_numpy(filled.heads[4 * layer + head]), row)
    assert filled.heads.sum(axis=1) == pytest.approx(1, abs=1e-5)


def test_without_a_blank_each_word_is_hidden_alone(bert):
    filled = fill(bert, "la loi est nouvelle")
    for place, word in enumerate(("la", "loi", "est", "nouvelle")):
        words = ["la", "loi", "est", "nouvelle", "."]
        words[place] = "[MASK]"
        chances = dict(fill_in(bert, words, most=200)[0])
        assert filled.seen[place] == pytest.approx(chances[word], abs=1e-5)


def test_what_stood_there_is_said_with_its_place(explorer):
    alt = explorer.frame({"text": "il [est] riche"}).alt
    assert "✗ The model says “sera”" in alt and "“est” stood there:" in alt and "rank 2." in alt
    assert "✓ The model says “nouvelle”" in explorer.frame({"text": "la loi est [nouvelle]"}).alt
    assert "stood there" not in explorer.frame({"text": "la loi est ___"}).alt


def test_a_word_of_another_world_is_hidden_but_never_found(explorer):
    frame = explorer.frame({"text": "the [zebra] signs the <law>"})
    assert "I do not know the word “zebra”" in frame.alt and "“zebra” stood there: 0%" in frame.alt
    assert reached(explorer, text="the [zebra] signs the law") == [False, False, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  ", "Type a sentence"),
        ("the " * (MAX_WORDS + 1), f"has {MAX_WORDS + 1} words; please keep to {MAX_WORDS}."),
        ("[the] [minister] [signs] [the] law", "Hide at most 3 words at a time; there are 4 blanks."),
        ("the [old minister] signs", "One word to a blank, please: “old minister” is 2 of them."),
    ],
)
def test_a_text_that_is_no_sentence_gets_a_kind_answer(explorer, text, said):
    assert said in explorer.frame({"text": text}).alt
    assert reached(explorer, text=text) == [False, False, False]


def test_the_goals_of_the_blank(explorer):
    for text in explorer.controls[0].examples:  # none is reached by a click on an example
        assert reached(explorer, text=text) == [False, False, False], text
    assert reached(explorer, text="la loi est [nouvelle]") == [True, False, False]
    assert reached(explorer, text="la loi est ___") == [False, False, False]
    assert reached(explorer, text="[MASK]") == [False, True, False]
    assert reached(explorer, text="the ministers of the country [are] old") == [False, False, True]


def test_the_other_gender_is_the_grammars():
    pairs = other_gender()
    assert pairs["la"] == {"le"} and pairs["vieux"] == {"vieille", "vieilles"} and pairs["nouvelles"] == {"nouveaux"}
    assert "jeune" not in pairs and all(word in pairs[other] for word in pairs for other in pairs[word])


def test_a_network_that_knows_nothing_fills_blanks_too():
    explorer = blank(build(PretrainingSettings()).eval())
    assert all("The model says" in explorer.frame({"text": text}).alt for text in explorer.controls[0].examples)


# ------------------------------------------------------------------ the search

PAGES = [
    Passage("05", "Masks", "Padding is hidden from everyone. A causal mask hides the future from a decoder."),
    Passage("05", "Masks", "A causal mask hides the future from a decoder. Too short here."),
    Passage("06", "Beams <b>", "A beam keeps the best few sentences. Greedy decoding keeps one sentence <only>."),
    Passage("06", "Beams <b>", "The mathematics $\\frac{1}{2}$ is left out of it."),
]


class Letters:
    """A vector that counts the letters of a text: near is what is written alike."""

    name = "letters"

    def __init__(self):
        self.calls = []

    def __call__(self, texts):
        self.calls.append(list(texts))
        counts = [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
        return F.normalize(torch.tensor(counts).float(), dim=-1)


@pytest.fixture
def finder():
    return search(Letters(), PAGES)


def test_each_sentence_stands_there_once_without_short_ones_and_mathematics():
    texts = ["Padding is hidden from everyone.", "A causal mask hides the future from a decoder."]
    texts += ["A beam keeps the best few sentences.", "Greedy decoding keeps one sentence <only>."]
    assert [part.text for part in sentences(PAGES)] == texts


def test_the_nearest_is_the_one_with_the_largest_cosine(finder):
    alt = finder.frame({"question": "Padding is hidden from everybody"}).alt
    assert "By meaning the nearest sentence is “Padding is hidden from everyone.” (lesson 05, Masks; 0.9" in alt
    assert "Both put the same sentence first." in alt
    assert finder.frame({"question": "padding is hidden from everyone"}).html.count("1.00") == 2
    frame = finder.frame({"question": "zzz"})
    assert "No sentence has a word of yours." in frame.html and "By words nothing is found." in frame.alt


def test_shared_words_are_bold_and_everything_is_escaped(finder):
    html = finder.frame({"question": "decoding with a beam"}).html
    assert "<b>beam</b> keeps" in html and "Greedy <b>decoding</b>" in html
    assert "&lt;only&gt;" in html and "<only>" not in html and "Beams &lt;b&gt;" in html


def test_each_sentence_is_encoded_once_and_only_when_a_choice_needs_it():
    encoder = Letters()
    finder = search(encoder, PAGES)
    for where in ("", "05", "06", ""):
        finder.frame({"question": "a mask", "where": where})
    encoded = [text for call in encoder.calls for text in call]
    assert sorted(encoded) == sorted({*encoded}) and len(encoded) == 4 + 1


def test_a_choice_of_lessons_searches_there_alone(finder):
    assert list(finder.controls[1].options) == ["all pages", "lesson 05", "lesson 06"]
    alt = finder.frame({"question": "Padding is hidden from everyone", "where": "06"}).alt
    assert "lesson 06" in alt and "lesson 05" not in alt


def test_the_goals_of_the_search(finder):
    assert reached(finder, question="a mask that hides the future")[1]
    assert reached(finder, question="zzz") == [False, False, True]
    assert reached(finder, question="nobody sees the paddings, hidden from everyones")[:2] == [False, True]
    assert reached(finder, question="gni ddap si neddih morf enoyreve") == [True, False, False]


@pytest.mark.parametrize(
    ("question", "said"), [("?!", "Type a question"), ("a " * 61, "has 61 words; please keep to 60.")]
)
def test_a_text_that_is_no_question_gets_a_kind_answer(finder, question, said):
    assert said in finder.frame({"question": question}).alt


def test_the_shipped_encoder_searches_the_pages_that_exist():
    finder = search(None, passages(["05"]))
    said = [finder.frame({"question": question}).alt for question in QUESTIONS]
    assert all("By meaning the nearest sentence is" in alt for alt in said) and "lesson 05" in "".join(said)
