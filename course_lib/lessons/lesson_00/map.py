"""The landscape of the field, the lessons with what builds on what and their minutes, and the glossary."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

from course_lib.classroom.session import LESSONS
from course_lib.classroom.texts import read_questions
from course_lib.data.place import CannotStart, course_folder
from course_lib.lessons.lesson_00.landscape import Era

LANDSCAPE = {
    "translation": (
        Era(name="phrase-based statistics", since=2003),
        Era(name="seq2seq", since=2014),
        Era(name="Transformer", since=2017, transformer=True),
    ),
    "language": (
        Era(name="n-grams", since=1980),
        Era(name="RNN, LSTM", since=2010),
        Era(name="GPT and BERT", since=2018, transformer=True),
    ),
    "vision": (
        Era(name="features: SIFT", since=1999),
        Era(name="CNN: AlexNet, later\u00a0ResNet", since=2012),
        Era(name="Vision Transformer", since=2020, transformer=True),
    ),
    "speech": (
        Era(name="hidden Markov models", since=1975),
        Era(name="deep belief nets", since=2009),
        Era(name="LSTM with CTC", since=2013),
        Era(name="Conformer, Whisper", since=2020, transformer=True),
    ),
    "imitation": (
        Era(name="behaviour cloning", since=1989),
        Era(name="GAIL", since=2016),
        Era(name="Decision Transformer", since=2021, transformer=True),
    ),
    "protein\nfolding": (
        Era(name="fragments: Rosetta", since=1997),
        Era(name="AlphaFold", since=2018),
        Era(name="AlphaFold\u00a02", since=2021, transformer=True),
    ),
    "reinforcement\nlearning": (
        Era(name="TD learning", since=1988),
        Era(name="DQN", since=2013),
        Era(name="PPO, SAC", since=2017),
    ),
}
"""One well-known system for each community and time, with the year of its first publication.

Koehn, Och & Marcu 2003; Sutskever et al. 2014; Vaswani et al. 2017; Jelinek & Mercer 1980; Mikolov et al. 2010;
Radford et al. 2018, Devlin et al. 2018; Lowe 1999; Krizhevsky et al. 2012, He et al. 2015; Dosovitskiy et al. 2020;
Baker 1975 (the tutorial is Rabiner 1989); Mohamed, Dahl & Hinton 2009; Graves et al. 2013; Gulati et al. 2020, Radford
et al. 2022; Pomerleau 1989; Ho & Ermon 2016; Chen et al. 2021, and RT-1, Brohan et al. 2022; Simons et al. 1997;
Senior et al. 2018 (at CASP13); Jumper et al. 2021; Sutton 1988; Mnih et al. 2013, 2015; Schulman et al. 2017, Haarnoja
et al. 2018. In reinforcement learning from rewards Transformers did not take the lead.
"""

BUILDS_ON = {
    "01": ("00",),
    "02": ("01",),
    "03": ("00",),
    "04": ("03",),
    "05": ("04",),
    "06": ("05",),
    "07": ("06",),
    "08": ("06",),
    "09": ("08",),
    "10": ("08",),
    "11": ("06", "02"),
    "12": ("11",),
    "13": ("11",),
    "14": ("01",),
    "15": ("06",),
    "16": ("08", "11"),
    "17": ("09",),
}
"""For each lesson those that it needs most; what these need is needed, too."""

PLACES = {
    "00": (0, 2.5),
    "01": (0, 1),
    "02": (1, 1),
    "03": (0, 4),
    "04": (1, 4),
    "05": (2, 4),
    "06": (2, 3),
    "07": (3, 4),
    "08": (3, 3),
    "09": (4, 3),
    "10": (4, 2),
    "11": (3, 1),
    "12": (3, 0),
    "13": (4, 0),
    "14": (1, 0),
    "15": (3, 2),
    "16": (4, 1),
    "17": (4, 4),
}
"""Column and row of each lesson on the map: vision below, language above."""

TEACHES = {
    "00": "what a network is, how it is trained, how the course works",
    "01": "CNN and ResNet; reusing what a network has learned",
    "02": "features without labels: SimCLR and probes",
    "03": "networks with a memory, and why they forget",
    "04": "gates that keep the gradient alive",
    "05": "attention instead of one vector for a whole sentence",
    "06": "attention alone: a translator from parts you know",
    "07": "reading both ways; pre-training, then fine-tuning",
    "08": "predicting the next token, and what follows from it",
    "09": "how the loss falls with size, data and compute",
    "10": "from predicting text to following instructions",
    "11": "an image as a sentence of patches",
    "12": "attention in windows, for large images",
    "13": "learning features from a quarter of the image",
    "14": "an answer for each pixel: FCN and U-Net",
    "15": "every task as text; speech without an alignment",
    "16": "agents that imitate; images and words in one model",
    "17": "cheaper attention, experts, history; your project",
}


def lessons_here() -> dict[str, str]:
    """The lessons whose notebooks are in this folder: {number: file name}."""
    try:
        found = (course_folder() / "notebooks").glob("[0-9][0-9]_*.ipynb")
    except CannotStart:
        return {}
    return {path.name[:2]: path.name for path in sorted(found)}


def lesson_minutes() -> dict[str, tuple[float, float]]:
    """For each lesson the minutes that its page promises, and those of what is optional."""
    found = {}
    for path in sorted(Path(__file__).parents[1].glob("lesson_[0-9][0-9]/questions.md")):
        sections = read_questions(path).sections
        optional = sum(section.minutes for section in sections if section.optional)
        found[path.parent.name[-2:]] = sum(section.minutes for section in sections) - optional, optional
    return found


def table_of_lessons(here: Mapping[str, str], minutes: Mapping[str, tuple[float, float]]) -> str:
    """Every lesson with what it is about and its minutes, as HTML; those in this folder are links."""
    rows = []
    for number in LESSONS:
        main, optional = minutes.get(number, (0, 0))
        time = f"{main:g}" + (f" + {optional:g}" if optional else "")
        rows.append((link_to(number, here, f"{number} {LESSONS[number]}"), html.escape(TEACHES[number]), time))
    return html_table(("lesson", "about", "minutes + optional"), rows)


def read_glossary() -> list[tuple[str, str, str]]:
    """Term, meaning and lesson of each row of glossary.md, in alphabetical order."""
    lines = Path(__file__).with_name("glossary.md").read_text(encoding="utf-8").splitlines()
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("|")][2:]
    return sorted(rows, key=lambda row: row[0].lower())


def table_of_terms(here: Mapping[str, str], terms: Sequence[tuple[str, str, str]]) -> str:
    """The glossary as HTML; a term's lesson is a link where its notebook is in this folder."""
    rows = [
        (
            f"<strong>{html.escape(term)}</strong>",
            html.escape(meaning),
            link_to(lesson, here, f"{lesson} {LESSONS[lesson]}"),
        )
        for term, meaning, lesson in terms
    ]
    return html_table(("term", "meaning", "lesson"), rows)


def link_to(number: str, here: Mapping[str, str], words: str) -> str:
    """A lesson's name as a link that works in JupyterLab and, with another ending, on the site."""
    words = html.escape(words)
    return f'<a href="{here[number]}">{words}</a>' if number in here else words


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of HTML cells under these columns."""
    left = 'style="text-align:left"'
    head = "".join(f'<th scope="col" {left}>{column}</th>' for column in columns)
    body = "".join("<tr>" + "".join(f"<td {left}>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
