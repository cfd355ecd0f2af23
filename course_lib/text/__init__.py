"""From text to numbers and back."""

from course_lib.text.vocabulary import Vocabulary, pad_batch

__all__ = ["Vocabulary", "pad_batch"]
