r"""The little markup of lesson texts: `code`, **strong**, *stress*, $formula$, blank line = new paragraph.

A paragraph whose lines begin with a hyphen, or with numbers and full stops, is a list.

One source serves both forms of every display: HTML for a notebook, plain text for a terminal and for nbval.
"""

import html
import re
from collections.abc import Iterable, Iterator

_TOKEN = re.compile(
    r"(?P<math>\$\$.+?\$\$|\$[^$\n]+?\$)|`(?P<code>[^`]+)`|\*\*(?P<strong>.+?)\*\*|\*(?P<em>[^*\s](?:[^*]*[^*\s])?)\*",
    re.DOTALL,
)

_ITEM = r"(?:- |\d+\. )"


def inline_html(text: str) -> str:
    """Return one run of text as HTML; formulas stay as they are, for MathJax to typeset."""
    parts, end = [], 0
    for token in _TOKEN.finditer(text):
        parts.append(html.escape(text[end : token.start()]))
        end = token.end()
        if token["math"] is not None:
            parts.append(html.escape(token["math"], quote=False))
        elif token["code"] is not None:
            parts.append(f"<code>{html.escape(token['code'])}</code>")
        elif token["strong"] is not None:
            parts.append(f"<strong>{inline_html(token['strong'])}</strong>")
        else:
            parts.append(f"<em>{inline_html(token['em'])}</em>")
    return "".join(parts) + html.escape(text[end:])


def to_html(text: str) -> str:
    """Return a text of one or more paragraphs as HTML."""
    return "".join(map(_paragraph, _paragraphs(text)))


def _paragraphs(text: str) -> Iterator[list[str]]:
    """The paragraphs of a text, each in one line, a list in one line for each item."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        items = re.split(rf"\n(?={_ITEM})", paragraph) if re.match(_ITEM, paragraph) else [paragraph]
        yield [" ".join(item.split()) for item in items]


def _paragraph(lines: list[str]) -> str:
    if not re.match(_ITEM, lines[0]):
        return f'<p style="margin:0.35em 0">{inline_html(lines[0])}</p>'
    kind = "ul" if lines[0].startswith("- ") else "ol"
    items = "".join(f"<li>{inline_html(re.sub(f'^{_ITEM}', '', line))}</li>" for line in lines)
    return f'<{kind} style="margin:0.35em 0">{items}</{kind}>'


def to_plain(text: str) -> str:
    """Return a text without its markup; formulas keep their dollar signs."""

    def strip(token: re.Match) -> str:
        if token["math"] is not None:
            return token["math"]
        return token["code"] or to_plain(token["strong"] or token["em"])

    return "\n\n".join("\n".join(_TOKEN.sub(strip, line) for line in lines) for lines in _paragraphs(text))


def code_html(source: str) -> str:
    """Return program text as an HTML block that keeps its lines."""
    return f"<pre><code>{html.escape(source.strip(chr(10)))}</code></pre>"


def details(summary: str, body: str) -> str:
    """Return a block that a reader opens; `summary` is markup, `body` is HTML."""
    return f"<details><summary>{inline_html(summary)}</summary>{body}</details>"


def plain_list(items: Iterable[str]) -> str:
    """Return a list without bullets from the HTML of its items."""
    rows = "".join(f"<li>{item}</li>" for item in items)
    return f'<ul style="list-style:none;padding-left:0.6em;margin:0.35em 0">{rows}</ul>'


def letter(index: int) -> str:
    """Return the name of option number `index`: A, B, C, ..."""
    return chr(ord("A") + index)
