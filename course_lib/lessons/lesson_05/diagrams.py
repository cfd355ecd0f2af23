"""Lesson 05: the translator with one vector and with attention, one step of its decoder, and multi-head attention."""

import numpy as np
from matplotlib.figure import Figure

from course_lib.lessons.lesson_05 import figures
from course_lib.viz.architecture import Box, Link, Mask, architecture


def bottleneck() -> tuple[Figure, str]:
    """One vector for the whole sentence, and attention to every word."""
    english = "the european economic area exists".split()
    french = "la zone économique européenne existe".split()
    ideal = np.eye(5)
    ideal[1:4] = ideal[1:4][::-1]
    return figures.bottleneck(english, french, ideal), (
        "Two networks that translate the european economic area exists into la zone économique européenne existe. "
        "Left: arrows from all English words end in one vector c, and arrows from it lead to all French words. "
        "Right: each French word has its own arrow from the English word that it means. The arrows of european, "
        "economic and area cross."
    )


def seq2seq() -> tuple[Figure, str]:
    """Bahdanau's translator: the encoder, attention, and one step of the decoder."""
    encoder = [
        Box("source words", "input", shape="(B, T)"),
        Box("embedding", "embedding", "(B, T, D)"),
        Box("bidirectional GRU", shape="(B, T, 2D)"),
        Box("states h: keys, values", "input", name="states"),
    ]
    attention = [
        Box("old state s", "input", shape="(B, D)"),
        Box("query  s W", "attention", "(B, 1, 2D)"),
        Box("scores  q hᵀ / √(2D)", "attention", "(B, 1, T)", name="scores"),
        Mask("−∞ at padding", ("######..",), "(B, 1, T)"),
        Box("softmax over words", "attention", "(B, 1, T)"),
        Box("weights · h", "attention", "(B, 2D)", name="average"),
        Box("context vector c", "input", name="context"),
    ]
    decoder = [
        Box("previous word y", "input", shape="(B,)"),
        Box("embedding", "embedding", "(B, D)"),
        Box("x: y joined with c", shape="(B, 3D)", name="join"),
        Box("GRU: old s, x → new s", shape="(B, D)"),
        Box("f: new s joined with x", shape="(B, 4D)"),
        Box("linear, tanh, linear", "head", "(B, V)"),
        Box("logits of the next word", "input"),
    ]
    return architecture(
        {"encoder": encoder, "attention": attention, "one step of the decoder": decoder},
        [Link("states", "scores"), Link("states", "average"), Link("context", "join")],
    )


def multi_head() -> tuple[Figure, str]:
    """Multi-head attention with a mask."""
    heads = [
        Box("x, context for k and v", "input", shape="(B, T, D)"),
        Box("q, k, v projections", shape="(B, T, D)"),
        Box("split each into heads", shape="(B, H, T, d)"),
        Box("scores  q kᵀ / √d", "attention", "(B, H, T, T)"),
        Mask("−∞ where hidden", ("#...", "##..", "###.", "####"), shape="(B, H, T, T)"),
        Box("softmax over keys", "attention", "(B, H, T, T)"),
        Box("weights · v", "attention", "(B, H, T, d)"),
        Box("join heads", shape="(B, T, D)"),
        Box("o projection", shape="(B, T, D)"),
        Box("", "input"),
    ]
    return architecture({"multi-head attention": heads})


DIAGRAMS = {"bottleneck": bottleneck, "seq2seq": seq2seq, "multi_head": multi_head}
