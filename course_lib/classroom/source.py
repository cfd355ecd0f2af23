"""The real implementation on the page: source read from the installed package, never a copy."""

import ast
import inspect
import textwrap
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import course_lib
from course_lib.classroom.output import present

STYLE = "xcode"  # every colour of it reaches a contrast of 4.5:1 on white (WCAG AA)
LINES = 25  # shown at once
WIDTH = 88


def show_source(*objects: Any) -> None:
    """Show the source of functions, methods, classes or modules of the course, docstrings and types folded away.

    Raises ValueError for something without Python source, such as a built-in function.
    """
    for item in objects:
        try:
            source = inspect.getsource(item)
        except (OSError, TypeError) as error:
            raise ValueError(
                f"There is no Python source to show for {item!r}: give a function, a class or a module."
            ) from error
        source = textwrap.dedent(source).strip()
        place = getattr(item, "__module__", None) or item.__name__
        bare = essence(source)
        whole = f"<details><summary>with docstring and types</summary>{_code_html(source)}</details>"
        where = f'<p style="margin:0.6em 0 0.2em"><code>{place}</code> (the whole file: {_file(item)})</p>'
        page = where + _code_html(bare)
        present(f"# {place}\n{bare}", page + (whole if bare != source else ""))


def essence(source: str) -> str:
    """Return a source without docstrings and without the types in the heads of its functions; comments stay."""
    lines, kinds = source.splitlines(), (ast.FunctionDef, ast.ClassDef, ast.Module)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    for node in sorted(
        nodes, key=lambda node: getattr(node, "lineno", 0), reverse=True
    ):  # what is above stays in place
        if ast.get_docstring(node) is not None and len(node.body) > 1:
            text = node.body[0]
            blank = not lines[text.end_lineno].strip()
            del lines[text.lineno - 1 : text.end_lineno + blank]
        if isinstance(node, ast.FunctionDef):
            body = min([node.body[0], *getattr(node.body[0], "decorator_list", [])], key=lambda part: part.lineno)
            if body.lineno > node.lineno:
                end = body.lineno - 1
                while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
                    end -= 1
                lines[node.lineno - 1 : end] = _head(node)
    return "\n".join(lines).strip()


def _head(function: ast.FunctionDef) -> list[str]:
    """The lines from `def` to the colon, without types."""
    for node in ast.walk(function.args):
        if isinstance(node, ast.arg):
            node.annotation = None
    indent, arguments = " " * function.col_offset, ast.unparse(function.args)
    head = f"{indent}def {function.name}({arguments}):"
    if len(head) <= WIDTH:
        return [head]
    inside = textwrap.wrap(arguments, WIDTH, initial_indent=indent + "    ", subsequent_indent=indent + "    ")
    return [f"{indent}def {function.name}(", *inside, f"{indent}):"]


def _file(item: Any) -> str:
    path = Path(inspect.getsourcefile(inspect.unwrap(item))).resolve()
    root = Path(course_lib.__file__).resolve().parents[1]
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def _code_html(source: str) -> str:
    """A listing whose lines are never broken; a long one, or a wide one, is scrolled."""
    formatter = HtmlFormatter(noclasses=True, style=STYLE, nowrap=True)
    code = highlight(source, PythonLexer(), formatter).rstrip("\n")
    return (
        '<pre tabindex="0" style="white-space:pre;background:#fff;color:#000;border:1px solid #8a8a8a;padding:0.7em;'
        f'overflow:auto;max-height:{1.35 * LINES + 1.4:.2f}em;line-height:1.35">'
        f'<code style="background:transparent;color:#000;white-space:pre">{code}</code></pre>'
    )
