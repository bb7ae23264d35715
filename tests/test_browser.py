"""The report as a browser shows it: `make test-browser` installs one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import call

ROOT = Path(__file__).parents[1]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1440, "height": 900}

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    own = next(filter(None, map(shutil.which, CHROMIUM)), None)
    with api.sync_playwright() as playwright:
        try:
            launched = playwright.chromium.launch(executable_path=own, args=["--no-sandbox"])
        except api.Error as error:
            if os.environ.get("RECOLLECT_BROWSER") == "needed":
                raise
            pytest.skip(f"there is no Chromium: {error.message.splitlines()[0]}")
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    call("report", ROOT / "results", "--out", path)
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_the_report_is_whole(browser: Any, report: Path, size: dict[str, int], scheme: str):
    complaints: list[str] = []
    requests: list[str] = []
    page = browser.new_page(viewport=size, color_scheme=scheme)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(report.as_uri())
    assert complaints == []
    assert [url for url in requests if not url.startswith("data:")] == [report.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    figures = page.evaluate(
        """[...document.querySelectorAll('figure > svg')].map(svg => {
            const box = svg.getBoundingClientRect()
            return [box.width, box.height, box.right, svg.querySelectorAll('path, image').length]
        })"""
    )
    assert len(figures) > 20
    assert all(width > 100 and height > 20 and parts for width, height, _, parts in figures)
    assert all(right <= size["width"] for _, _, right, _ in figures)  # seen whole, without moving them
    ink, back = (
        page.evaluate(f"getComputedStyle(document.querySelector('{of}')).{what}.match(/\\d+/g).map(Number)")
        for of, what in (("svg text", "fill"), ("body", "backgroundColor"))
    )
    lighter, darker = (ink, back) if scheme == "dark" else (back, ink)
    assert min(lighter) - max(darker) > 150
    page.close()
