"""How the prose corpus was built: the prose in the docstrings of open-source packages, cleaned, without repeats.

    python -m course_lib.data.prose.build FOLDER

writes the corpus of the packages that are installed here. Other versions of them give other text, which is why
the one that the course uses is frozen in data/prose. Files are read as text, never imported: the result does
not depend on the platform.
"""

import ast
import hashlib
import inspect
import lzma
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from course_lib.data.prose.corpus import ALPHABET, PROSE, SPLITS, ProseSplits, serialize
from course_lib.data.prose.markup import paragraphs

WINDOW = 8  # words: two texts that share so many in a row are not independent
REPEATED = 0.3  # share of a paragraph's windows seen before, from which on it counts as a repeat
HELD_OUT = {"test": 5, "validation": 5}  # percent of all modules
# tests, copies of other projects, and torch's inner workings, whose prose is for insiders
_SKIPPED = re.compile(
    r"(^|/)(tests?|testing|_?vendor\w*|_?extern(als?)?|array_api\w*|idlelib|lib2to3|site-packages|turtledemo|ensurepip"
    r"|benchmarks?|conftest|pydoc_data|third_party|cobyqa|pyprima|_uarray|decorator)(/|\.py$)|/_?test_"
    r"|^torch/(_inductor|_dynamo|_functorch|_export|_refs|_prims|_decomp|distributed|onnx|fx|ao|utils/_sympy)/"
)
_DOCUMENTING_CALLS = frozenset({"add_newdoc", "add_docstr"})
_WORDS = re.compile(r"[a-z]+(?:'[a-z]+)?")
_CODE = re.compile(r"[_=<>\[\]{}*+/\\|~^@#$&]|\w\.\w|\w\(|[a-z][A-Z]|[A-Z]{2}[a-z]{2}|\d[a-zA-Z]|[a-zA-Z]\d")
_COMMON = frozenset(
    "a about after all also an and any are as at be because been before but by can do does each for from has have if in"
    " into is it its may more most must no not of on one only or other should so some such than that the their them"
    " then there these they this to two was we when where which while will with without you your".split()
)
_FINITE = re.compile(
    r"\b(is|are|was|were|has|have|can|could|may|might|must|will|would|should|does|do|did|returns?|\w{3,}s the)\b|n't\b",
    re.IGNORECASE,
)
_STARTS, _ENDS = re.compile(r"""["'(]?[A-Z]"""), re.compile(r"""[.!?]["')]?$""")
_UNFIT = re.compile(  # legal and housekeeping phrases, gaps that removed marks left, fragments that begin with "if"
    r"copyright|licen[sc]e|all rights reserved|deprecated|https?|www\.|e-?mail|\b(TODO|FIXME|ISBN|et al|pp|vol|doi)\b"
    r"|\bsee also\b|,\s*[,.]|\( ?\)|\.\.|--| - |\s[,;.]|[:;]\.|\b(in|see|by|from|of)\."
    r"|\bsee (for|and)\b|\babove example\b|^(whether|true if|false if|true when)\b"
    r"|^(if|when|since|because|for which)\b[^,]*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Source:
    """A package whose docstrings are taken, and the licence that allows it; "python" is its own library."""

    package: str
    licence: str
    folders: tuple[str, ...] = ()


SOURCES = (
    Source(package="python", licence="PSF-2.0"),
    Source(package="numpy", licence="BSD-3-Clause", folders=("numpy",)),
    Source(package="scipy", licence="BSD-3-Clause", folders=("scipy",)),
    Source(package="scikit-learn", licence="BSD-3-Clause", folders=("sklearn",)),
    Source(package="matplotlib", licence="PSF-based (matplotlib)", folders=("matplotlib", "mpl_toolkits")),
    Source(package="networkx", licence="BSD-3-Clause", folders=("networkx",)),
    Source(package="sympy", licence="BSD-3-Clause", folders=("sympy",)),
    Source(package="mpmath", licence="BSD-3-Clause", folders=("mpmath",)),
    Source(package="torch", licence="BSD-3-Clause", folders=("torch",)),
    Source(package="ipython", licence="BSD-3-Clause", folders=("IPython",)),
    Source(package="fonttools", licence="MIT", folders=("fontTools",)),
    Source(package="prompt_toolkit", licence="BSD-3-Clause", folders=("prompt_toolkit",)),
    Source(package="pytest", licence="MIT", folders=("_pytest",)),
    Source(package="jinja2", licence="BSD-3-Clause", folders=("jinja2",)),
    Source(package="pydantic", licence="MIT", folders=("pydantic",)),
    Source(package="click", licence="BSD-3-Clause", folders=("click",)),
    Source(package="pygments", licence="BSD-2-Clause", folders=("pygments",)),
    Source(package="joblib", licence="BSD-3-Clause", folders=("joblib",)),
    Source(package="jedi", licence="MIT", folders=("jedi",)),
)


def modules(source: Source) -> Iterator[tuple[str, str]]:
    """The name and the source text of every module of a package, in alphabetical order, without its tests."""
    if source.package == "python":
        folder = Path(sysconfig.get_path("stdlib"))
        paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.py")}
    else:
        files = distribution(source.package).files or []
        paths = {
            file.as_posix(): Path(file.locate())
            for file in files
            if file.suffix == ".py" and file.parts[0] in source.folders
        }
    for name in sorted(paths):
        if not _SKIPPED.search(name):
            yield f"{source.package}/{name}", paths[name].read_text(encoding="utf-8", errors="replace")


def docstrings(code: str) -> Iterator[str]:
    """The docstrings of a module, its classes and its functions, and those that it gives to compiled ones."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=True)
            if text:
                yield text
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
            _DOCUMENTING_CALLS
        ):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and "\n\n" in part.value:
                    yield inspect.cleandoc(part.value)


def is_prose(text: str) -> bool:
    """True for a paragraph of whole English sentences with little code, in the corpus's alphabet."""
    words = text.split()
    plain = _WORDS.findall(text.lower())
    return (
        80 <= len(text) <= 2000
        and set(text) <= ALPHABET
        and bool(_STARTS.match(text) and _ENDS.search(text))
        and not _UNFIT.search(text)
        and bool(_FINITE.search(text))
        and text.count("(") == text.count(")")
        and sum(bool(_CODE.search(word)) for word in words) <= 0.06 * len(words)
        and sum(word in _COMMON for word in plain) >= 0.3 * len(plain)
        and sum(map(str.isalpha, text)) >= 0.77 * len(text)
        and sum(len(word) == 1 and word.lower() not in ("a", "i") for word in plain) <= 0.04 * len(words)
    )


def split_of(module: str) -> str:
    """A module belongs to one split with all its docstrings, by a hash of its name."""
    ticket = int.from_bytes(hashlib.sha256(module.encode()).digest()[:8]) % 100
    for name, percent in HELD_OUT.items():
        if ticket < percent:
            return name
        ticket -= percent
    return "train"


def windows(text: str) -> list[tuple[str, ...]]:
    """All runs of `WINDOW` words, in lower case and without punctuation."""
    words = _WORDS.findall(text.lower())
    return [tuple(words[i : i + WINDOW]) for i in range(len(words) - WINDOW + 1)]


def without_repeats(documents: dict[str, list[list[str]]]) -> ProseSplits:
    """Drops paragraphs that repeat others, so that no window of `WINDOW` words is in two splits.

    The test split goes first, then validation and train: the later ones give way.
    """
    kept: dict[str, list[str]] = {}
    forbidden: set[tuple[str, ...]] = set()
    for split in SPLITS[::-1]:
        seen: set[tuple[str, ...]] = set()
        kept[split] = []
        for document in documents[split]:
            fresh = []
            for paragraph in document:
                found = windows(paragraph)
                repeated = sum(window in seen for window in found)
                if not found or repeated > REPEATED * len(found) or not forbidden.isdisjoint(found):
                    continue
                seen.update(found)
                fresh.append(paragraph)
            if fresh:
                kept[split].append("\n".join(fresh))
        forbidden |= seen
    return ProseSplits(**{split: tuple(kept[split]) for split in SPLITS})


def collect(sources: Sequence[Source] = SOURCES) -> ProseSplits:
    """The corpus of the packages that are installed here."""
    documents: dict[str, list[list[str]]] = {split: [] for split in SPLITS}
    for source in sources:
        for name, code in modules(source):
            for text in docstrings(code):
                prose = [paragraph for paragraph in paragraphs(text) if is_prose(paragraph)]
                if prose:
                    documents[split_of(name)].append(prose)
    return without_repeats(documents)


def header(sources: Sequence[Source] = SOURCES) -> list[str]:
    """Where the text comes from: one line per package with its version and licence."""
    versions = {"python": sys.version.split()[0]}
    return ["English prose from the docstrings of these packages; licences in README.md:"] + [
        f"{source.package} {versions.get(source.package) or distribution(source.package).version} ({source.licence})"
        for source in sources
    ]


def main() -> None:
    folder = Path(sys.argv[1])
    text = serialize(collect(), *header())
    (folder / PROSE.file[-1]).write_bytes(lzma.compress(text.encode("ascii"), preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(text):,} characters, sha256 {hashlib.sha256(text.encode('ascii')).hexdigest()}")


if __name__ == "__main__":
    main()
