"""What a change is checked for before it is committed or merged.

    python -m course_lib.authoring.changes stamps notebooks/05_attention.ipynb     outputs are those of the code
    python -m course_lib.authoring.changes large --base origin/main                no large binary files

Whoever clones the course downloads every version of every file. A binary file that was committed once stays in the
history, so `large` adds up all that is new between the base and HEAD, deleted files included.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

LIMIT = 1_000_000  # bytes of new binary files between the base and HEAD
REASON = re.compile(r"^Large-files: +\S", re.MULTILINE)
LOOKED_AT = 8000  # bytes: git calls a file binary that has a zero byte among the first ones


class Wrong(Exception):
    """A sentence that says what is wrong and what to do."""


def git(*arguments: str, folder: Path | None = None, given: bytes = b"") -> bytes:
    """What git answers. Raises Wrong with git's own words if it fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, input=given, capture_output=True)
    except FileNotFoundError:
        raise Wrong("git is not installed here: install it, then run this check again.") from None
    if done.returncode:
        raise Wrong(f"git {arguments[0]} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def new_binaries(base: str, folder: Path | None = None) -> Iterator[tuple[str, int]]:
    """Path and bytes of each binary file that commits after `base` have brought, largest first.

    Raises Wrong if git does not know the base.
    """
    listed = git("rev-list", "--objects", f"{base}..HEAD", folder=folder).decode(errors="replace").splitlines()
    paths = dict(line.split(" ", 1) for line in listed if " " in line)
    asked = "\n".join(paths).encode()
    facts = git("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", folder=folder, given=asked)
    found = [line.split() for line in facts.decode().splitlines()]
    blobs = sorted(((int(size), name) for name, kind, size in found if kind == "blob"), reverse=True)
    for size, name in blobs:
        if b"\0" in git("cat-file", "blob", name, folder=folder)[:LOOKED_AT]:
            yield paths[name], size


def check_large(base: str, folder: Path | None = None) -> str:
    """What to say of the new binary files. Raises Wrong if they are too large and no commit message has a reason."""
    found = list(new_binaries(base, folder))
    total = sum(size for _, size in found)
    said = f"{total / 1e6:.2f} MB of new binary files between {base} and HEAD, {LIMIT / 1e6:g} MB allowed"
    if total <= LIMIT:
        return f"{said}."
    messages = git("log", "--format=%B", f"{base}..HEAD", folder=folder).decode(errors="replace")
    if REASON.search(messages):
        return f"{said}; a commit message gives the reason."
    largest = ", ".join(f"{path} ({size / 1e6:.2f} MB)" for path, size in found[:5])
    raise Wrong(
        f"{said}: {largest}. Publish large files as assets of a release (CONTRIBUTING.md, Large files), or add a line "
        "to a commit message that begins with `Large-files: ` and gives the reason."
    )


def check_stamps(paths: Sequence[Path]) -> str:
    """What to say of these notebooks. Raises Wrong, naming each whose outputs are not those of its code."""
    from course_lib.authoring.stamps import stamp_problems
    from course_lib.commands.files import read_notebook

    try:
        wrong = [f"{path}: {problem}" for path in paths for problem in stamp_problems(read_notebook(path))]
    except ValueError as problem:
        raise Wrong(f"{problem}.") from None
    if wrong:
        numbers = " ".join(sorted({path.name[:2] for path in paths if any(str(path) in line for line in wrong)}))
        raise Wrong(
            "\n".join(wrong) + f"\nBuild again what changed: python -m course_lib.authoring.notebooks build {numbers}"
        )
    return f"{len(paths)} notebook(s): the stored outputs are those of the code."


def argument_parser() -> argparse.ArgumentParser:
    """The options of this module."""
    parser = argparse.ArgumentParser(prog="python -m course_lib.authoring.changes", description=__doc__.split("\n")[0])
    checks = parser.add_subparsers(dest="check", required=True)
    checks.add_parser("stamps", help="stored outputs are those of the code").add_argument(
        "paths", nargs="+", type=Path, help="notebooks"
    )
    checks.add_parser("large", help="no more than 1 MB of new binary files").add_argument(
        "--base", default="origin/main", help="what the change is compared with (origin/main)"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what a check found; returns 1 if something is wrong."""
    asked = argument_parser().parse_args(arguments)
    try:
        print(check_stamps(asked.paths) if asked.check == "stamps" else check_large(asked.base))
    except Wrong as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
