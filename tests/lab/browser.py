"""A lab in a process of its own, and Debian's Chromium before it. Whatever a page complains of fails its test."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

PATIENCE = 30_000  # ms, on a busy machine
expect.set_options(timeout=PATIENCE)
NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """Its path. Without one the tests are skipped; but not as root, who could have installed it."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        told = "no Chromium for the tests of the page: apt-get install chromium"
        if os.geteuid() == 0:
            pytest.fail(told)
        pytest.skip(told)
    return found


@contextmanager
def fairq(*command: str, tells: Sequence[str]) -> Iterator[list[str]]:
    """Runs `fairq COMMAND`; what it tells in its greeting, by patterns with one group each."""
    program = "import sys; from fairq.cli import main; sys.argv[0] = 'fairq'; main()"
    process = subprocess.Popen([sys.executable, "-c", program, *command], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        greeting = ""
        for line in process.stdout:
            greeting += line
            found = [re.search(pattern, greeting) for pattern in tells]
            if all(found):
                yield [match[1] for match in found if match]
                return
        pytest.fail(f"fairq {' '.join(command)} ended: {greeting}")
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


@contextmanager
def chrome() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def quiet_page(browser: Browser, origin: str, **settings: Any) -> Iterator[Page]:
    """A page that must not complain, and must not ask any other host."""
    complaints: list[str] = []
    context = browser.new_context(base_url=origin, **({"viewport": {"width": 1280, "height": 900}} | settings))
    page = context.new_page()
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: None if _own(request.url, origin) else complaints.append(request.url))
    try:
        yield page
        assert complaints == []
    finally:
        context.close()


def _own(url: str, origin: str) -> bool:
    return url.startswith((origin, "blob:" + origin, "data:"))
