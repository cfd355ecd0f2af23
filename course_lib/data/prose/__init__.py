"""English text that every learner has, frozen in data/prose, in three splits: a dictionary, and docstrings' prose.

    splits = dictionary_splits()
    splits.train[0]           # an entry; of `prose_splits()` a document, its paragraphs separated by line feeds
    splits.text("train")      # the whole split as one string

`build_dictionary` and `build` hold the recipes; the README.md beside each file names the sources and their licences.
"""

from course_lib.data.prose.corpus import ALPHABET, SPLITS, ProseSplits, dictionary_splits, prose_splits

__all__ = ["ALPHABET", "SPLITS", "ProseSplits", "dictionary_splits", "prose_splits"]
