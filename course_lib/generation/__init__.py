"""Decoding with a language model: greedy, sampled, by beam search, token by token."""

from course_lib.generation.beam import Beams, beam_search
from course_lib.generation.columns import store_by_columns
from course_lib.generation.protocol import Cache, LanguageModel
from course_lib.generation.stepwise import argmax, greedy, log_probs, random_choice, sample, stream

__all__ = [
    "Beams",
    "Cache",
    "LanguageModel",
    "beam_search",
    "random_choice",
    "greedy",
    "argmax",
    "log_probs",
    "sample",
    "store_by_columns",
    "stream",
]
