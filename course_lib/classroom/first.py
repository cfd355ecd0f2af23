"""Torch, imported before the rest of the classroom, and left alone by the garbage collector from then on.

What torch has made stays. Were it looked through again and again while the rest is imported, a kernel's start would
take a fifth longer.
"""

import gc

import torch  # noqa: F401

gc.freeze()
