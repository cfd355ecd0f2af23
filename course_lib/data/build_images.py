"""How data/images was made: the digits and the pictures of scikit-learn and scikit-image, as lossless files.

    python -m course_lib.data.build_images FOLDER

writes them anew from the packages that are installed here. Pictures are scaled down to 512 pixels on the longer side
where they have more, and kept as they are where they have not.
"""

import sys
from pathlib import Path

import numpy as np

from course_lib.data.digits import FILE
from course_lib.data.photographs import PHOTOGRAPHS, Photograph

LONGEST_SIDE = 512  # pixels


def original_digits() -> tuple[np.ndarray, np.ndarray]:
    """Images (1797, 8, 8) with levels 0..16, and labels, in the order of scikit-learn."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.images.astype(np.uint8), digits.target.astype(np.uint8)


def original_picture(facts: Photograph) -> np.ndarray:
    """The levels (H, W) or (H, W, 3) of a picture as its package has it."""
    if facts.package == "scikit-learn":
        from sklearn.datasets import load_sample_image

        return load_sample_image(facts.original)
    import skimage.data

    picture = getattr(skimage.data, facts.original)()
    # some packages' readers turn a grey file into numbers from 0 to 1
    return picture if picture.dtype == np.uint8 else (255 * picture).round().astype(np.uint8)


def scaled(picture: np.ndarray) -> np.ndarray:
    """The picture with at most `LONGEST_SIDE` pixels on its longer side."""
    from PIL import Image

    height, width = picture.shape[:2]
    if max(height, width) <= LONGEST_SIDE:
        return picture
    ratio = LONGEST_SIDE / max(height, width)
    size = (round(width * ratio), round(height * ratio))
    return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.LANCZOS))


def build(folder: Path) -> None:
    """Writes the digits and every picture into the folder."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    images, labels = original_digits()
    np.savez_compressed(folder / FILE, images=images, labels=labels)
    for name, facts in PHOTOGRAPHS.items():
        Image.fromarray(scaled(original_picture(facts))).save(folder / f"{name}.png", optimize=True)


def main() -> None:
    folder = Path(sys.argv[1])
    build(folder)
    total = sum(path.stat().st_size for path in folder.glob("*.[pn][np][gz]"))
    print(f"{len(PHOTOGRAPHS)} pictures and the digits: {total:,} bytes in {folder}")


if __name__ == "__main__":
    main()
