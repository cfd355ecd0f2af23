"""From cells to HTML: Markdown, code and outputs, as a deck and a hand-out show them."""

import html
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files as package_files
from typing import Any

from jinja2 import Environment
from nbconvert.filters.ansi import ansi2html
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

PICTURE = re.compile(r'<img\b(?=[^>]*\bwidth="(\d+)")(?=[^>]*\bheight="(\d+)")[^>]*>')


def markdown_html(source: str) -> str:
    """Markdown as HTML, with its code coloured and its formulas left for MathJax."""
    renderer = IPythonRenderer(escape=False, exclude_anchor_links=True)
    text = MarkdownWithMath(renderer=renderer).render(source)
    text = re.sub(r"(<h[1-6])[^>]*>", r"\1>", text)  # without the identifiers of headings, which repeat
    return re.sub(r"<td>\s*</td>", "<td>&nbsp;</td>", re.sub(r"<th>\s*</th>", "<td></td>", text))


def code_html(source: str) -> str:
    """Python source, coloured."""
    return markdown_html(f"~~~~python\n{source}\n~~~~")


def output_html(output: Mapping) -> str:
    """One output of a code cell: its HTML if it has one, else its text; the size of a picture becomes a CSS shape."""
    if output["output_type"] == "stream":
        return f"<pre>{ansi2html(_joined(output['text']).rstrip())}</pre>"
    if output["output_type"] == "error":
        return f"<pre>{ansi2html(chr(10).join(output['traceback']))}</pre>"
    data = output.get("data", {})
    if "text/html" in data:
        return PICTURE.sub(_with_shape, _joined(data["text/html"]))
    if "image/png" in data:
        alt = html.escape(_joined(data.get("text/plain", "")))
        return f'<img alt="{alt}" src="data:image/png;base64,{_joined(data["image/png"]).strip()}">'
    return f"<pre>{html.escape(_joined(data.get('text/plain', '')))}</pre>"


def outputs_html(cell: NotebookNode) -> str:
    """All outputs of a code cell."""
    return "\n".join(f'<div class="output">{output_html(output)}</div>' for output in cell.get("outputs", []))


def fill(template: str, **values: Any) -> str:
    """A page made from a template of ours; the values are HTML already."""
    return Environment(autoescape=False).from_string(template_text(template)).render(**values)


@cache
def template_text(name: str) -> str:
    """A file of the folder `templates`."""
    return (package_files("course_lib.lectures") / "templates" / name).read_text(encoding="utf-8")


def inline_script(source: str) -> str:
    """A script that can stand inside a page: nothing in it ends the element that holds it."""
    return re.sub(r"<(?=/script|!--)", r"\\x3C", source, flags=re.IGNORECASE)


def _with_shape(found: re.Match) -> str:
    shape = f"--wide:{found[1]};--high:{found[2]};"
    if ' style="' in found[0]:
        return found[0].replace(' style="', f' style="{shape}', 1)
    return found[0].replace("<img", f'<img style="{shape}"', 1)


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)
