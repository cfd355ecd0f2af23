"""The landscape of the field and the map of the course: which architectures, which lessons, and what builds on what."""

import html
from collections.abc import Mapping

from course_lib.classroom.session import LESSONS
from course_lib.data.place import CannotStart, course_folder
from course_lib.lessons.lesson_00.landscape import Era

LANDSCAPE = {
    "translation": (Era(name="seq2seq", since=2014), Era(name="Transformer", since=2017, transformer=True)),
    "language": (Era(name="RNN, LSTM", since=1997), Era(name="GPT and BERT", since=2018, transformer=True)),
    "vision": (
        Era(name="features: SIFT", since=1999),
        Era(name="CNN: AlexNet, later ResNet", since=2012),
        Era(name="Vision Transformer", since=2020, transformer=True),
    ),
    "speech": (
        Era(name="deep belief nets of RBMs", since=2009),
        Era(name="LSTM with CTC", since=2013),
        Era(name="Conformer", since=2020, transformer=True),
    ),
    "reinforcement\nlearning": (
        Era(name="behaviour cloning", since=1989),
        Era(name="GAIL", since=2016),
        Era(name="Decision Transformer", since=2021, transformer=True),
    ),
    "science\n(protein folds)": (
        Era(name="CNN: AlphaFold", since=2018),
        Era(name="AlphaFold 2", since=2021, transformer=True),
    ),
}
"""One well-known system for each community and time, with the year of its first publication.

Sutskever et al. 2014; Vaswani et al. 2017; Hochreiter & Schmidhuber 1997; Radford et al. 2018, Devlin et al. 2018;
Lowe 1999; Krizhevsky et al. 2012, He et al. 2015; Dosovitskiy et al. 2020; Mohamed, Dahl & Hinton 2009; Graves et al.
2013; Gulati et al. 2020; Pomerleau 1989; Ho & Ermon 2016; Chen et al. 2021; Senior et al. 2018 (at CASP13); Jumper et
al. 2021.
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
    "15": ("08", "12"),
}
"""For each lesson those that it needs most; what these need is needed, too."""

PLACES = {
    "00": (0, 2),
    "01": (1, 1),
    "02": (2, 1),
    "03": (1, 3),
    "04": (2, 3),
    "05": (3, 3),
    "06": (4, 3),
    "07": (5, 4),
    "08": (5, 3),
    "09": (6, 4),
    "10": (6, 3),
    "11": (5, 1),
    "12": (6, 1),
    "13": (6, 0),
    "14": (2, 0),
    "15": (7, 2),
}
"""Column and row of each lesson on the map: vision below, language above."""

TEACHES = {
    "00": "what a network is, how a lesson works, the map",
    "01": "CNN and ResNet; reusing what a network has learned",
    "02": "features without labels: SimCLR and probes",
    "03": "networks with a memory, and why they forget",
    "04": "gates that keep the gradient alive",
    "05": "looking back instead of remembering",
    "06": "attention alone: a translator from parts you know",
    "07": "reading both ways; pretraining, then fine-tuning",
    "08": "predicting the next word, and what follows from it",
    "09": "how performance grows with size, data and compute",
    "10": "from predicting words to following wishes",
    "11": "an image as a sentence of patches",
    "12": "attention in windows, for large images",
    "13": "learning to see from a quarter of the image",
    "14": "an answer for each pixel: FCN and U-Net",
    "15": "speech, control, several senses: one architecture",
}


def lessons_here() -> dict[str, str]:
    """The lessons whose notebooks are in this folder: {number: file name}."""
    try:
        found = (course_folder() / "notebooks").glob("[0-9][0-9]_*.ipynb")
    except CannotStart:
        return {}
    return {path.name[:2]: path.name for path in sorted(found)}


def table_of_lessons(here: Mapping[str, str]) -> str:
    """Every lesson with what it is about, as HTML; those in this folder are links."""
    rows = ""
    for number, title in LESSONS.items():
        name = html.escape(f"{number} {title}")
        if number in here:
            name = f'<a href="{here[number]}">{name}</a>'
        texts = (name, html.escape(TEACHES[number]))
        rows += "<tr>" + "".join(f'<td style="text-align:left">{text}</td>' for text in texts) + "</tr>"
    return f"<table>{rows}</table>"
