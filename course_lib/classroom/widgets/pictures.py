"""A few pictures to choose one from."""

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets
from jaxtyping import UInt8
from PIL import Image

from course_lib.classroom.widgets.controls import Control

THUMBNAIL = 144  # pixels: twice what it measures on the page


@dataclass(frozen=True, kw_only=True)
class Pictures(Control):
    """Thumbnails to click; its value is the name of one of `pictures`, which says what it shows."""

    pictures: Mapping[str, UInt8[np.ndarray, "H W *C"]]

    @property
    def start(self) -> str:
        return next(iter(self.pictures))

    def check(self, value: Any) -> str:
        if value not in self.pictures:
            raise ValueError(f"{self.label} must be one of {', '.join(map(repr, self.pictures))}, but got {value!r}.")
        return value

    def words(self, value: str) -> str:
        return value

    def build(self, changed):
        names = list(self.pictures)
        sources = [[name, _thumbnail(picture)] for name, picture in self.pictures.items()]
        chooser = PicturesWidget(label=self.label, pictures=sources)
        chooser.observe(lambda change: changed(names[change["new"]]), "chosen")
        return chooser, lambda value: setattr(chooser, "chosen", names.index(value))


class PicturesWidget(anywidget.AnyWidget):
    """The thumbnails on the page, each with its words."""

    _esm = Path(__file__).with_name("pictures.js")
    _css = Path(__file__).with_name("pictures.css")
    label = traitlets.Unicode().tag(sync=True)
    pictures = traitlets.List().tag(sync=True)
    chosen = traitlets.Int(0).tag(sync=True)


def _thumbnail(picture: np.ndarray) -> str:
    image = Image.fromarray(picture)
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    image.save(buffer, "png")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
