"""Hooks of mkdocs: pages and files from outside docs/, their links, and the earlier addresses of pages.

README.md is the start page. Links of a page are those of the source tree; each becomes that of the site.
"""

from __future__ import annotations

import html
import json
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build/site-pages"  # pages that tools/site makes before: the slider, the C++ reference

# Places in the source tree, and in the site; docs/ is the site's root.
PLACES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "dev/contributing.md",
    "CHANGELOG.md": "changelog.md",
    "CITATION.cff": "CITATION.cff",
    "LICENSE": "LICENSE",
}
FIGURES = "notebooks/figures/"
SCHEMAS = "lib/python/halfscope/schemas/"
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(#[^)\s]*)?\)")

# Pages of the Python reference: title, sentence, module, names. No names: the whole module.
REFERENCE = {
    "halfscope": "Arrays, files, histograms and loss scales.",
    "halfscope.torch": "Half precision in the training of a PyTorch model.",
    "halfscope.results": "Folders of runs as values and data frames.",
    "halfscope.plotting": "Figures of runs, histograms and replays.",
    "halfscope.testing": "Differences beside counted roundings.",
}

MOVED = """<!doctype html>
<meta charset="utf-8">
<title>{title}</title>
<link rel="canonical" href="{target}">
<script>
const moved = {moved};
location.replace(moved[location.hash.slice(1)] ?? {target_text} + location.hash);
</script>
<p>This page is now <a href="{target}">{title}</a>.</p>
"""


def place_in_site(path: str) -> str:
    """Where a file of the source tree is in the site. Raises ValueError for one that is not in it."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.startswith(FIGURES):
        return "figures/" + path.removeprefix(FIGURES)
    if path.startswith(SCHEMAS):
        return "reference/" + path.removeprefix(SCHEMAS)
    if path not in PLACES:
        raise ValueError(f"{path} is linked, but is not in the site: tools/site_files/hooks.py names what is")
    return PLACES[path]


def place_in_tree(page: str) -> str:
    """The source of a page of the site."""
    return next((source for source, place in PLACES.items() if place == page), f"docs/{page}")


def relinked(markdown: str, page: str) -> str:
    """A page's text with the links of the site. `page`: its place there."""
    source = place_in_tree(page)

    def link(match: re.Match[str]) -> str:
        if not match[1]:
            return match[0]
        target = place_in_site(posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1])))
        return f"]({posixpath.relpath(target, posixpath.dirname(page) or '.')}{match[2] or ''})"

    blocks = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)  # code has no links
    return "".join(text if text.startswith("```") else LINK.sub(link, text) for text in blocks)


def reference_page(module: str, sentence: str) -> str:
    """Text of a page of the Python reference."""
    return f"# {module}\n\n{sentence}\n\n::: {module}\n    options:\n      show_root_heading: false\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what lies outside docs/."""
    for source, place in PLACES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    for figure in sorted((ROOT / FIGURES).glob("*.svg")):
        files.append(File.generated(config, f"figures/{figure.name}", abs_src_path=str(figure)))
    for schema in sorted((ROOT / SCHEMAS).glob("*.json")):
        files.append(File.generated(config, f"reference/{schema.name}", abs_src_path=str(schema)))
    files.append(File.generated(config, "site.css", abs_src_path=str(Path(__file__).with_name("site.css"))))
    for page in sorted(path for path in BUILT.rglob("*") if path.is_file()):
        place = page.relative_to(BUILT).as_posix()
        files.append(File.generated(config, f"pages/{place}", abs_src_path=str(page)))
    for module, sentence in REFERENCE.items():
        text = reference_page(module, sentence)
        files.append(File.generated(config, f"reference/api/{module}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links of a page."""
    return relinked(markdown, page.file.src_uri)


def earlier_addresses() -> dict[str, dict[str, str]]:
    """docs/moved.txt: by page, the present address of each of its anchors; '' is that of the page."""
    found: dict[str, dict[str, str]] = {}
    for line in (ROOT / "docs/moved.txt").read_text().splitlines():
        if not line.startswith("#"):
            earlier, present = line.split(" ")
            page, _, anchor = earlier.partition("#")
            found.setdefault(page, {})[anchor] = present
    return found


def address(place: str) -> str:
    """The address of a page of the site, seen from a folder in its root."""
    page, hash_mark, anchor = place.partition("#")
    return f"../{page.removesuffix('.md').removesuffix('index')}".rstrip("/") + "/" + hash_mark + anchor


def write_sources(site: Path) -> None:
    """Puts the Markdown of each page beside it, for programs that read: llms.txt links to these."""
    outside = {place: ROOT / source for source, place in PLACES.items() if source.endswith(".md")}
    inside = {path.relative_to(ROOT / "docs").as_posix(): path for path in (ROOT / "docs").rglob("*.md")}
    for place, path in {**inside, **outside}.items():
        (site / place).write_text(relinked(path.read_text(encoding="utf-8"), place), encoding="utf-8")


def on_post_build(config: MkDocsConfig) -> None:
    """Adds the pages' sources, and a page that leads on at each earlier address, unless a present page has it."""
    write_sources(Path(config.site_dir))
    for page, anchors in earlier_addresses().items():
        path = Path(config.site_dir) / page.removesuffix(".md") / "index.html"
        if path.exists():
            continue
        target = address(anchors[""])
        moved = {anchor: address(place) for anchor, place in anchors.items() if "#" in place}
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            MOVED.format(
                title=html.escape(anchors[""]), target=html.escape(target),
                target_text=json.dumps(target), moved=json.dumps(moved),
            ),
            encoding="utf-8",
        )  # fmt: skip
