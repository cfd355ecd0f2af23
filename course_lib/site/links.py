"""What is wrong with the pages of a site: links that lead nowhere, pictures without words, requests to elsewhere."""

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "link": "href"}


class Page(HTMLParser):
    """The anchors of a page, where it leads, what it loads, and its pictures without alt text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.mute = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what this element means for the page."""
        values = dict(attributes)
        if values.get("id"):
            self.anchors.add(values["id"])
        if tag == "a" and values.get("href"):
            self.links.add(values["href"])
        if values.get(LOADED.get(tag, "")) and values.get("rel") not in ("canonical", "license"):
            self.loads.add(values[LOADED[tag]])
        if tag == "img" and not (values.get("alt") or "").strip():
            self.mute += 1


def problems(folder: Path) -> list[str]:
    """Return a sentence for each fault of the pages in a folder. Links to other sites are not followed."""
    found = []

    @cache
    def page(file: Path) -> Page:
        return Page(file.read_text(encoding="utf-8"))

    for file in sorted(folder.rglob("*.html")):
        name, this = file.relative_to(folder).as_posix(), page(file)
        found += [f"{name}: {this.mute} pictures without alt text"] * bool(this.mute)
        for address in sorted(this.links | this.loads):
            scheme, host, path, _, anchor = urlsplit(address)
            if scheme in ("data", "mailto") or (host and address not in this.loads):
                continue
            if host:
                found.append(f"{name} loads {address}")
                continue
            target = (file.parent / unquote(path)).resolve() if path else file
            if not target.is_file():
                found.append(f"{name} leads to {address}, which is not there")
            elif anchor and target.suffix == ".html" and unquote(anchor) not in page(target).anchors:
                found.append(f"{name} leads to {address}: that page has no such place")
    return found
