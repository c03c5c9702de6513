"""Files in the browser's lab, many marks, fleets, and what the reader types wrong."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.ledger.recording import router_example

from fairq.core.lines import encode

DATA = Path(__file__).parents[2] / "data"
DROP = """([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  const drop = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
  document.querySelector(".lab").dispatchEvent(drop);
}"""


@pytest.fixture
def page(browser: Browser, lab: str) -> Iterator[Page]:
    """One on which the server may refuse what is sent to it, which a browser's console tells as an error."""
    with browser.new_context(base_url=lab, viewport={"width": 1280, "height": 900}) as context:
        found = context.new_page()
        errors: list[str] = []
        found.on("pageerror", lambda error: errors.append(str(error)))
        yield found
        assert errors == []


def ledger() -> str:
    """The article's router run; what is a nanosecond there is a second here."""
    run = router_example()
    lines = [encode(run.head) + b"\n", *run.lines]
    longer = re.compile(rb'"(time|arrival|first_byte|last_byte|wait|total)":([1-9]\d*)([,}])')
    return b"".join(longer.sub(rb'"\1":\g<2>000000000\3', line) for line in lines).decode()


def opened(page: Page, to: str) -> None:
    page.goto(to)
    expect(page.locator("h1").first).to_be_visible()


@pytest.mark.parametrize(("lang", "said"), [("en", "goes to u, charged 8"), ("ja", "u へ投入し、8 を課金")])
def test_a_dropped_ledger_is_played_decision_by_decision(page: Page, lang: str, said: str) -> None:
    opened(page, f"/lab/ledger?lang={lang}")
    expect(page.locator(".recorded.waiting")).to_be_visible()
    page.evaluate(DROP, ["00000001.jsonl", ledger()])
    card = page.locator("article.run")
    expect(card).to_have_count(1)
    page.keyboard.press("n")
    expect(card.locator(".said")).to_contain_text(said)
    expect(card.locator(".deciding")).to_have_text("0")
    expect(card.locator(".candidate.chosen")).to_contain_text("A: 0")
    expect(card.locator('[data-bar="waiting.B"] output')).to_have_text("7")
    expect(card.locator('[data-bar="inflight.A"] output')).to_have_text("1")
    page.keyboard.press("End")
    assert [card.locator(f'tr[data-tenant="{name}"] td').nth(1).inner_text() for name in "ABC"] == ["3", "7", "4"]
    card.locator(".table-of summary").click()
    expect(card.locator(".table-of tbody tr")).to_have_count(
        14 + 12
    )  # waiting and in flight; the first, and C's, never wait


def test_a_ledgers_requests_are_tried_under_other_policies(page: Page) -> None:
    opened(page, "/lab/ledger?lang=en")
    page.evaluate(DROP, ["00000001.jsonl", ledger()])
    page.get_by_role("button", name="Play these requests under other policies").click()
    expect(page.locator(".tabs [aria-current]")).to_have_text("LLM router")
    page.get_by_label("Details").check()
    page.keyboard.press("End")
    expect(page.locator('article.run[data-policy="sfq"] [data-order]')).to_have_attribute(
        "data-order", "ABBCBBCABBCBCA"
    )


def test_what_cannot_be_opened_is_said(page: Page) -> None:
    opened(page, "/lab/ledger?lang=en")
    page.evaluate(DROP, ["00000001.jsonl", ledger().replace('"is":"Dispatch"', '"is":"Nothing"', 1)])
    expect(page.locator(".problem")).to_contain_text(re.compile(r"00000001\.jsonl:\d+: not a line of a ledger"))
    page.evaluate(DROP, ["notes.csv", "what,ever\n1,2\n"])
    expect(page.locator(".problem")).to_contain_text("notes.csv:1: unknown trace format with what, ever")


def test_a_dropped_trace_is_played_and_its_settings_can_be_changed(page: Page) -> None:
    opened(page, "/lab?lang=en")
    page.locator('input[type="file"]').last.set_input_files(DATA / "vtc_real_trace.csv")
    expect(page.locator(".tabs [aria-current]")).to_have_text("LLM engine")
    expect(page.locator("article.run")).to_have_count(2)
    page.get_by_label("First requests").fill("40")
    expect(page.locator("[data-counter]")).not_to_have_text(re.compile(r"/ 1\d\d\d"))
    page.get_by_label("First requests").fill("9999")
    expect(page.locator(".wrong")).to_have_text("first = 9999: the lab plays at most 5000; `fairq sim` has no limit")


def test_what_is_typed_wrong_is_said_at_its_field_as_on_the_command_line(page: Page) -> None:
    opened(page, "/lab/locks?lang=ja")
    expect(page.locator("article.run").first).to_be_visible()
    field = page.get_by_label("2 の実行時間")
    field.fill("x")
    expect(field).to_have_attribute("aria-invalid", "true")
    wrong = page.locator(f"[id='{field.get_attribute('aria-describedby')}']")
    expect(wrong).to_have_text("tasks[1].burst = 'x': must be a whole number")
    field.fill("1")
    expect(page.locator(".wrong")).to_have_text("tasks[1].locks[0]: held until 2 of its 1 own ticks")


def test_locks_are_added_changed_and_removed(page: Page) -> None:
    opened(page, "/lab/locks?lang=en&s=cpu/priority-inversion")
    row = page.locator('tr[data-row="3"]')
    expect(row.locator(".hold")).to_have_count(1)
    row.get_by_role("button", name="Add a lock to 3").click()
    expect(row.locator(".hold")).to_have_count(2)
    row.locator(".hold").nth(1).get_by_label(re.compile("^lock of")).fill("9")
    expect(page.locator(".problem")).to_have_count(0)
    row.locator(".hold").nth(1).get_by_role("button").click()
    expect(row.locator(".hold")).to_have_count(1)


def test_a_fleet_says_where_a_request_goes_and_why(page: Page) -> None:
    opened(page, "/lab/map?lang=en")
    page.get_by_role("link", name="D²LPM: open it in the lab").click()
    cards = page.locator("article.run")
    expect(cards).to_have_count(2)
    page.locator(".scrub input").fill("120")
    for _ in range(5):
        page.keyboard.press("n")
    expect(cards.nth(1).locator(".said")).to_contain_text("is placed at")
    expect(cards.nth(1).locator(".candidate.chosen")).to_have_count(1)
    expect(cards.nth(1).locator("tr[data-engine]")).to_have_count(3)


def many() -> str:
    tasks = [{"id": "ABCDEFGH"[n], "arrival": n, "burst": 250} for n in range(8)]
    return base64.urlsafe_b64encode(json.dumps({"tasks": tasks}).encode()).decode().rstrip("=")


def test_many_marks_are_a_canvas_with_the_same_table_pointer_and_export(page: Page) -> None:
    opened(page, f"/lab?lang=en&p=rr:quantum=1&x={many()}&step=1000")
    figure = page.locator("article.run .timeline")
    expect(figure.locator("canvas")).to_be_visible()
    expect(figure).to_have_attribute("aria-label", re.compile("until 1,000: .*[A-H] 999–1,000"))
    painted = (
        "c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; return d.some((v) => v > 0) }"
    )
    assert figure.locator("canvas").evaluate(painted)
    box = figure.bounding_box()
    assert box
    page.mouse.move(box["x"] + 200, box["y"] + 23)
    expect(figure.locator(".tip")).to_contain_text(re.compile(r"A runs \d+"))
    page.locator(".table-of summary").click()
    expect(page.locator(".table-of tbody tr").last).to_contain_text("999")
    page.get_by_text("Files", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Picture as SVG").click()
    assert download.value.path().read_text().count("<rect") > 2000


def test_axe_finds_nothing_on_a_ledger_and_on_a_wrong_form(browser: Browser, lab: str, axe: str) -> None:
    with browser.new_context(base_url=lab, bypass_csp=True, color_scheme="dark") as context:
        page = context.new_page()
        told = ".then(({ violations }) => violations.map((v) => `${v.id}: ${v.nodes[0].html}`))"
        opened(page, "/lab/ledger?lang=ja")
        page.evaluate(axe)
        assert page.evaluate(f"axe.run(){told}") == []
        page.evaluate(DROP, ["00000001.jsonl", ledger()])
        expect(page.locator("article.run")).to_have_count(1)
        page.keyboard.press("n")
        assert page.evaluate(f"axe.run(){told}") == []
        opened(page, "/lab/locks?lang=en")
        expect(page.locator("article.run")).to_have_count(2)
        page.get_by_label("Running time of 2").fill("x")
        expect(page.locator(".wrong")).to_have_count(1)
        page.evaluate(axe)
        page.emulate_media(color_scheme="light")
        assert page.evaluate(f"axe.run(){told}") == []


def test_an_address_that_leads_nowhere_is_said(page: Page) -> None:
    opened(page, "/lab/nonsense?lang=en")
    expect(page.locator("h1")).to_have_text("There is no such page")
    opened(page, "/lab?lang=en&s=cpu/nothing")
    expect(page.get_by_text("There is no scenario cpu/nothing")).to_be_visible()
