"""How data/images/icons was made: the emoji of eight designers, drawn at 32 x 32 pixels from npm's Iconify packages.

    for name in noto@1.2.9 noto-v1@1.2.5 twemoji@1.2.5 fluent-emoji@1.2.7 fluent-emoji-flat@1.2.6 fxemoji@1.2.2 \\
        emojione@1.2.3 streamline-emojis@1.2.4; do npm pack @iconify-json/$name; done
    python -m course_lib.data.build_icons PACKAGES FOLDER

reads the .tgz files in the folder PACKAGES; it needs the package cairosvg. An icon is drawn at 128 x 128 pixels and
scaled down to 32 x 32.
"""

import csv
import io
import json
import re
import sys
import tarfile
from pathlib import Path

import numpy as np

from course_lib.data.icons import CATEGORIES, DESIGNERS, NAMES_FILE, SIZE

FEWEST = 5  # designers that must have drawn a thing
DRAWN = 128  # pixels
STEP = np.array([4, 4, 4, 8])  # of levels: a quarter fewer bytes than all 256, and no eye sees it
COLUMNS = 32  # icons in a row of a sheet
SKIPPED = re.compile(  # many that look alike, some that not everybody wants to see, and two things of one name
    r".*(-oclock|-thirty)|pile-of-poo|(water-)?pistol|cigarette|coffin|funeral-urn|syringe|pill|bomb|bikini|love-hotel"
    r"|cricket"
)
OTHER_MEANINGS = {("emojione", "turkey"), ("fxemoji", "hamster"), ("fxemoji", "sunglasses")}  # they show another thing


def package(folder: Path, name: str, file: str) -> dict:
    """A JSON file of an Iconify package."""
    (archive,) = folder.glob(f"iconify-json-{name}-[0-9]*.tgz")
    with tarfile.open(archive) as tar:
        return json.load(tar.extractfile(f"package/{file}"))


def picture(icons: dict, name: str) -> str | None:
    """The SVG of an icon; None if the set has none, or only a turned or mirrored one."""
    alias = icons.get("aliases", {}).get(name)
    if name not in icons["icons"]:
        changed = alias is None or alias.get("hFlip") or alias.get("vFlip") or alias.get("rotate")
        return None if changed else picture(icons, alias["parent"])
    facts = {"left": 0, "top": 0, "width": 16, "height": 16} | icons | icons["icons"][name]
    box = " ".join(str(facts[side]) for side in ("left", "top", "width", "height"))
    links = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f'<svg {links} viewBox="{box}">{facts["body"]}</svg>'


def drawn(svg: str | None) -> np.ndarray | None:
    """Levels (32, 32, 4) of red, green, blue and alpha; None where there is no SVG, or cairo cannot draw it."""
    import cairosvg
    from PIL import Image

    if svg is None:
        return None
    try:
        png = cairosvg.svg2png(bytestring=svg.encode(), output_width=DRAWN, output_height=DRAWN)
    except MemoryError:  # what cairo says of a gradient without extent
        return None
    with Image.open(io.BytesIO(png)) as large:
        levels = np.asarray(large.convert("RGBA").resize((SIZE, SIZE), Image.Resampling.LANCZOS))
    levels = np.minimum((levels + STEP / 2) // STEP * STEP, 255).astype(np.uint8)
    return np.where(levels[..., 3:] > 0, levels, 0).astype(np.uint8)


def build(packages: Path, folder: Path) -> None:
    """Writes a sheet for each designer, and the table of names."""
    from PIL import Image

    sets = {name: package(packages, facts.package, "icons.json") for name, facts in DESIGNERS.items()}
    groups = package(packages, "noto", "metadata.json")["categories"]
    rows = []  # name, category, and the picture by each designer
    for category, group in CATEGORIES.items():
        for name in sorted(groups[group]):
            if SKIPPED.fullmatch(name):
                continue
            found = {designer: drawn(picture(icons, name)) for designer, icons in sets.items()}
            found = {d: levels for d, levels in found.items() if levels is not None and (d, name) not in OTHER_MEANINGS}
            if len(found) >= FEWEST:
                rows.append((name.replace("-", " "), category, found))
    folder.mkdir(parents=True, exist_ok=True)
    for designer in DESIGNERS:
        sheet = np.zeros((-(-len(rows) // COLUMNS) * SIZE, COLUMNS * SIZE, 4), dtype=np.uint8)
        for number, (_, _, pictures) in enumerate(rows):
            if designer in pictures:
                top, left = (SIZE * k for k in divmod(number, COLUMNS))
                sheet[top : top + SIZE, left : left + SIZE] = pictures[designer]
        Image.fromarray(sheet).save(folder / f"{designer}.webp", lossless=True, exact=True, quality=100, method=6)
    with open(folder / NAMES_FILE, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow(["name", "category", *DESIGNERS])
        table.writerows([name, category, *(int(d in pictures) for d in DESIGNERS)] for name, category, pictures in rows)


def main() -> None:
    packages, folder = map(Path, sys.argv[1:])
    build(packages, folder)
    print(f"{sum(path.stat().st_size for path in folder.iterdir()):,} bytes in {folder}")


if __name__ == "__main__":
    main()
