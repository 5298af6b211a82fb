"""Checks a built site: every link and anchor leads somewhere, and no page fetches anything from elsewhere.

Links of llms.txt and of the pages' sources in Markdown are followed too.

    python links.py FOLDER

Prints a line for each fault; exit status 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Where a page fetches what it shows; an <a> to elsewhere is the reader's choice.
FETCHES = {("img", "src"), ("script", "src"), ("source", "src"), ("iframe", "src"), ("link", "href")}
LINK = re.compile(r"\]\(([^)\s]+)\)")  # a link in Markdown
SHOWN_LINKS = {"stylesheet", "icon", "preload", "preconnect", "modulepreload"}  # by the rel of a <link>


class PageParser(HTMLParser):
    """Links, fetched addresses and anchors of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = {"", "__skip", "top"}

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "link" and not SHOWN_LINKS & set(values.get("rel", "").split()):
            return
        for name in ("href", "src"):
            if name in values:
                (self.fetched if (tag, name) in FETCHES else self.links).append(values[name])


def read_page(path: Path) -> PageParser:
    """The links and anchors of a page."""
    parser = PageParser()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


def faults(site: Path) -> list[str]:
    """A line for each link, anchor or fetched address that leads nowhere or elsewhere."""
    pages = {path: read_page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        place = path.relative_to(site)
        for address in page.fetched + page.links:
            parts = urlsplit(address)
            if parts.scheme in ("data", "mailto", "javascript"):
                continue
            if parts.scheme or parts.netloc:
                if address in page.fetched:
                    found.append(f"{place}: fetches {address}; a page of the site fetches its own files alone")
                continue
            # The page of a missing address has links from the root, for it is shown anywhere.
            base = site if parts.path.startswith("/") else path.parent
            target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                found.append(f"{place}: {address} leads nowhere")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{place}: {address}: the page has no such anchor")
    return found + [
        line for path in (site / "llms.txt", *sorted(site.rglob("*.md"))) for line in faults_of_text(path, site)
    ]


def faults_of_text(path: Path, site: Path) -> list[str]:
    """A line for each link of a text in Markdown that leads to no file; none for a text that is not there."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    targets = [target for target in LINK.findall(text) if not urlsplit(target).scheme]
    return [
        f"{path.relative_to(site)}: {target} leads nowhere"
        for target in targets
        if not (path.parent / unquote(target.partition("#")[0])).exists()
    ]


if __name__ == "__main__":
    lines = faults(Path(sys.argv[1]).resolve())
    print("\n".join(lines) if lines else "every link leads somewhere")
    sys.exit(1 if lines else 0)
