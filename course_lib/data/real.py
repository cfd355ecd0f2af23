"""The real data sets as tensors and texts; the first call fetches what is not here yet (`course_lib.data.fetching`).

Each function raises CannotStart if its set is not here and cannot be fetched, and ValueError for a split that does not
exist and for files that are not what they should be.
"""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from course_lib.data.digits import LabelledImages
from course_lib.data.fetching import fetch

DIGITS = tuple("0123456789")
CLOTHES = (
    *("T-shirt or top", "trousers", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)
THINGS = ("aeroplane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "lorry")
IDX_BYTES = 0x08  # the third byte of an IDX file whose numbers are bytes
CIFAR_ROW = 1 + 3 * 32 * 32  # bytes: a label, then red, green and blue, each row by row
TEST_2016 = "test_2016_flickr"
CAPTIONS = {"train": ("train", 29_000), "validation": ("val", 1_014), "test": (TEST_2016, 1_000)}
SLICES = (30, 512, 512)


class ImageSet(NamedTuple):
    """Labelled images as they are stored; `classes[label]` is the word for a label."""

    pixels: UInt8[Tensor, "N C H W"]  # 0 to 255
    labels: Int[Tensor, " N"]
    classes: tuple[str, ...]

    def take(self, rows: Int[Tensor, " B"] | slice) -> LabelledImages:
        """Some of them as a model is given them, with pixels from 0 to 1."""
        return LabelledImages(self.pixels[rows].float() / 255, self.labels[rows])

    def part(self, rows: slice) -> "ImageSet":
        """Some of them as they are stored."""
        return ImageSet(self.pixels[rows], self.labels[rows], self.classes)


class Membranes(NamedTuple):
    """Slices of a nerve cord, pixels of 4 x 4 nm, and where the membranes of its cells are."""

    pixels: Float[Tensor, "N 1 H W"]  # 0 to 1
    membranes: Bool[Tensor, "N H W"]  # True: membrane


def mnist(split: str) -> ImageSet:
    """60,000 digits to train by ("train") and 10,000 of other writers ("test"), (N, 1, 28, 28), ink 255 on paper 0.

    LeCun, Bottou, Bengio & Haffner, "Gradient-based learning applied to document recognition", 1998.
    """
    return idx_images("mnist", split, DIGITS)


def fashion_mnist(split: str) -> ImageSet:
    """60,000 clothes ("train") and 10,000 ("test"), (N, 1, 28, 28), on black.

    Xiao, Rasul & Vollgraf, "Fashion-MNIST", arXiv 1708.07747.
    """
    return idx_images("fashion_mnist", split, CLOTHES)


def cifar10(split: str) -> ImageSet:
    """50,000 photographs ("train") and 10,000 ("test"), (N, 3, 32, 32), red, green, blue.

    Krizhevsky, "Learning multiple layers of features from tiny images", 2009.
    """
    check(split, "train", "test")
    wanted = ["test_batch.bin"] if split == "test" else [f"data_batch_{number}.bin" for number in range(1, 6)]
    path = fetch("cifar10")["cifar-10-binary.tar.gz"]
    with tarfile.open(path) as archive:
        rows = b"".join(archive.extractfile(f"cifar-10-batches-bin/{name}").read() for name in wanted)
    table = torch.frombuffer(bytearray(rows), dtype=torch.uint8).view(-1, CIFAR_ROW)
    return labelled(table[:, 1:].reshape(-1, 3, 32, 32), table[:, 0], THINGS, path)


def mnist_part() -> ImageSet:
    """The first 19,690 images of `mnist("train")`."""
    return npz_images("mnist_part", DIGITS)


def fashion_mnist_part() -> ImageSet:
    """The first 3,615 images of `fashion_mnist("train")`."""
    return npz_images("fashion_mnist_part", CLOTHES)


def tiny_shakespeare() -> str:
    """1,115,394 characters of plays, 65 different ones. Karpathy, "The unreasonable effectiveness of RNNs", 2015."""
    return fetch("tiny_shakespeare")["tiny_shakespeare.txt"].read_text(encoding="utf-8")


def multi30k(split: str, languages: tuple[str, ...] = ("en", "fr")) -> list[tuple[str, ...]]:
    """Captions of photographs, each in all `languages` ("en", "de", "fr"), as people write: one tuple for a photograph.

    29,000 to train by, 1,014 for "validation", and 1,000, test_2016_flickr, for "test". Elliott, Frank, Sima'an &
    Specia, "Multi30K", arXiv 1605.00459; Elliott et al. 2017 for the French, arXiv 1710.07177.
    """
    check(split, *CAPTIONS)
    for language in languages:
        check(language, "en", "de", "fr", what="language")
    (name, count), files = CAPTIONS[split], fetch("multi30k")
    columns = []
    for language in languages:
        path = files[f"{name}.{language}.gz"]
        lines = gzip.decompress(path.read_bytes()).decode("utf-8").removesuffix("\n").split("\n")
        if len(lines) != count:
            raise ValueError(f"{path} must hold {count:,} sentences, found {len(lines):,}.")
        columns.append([line.strip() for line in lines])
    return list(zip(*columns, strict=True))


def isbi2012() -> Membranes:
    """The 30 slices whose membranes are known: pixels (30, 1, 512, 512) and membranes (30, 512, 512).

    Cardona et al. 2010, PLoS Biology 8(10), e1000502; Arganda-Carreras et al. 2015, Frontiers in Neuroanatomy 9, 142.
    """
    path = fetch("isbi2012")["ISBI-2012-challenge.zip"]
    pixels, labels = (tiff_in_zip(path, name) for name in ("train-volume.tif", "train-labels.tif"))
    return Membranes(pixels[:, None].float() / 255, labels == 0)  # the files have white cells and black membranes


def idx_images(name: str, split: str, classes: tuple[str, ...]) -> ImageSet:
    """A set in MNIST's layout, http://yann.lecun.com/exdb/mnist/."""
    check(split, "train", "test")
    files, prefix = fetch(name), {"train": "train", "test": "t10k"}[split]
    images, labels = (files[f"{prefix}-{kind}-ubyte.gz"] for kind in ("images-idx3", "labels-idx1"))
    return labelled(read_idx(images)[:, None], read_idx(labels), classes, images)


def read_idx(path: Path) -> UInt8[Tensor, "*shape"]:
    """A gzipped IDX file of bytes: two zeros, the type, the number of axes, their big-endian 32-bit sizes."""
    content = gzip.decompress(path.read_bytes())
    sizes = np.frombuffer(content, dtype=">u4", offset=4, count=content[3]).tolist()
    start = 4 + 4 * len(sizes)
    if content[:3] != bytes([0, 0, IDX_BYTES]) or len(content) - start != np.prod(sizes):
        raise ValueError(f"{path} is no IDX file of bytes with the sizes {sizes}.")
    return torch.frombuffer(bytearray(content[start:]), dtype=torch.uint8).view(*sizes)


def npz_images(name: str, classes: tuple[str, ...]) -> ImageSet:
    """A set of one file with the arrays `images` (N, H, W) and `labels` (N)."""
    (path,) = fetch(name).values()
    with np.load(path, allow_pickle=False) as stored:
        images, labels = torch.from_numpy(stored["images"]), torch.from_numpy(stored["labels"])
    return labelled(images[:, None], labels, classes, path)


def tiff_in_zip(path: Path, name: str) -> UInt8[Tensor, "N H W"]:
    """All pages of a grey TIFF that lies anywhere in a zip file."""
    from PIL import Image, ImageSequence

    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is no zip file: delete it, and fetch it again.")
    with zipfile.ZipFile(path) as archive:
        found = [entry for entry in archive.namelist() if Path(entry).name == name and "__MACOSX" not in entry]
        if len(found) != 1:
            raise ValueError(f"{path} must hold {name} once, found {found}.")
        with Image.open(io.BytesIO(archive.read(found[0]))) as opened:
            pages = np.stack([np.array(page.convert("L")) for page in ImageSequence.Iterator(opened)])
    if pages.shape != SLICES:
        raise ValueError(f"{name} in {path} must be {SLICES}, is {pages.shape}.")
    return torch.from_numpy(pages)


def labelled(pixels: Tensor, labels: Tensor, classes: tuple[str, ...], path: Path) -> ImageSet:
    """Raises ValueError unless there is a label of these classes for each image."""
    if len(pixels) != len(labels) or not len(labels) or int(labels.max()) >= len(classes):
        raise ValueError(f"{path} must hold a label from 0 to {len(classes) - 1} for each of its {len(pixels)} images.")
    return ImageSet(pixels, labels.long(), classes)


def check(given: str, *known: str, what: str = "split") -> None:
    """Raises ValueError unless the word is one of these."""
    if given not in known:
        raise ValueError(f"the {what} must be one of {', '.join(known)}, got {given!r}.")
