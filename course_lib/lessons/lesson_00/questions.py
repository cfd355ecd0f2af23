"""Lesson 00, Start here: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("How a lesson works", 4, holds=("cells",)),
    Beat("Thirty-five parameters", 5, holds=("letters", "count")),
    Beat("Yours: a softmax, and the network at work", 10, holds=("softmax", "language")),
    Beat("Yours: which letters?", 4, holds=("choose",)),
    Beat("What size cannot buy", 4, holds=("wires", "sentence")),
    Beat("One architecture for all, and the map", 3, holds=("takeovers", "takeover", "map")),
    Beat("Help, progress, reading", 4, holds=("lessons",), optional=True),
)

QUIZZES = {
    "cells": Quiz(
        "You change a function in one cell and then run only the cell below it, which calls the function. Which "
        "function is called?",
        options={
            "The new one: it is what stands on the page": "The page is only text. The kernel knows what was *run*, and "
            "it was not told of your change.",
            "The old one: the new one does not exist until its own cell is run": "Run the changed cell first, then the "
            "one below. When page and kernel seem to disagree, restart the kernel and run all cells.",
            "Neither: there is an error": "There would be one if the function had never been run at all. Here the "
            "kernel still has the old one.",
        },
        answer=1,
    ),
    "count": Number(
        "Another network has 4 inputs, 3 hidden units and 2 outputs. How many parameters?",
        answer=23,
        why="$4 \\cdot 3$ wires and 3 biases, then $3 \\cdot 2$ wires and 2 biases: $12 + 3 + 6 + 2 = 23$.",
        near={
            18: "Those are the wires. Each hidden unit and each output also has a bias, the strength of a wire from a "
            "unit that is always on.",
            9: "Those are the units. Parameters are the wires between them, and the biases.",
        },
    ),
    "takeover": Quiz(
        "A community moves from its own architecture to the Transformer. What does it gain, and what does it give up?",
        options={
            "It gains knowledge about its data and needs less data": "The other way round: with fewer assumptions "
            "built in, more has to be learned from data.",
            "It gains smaller models": "The models grew. What paid for them was cheaper computation and more data.",
            "It gives up built-in knowledge, and gains a method that grows better with data and computation": "And it "
            "shares tools, tricks and pretrained models with all who use the same architecture.",
        },
        answer=2,
    ),
}

BETS = {
    "letters": Bet(
        "A network with 35 parameters sees eight numbers: how often each of the letters e, h, i, o, s, t, u, w occurs "
        "in a sentence. What share of sentences that it has never seen will it tell right, English or French?",
        low=50,
        high=100,
        unit="%",
    ),
    "wires": Bet(
        "Two networks translate word for word. One sees the word alone, the other also three neighbours to either "
        "side. With about 4,000 parameters each, both name 62 % of the French words right. With 115,000 the one that "
        "sees neighbours reaches over 98 %. The other grows to 65,000: what does it reach?",
        low=60,
        high=100,
        unit="%",
    ),
}
