"""Students' words on an instructor's screen: Markdown becomes HTML that can do nothing there.

nbgrader's formgrader puts the HTML in a written answer into its page as it is, and a page of JupyterLab's may start
programs on the instructor's machine and change grades. nbgrader_config.py puts this filter in nbconvert's place.
"""

import bleach
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

TAGS = set(
    "a abbr b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img ins kbd li ol p pre s samp "
    "small span strong sub summary sup table tbody td tfoot th thead tr u ul var".split()
)
PROTOCOLS = {"data", "http", "https", "mailto"}
PICTURES = tuple(f"data:image/{kind};base64," for kind in ("gif", "jpeg", "png", "webp"))


def safe_markdown(source: str) -> str:
    """The HTML of a Markdown text: without scripts, forms, styles, ids and classes, and with pictures only from itself.

    Ids and classes go because formgrader finds its boxes for points and comments by them.
    """
    renderer = IPythonRenderer(escape=False, allow_harmful_protocols=False, exclude_anchor_links=True)
    html = MarkdownWithMath(renderer=renderer).render(source)
    return bleach.clean(html, tags=TAGS, attributes=_harmless, protocols=PROTOCOLS, strip=True)


def _harmless(tag: str, name: str, value: str) -> bool:
    if (tag, name) == ("a", "href"):
        return not value.strip().lower().startswith("data:")
    if (tag, name) == ("img", "src"):
        return value.startswith(PICTURES)
    return name in ("title", "alt", "colspan", "rowspan", "start")
