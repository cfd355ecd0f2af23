"""Lesson 17: the architectures of the course as changes of one another, and the years of the field's landmarks."""

from pathlib import Path
from typing import NamedTuple

from course_lib.viz.timeline import Landmark


class Architecture(NamedTuple):
    """An architecture, what it changed in another one, and where the drawing has it."""

    name: str
    parent: str  # "": begins a family
    change: str  # two short lines at most
    paper: str
    lesson: str
    kind: str  # of COLOURS in `diagrams`
    column: int
    row: int


def read_family() -> tuple[Architecture, ...]:
    """The rows of family.md."""
    lines = Path(__file__).with_name("family.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][1:]
    return tuple(
        Architecture(name, parent, change.replace(" / ", "\n"), *others, int(column), int(row))
        for name, parent, change, *others, column, row in rows
    )


FAMILY = read_family()

LANDMARKS = {  # of each field, in the order of their years; the year is that of the first paper or preprint
    "speech": (
        Landmark("hidden Markov models", 1975),
        Landmark("CTC", 2006),
        Landmark("deep belief networks", 2009),
        Landmark("deep RNN with CTC", 2013),
        Landmark("Conformer", 2020, transformer=True),
        Landmark("Whisper", 2022, transformer=True),
    ),
    "language": (
        Landmark("LSTM", 1997),
        Landmark("word2vec", 2013),
        Landmark("GPT, BERT", 2018, transformer=True),
        Landmark("T5", 2019, transformer=True),
        Landmark("Mamba", 2023),
    ),
    "translation": (
        Landmark("phrase-based statistics", 2003),
        Landmark("seq2seq, attention", 2014),
        Landmark("Transformer", 2017, transformer=True),
    ),
    "images": (
        Landmark("AlexNet", 2012),
        Landmark("FCN, U-Net, ResNet", 2015),
        Landmark("ViT", 2020, transformer=True),
        Landmark("Swin", 2021, transformer=True),
    ),
    "control": (
        Landmark("DQN", 2013),
        Landmark("GAIL", 2016),
        Landmark("PPO", 2017),
        Landmark("Decision Transformer", 2021, transformer=True),
    ),
    "image and text": (
        Landmark("CNN with LSTM", 2014),
        Landmark("ViLBERT", 2019, transformer=True),
        Landmark("CLIP", 2021, transformer=True),
        Landmark("Flamingo", 2022, transformer=True),
    ),
    "without labels": (
        Landmark("RBM", 1986),
        Landmark("DBN", 2006),
        Landmark("VAE", 2013),
        Landmark("GAN", 2014),
        Landmark("DDPM", 2020),
        Landmark("MAE", 2021, transformer=True),
    ),
    "efficiency": (
        Landmark("mixtures of experts", 1991),
        Landmark("sparse experts", 2017),
        Landmark("linear attention", 2020, transformer=True),
        Landmark("FlashAttention", 2022, transformer=True),
    ),
}
