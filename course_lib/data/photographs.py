"""Photographs and textures that come with the course, for looking at, cutting up and drawing on.

They are the pictures of the scikit-image and scikit-learn packages whose licence is stated, frozen in data/images by
`course_lib.data.build_images`; data/images/README.md names the author and the licence of each.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from course_lib.data.files import data_path

FOLDER = "images"
CC0, CC_BY_2 = "CC0 1.0", "CC BY 2.0"
PUBLIC_DOMAIN, NO_RESTRICTIONS = "public domain", "no known copyright restrictions"


@dataclass(frozen=True, kw_only=True)
class Photograph:
    """What is known of a picture; `package` and `original` say where the course took it from."""

    title: str
    credit: str
    licence: str
    source: str  # an address, or the words of the package
    grey: bool = False  # it has no colours
    package: str = "scikit-image"
    original: str  # the package's name for it


PHOTOGRAPHS = {
    "astronaut": Photograph(
        title="The astronaut Eileen Collins",
        credit="NASA",
        licence=PUBLIC_DOMAIN,
        source="https://flic.kr/p/r9qvLn",
        original="astronaut",
    ),
    "brick": Photograph(
        title="A brick wall",
        credit="CC0Textures (Bricks25)",
        licence=CC0,
        source="https://cc0textures.com/view.php?tex=Bricks25",
        original="brick",
        grey=True,
    ),
    "camera": Photograph(
        title="A photographer with a camera",
        credit="Lav Varshney",
        licence=CC0,
        source="https://github.com/scikit-image/scikit-image/issues/3927",
        original="camera",
        grey=True,
    ),
    "cell": Photograph(
        title="A cell floating in saline, phase image",
        credit="Paul Müller, Mirjam Schürmann, Salvatore Girardo, Gheorghe Cojoc and Jochen Guck",
        licence=CC0,
        source="https://doi.org/10.1364/OE.26.010729",
        original="cell",
        grey=True,
    ),
    "chelsea": Photograph(
        title="Chelsea the cat",
        credit="Stefan van der Walt",
        licence=CC0,
        source="the photographer's gift to scikit-image",
        original="chelsea",
    ),
    "china": Photograph(
        title="A Chinese temple",
        credit="danielbuechele",
        licence=CC_BY_2,
        source="https://www.flickr.com/photos/danielbuechele/6061409035/",
        package="scikit-learn",
        original="china.jpg",
    ),
    "clock": Photograph(
        title="A wall clock, blurred by motion",
        credit="Stefan van der Walt",
        licence=PUBLIC_DOMAIN,
        source="the photographer's gift to scikit-image",
        original="clock",
        grey=True,
    ),
    "coffee": Photograph(
        title="A cup of coffee",
        credit="Rachel Michetti, courtesy of Pikolo Espresso Bar",
        licence=CC0,
        source="the photographer's gift to scikit-image",
        original="coffee",
    ),
    "coins": Photograph(
        title="Greek coins from Pompeii",
        credit="Brooklyn Museum Collection",
        licence=NO_RESTRICTIONS,
        source="https://www.brooklynmuseum.org/opencollection/archives/image/51611",
        original="coins",
        grey=True,
    ),
    "flower": Photograph(
        title="A dahlia",
        credit="vultilion",
        licence=CC_BY_2,
        source="https://www.flickr.com/photos/vultilion/6056698931/",
        package="scikit-learn",
        original="flower.jpg",
    ),
    "grass": Photograph(
        title="Grass",
        credit="linolafett",
        licence=CC0,
        source="https://www.deviantart.com/linolafett/art/Grass-01-434853879",
        original="grass",
        grey=True,
    ),
    "gravel": Photograph(
        title="Gravel",
        credit="CC0Textures (Gravel04)",
        licence=CC0,
        source="https://cc0textures.com/view.php?tex=Gravel04",
        original="gravel",
        grey=True,
    ),
    "hubble": Photograph(
        title="Hubble eXtreme Deep Field",
        credit="NASA",
        licence=PUBLIC_DOMAIN,
        source="http://hubblesite.org/newscenter/archive/releases/2012/37/image/a/",
        original="hubble_deep_field",
    ),
    "retina": Photograph(
        title="A human retina",
        credit="Mikael Häggström",
        licence=CC0,
        source="https://commons.wikimedia.org/wiki/File:Fundus_photograph_of_normal_left_eye.jpg",
        original="retina",
    ),
    "rocket": Photograph(
        title="A Falcon 9 rocket lifts off with DSCOVR",
        credit="SpaceX",
        licence=PUBLIC_DOMAIN,
        source="https://www.flickr.com/photos/spacexphotos/16511594820/",
        original="rocket",
    ),
    "text": Photograph(
        title="Handwriting, to find corners in",
        credit="Wikipedia",
        licence=PUBLIC_DOMAIN,
        source="https://en.wikipedia.org/wiki/File:Corner.png",
        original="text",
        grey=True,
    ),
    "tissue": Photograph(
        title="Colonic glands, immunohistochemical staining",
        credit="Center for Microscopy And Molecular Imaging (CMMI)",
        licence=NO_RESTRICTIONS,
        source="the centre's gift to scikit-image",
        original="immunohistochemistry",
    ),
}


def photograph(name: str, *, grey: bool = False, size: int | None = None) -> Float[Tensor, "C H W"]:
    """A picture as numbers from 0 to 1: three channels, or one if `grey`; the longer side has at most 512 pixels.

    With `size` the largest square in its middle, scaled to size x size pixels. The grey level is .299 R + .587 G +
    .114 B; a picture without colours has three equal channels. The same on every machine, bit for bit.
    Raises ValueError for a name that is not in `PHOTOGRAPHS` or a size below 1.
    """
    if name not in PHOTOGRAPHS:
        raise ValueError(f"there is no photograph {name!r}; there are: {', '.join(PHOTOGRAPHS)}.")
    if size is not None and size < 1:
        raise ValueError(f"size must be 1 pixel or more, or None for all there is, got {size}.")
    levels = torch.tensor(_levels(name, grey, size))
    return rearrange(levels, "h w c -> c h w").contiguous() / 255


@lru_cache(maxsize=64)
def _levels(name: str, grey: bool, size: int | None) -> np.ndarray:
    """Levels from 0 to 255, (H, W, C)."""
    from PIL import Image  # here: the rest of the course works without

    with Image.open(data_path(FOLDER, f"{name}.png")) as file:
        picture = file.convert("L" if grey else "RGB")
    if size is not None:
        side = min(picture.size)
        left, top = (picture.width - side) // 2, (picture.height - side) // 2
        box = (left, top, left + side, top + side)
        picture = picture.resize((size, size), Image.Resampling.LANCZOS, box=box)  # whole numbers: no rounding differs
    return np.asarray(picture).reshape(picture.height, picture.width, -1)
