"""A site of one lesson, two guides and three modules, made once for all that look at it."""

from course_lib.commands.lessons import course_folder
from course_lib.site.build import build
from course_lib.site.sources import Sources

LESSON = "notebooks/05_attention.ipynb"
SMALL = Sources(
    course=course_folder(),
    lessons=[LESSON],
    guides=["docs/site.md", "docs/lecturing.md"],
    modules=["course_lib.functional.attention", "course_lib.models.gpt", "course_lib.training.loop"],
)


def small_site(folder):
    """The folder of the site, and what was found wrong with it."""
    return folder / "site", build(SMALL, folder / "site")
