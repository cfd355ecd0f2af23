"""The explorer shows the search that was made, byte-pair encoding is the library's, and goals can be reached."""

import itertools
import re

import pytest

from course_lib.data.checkpoints import load_trained
from course_lib.data.translation import translate as gold_translation
from course_lib.lessons.lesson_06 import playground
from course_lib.lessons.lesson_06.beams import END, Search
from course_lib.lessons.lesson_06.merging import Merging
from course_lib.lessons.lesson_06.recipes.translator import TransformerSettings, build
from course_lib.lessons.lesson_06.tree import columns_of
from course_lib.text.bpe import SubwordBPE
from tests.lessons.common import reached

SURE, LOST = playground.EXAMPLES[0], playground.DRAMA


@pytest.fixture(scope="module")
def model():
    return load_trained("translator").model


@pytest.fixture(scope="module")
def explorer(model):
    return playground.explorer(model)


@pytest.fixture(scope="module")
def bpe():
    return playground.bpe()


# ------------------------------------------------------------------ the search


def test_each_hypothesis_was_there_a_step_before_one_word_shorter_and_likelier(model):
    search = Search(model, LOST, num_beams=4, penalty=1.0)
    for before, level in zip(search.levels, search.levels[1:], strict=False):
        parents = {h.words: h.log_p for h in before.running}
        assert all(h.log_p < parents[h.words[:-1]] for h in level.all)
        assert all(h.words[-1] == END for h in level.ended) and not any(END in h.words for h in level.running)


def test_one_beam_is_greedy(model):
    for text in (SURE, LOST):
        search = Search(model, text, num_beams=1, penalty=1.0)
        assert search.winner.words == search.greedy.words
        assert search.winner.log_p == pytest.approx(search.greedy.log_p, abs=1e-4)
        assert [len(level.running) for level in search.levels[:-1]] == [1] * (len(search.levels) - 1)


def test_the_length_penalty_turns_the_winner(model):
    long, short = (Search(model, LOST, num_beams=4, penalty=penalty) for penalty in (1.0, 0.0))
    assert len(long.winner.words) > len(short.winner.words) and long.winner.log_p < short.winner.log_p
    assert long.score(long.winner) > long.score(long.greedy)
    assert long.led_and_lost() and not short.led_and_lost()


def test_the_look_of_a_hypothesis_has_a_row_for_each_of_its_words(model):
    search = Search(model, SURE, num_beams=4, penalty=1.0)
    look = search.look(search.winner.words)
    assert look.maps.shape == (2, 4, len(search.winner.words), len(search.source))
    log_p = look.chances.max(dim=-1).values.log().sum()
    assert float(log_p) == pytest.approx(search.winner.log_p, abs=1e-3)  # sure of each word: the likeliest are its own


def test_links_are_the_grammars_as_far_as_it_agrees(model):
    search, pair = Search(model, SURE, num_beams=2, penalty=1.0), gold_translation(SURE.lower().replace(".", " ."))
    assert search.links(search.winner.words) == {(j, i) for i, j in pair.alignment}
    assert search.links(("le", "livre", "ne")) == {(0, 0)}
    assert Search(model, LOST, num_beams=2, penalty=1.0).links(("le",)) == set()


# ------------------------------------------------------------------ the explorer


def test_the_tree_draws_every_hypothesis_before_the_first_end_and_each_end(model):
    for text in (SURE, LOST, "her zebra are not strange"):
        search = Search(model, text, num_beams=4, penalty=1.0)
        columns = columns_of(search)
        first = next(step for step, level in enumerate(search.levels) if level.ended)
        assert columns[:first] == [level.running for level in search.levels[:first]]
        for column, level in zip(columns, search.levels, strict=False):
            assert set(level.ended) <= set(column)
        for before, column in zip(columns, columns[1:], strict=False):  # a line for each box but the first
            assert {h.words[:-1] for h in column} <= {h.words for h in before}


def test_the_search_is_said_in_words_and_of_each_box_what_died_and_what_went_on(explorer):
    alt, html = explorer.frame().alt, explorer.frame().html
    assert "Beam search with 3 beams: “le ministre ne voit pas la zone économique européenne.”" in alt
    assert "Greedy: the same. Grammar: ✓ the same." in alt
    assert "Step 7, “zone” after “le ministre ne voit pas la”" in alt
    assert "ce: log p −7.23, died: none of its continuations was good enough for step 2" in html
    assert "le: log p −0.11, went on" in html and ", ended, and won" in html and ", ended, and came 2nd" in html
    assert "4 hypotheses died on the way" in alt and html.count("✕</i>") == 4
    lost = explorer.frame({"text": LOST}).alt
    assert "“juge est jeune.” led at step 4, but did not win." in lost and "Greedy: “juge est jeune.”" in lost


def test_a_click_looks_into_the_hypothesis_that_was_clicked(explorer):
    frames = {at: explorer.frame({"text": LOST, "at": at}) for at in ((2, "juge est"), (2, ""), (2, "no"), (40, ""))}
    assert "“est” after “juge”" in frames[2, "juge est"].html
    assert all("“juge” after “le”" in frames[2, words].html for words in ("", "no"))
    assert "Step 6, “end”" in frames[40, ""].alt  # past the winner's end


def test_the_goals_of_the_explorer(explorer):
    assert reached(explorer) == [False] * 4
    assert reached(explorer, text=LOST) == [True, True, False, False]
    assert reached(explorer, text=LOST, penalty=0.0) == [False, False, True, False]
    followed = [look for look in explorer.controls[-1].options.values() if reached(explorer, look=look)[3]]
    assert followed == [(1, 2)]
    assert not reached(explorer, text=LOST, look=(1, 2))[3]  # nobody knows its alignment
    for example in playground.EXAMPLES:
        assert not any(reached(explorer, text=example)), example  # no button gives a goal away


def test_words_from_a_learner_are_escaped(explorer):
    html = explorer.frame({"text": 'the "<b>" law'}).html
    assert "<b>" not in re.sub("<b>(Beam search|Greedy|Grammar)</b>", "", html)


@pytest.mark.parametrize("text", ["", "the " * 31])
def test_a_text_that_is_no_sentence_is_refused(explorer, text):
    frame = explorer.frame({"text": text})
    assert "cannot be drawn" in frame.alt and "<table" not in frame.html
    assert reached(explorer, text=text) == [False] * 4


def test_a_translator_that_knows_nothing_can_be_looked_at():
    fresh = playground.explorer(build(TransformerSettings(dim=16)).eval())
    for look, beams in itertools.product((playground.EVERY, (0, 1)), (1, 5)):
        assert "cannot be drawn" not in fresh.frame({"look": look, "beams": beams, "at": (20, "")}).alt


# ------------------------------------------------------------------ byte-pair encoding


@pytest.mark.parametrize("text", playground.TEXTS)
def test_all_merges_together_are_the_librarys(text):
    merging = Merging(text)
    trained = SubwordBPE.train([text], 10_000, specials=["<unk>"], cut_punctuation=True)
    assert merging.tokenizer(len(merging.merges)).state_dict() == trained.state_dict()
    sizes = merging.sizes()
    assert sizes[0][0] == merging.letters and sizes[-1] == (len(trained.encode(text)), len(trained) - 1)


def test_each_merge_joins_a_most_frequent_pair_and_takes_away_as_many_tokens():
    merging = Merging(playground.TEXTS[0])
    for step, pair in enumerate(merging.merges):
        pairs = merging.pairs(step)
        assert pairs[pair] == max(pairs.values()) > 1
        assert merging.sizes()[step][0] - merging.sizes()[step + 1][0] == pairs[pair]
    assert merging.pairs(len(merging.merges)).total() == 0  # each word of this text is one token


def test_byte_pair_encoding_is_said_in_words(bpe):
    alt = bpe.frame({"merges": 2}).alt
    assert "79 letters are 61 tokens." in alt and "Merge 2: es + t· → est·, a pair that occurred 9 times." in alt
    assert "“lowest” is cut into: l, o, w, est·." in alt
    assert "nothing is left to merge" in bpe.frame({"merges": 30}).alt


def test_the_goals_of_byte_pair_encoding(bpe):
    assert reached(bpe) == [False, False, False]
    assert reached(bpe, merges=2) == [False, True, False]  # est· in newest and widest
    assert reached(bpe, merges=30) == [True, False, False]
    assert reached(bpe, merges=30, word="newer") == [True, False, True]  # new + er·
    assert reached(bpe, merges=5, word="newest")[2] is False  # new + est·, but in the text


def test_a_letter_that_the_text_lacks_is_a_question_mark_and_a_text_that_teaches_nothing_is_refused(bpe):
    frame = bpe.frame({"word": "<b>zest"})
    assert "does not have" in frame.html and "?" in frame.alt and "<b>zest" not in frame.html
    for text in ("", "x" * 601):
        assert "cannot be drawn" in bpe.frame({"text": text}).alt and reached(bpe, text=text) == [False] * 3
