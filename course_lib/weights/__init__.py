"""Checkpoints: folders in the official layouts, and our own single files (`course_lib.weights.own`)."""

from course_lib.weights.files import from_pretrained, save_pretrained

__all__ = ["from_pretrained", "save_pretrained"]
