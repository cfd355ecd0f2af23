"""The real data sets that the course can fetch: what each is, whose, where it lies, and how its files are known.

A checksum is one that the publisher states, or that was taken from the file itself and found in other public records;
where neither could be had it is None, and the set says so in its note.
"""

from dataclasses import dataclass

COURSE_PARTS = "Only from a mirror (COURSE_DATA_MIRROR) that holds this part: for machines without a network."


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One file of a set."""

    path: str  # below the folder that `fetch` keeps, and below a mirror
    addresses: tuple[str, ...] = ()  # asked in turn; none: only mirrors have it
    size: int | None = None  # bytes; None: not known
    checksum: str | None = None  # "sha256:..." or "md5:..."; None: none is known


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set as its authors published it."""

    title: str
    licence: str
    source: str  # the page that describes it
    files: tuple[DataFile, ...]
    note: str = ""

    @property
    def size(self) -> int | None:
        """Bytes of all files; None if one of them is not known."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(sizes)


def idx_files(name: str, addresses: tuple[str, ...], known: dict[str, tuple[int, str]]) -> tuple[DataFile, ...]:
    """The four files of MNIST's layout; `known` has the bytes and the MD5 of each."""
    return tuple(
        DataFile(
            path=f"{name}/{file}-ubyte.gz",
            addresses=tuple(f"{address}{file}-ubyte.gz" for address in addresses),
            size=size,
            checksum=f"md5:{md5}",
        )
        for file, (size, md5) in known.items()
    )


def captions(split: str, language: str, size: int, sha256: str) -> DataFile:
    """One language of one split of Multi30k."""
    name = f"{split}.{language}.gz"
    return DataFile(
        path=f"multi30k/{name}",
        addresses=(f"https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/{name}",),
        size=size,
        checksum=f"sha256:{sha256}",
    )


SETS = {
    "mnist": DataSet(
        title="60,000 + 10,000 handwritten digits, 28 x 28 grey (LeCun, Cortes & Burges 1998)",
        licence="CC BY-SA 3.0",
        source="http://yann.lecun.com/exdb/mnist/",
        note="The MD5 are those that torchvision publishes.",
        files=idx_files(
            "mnist",
            ("https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/"),
            {
                "train-images-idx3": (9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
                "train-labels-idx1": (28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
                "t10k-images-idx3": (1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
                "t10k-labels-idx1": (4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
            },
        ),
    ),
    "fashion_mnist": DataSet(
        title="60,000 + 10,000 photographs of clothes, 28 x 28 grey (Xiao, Rasul & Vollgraf 2017, arXiv 1708.07747)",
        licence="MIT",
        source="https://github.com/zalandoresearch/fashion-mnist",
        files=idx_files(
            "fashion_mnist",
            (
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            ),
            {
                "train-images-idx3": (26_421_880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
                "train-labels-idx1": (29_515, "25c81989df183df01b3e8a0aad5dffbe"),
                "t10k-images-idx3": (4_422_102, "bef4ecab320f06d8554ea6380940ec79"),
                "t10k-labels-idx1": (5_148, "bb300cfdad3c16e7a12a480ee83cd310"),
            },
        ),
    ),
    "cifar10": DataSet(
        title="50,000 + 10,000 photographs of ten things, 32 x 32 in colour (Krizhevsky 2009)",
        licence="none stated by its authors; widely used for research",
        source="https://www.cs.toronto.edu/~kriz/cifar.html",
        note="The binary version, which needs no pickle.",
        files=(
            DataFile(
                path="cifar-10-binary.tar.gz",
                addresses=("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
                size=170_052_171,
                checksum="md5:c32a1d4ab5d03f1284b67883e8d87530",
            ),
        ),
    ),
    "tiny_shakespeare": DataSet(
        title="1,115,394 characters of Shakespeare's plays (Karpathy 2015)",
        licence="public domain",
        source="https://github.com/karpathy/char-rnn",
        files=(
            DataFile(
                path="tiny_shakespeare.txt",
                addresses=(
                    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
                ),
                size=1_115_394,
                checksum="sha256:86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            ),
        ),
    ),
    "multi30k": DataSet(
        title="31,014 captions of photographs in English, German and French (Elliott et al. 2016, arXiv 1605.00459)",
        licence="CC BY-NC-SA: for research, not for sale",
        source="https://github.com/multi30k/dataset",
        note="Task 1, raw. Validation has 1,014 sentences, the test set 1,000: test_2016_flickr.",
        files=(
            captions("train", "en", 568_929, "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
            captions("train", "de", 637_044, "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
            captions("train", "fr", 604_242, "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c"),
            captions("val", "en", 21_650, "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
            captions("val", "de", 24_681, "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
            captions("val", "fr", 23_001, "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9"),
            captions(
                "test_2016_flickr", "en", 21_077, "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"
            ),
            captions(
                "test_2016_flickr", "de", 22_890, "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"
            ),
            captions(
                "test_2016_flickr", "fr", 22_310, "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90"
            ),
        ),
    ),
    "isbi2012": DataSet(
        title="30 slices of a fly's nerve cord, 512 x 512, with cell membranes (Cardona et al. 2010; Arganda-Carreras "
        "et al. 2015)",
        licence="none stated on its page; cite doi 10.1371/journal.pbio.1000502 and 10.3389/fnana.2015.00142",
        source="https://imagej.net/events/isbi-2012-segmentation-challenge",
        note="Neither size nor checksum is known to the course: `fetch` prints the SHA-256 of what came, and the "
        "reader checks the slices.",
        files=(
            DataFile(
                path="ISBI-2012-challenge.zip", addresses=("https://downloads.imagej.net/ISBI-2012-challenge.zip",)
            ),
        ),
    ),
    "mnist_part": DataSet(
        title="The first 19,690 training images of MNIST",
        licence="CC BY-SA 3.0",
        source="http://yann.lecun.com/exdb/mnist/",
        note=COURSE_PARTS,
        files=(
            DataFile(
                path="mnist_train_first_19690.npz",
                size=3_232_298,
                checksum="sha256:559c46b70eb3f5b6431fe16d3a64739994f175ba3a4005c25908131dd75ccd8b",
            ),
        ),
    ),
    "fashion_mnist_part": DataSet(
        title="The first 3,615 training images of Fashion-MNIST",
        licence="MIT",
        source="https://github.com/zalandoresearch/fashion-mnist",
        note=COURSE_PARTS,
        files=(
            DataFile(
                path="fashion_mnist_train_first_3615.npz",
                size=1_579_964,
                checksum="sha256:58646a9a68b3e2d467d0fd7c12c5354dbf71b1b0c41b99ee1f7f32d9376d39da",
            ),
        ),
    ),
}
