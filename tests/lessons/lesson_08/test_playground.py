"""The dictionary, the writer and the guessing game of lesson 08 show what the models say, and know their goals."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.data.prose import prose_splits
from course_lib.functional import sampling
from course_lib.generation.stepwise import greedy
from course_lib.lessons.lesson_08 import guess as game
from course_lib.lessons.lesson_08.definitions import define
from course_lib.lessons.lesson_08.lookup import lookup
from course_lib.lessons.lesson_08.writer import MOST_STROKES, Writer, goes_round, writer
from course_lib.models.gpt import gpt_lesson
from course_lib.text.tokenizer import Tokenizer
from course_lib.training.language_models import tokenized_prose
from tests.lessons.common import reached

# ------------------------------------------------------------------ the writer


@pytest.fixture(scope="module")
def gpt():
    return load_trained("dictionary")


@pytest.fixture(scope="module")
def tokenizer(gpt):
    return Tokenizer.from_state_dict(gpt.extra["tokenizer"])


@pytest.fixture(scope="module")
def pen(gpt, tokenizer):
    return Writer(gpt.model, tokenizer)


@pytest.fixture(scope="module")
def explorer(gpt, tokenizer):
    return writer(gpt.model, tokenizer)


def test_the_likeliest_tokens_are_greedys(gpt, tokenizer, pen, explorer):
    prompt = torch.tensor([tokenizer.encode("\nteapot (noun):")])
    state = explorer.state(prompt="teapot (noun):", pen=(1, 20 * "t"))
    assert pen.text(state).written == greedy(gpt.model, prompt, max_new_tokens=20)[0].tolist()


def test_what_is_remembered_is_what_the_model_says(gpt, pen, explorer):
    text = pen.text(explorer.state(pen=(4, 30 * "d"), temperature=2.0))
    ids = (*text.prompt, *text.written)
    with torch.no_grad():
        expected = gpt.model(torch.tensor([ids]))[0]
    for length in (len(ids), len(ids) - 7, len(text.prompt)):
        torch.testing.assert_close(pen.logits(ids[:length]), expected[length - 1], atol=1e-4, rtol=1e-4)


def test_the_stations_are_the_courses_filters(pen, explorer):
    state = explorer.state(temperature=0.5, top_k=5, top_p=0.8)
    step, logits = pen.text(state).next, pen.logits(tuple(pen.text(state).prompt + pen.text(state).written))
    kept = sampling.top_p(sampling.top_k(logits / 0.5, 5), 0.8)
    torch.testing.assert_close(step.top_p, kept.softmax(dim=-1))
    torch.testing.assert_close(step.model, logits.softmax(dim=-1))
    assert int((step.top_k > 0).sum()) == 5 and int((step.top_p > 0).sum()) <= 5


def test_the_dice_draw_each_token_as_often_as_its_chance(pen, explorer):
    step = pen.text(explorer.state(pen=(1, ""), top_k=3)).next
    throws = (torch.arange(2000) + 0.5) / 2000
    drawn = torch.tensor([step._replace(throw=throw).drawn for throw in throws.tolist()])
    probs = torch.bincount(drawn, minlength=len(step.top_p)) / 2000
    torch.testing.assert_close(probs, step.top_p, atol=1e-3, rtol=0)
    assert step._replace(throw=0.9999999).drawn in step.top_k.topk(3).indices


def test_a_knob_changes_the_text_and_the_same_dice_write_it_again(pen, explorer):
    states = ({}, {}, {"temperature": 2.0}, {"pen": (2, 24 * "d")})
    plain, again, warm, other = (pen.text(explorer.state(**state)).written for state in states)
    assert plain == again and plain != warm and plain != other


def test_what_a_knob_cuts_away_is_crossed_out_and_counted(explorer):
    frame = explorer.frame({"top_k": 3})
    assert "<b>top-k 3</b><br>3 tokens left" in frame.html and frame.html.count("✕ cut away") == 8  # 7 rows, the rest
    assert "3 of 2048 are left" in frame.alt and "✕" not in explorer.frame().html


@pytest.mark.parametrize(
    ("state", "goals"),
    [
        ({}, [False, False, False]),
        ({"prompt": "florpness (noun"}, [True, False, False]),
        ({"temperature": 2.0}, [False, False, False]),
        ({"temperature": 2.0, "top_k": 1}, [False, True, False]),
        ({"temperature": 2.0, "top_k": 1, "pen": (1, 19 * "d")}, [False, False, False]),
        ({"temperature": 1.0, "top_k": 1, "pen": (1, 60 * "d")}, [False, False, False]),
        ({"prompt": "coffee (noun):", "temperature": 0.05, "pen": (1, 60 * "d")}, [False, False, True]),
    ],
)
def test_the_goals_of_the_writer(explorer, state, goals):
    assert reached(explorer, **state) == goals


def test_a_loop_is_three_tokens_or_more_three_times_in_a_row(pen, explorer):
    text, ids = pen.text(explorer.state(pen=(1, ""))), [5, 1, 2, 3, 1, 2, 3, 1, 2, 3, 7]
    found = [goes_round(text._replace(written=written)) for written in (ids, ids[:9], [1, 2] * 4)]
    assert found == [True, False, False]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"prompt": "a " * 80}, "tokens; please keep to 64."),
        ({"prompt": "teapot "}, "The prompt ends with a blank."),
        ({"pen": (1, "d" * MOST_STROKES)}, "The page is full with 60 tokens"),
    ],
)
def test_what_cannot_be_or_is_odd_is_said(explorer, state, said):
    assert said in explorer.frame(state).alt


def test_any_prompt_is_drawn_and_a_network_that_knows_nothing_writes_too(explorer, tokenizer):
    for prompt in ("", "日本語 😀", "\n", '<b>bold</b> & "quotes"'):
        frame = explorer.frame({"prompt": prompt})
        assert "cannot be drawn" not in frame.alt and "<b>bold</b>" not in frame.html
    frame = writer(gpt_lesson(len(tokenizer)).eval(), tokenizer).frame()
    assert "cannot be drawn" not in frame.alt and "2048 of 2048 are left" in frame.alt


# ------------------------------------------------------------------ the dictionary


@pytest.fixture(scope="module")
def asked(gpt, tokenizer):
    return lookup(gpt.model, tokenizer)


def test_gpt_the_n_gram_and_wordnet_answer_side_by_side(gpt, tokenizer, asked):
    alt = asked.frame({"word": "dogfish"}).alt
    assert f"GPT:{define(gpt.model, tokenizer, ['dogfish (noun):'])[0]}." in alt
    assert "5-gram: " in alt and "WordNet: any of several small sharks (training text)." in alt
    assert "WordNet: has no such entry." in asked.frame({"word": "dogfish", "part": "adverb"}).alt


def test_the_goals_of_the_dictionary(asked):
    assert reached(asked, word="florpness") == [True, False, False]
    assert reached(asked, word="dogfish") == [False, True, False]
    assert reached(asked, word="sixty-one", part="adjective") == [False, False, True]


def test_any_word_is_defined_but_none_and_one_too_long_are_refused(asked):
    for word in ("日本語 😀", '<b>bold</b> & "quotes"', "x" * 60, "  two   words "):
        frame = asked.frame({"word": word})
        assert "cannot be drawn" not in frame.alt and "<b>bold</b>" not in frame.html
    for word in ("", " ", "x" * 61):
        assert "Type a word, or several, of at most 60 characters." in asked.frame({"word": word}).alt
        assert reached(asked, word=word) == [False, False, False]


# ------------------------------------------------------------------ the game


@pytest.fixture(scope="module")
def players():
    """One that always says “e”, one that knows the text, and one that is sure of the wrong character."""
    vocabulary = tokenized_prose().tokenizer

    def sure_of(text):
        return torch.eye(len(vocabulary))[vocabulary.encode(text)] * 0.9 + 0.1 / len(vocabulary)

    return {
        "e": lambda text, first: sure_of("e" * (len(text) - first)),
        "oracle": lambda text, first: sure_of(text[first:]),
        "?": lambda text, first: sure_of("?" * (len(text) - first)),
    }


@pytest.fixture
def guessing(players):
    return game.guess(players)


HIDDEN = "except that the end points are at zero. "  # the first text's


def test_the_texts_are_held_out_and_begin_to_be_hidden_at_a_word():
    train = prose_splits().text("train")
    found = game.passages()
    assert [found[0].hidden, len(found)] == [HIDDEN, len(game.OPENINGS)]
    for passage in found:
        assert passage.given + passage.hidden not in train and passage.given.endswith(" ")
        assert 40 <= len(passage.given) <= game.SHOWN and len(passage.hidden) == game.HIDDEN
        assert passage.begins_word(0)


def test_every_chance_is_given_what_stands_before_and_nothing_else():
    text, first = "The aspect ratio of the Axes. This parameter is particularly relevant for images since", 70
    changed = text[:80] + "x" * (len(text) - 80)
    for player in game.shipped().values():
        chances = player(text, first)
        torch.testing.assert_close(chances.sum(dim=1), torch.ones(len(text) - first), atol=1e-4, rtol=0)
        torch.testing.assert_close(chances[: 80 - first + 1], player(changed, first)[: 80 - first + 1])
        assert (chances.argmax(dim=1) == torch.tensor(game.characters(text[first:]))).float().mean() > 0.3


def test_the_score_counts_the_start_of_words_apart_and_strange_characters_are_wrong(guessing):
    frame = guessing.frame({"typed": ("except xxx",)})
    assert "Right of 10: you 7, e 2, oracle 10, ? 0." in frame.alt
    assert "7 of 10</td>" in frame.html and "1 of 2</td>" in frame.html and "6 of 8</td>" in frame.html
    frame = guessing.frame({"typed": ("<é😀",)})
    assert "Right of 3: you 0" in frame.alt and "you typed &lt;" in frame.html


def test_what_came_of_a_character_is_said_beside_the_box(guessing):
    answer = guessing.controls[0].answer
    assert answer(("",)) == "Type the character that comes next; a blank counts, too."
    assert answer(("e",)) == "✓ Yes, “e”. e ✓, oracle ✓, ? ✗."
    assert answer(("exceptx",)) == "✗ Not “x” but “␣”. e ✗, oracle ✓, ? ✗."
    assert answer((HIDDEN,)).endswith("This text is done: take another one.")


def test_the_next_text_comes_with_a_new_round_and_the_first_again_after_the_last(guessing):
    assert "The context manager" in guessing.frame({"typed": ("ex", "")}).alt
    assert "Right of 9: you 2" in guessing.frame({"typed": ("e",) * (len(game.OPENINGS) + 1)}).alt


def test_nothing_of_what_is_hidden_stands_in_the_page_beforehand(guessing):
    assert "except" not in guessing.frame().html
    assert "that" not in guessing.frame({"typed": ("except ",)}).html.partition("The score")[0].split("window,")[1]


def test_the_goals_of_the_game(players):
    explorer = game.guess({name: player for name, player in players.items() if name != "oracle"})
    assert reached(explorer) == [False, False, False]
    assert reached(explorer, typed=("zz",)) == [False, False, False]
    assert reached(explorer, typed=("e",)) == [True, False, False]
    assert reached(explorer, typed=("zz" + HIDDEN[2],)) == [False, True, False]
    assert reached(explorer, typed=(HIDDEN[:19],)) == [True, True, False]
    assert reached(explorer, typed=(HIDDEN[:20],)) == [True, True, True]
    assert reached(game.guess({"oracle": players["oracle"]}), typed=(HIDDEN,)) == [True, False, False]
