from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.lab.browser import chrome, fairq, quiet_page

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")  # not longer: while it lives, its event loop runs in this thread, and no other can
def browser() -> Iterator[Browser]:
    with chrome() as found:
        yield found


@pytest.fixture(scope="module")
def lab(browser: Browser) -> Iterator[str]:
    with fairq("lab", "--port", "0", tells=[r"(http://\S+)/lab"]) as [origin]:
        yield origin


@pytest.fixture
def page(browser: Browser, lab: str) -> Iterator[Page]:
    with quiet_page(browser, lab) as found:
        yield found


@pytest.fixture(scope="module")
def axe() -> str:
    return AXE.read_text()
