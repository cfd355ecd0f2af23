"""Lesson 00, Start here: its questions, predictions and exercise, the landscape of the field, the map of the course."""

from course_lib.lessons.lesson_00.landscape import Bias, Era, Event
from course_lib.tasks import attention as checks

QUIZZES = {
    "cells": {
        "question": "You change a function in one cell and then run only the cell below it, which calls the "
        "function. Which function is called?",
        "options": [
            "The new one: it is what stands on the page",
            "The old one: the new one does not exist until its own cell is run",
            "Neither: there is an error",
        ],
        "answer": 1,
        "why": [
            "The page is only text. The kernel knows what was *run*, and it was not told of your change.",
            "Run the changed cell first, then the one below. When the page and the kernel seem to disagree, restart "
            "the kernel and run all cells: that always brings them together.",
            "There would be one if the function had never been run at all. Here the kernel still has the old one.",
        ],
    },
    "parameters": {
        "question": "Which of these belong to a network's *parameters*, not to its architecture or to the way it is "
        "trained?",
        "options": [
            "How many layers it has",
            "The weight of the wire from input 3 to hidden unit 1",
            "The bias of an output unit",
            "The learning rate",
            "Which words a unit gets to see",
        ],
        "answer": [1, 2],
        "why": [
            "That is architecture: no step of gradient descent adds a layer.",
            "A weight is changed in each step of training: a parameter.",
            "A bias is the weight of a wire from a unit that is always on: a parameter like the others.",
            "It steers how the parameters change, and is chosen from outside: a *hyperparameter* of the training.",
            "That is where wires lead: architecture. A measurement further down turns on just this.",
        ],
    },
    "tradeoff": {
        "question": "A colleague reports a model that is one percentage point better than yours. What else must you "
        "know before you switch to it?",
        "options": [
            "What it costs: parameters, operations, memory, time and energy, in training and in use",
            "Nothing: better is better",
            "Only whether its code is shorter",
        ],
        "answer": 0,
        "why": [
            "One wants the best performance at an acceptable cost. What is acceptable depends on who pays, and moves "
            "over time.",
            "The largest model above was the best one, too, and paid most for the smallest gain.",
            "Short code is pleasant to read, but it says little about what the model costs to train and to run.",
        ],
    },
    "bitter-lesson": {
        "question": "What does the *bitter lesson* say?",
        "options": [
            "Knowledge of the domain is useless",
            "Every problem is solved if the network is made large enough",
            "Over the years, general methods that make use of growing computation beat methods with built-in human "
            "knowledge",
            "Transformers are the last architecture that we shall need",
        ],
        "answer": 2,
        "why": [
            "It often helps at once, with little data above all. That is why the lesson is bitter: the help does not "
            "last.",
            "It compares methods over decades. It promises nothing about a single problem, nor about size alone.",
            "Sutton (2019) looks back on chess, Go, speech and vision, where it went this way each time.",
            "It speaks for general methods that learn and search, not for one of them. The next one may be more "
            "general still.",
        ],
    },
    "takeover": {
        "question": "A community moves from its own architecture to the Transformer. What does it gain, and what "
        "does it give up?",
        "options": [
            "It gains knowledge about its data and needs less data",
            "It gains smaller models",
            "It gives up built-in knowledge about its data, and gains a method that does better as data and "
            "computation grow",
        ],
        "answer": 2,
        "why": [
            "The other way round: with fewer assumptions built in, more has to be learned from data.",
            "The models grew. What paid for them was cheaper computation and more data.",
            "And it shares tools, tricks and pretrained models with all the others who use the same architecture.",
        ],
    },
}

PREDICTIONS = {
    "letters": {
        "question": "A network with 35 parameters sees eight numbers: how often each of the letters e, h, i, o, s, "
        "t, u, w occurs in a sentence. It trains for about one second. For how many unseen sentences will it tell "
        "English from French?",
        "options": ["About half: it is guessing", "About three in four", "More than nine in ten"],
    },
    "wires": {
        "question": "Two networks translate word for word. One sees only the word itself, the other also three "
        "neighbours to either side. Each is built in three sizes. What happens to the one that sees only the word, "
        "as it grows?",
        "options": [
            "It catches up: with enough parameters anything can be learned",
            "It stops improving well below the other one",
            "It is better at every size: neighbours only distract",
        ],
    },
}

OUTCOMES = {
    "letters": {
        "text": "Eight numbers are enough, because the two languages do not use these letters equally often. Nobody "
        "told the network which of them belong to which language: that now stands in the strengths of its wires.",
        "answer": 2,
    },
    "wires": {
        "text": "Whether *the* is *le* or *la* depends on the noun, and there is no wire from the noun. A larger "
        "network has more parameters, but what no wire brings in, no parameter can use. Here the architecture sets "
        "the limit, not the training.",
        "answer": 1,
    },
}
"""What `reveal` says when the result is there."""

EXERCISES = {
    "softmax": {
        "title": "Softmax",
        "task": "Turn scores into shares: $\\mathrm{softmax}(x)_i = \\exp x_i \\,/\\, \\sum_j \\exp x_j$, along the "
        "last axis of `x`. The result has the shape of `x`. Do not call PyTorch's own softmax: write it with `exp` "
        "and `sum`.",
        "checks": checks.SOFTMAX,
        "hints": [
            "Two lines: `powers = x.exp()`, then `powers` divided by their sum. Over which axis, and in which shape?",
            "`powers.sum(dim=-1, keepdim=True)` keeps the axis, so that the division fits each row.",
            "The exponential of 1000 is too large for a number of 32 bits. Subtract from each row its largest entry "
            "first, `x.amax(dim=-1, keepdim=True)`: the result is the same, because the factor appears above and "
            "below the line.",
        ],
        "solution": """
            def my_softmax(x):
                largest = x.amax(dim=-1, keepdim=True)
                powers = (x - largest).exp()
                return powers / powers.sum(dim=-1, keepdim=True)
        """,
    },
}

BIASES = (
    Bias(
        name="Hand-made features (SIFT, 1999)",
        built_in=0.82,
        by_people="edges, directions, scales, and what to count of them",
        from_data="the decision at the end",
    ),
    Bias(
        name="CNN (AlexNet, 2012)",
        built_in=0.45,
        by_people="look nearby first, and everywhere in the same way",
        from_data="all features, layer upon layer",
    ),
    Bias(
        name="Transformer (2017, for images 2020)",
        built_in=0.12,
        by_people="the input is a set of pieces",
        from_data="features, and which pieces belong together",
    ),
)
"""Lowe 1999; Krizhevsky et al. 2012; Vaswani et al. 2017, Dosovitskiy et al. 2020. The shares only illustrate."""

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

WAVES = {
    "Deep learning": (
        Event(name="convolution", year=1989),
        Event(name="AlexNet", year=2012, below=True),
        Event(name="vision conquered", year=2014, until=2015),
    ),
    "Deep learning 2.0": (
        Event(name="attention", year=2014),
        Event(name="Transformer", year=2017, below=True),
        Event(name="language: GPT, BERT", year=2018),
        Event(name="vision too", year=2020, until=2021),
    ),
}
"""LeCun et al. 1989; Krizhevsky et al. 2012; the ImageNet challenges of 2014 and 2015; Bahdanau et al. 2014; Vaswani et
al. 2017; Radford et al. 2018, Devlin et al. 2018; Dosovitskiy et al. 2020, Liu et al. 2021.
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
