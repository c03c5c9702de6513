"""The dashboard before a gateway under load: two tenants, one of which wants far more than the other."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect
from tests.lab.browser import fairq, quiet_page

TOKEN = "a-token-for-the-dashboard"
ROOT = Path(__file__).parents[2]


class Load:
    """Clients that ask again and again: so many at once for each tenant."""

    def __init__(self, url: str, clients: dict[str, int]) -> None:
        self.url, self.clients = url, clients
        self.over = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._all()))
        self.thread.start()

    async def _all(self) -> None:
        async with httpx.AsyncClient(timeout=300, limits=httpx.Limits(max_connections=200)) as client:
            asking = [
                asyncio.create_task(self._one(client, name)) for name, n in self.clients.items() for _ in range(n)
            ]
            await asyncio.to_thread(self.over.wait)
            for each in asking:
                each.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    async def _one(self, client: httpx.AsyncClient, tenant: str) -> None:
        body = {"model": "simulated", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 48}
        while True:
            await client.post(f"{self.url}/chat/completions", json=body, headers={"x-fairq-tenant": tenant})

    def stop(self) -> None:
        self.over.set()
        self.thread.join(60)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("gateway")
    config = folder / "fairq.yaml"
    config.write_text(
        "identity: {trusted_tenant_headers_from: ['127.0.0.0/8'], max_auto_tenants: 10}\n"
        f"listen: {{port: 0}}\nconsole: {{port: 0, admin_token: {TOKEN}}}\nledger: {{dir: {folder / 'ledger'}}}\n"
    )
    with fairq("serve", "-q", "-c", str(config), tells=[r"(http://\S+/v1)", r"console: (http://\S+)"]) as [api, origin]:
        load = Load(api, {"crowd": 120, "few": 30})
        try:
            yield origin
        finally:
            load.stop()


@pytest.fixture(scope="module")
def unfair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same crowd before first come, first served; `few` starves, and a third tenant is held by its own limit."""
    folder = tmp_path_factory.mktemp("unfair")
    with fairq("engine", "--port", "0", tells=[r'"(http://[^"]+)"']) as [engine]:
        config = folder / "fairq.yaml"
        config.write_text(
            "identity: {trusted_tenant_headers_from: ['127.0.0.0/8'], max_auto_tenants: 10}\n"
            f"listen: {{port: 0}}\nconsole: {{port: 0}}\nledger: {{dir: {folder / 'ledger'}}}\n"
            f"tenants: [{{id: held, max_inflight: 1}}]\n"
            f"pools: [{{name: default, policy: fcfs, upstreams: [{{url: '{engine}', max_inflight: 4}}]}}]\n"
        )
        with fairq("serve", "-q", "-c", str(config), tells=[r"(http://\S+/v1)", r"console: (http://\S+)"]) as told:
            load = Load(told[0], {"crowd": 40, "few": 3, "held": 3})
            try:
                yield told[1]
            finally:
                load.stop()


def test_an_operator_sees_shares_bounds_and_reasons_and_changes_a_weight(browser: Browser, console: str) -> None:
    with quiet_page(browser, console) as page:
        page.goto("/?lang=en")
        expect(page.locator(".held")).to_contain_text("Every promise has held", timeout=20_000)
        expect(page.locator('[data-headline="headline_flooding"]')).to_contain_text(
            "crowd floods the queue", timeout=30_000
        )
        crowd, few = (page.locator(f'tr[data-tenant="{name}"]') for name in ("crowd", "few"))
        expect(few).to_be_visible(timeout=20_000)
        # Four times as many clients: served by count it would be four to one, by equal weights it is half each.
        expect(crowd.locator(".share-box + output")).to_have_text(
            re.compile(r"^(4[5-9]|5[0-5])(\.\d)?%$"), timeout=60_000
        )
        expect(crowd.locator(".entitled")).to_have_text("50%")
        expect(page.locator('[data-lead="crowd"]')).to_be_visible()
        expect(page.locator(".lag .bound").first).to_be_visible()
        expect(page.locator(".lag .quiet")).to_contain_text("beyond V + q")
        expect(page.locator('[data-check="pairs"]')).to_contain_text("2q")
        expect(page.locator(".decisions .deciding").first).to_be_visible()
        assert page.locator(".plot canvas").count() == 2

        page.get_by_label("Admin token").fill(TOKEN)
        page.get_by_label("Weight of few").fill("3")
        few.get_by_role("button", name="Change").click()
        expect(page.locator("dialog")).to_contain_text("Give few the weight 3?")
        page.get_by_role("button", name="Yes").click()
        expect(page.get_by_text("Done, and written to the ledger.")).to_be_visible()
        expect(few.locator(".entitled")).to_have_text("75%", timeout=10_000)
        expect(page.locator(".changes")).to_contain_text("An operator changed weights: few 3")

        few.get_by_role("button", name="Pause").click()
        expect(page.locator("dialog")).to_contain_text("Pause few?")
        page.get_by_role("button", name="Cancel").click()
        expect(few).not_to_have_attribute("data-standing", "paused")
        few.get_by_role("button", name="Pause").click()
        page.get_by_role("button", name="Yes").click()
        expect(page.locator('[data-headline="headline_paused"]')).to_contain_text("few is paused")
        few.get_by_role("button", name="Resume").click()
        page.get_by_role("button", name="Yes").click()
        upstream = page.locator("[data-upstream]").first
        upstream.get_by_role("button", name="Drain").click()
        page.get_by_role("button", name="Yes").click()
        expect(upstream).to_contain_text("draining")
        expect(page.locator(".changes")).to_contain_text("gets no more requests")
        expect(page.locator(".changes")).to_contain_text("few was resumed")
        upstream.get_by_role("button", name="Take back").click()
        page.get_by_role("button", name="Yes").click()
        expect(upstream).to_contain_text("up")


@pytest.mark.parametrize(
    ("lang", "answer"), [("en", "It waited .* because all slots were taken"), ("ja", "待ちました。.*スロットが埋まり")]
)
def test_one_sentence_says_why_a_request_waited(browser: Browser, console: str, lang: str, answer: str) -> None:
    with quiet_page(browser, console) as page:
        page.goto(f"/?lang={lang}")
        page.locator(".longest .request").first.click(timeout=30_000)
        told = page.locator(".explained")
        expect(told.locator(".answer")).to_have_text(re.compile(answer))
        expect(told.locator(".life-part").first).to_be_visible()
        words = told.inner_text()
        assert ("waiting" in words) is (lang == "en"), "nothing is left in the other language"
        asked = str(told.get_attribute("data-request"))
        page.locator(".ask input").fill(f" {asked} ")
        page.locator(".ask button").click()
        expect(page.locator(f'.explained[data-request="{asked}"]')).to_be_visible()


def test_an_unknown_request_is_said_to_be_unknown(browser: Browser, console: str) -> None:
    with browser.new_page(base_url=console) as page:  # Chromium itself complains of the 404
        page.goto("/?lang=en")
        page.locator(".ask input").fill("nobody-asked-this")
        page.locator(".ask button").click()
        expect(page.locator("#why .alert")).to_contain_text("the ledger knows no request 'nobody-asked-this'")


def test_who_is_starved_is_the_first_thing_that_is_said(browser: Browser, unfair: str) -> None:
    with quiet_page(browser, unfair) as page:
        page.goto("/?lang=en")
        first = page.locator(".headline").first
        expect(first).to_contain_text("few is starved", timeout=60_000)
        expect(page.locator(".headlines")).to_contain_text("fcfs, promises nobody a share")
        expect(page.locator(".headlines")).to_contain_text("held is at its own limit of 1 running requests")
        expect(page.locator(".headlines")).to_contain_text("crowd floods the queue")
        expect(page.locator('tr[data-standing="starved"] .share-box + output')).to_have_text(
            re.compile(r"^(\d|1\d)(\.\d)?%$")
        )
        page.get_by_role("button", name="日本語").click()
        expect(first).to_contain_text("few の取り分が足りません")


def test_the_last_seconds_open_in_the_lab(browser: Browser, console: str) -> None:
    with quiet_page(browser, console) as page:
        page.goto("/?lang=ja")
        expect(page.locator(".decisions .deciding").first).to_be_visible(timeout=30_000)
        page.get_by_role("link", name="直近 30 秒をラボで開く").click()
        expect(page.locator("article.run")).to_be_visible(timeout=20_000)
        assert "crowd" in page.locator("article.run").first.inner_text()


def test_axe_finds_nothing_on_the_dashboard(browser: Browser, console: str, axe: str) -> None:
    with quiet_page(browser, console, bypass_csp=True) as page:
        page.goto("/?lang=ja")
        expect(page.locator(".decisions .deciding").first).to_be_visible(timeout=30_000)
        page.evaluate(axe)
        found = page.evaluate(
            "axe.run().then(({ violations }) => violations.map((v) => `${v.id}: ${v.nodes[0].html}`))"
        )
        assert found == []


def test_without_scripts_there_are_tables(browser: Browser, console: str) -> None:
    with quiet_page(browser, console, java_script_enabled=False) as page:
        page.goto("/")
        expect(page.locator("caption").first).to_have_text("Tenants")


def test_grafanas_dashboard_asks_for_what_is_measured() -> None:
    exported = set(re.findall(r'"(fairq_[a-z_]+)"', (ROOT / "src/fairq/console/metrics.py").read_text()))
    dashboard = json.loads((ROOT / "docs/grafana.json").read_text())
    asked = {
        re.sub(r"_(total|bucket)$", "", name)
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
        for name in re.findall(r"fairq_[a-z_]+", target["expr"])
    }
    assert asked
    assert asked <= exported
