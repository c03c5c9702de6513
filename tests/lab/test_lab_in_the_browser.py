"""The lab as a reader meets it: in a browser, by role and label, with the article's numbers."""

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.lab.browser import quiet_page

# The article's table (section 6): completion, turnaround, waiting, response
FCFS = {"A": (7, 7, 0, 0), "B": (11, 10, 6, 6), "C": (12, 10, 9, 9), "D": (15, 11, 8, 8)}
# V after each dispatch of the default router input, by the article's rules; tests/sim/test_router_lab.py derives them
ORDER = "ABBCBBCABBCBCA"
V = (0, 0, 2, 2, 4, 6, 6, 8, 8, 10, 10, 12, 14, 16)
MODES = ("cpu", "router", "link", "engine", "fleet", "cluster", "periodic", "locks")
PAGES = ("tour", "map", "gallery", "choose", "checklist")


def opened(page: Page, to: str) -> None:
    page.goto(to)
    expect(page.locator("h1").first).to_be_visible()
    if not any(to.startswith(f"/lab/{name}") for name in PAGES[1:]):
        expect(page.locator("article.run").first).to_be_visible()


def run(page: Page, policy: str) -> Locator:
    return page.locator(f'article.run[data-policy="{policy}"]')


def counter(page: Page) -> str:
    return page.locator("[data-counter]").inner_text()


def at_step(page: Page, text: str) -> None:
    expect(page.locator("[data-counter]")).to_have_text(text)


def test_the_articles_default_run_step_by_step(page: Page) -> None:
    opened(page, "/lab?lang=en&p=fcfs")
    card = run(page, "fcfs")
    order = "A" * 7 + "B" * 4 + "C" + "D" * 3
    left = {"A": 7, "B": 4, "C": 1, "D": 3}
    at_step(page, "1 / 16")
    for at, task in enumerate(order, 1):
        page.get_by_role("button", name="One step on").click()
        left[task] -= 1
        at_step(page, f"{at + 1} / 16")
        expect(card.locator(".said")).to_contain_text(re.compile(rf"{at - 1}–{at}: {task} ran"))
        shown = {id_: int(card.locator(f'[data-left="{id_}"] output').inner_text()) for id_ in "ABCD"}
        assert shown == left
        for id_, row in FCFS.items():
            cells = card.locator(f'tr[data-task="{id_}"] td').all_inner_texts()
            assert cells == ([str(value) for value in row] if row[0] <= at else ["–"] * 4)
    assert card.locator('tr[data-task="mean"] td').all_inner_texts() == ["", "9.5", "5.75", "5.75"]


def test_the_articles_router_step_by_step(page: Page) -> None:
    opened(page, "/lab/router?lang=en&p=sfq")
    card = run(page, "sfq")
    at_step(page, "1 / 15")
    for at in range(len(ORDER)):
        page.keyboard.press("ArrowRight")
        expect(card.locator("[data-order]")).to_have_attribute("data-order", ORDER[: at + 1])
        expect(card.locator('[data-show="virtual_time"]')).to_have_text(str(V[at]))
        resets = card.locator('[data-show="reset"]')
        assert resets.all_inner_texts() == (["24"] if at == len(ORDER) - 1 else [])
    assert [card.locator(f'[data-bar="meters.{id_}"] output').inner_text() for id_ in "ABC"] == ["24", "14", "18"]


def test_a_meter_starts_at_the_baseline_when_its_tenant_joins(page: Page) -> None:
    opened(page, "/lab/router?lang=ja&p=sfq&step=4")
    said = run(page, "sfq").locator(".said")
    expect(said).to_contain_text("C は基準線 M = V = 2 から始めます")
    expect(said.locator(".candidate.chosen")).to_contain_text("C: 2")


def test_counting_requests_is_unfair_and_the_meter_is_not(page: Page) -> None:
    opened(page, "/lab/router?s=router/count-fair-cost-fair&lang=en&step=10")
    served = {
        spec: [float(run(page, spec).locator(f'[data-served="{id_}"] output').inner_text()) for id_ in "AB"]
        for spec in ("request-rr", "sfq")
    }
    assert served["request-rr"] == [40, 10]
    assert abs(served["sfq"][0] - served["sfq"][1]) <= 2 * 8


@pytest.mark.parametrize("lang", ["en", "ja"])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_opens_and_plays_to_its_end(page: Page, mode: str, lang: str) -> None:
    opened(page, f"/lab/{mode}?lang={lang}")
    assert page.locator("html").get_attribute("lang") == lang
    of = counter(page).partition(" / ")[2]
    page.keyboard.press("End")
    at_step(page, f"{of} / {of}")
    assert page.locator("article.run figure.timeline").count() == page.locator("article.run").count()


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "ja"])
def test_every_scenario_of_the_gallery_opens(page: Page, lang: str) -> None:
    opened(page, f"/lab/gallery?lang={lang}")
    expect(page.locator(".gallery a").first).to_be_visible()
    addresses = page.locator(".gallery a").evaluate_all("links => links.map((link) => link.getAttribute('href'))")
    assert len(addresses) >= 32
    for address in addresses:
        opened(page, address)
        expect(page.locator(".problem")).to_have_count(0)


@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_in_both_languages(page: Page, name: str) -> None:
    headings = []
    for lang in ("en", "ja"):
        opened(page, f"/lab/{name}?lang={lang}")
        headings.append(page.locator("h1").inner_text())
    assert headings[0] != headings[1]


def test_the_language_changes_and_nothing_else(page: Page) -> None:
    opened(page, "/lab?lang=en&p=fcfs~rr:quantum=2")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.get_by_label("Running time of A").fill("5")
    expect(run(page, "fcfs").locator('[data-left="A"] output')).to_have_text("0")
    before = counter(page)
    page.get_by_role("button", name="日本語").click()
    expect(page.locator("html")).to_have_attribute("lang", "ja")
    at_step(page, before)
    expect(page.get_by_label("A の実行時間")).to_have_value("5")
    expect(run(page, "rr:quantum=2")).to_be_visible()


def test_what_is_shown_is_in_the_address(browser: Browser, lab: str, page: Page) -> None:
    opened(page, "/lab?lang=en")
    page.get_by_role("button", name="RR (quantum 2)").click()
    page.get_by_label("Arrival of C").fill("3")
    expect(run(page, "rr:quantum=2")).to_be_visible()
    page.get_by_role("heading", name="CPU").click()
    page.evaluate("document.activeElement.blur()")
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile(r"step=6"))
    with quiet_page(browser, lab) as other:
        opened(other, page.url)
        at_step(other, "7 / 16")
        expect(other.get_by_label("Arrival of C")).to_have_value("3")
        assert other.locator("article.run").count() == 3


def test_the_keyboard_is_enough(page: Page) -> None:
    opened(page, "/lab?lang=en&p=fcfs")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    at_step(page, "12 / 16")
    page.keyboard.press("Home")
    page.keyboard.press("n")
    at_step(page, "2 / 16")
    page.keyboard.press("n")
    at_step(page, "9 / 16")  # A runs to completion: the next decision is B's
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.keyboard.press("Space")
    page.keyboard.press("l")
    expect(page.locator("html")).to_have_attribute("lang", "ja")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_playing_reaches_the_end_and_stops(page: Page) -> None:
    opened(page, "/lab?lang=en&p=srtf")
    page.get_by_label("Speed").select_option("16")
    page.get_by_role("button", name="Play").click()
    expect(page.locator("[data-counter]")).to_have_text("16 / 16")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_the_reader_predicts_then_sees(page: Page) -> None:
    opened(page, "/lab?lang=en&p=srtf&predict=1&step=2")
    asked = run(page, "srtf").locator(".predict")
    expect(asked).to_contain_text("t = 2: who is next?")
    asked.get_by_role("button", name="A").click()
    expect(run(page, "srtf").locator(".verdict")).to_contain_text("No: C, not A.")
    at_step(page, "4 / 16")
    expect(page.locator(".score")).to_have_text("0 of 1 right")


def test_a_fork_keeps_the_past_and_compares(page: Page) -> None:
    opened(page, "/lab?lang=en&p=fcfs&step=3")
    page.get_by_role("button", name="Fork here").click()
    expect(page.get_by_label("Arrival of A")).to_be_disabled()
    page.get_by_label("Running time of D").fill("6")
    expect(page.locator("article.run")).to_have_count(2)
    page.get_by_role("button", name="End the fork").click()
    expect(page.locator("article.run")).to_have_count(1)


def test_the_source_stands_beside_with_its_line_lit(page: Page) -> None:
    opened(page, "/lab/router?lang=en&p=sfq&step=1")
    run(page, "sfq").get_by_role("button", name="Source").click()
    lit = run(page, "sfq").locator(".line.lit").all_inner_texts()
    assert any("argmin over backlogged flows" in line for line in lit)
    assert any("c / w_i" in line for line in lit)


def test_pictures_and_numbers_can_be_saved(page: Page) -> None:
    opened(page, "/lab?lang=en&p=fcfs&step=15")
    saved = {}
    for name, ending in (
        ("Numbers as CSV", "csv"),
        ("Picture as SVG", "svg"),
        ("Picture as PNG", "png"),
        ("Save YAML", "yaml"),
    ):
        page.get_by_text("Files", exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("button", name=name).click()
        assert download.value.suggested_filename.endswith(ending)
        saved[ending] = download.value.path().read_bytes()
    assert b"fcfs,C,2,1,12,10,9,9" in saved["csv"]
    assert saved["svg"].startswith(b"<svg")
    assert saved["png"].startswith(b"\x89PNG")
    assert b"burst: 7" in saved["yaml"]


def test_a_scenario_file_is_opened(page: Page) -> None:
    opened(page, "/lab?lang=en")
    text = "layer: router\npolicies: [sfq]\ntenants:\n  - {id: X, cost: 3, count: 2}\n  - {id: Y, cost: 1, count: 2}\n"
    page.locator('input[type="file"]').set_input_files(
        {"name": "own.yaml", "mimeType": "text/yaml", "buffer": text.encode()}
    )
    expect(run(page, "sfq")).to_be_visible()
    page.keyboard.press("End")
    expect(run(page, "sfq").locator("[data-order]")).to_have_attribute("data-order", "XYYX")


def test_the_tour_leads_through_twelve_stops(page: Page) -> None:
    opened(page, "/lab/tour?lang=ja")
    titles = [page.locator(".stop h2").inner_text()]
    for _ in range(11):
        page.get_by_role("link", name="次へ").click()
        expect(page.locator(".stop h2")).not_to_have_text(titles[-1])
        expect(page.locator("article.run").first).to_be_visible()
        titles.append(page.locator(".stop h2").inner_text())
    assert len(set(titles)) == 12
    page.get_by_role("link", name="ラボで引き継ぐ").click()
    expect(page.locator(".tabs [aria-current]")).to_have_text("LLM ルーター")


def test_the_map_is_the_articles(page: Page) -> None:
    opened(page, "/lab/map?lang=en")
    assert page.locator("a.node").count() >= 18
    assert page.locator("path.shaft").count() == 23
    assert page.locator(".edge.dashed").count() == 2
    page.get_by_role("link", name="DRF: open it in the lab").click()
    expect(run(page, "drf")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "ja"])
def test_every_node_of_the_map_leads_into_the_lab(page: Page, lang: str) -> None:
    opened(page, f"/lab/map?lang={lang}")
    for address in page.locator("a.node").evaluate_all("nodes => nodes.map((node) => node.getAttribute('href'))"):
        opened(page, address)
        expect(page.locator(".problem")).to_have_count(0)


@pytest.mark.parametrize("to", [*(f"/lab/{mode}" for mode in MODES), *(f"/lab/{name}" for name in PAGES)])
def test_axe_finds_nothing(browser: Browser, lab: str, axe: str, to: str) -> None:
    with quiet_page(browser, lab, color_scheme="light", bypass_csp=True) as page:
        opened(page, f"{to}?lang=ja&step=5")
        page.evaluate(axe)
        told = ".then(({ violations }) => violations.map((v) => `${v.id}: ${v.nodes[0].html}`))"
        assert page.evaluate(f"axe.run(){told}") == []
        page.emulate_media(color_scheme="dark")
        assert page.evaluate(f"axe.run({{ runOnly: ['color-contrast'] }}){told}") == []


@pytest.mark.parametrize("width", [320, 768])
def test_narrow_pages_do_not_scroll_sideways(browser: Browser, lab: str, width: int) -> None:
    with quiet_page(browser, lab, viewport={"width": width, "height": 800}) as page:
        for to in ("/lab/router", "/lab/tour", "/lab/map", "/lab/choose"):
            opened(page, f"{to}?lang=ja")
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_less_motion_is_honoured(browser: Browser, lab: str) -> None:
    with quiet_page(browser, lab, reduced_motion="reduce") as page:
        opened(page, "/lab?lang=en")
        assert page.evaluate("getComputedStyle(document.querySelector('.head')).transitionDuration") == "0s"
