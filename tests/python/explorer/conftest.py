"""Fixtures of pages in headless Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Tab:
    """A page that was opened, with all that it printed, asked for or threw."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def set_scale(self, scale: int, explorer: str = ".explorer") -> None:
        self.page.locator(f"{explorer} input[type=range]").fill(str(scale))

    def rows(self, explorer: str = ".explorer") -> dict[str, list[str]]:
        """By tensor the cells flushed, subnormal and overflow."""
        found = {}
        for row in self.page.locator(f"{explorer} tbody tr").all():
            cells = row.locator(".share").all_inner_texts()
            found[row.locator("th").inner_text()] = cells
        return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_tab(browser: Browser, tmp_path: Path) -> Iterator:
    """Opens a document from a file; contexts are closed at the end, and no page may complain or ask for another."""
    opened = []

    def open_page(html: str, state: str = "", **options: object) -> Tab:
        path = tmp_path / f"page{len(opened)}.html"
        path.write_text(html, encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1000, "height": 900}, **options})
        context.set_default_timeout(5000)
        tab = Tab(context.new_page())
        opened.append((context, tab))
        tab.page.goto(path.as_uri() + state)
        return tab

    yield open_page
    for context, tab in opened:
        assert tab.complaints == []
        assert [url for url in tab.requests if not url.startswith(("data:", tmp_path.as_uri()))] == []
        assert len([url for url in tab.requests if url.startswith("file:")]) <= 2  # itself, and once more when reloaded
        context.close()
