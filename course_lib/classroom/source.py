"""The real implementation on the page: source read from the installed package, never a copy."""

import inspect
import textwrap
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course_lib.classroom.output import present

STYLE = "xcode"  # every colour of it reaches a contrast of 4.5:1 on white (WCAG AA)


def show_source(*objects: Any) -> None:
    """Show the source of functions, methods, classes or modules of the course, each under the name of its module.

    Raises ValueError for something without Python source, such as a built-in function.
    """
    for item in objects:
        try:
            source = textwrap.dedent(inspect.getsource(item)).strip()
        except (OSError, TypeError) as error:
            raise ValueError(
                f"There is no Python source to show for {item!r}: give a function, a class or a module."
            ) from error
        place = getattr(item, "__module__", None) or item.__name__
        present(f"# {place}\n{source}", _source_html(place, source))


def _source_html(place: str, source: str) -> str:
    formatter = HtmlFormatter(noclasses=True, style=STYLE, nowrap=True)
    code = highlight(source, PythonLexer(), formatter).rstrip("\n")
    return (
        f'<p style="margin:0.6em 0 0.2em"><code>{place}</code></p>'
        '<pre tabindex="0" style="background:#fff;color:#000;border:1px solid #8a8a8a;padding:0.7em;overflow-x:auto;'
        f'line-height:1.35"><code style="background:transparent;color:inherit">{code}</code></pre>'
    )
