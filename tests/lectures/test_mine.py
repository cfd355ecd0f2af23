"""A lecturer's own file changes the slides, and outlives an upgrade of the course."""

import re

import pytest

from course_lib.data.place import CannotStart
from course_lib.lectures.deck import build_deck, slideshow_of
from course_lib.lectures.mine import read_mine
from tests.lectures.small_lesson import small_lesson

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def arranged(tmp_path):
    """arranged(text): the names of the slides with such a file, the slideshow, and what was told."""

    def arrange(text, path=None, student=False):
        (tmp_path / "my.toml").write_text(text, encoding="utf-8")
        (tmp_path / "logo.png").write_bytes(PNG)
        (tmp_path / "mine.css").write_text("h2 { color: red; }")
        told = []
        mine = read_mine(tmp_path / "my.toml")
        made = slideshow_of(small_lesson(), path=path, mine=mine, student=student, say=told.append)
        return names(made), made, told

    return arrange


def names(slideshow):
    return [cell.metadata.lecture.name for cell in slideshow.cells if cell.metadata.slideshow.slide_type == "slide"]


ALL = names(slideshow_of(small_lesson()))
INSERT = """[[insert]]
after = "Slow and fast"
minutes = 3
text = '''
## Here we do it so

- a point ![the sea](logo.png)
'''
notes = "What to say."
"""


def test_slides_are_hidden_moved_and_inserted(arranged):
    text = (
        'hide = ["Play", "a  WAVE"]\n[[move]]\nslide = "It comes back"\nafter = "Vote: which is slower?"\n'
        '[[move]]\nslide = "Step by step"\nbefore = "How it is drawn"\n' + INSERT
    )
    order, made, told = arranged(text)
    assert order == [
        "99-waves", "slow-and-fast", "here-we-do-it-so", "step-by-step", "how-it-is-drawn", "vote-which-is-slower",
        "it-comes-back",
    ]  # fmt: skip
    assert told == []
    own = made.cells[[cell.metadata.get("lecture", {}).get("name") for cell in made.cells].index("here-we-do-it-so")]
    assert 'alt="the sea" src="data:image/png;base64,' in own.source and own.metadata.lecture.minutes == 3


def test_a_slide_of_another_path_is_known_and_the_place_of_one_is_where_it_would_be(arranged):
    order, _, told = arranged('hide = ["How it is drawn"]\n' + INSERT, path=30)
    assert told == [] and order == ["99-waves", "it-comes-back", "here-we-do-it-so", "a-wave"]


def test_a_slide_that_the_lesson_has_lost_is_told_with_its_nearest_and_the_rest_is_done(arranged):
    order, _, told = arranged('hide = ["Slow and faster", "Play"]')
    assert order == [name for name in ALL if name != "play"]
    assert told == [
        "my.toml hides the slide 'Slow and faster', which this lesson does not have: its nearest is 'Slow and fast'."
    ]


@pytest.mark.needs("lecture_assets")
def test_title_author_date_logo_and_style_are_in_the_deck(arranged):
    text = 'title = "The sea"\nauthor = "A & B"\ndate = "1 May"\nlogo = "logo.png"\ncss = "mine.css"\n'
    _, made, _ = arranged(text)
    deck = build_deck(made)
    assert "<h1>The sea</h1>" in deck and "<title>The sea</title>" in deck and "A &amp; B · 1 May" in deck
    assert deck.count('<img class="logo" alt="" src="data:image/png;base64,') == len(ALL)
    assert "<style>h2 { color: red; }</style>" in deck


def test_a_link_to_a_slide_that_is_hidden_becomes_its_words(arranged):
    insert = INSERT.replace("What to say.", "See [the play](#/play) and [a wave](#/a-wave).")
    _, made, _ = arranged('hide = ["Play"]\n' + insert)
    assert any("See the play and [a wave](#/a-wave)." in cell.source for cell in made.cells)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hide = [", "my.toml is not TOML"),
        ("hidden = []", "has the key 'hidden'; there are title, author"),
        ("title = 3", "title in it is a text, not 3"),
        ("hide = [3]", "hide is a list of headings"),
        ('[[move]]\nslide = "Play"', "number 1 needs one of after and before"),
        ('[[move]]\nafter = "Play"', "needs slide"),
        ('[[move]]\nslide = "Play"\nafter = "Play"', "to itself"),
        ('[[insert]]\nafter = "Play"\ntext = "no heading"', "begins with a heading"),
        ('[[insert]]\nafter = "Play"\ntext = "## Play"', "which exists"),
        ('[[insert]]\nafter = "Play"\ntext = "## A\\n![b](http://c/d.png)"', "fetches nothing"),
        ('logo = "none.png"', "names the file none.png, which cannot be read"),
        ('logo = "mine.css"', "as a picture"),
        (f"hide = {ALL}", "hides every slide"),
    ],
)
def test_a_slip_gets_a_sentence(arranged, text, sentence):
    with pytest.raises(CannotStart, match=re.escape(sentence)):
        arranged(text)


@pytest.mark.needs("lecture_assets")
def test_a_deck_for_students_has_neither_notes_nor_answers_in_its_file():
    lecturer, student = (build_deck(slideshow_of(small_lesson(), student=student)) for student in (False, True))
    for secret in ("A: a longer period", "Where is $T$?"):
        assert secret in lecturer and secret not in student
    assert "Which is slower?" in student and "data-student" in student.partition("<head>")[0]
