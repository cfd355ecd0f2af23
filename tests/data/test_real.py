"""The readers, on tiny files in the sets' own layouts, and on real ones where a mirror holds them."""

import gzip
import io
import os
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from course_lib.data import real
from course_lib.data.fetching import addresses, fetch_file
from course_lib.data.sets import SETS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Every file in it counts as fetched."""
    monkeypatch.setattr(real, "fetch", lambda name: {path.name: path for path in tmp_path.iterdir()})
    return tmp_path


def idx(array):
    return gzip.compress(bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes())


@pytest.mark.parametrize("read", [real.mnist, real.fashion_mnist])
@pytest.mark.parametrize(("split", "prefix"), [("train", "train"), ("test", "t10k")])
def test_images_and_labels_of_an_idx_file_come_as_they_were(folder, read, split, prefix):
    images, labels = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5), np.array([7, 0, 9], dtype=np.uint8)
    (folder / f"{prefix}-images-idx3-ubyte.gz").write_bytes(idx(images))
    (folder / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(idx(labels))
    found = read(split)
    assert found.pixels.shape == (3, 1, 4, 5) and found.pixels[1, 0, 0].tolist() == [20, 21, 22, 23, 24]
    assert found.labels.tolist() == [7, 0, 9] and len(found.classes) == 10
    taken = found.take(torch.tensor([2, 0]))
    assert taken.labels.tolist() == [9, 7] and torch.equal(taken.pixels[1, 0, 0], torch.arange(5) / 255)
    with pytest.raises(ValueError, match="split must be one of train, test, got 'validation'"):
        read("validation")


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"!", lambda b: b[:2] + b"\x0d" + b[3:]])
def test_an_idx_file_of_another_size_or_type_is_refused(tmp_path, change):
    good = gzip.decompress(idx(np.zeros((2, 3), dtype=np.uint8)))
    (tmp_path / "file.gz").write_bytes(gzip.compress(change(good)))
    with pytest.raises(ValueError, match=r"file\.gz is no IDX file of bytes with the sizes \[2, 3\]"):
        real.read_idx(tmp_path / "file.gz")


@pytest.mark.parametrize("labels", [[1, 2], [1, 2, 10]])
def test_images_need_a_label_each_of_the_known_classes(folder, labels):
    (folder / "train-images-idx3-ubyte.gz").write_bytes(idx(np.zeros((3, 4, 4), dtype=np.uint8)))
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(idx(np.array(labels, dtype=np.uint8)))
    with pytest.raises(ValueError, match="must hold a label from 0 to 9 for each of its 3 images"):
        real.mnist("train")


def test_photographs_of_cifar_have_their_colours_and_order(folder):
    rows = np.random.default_rng(0).integers(256, size=(12, 3073), dtype=np.uint8)
    rows[:, 0] = np.arange(12) % 10
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz") as archive:
        names = [f"data_batch_{number}.bin" for number in (2, 1, 3, 4, 5)] + ["test_batch.bin"]
        for name, part in zip(names, np.split(rows[[2, 3, 0, 1, *range(4, 12)]], 6), strict=True):
            entry = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            entry.size = part.nbytes
            archive.addfile(entry, io.BytesIO(part.tobytes()))
    train, test = real.cifar10("train"), real.cifar10("test")
    assert train.labels.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] and test.labels.tolist() == [0, 1]
    assert test.pixels.shape == (2, 3, 32, 32) and test.pixels[1, 2, 31, 30] == rows[11, 1 + 2 * 1024 + 31 * 32 + 30]
    assert test.classes[1] == "car"


def test_captions_stay_side_by_side(folder, monkeypatch):
    monkeypatch.setitem(real.CAPTIONS, "test", (real.TEST_2016, 2))
    for language, text in {"en": "A dog.\nTwo\u2028cats.\n", "fr": "Un chien.\nDeux chats. \n"}.items():
        (folder / f"test_2016_flickr.{language}.gz").write_bytes(gzip.compress(text.encode()))
    assert real.multi30k("test") == [("A dog.", "Un chien."), ("Two\u2028cats.", "Deux chats.")]
    assert real.multi30k("test", ("fr",)) == [("Un chien.",), ("Deux chats.",)]
    (folder / "test_2016_flickr.en.gz").write_bytes(gzip.compress(b"A dog.\n"))
    with pytest.raises(ValueError, match="must hold 2 sentences, found 1"):
        real.multi30k("test")
    with pytest.raises(ValueError, match="language must be one of en, de, fr, got 'it'"):
        real.multi30k("test", ("en", "it"))


def write_slices(folder, shape):
    pages = np.zeros(shape, dtype=np.uint8)
    pages[1, 2, 3] = 255
    first, *others = [Image.fromarray(page) for page in pages]
    with zipfile.ZipFile(folder / "ISBI-2012-challenge.zip", "w") as archive:
        for name in ("train-volume.tif", "train-labels.tif"):
            content = io.BytesIO()
            first.save(content, format="TIFF", save_all=True, append_images=others)
            archive.writestr(f"ISBI/{name}", content.getvalue())
            archive.writestr(f"__MACOSX/ISBI/{name}", b"")


def test_membranes_are_true_where_the_file_is_black(folder, monkeypatch):
    monkeypatch.setattr(real, "SLICES", (2, 4, 6))
    write_slices(folder, (2, 4, 6))
    found = real.isbi2012()
    assert found.pixels.shape == (2, 1, 4, 6) and found.pixels[1, 0, 2, 3] == 1 and found.pixels.sum() == 1
    assert not found.membranes[1, 2, 3] and found.membranes.sum() == 2 * 4 * 6 - 1


def test_another_number_of_slices_is_refused(folder):
    write_slices(folder, (2, 4, 6))
    with pytest.raises(ValueError, match=r"must be \(30, 512, 512\), is \(2, 4, 6\)"):
        real.isbi2012()
    with zipfile.ZipFile(folder / "ISBI-2012-challenge.zip", "w") as archive:
        archive.writestr("README", "")
    with pytest.raises(ValueError, match=r"must hold train-volume\.tif once"):
        real.isbi2012()
    (folder / "ISBI-2012-challenge.zip").write_text("<html>Log in first.</html>", encoding="utf-8")
    with pytest.raises(ValueError, match="is no zip file: delete it, and fetch it again"):
        real.isbi2012()


MIRROR = Path(os.environ.get("COURSE_DATA_MIRROR") or "no mirror")


def from_the_mirror(name, read, monkeypatch, tmp_path):
    """What is read of a set whose files a local mirror holds; None if it does not."""
    files = SETS[name].files
    if not all((MIRROR / file.path).is_file() for file in files):
        return None
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    assert all(addresses(file)[0] == str(MIRROR / file.path) for file in files)
    for file in files:
        fetch_file(name, file, say=lambda words: None)
    return read()


def test_a_mirror_on_this_machine_holds_the_sets_that_the_registry_knows(monkeypatch, tmp_path):
    """Says nothing without COURSE_DATA_MIRROR."""
    reads = {
        "tiny_shakespeare": lambda: (
            len(real.tiny_shakespeare()) == 1_115_394 and len(set(real.tiny_shakespeare())) == 65
        ),
        "multi30k": lambda: (
            [len(real.multi30k(split, ("en", "de", "fr"))) for split in real.CAPTIONS] == [29_000, 1_014, 1_000]
        ),
        "mnist_part": lambda: (
            real.mnist_part().pixels.shape == (19_690, 1, 28, 28)
            and real.mnist_part().labels[:5].tolist() == [5, 0, 4, 1, 9]
        ),
        "fashion_mnist_part": lambda: (
            real.fashion_mnist_part().pixels.shape == (3_615, 1, 28, 28) and real.fashion_mnist_part().labels[0] == 9
        ),
    }
    for name, read in reads.items():
        assert from_the_mirror(name, read, monkeypatch, tmp_path) in (True, None), name
