"""How data/names was made: the names that one of twelve languages alone has, from the CLDR data of the package babel.

    python -m course_lib.data.build_names FOLDER

writes them anew from the babel that is installed here; another version of it has other names.
"""

import re
import sys
from hashlib import sha256
from pathlib import Path

from course_lib.data.names import FILE, LANGUAGES, LONGEST

KINDS = ("territories", "languages", "currencies", "scripts")
LETTERS = re.compile(r"[a-zà-öø-ÿāăąćčďđęěğıłńňőœřśşšťůűźżž]+(?:[ '-][a-zà-öø-ÿāăąćčďđęěğıłńňőœřśşšťůűźżž]+)*")


def plain(name: str) -> str | None:
    """The name in small letters without what stands in brackets; None if it is short, long or has other signs."""
    name = re.sub(r"\s*\(.*?\)", "", name).replace("’", "'").lower().strip()
    return name if LETTERS.fullmatch(name) and 3 <= len(name) <= LONGEST else None


def collect() -> list[tuple[str, str, str]]:
    """Language, thing and name of all names that no two languages share, in alphabetical order of the first two."""
    from babel import Locale

    found: dict[str, dict[str, str]] = {}  # name -> language -> thing
    for code in LANGUAGES:
        locale = Locale.parse(code)
        for kind in KINDS:
            for key, name in sorted(getattr(locale, kind).items()):
                if text := plain(str(name)):
                    found.setdefault(text, {}).setdefault(code, f"{kind}/{key}")
    own = [(*next(iter(users.items())), name) for name, users in found.items() if len(users) == 1]
    return sorted(own)


def main() -> None:
    names = collect()
    content = "".join("\t".join(row) + "\n" for row in names).encode("utf-8")
    (Path(sys.argv[1]) / FILE).write_bytes(content)
    print(f"{len(names):,} names, {len(content):,} bytes, sha256 {sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
