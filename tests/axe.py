"""axe-core, which finds what keeps people with a disability from using a page; from npm, like a deck's own assets."""

from course_lib.lectures.assets import Package, asset

AXE = Package(
    name="axe-core@4.14.1",
    licence="MPL 2.0",
    files={"axe.min.js": "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"},
)


def axe_script():
    return asset(AXE, "axe.min.js").decode()
