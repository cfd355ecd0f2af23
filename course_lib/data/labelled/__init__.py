"""Labelled sentences for fine-tuning: tags of words, minimal pairs of agreement, the gender of a noun that hides it.

All come from the English-French grammar of `course_lib.data.translation`, whose unlabelled sentences a model can be
pretrained on. `tasks` says what each task asks, and how its cues are balanced.
"""

from course_lib.data.labelled.agreement import KINDS, LANGUAGES, MinimalPair
from course_lib.data.labelled.tags import PARTS_OF_SPEECH, TaggedSentence, part_of_speech, tag_sentence
from course_lib.data.labelled.tasks import (
    LabelledSentence,
    LabelledSplits,
    acceptability,
    draw,
    gender_splits,
    minimal_pair_splits,
    tagging_splits,
)

__all__ = [
    "KINDS",
    "LANGUAGES",
    "PARTS_OF_SPEECH",
    "LabelledSentence",
    "LabelledSplits",
    "MinimalPair",
    "TaggedSentence",
    "acceptability",
    "draw",
    "gender_splits",
    "minimal_pair_splits",
    "part_of_speech",
    "tag_sentence",
    "tagging_splits",
]
