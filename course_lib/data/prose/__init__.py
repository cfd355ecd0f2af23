"""English prose that every learner has: the texts of docstrings, cleaned, frozen in data/prose, in three splits.

    splits = prose_splits()
    splits.train[0]           # a document: its paragraphs, separated by line feeds
    splits.text("train")      # the whole split as one string

`build` holds the recipe; data/prose/README.md names the sources and their licences.
"""

from course_lib.data.prose.corpus import ALPHABET, SPLITS, ProseSplits, prose_splits

__all__ = ["ALPHABET", "SPLITS", "ProseSplits", "prose_splits"]
