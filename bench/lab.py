"""The lab in a browser: frames while it plays, and how long a seek takes. `python -m bench.lab` (needs Chromium).

Times of the page's main thread are processor time (thread ticks), which other programs on the machine hardly change;
the gaps between frames are what a reader sees, and do depend on them.
"""

import base64
import json
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

PLAY = """async (seconds) => {
  const gaps = [];
  document.querySelector("button.main").click();
  let last = performance.now();
  const end = last + 1000 * seconds;
  await new Promise((done) => {
    const frame = () => {
      const now = performance.now();
      gaps.push(now - last);
      last = now;
      now < end ? requestAnimationFrame(frame) : done();
    };
    requestAnimationFrame(frame);
  });
  return gaps;
}"""
SEEK = """async (times) => {
  const input = document.querySelector(".scrub input");
  const took = [];
  for (let n = 0; n < times; n++) {
    const begin = performance.now();
    input.value = String(Math.floor(Number(input.max) * ((n * 7) % times) / times));
    input.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = done;
      channel.port2.postMessage(0);
    }));
    took.push(performance.now() - begin);
  }
  return took;
}"""
SECONDS, SEEKS = 5, 25


def tasks(ticks: int) -> str:
    """Eight tasks of so many ticks together, as the lab's address has them."""
    scenario = {"tasks": [{"id": "ABCDEFGH"[n], "arrival": n, "burst": ticks // 8} for n in range(8)]}
    return base64.urlsafe_b64encode(json.dumps(scenario).encode()).decode().rstrip("=")


@contextmanager
def lab() -> Iterator[str]:
    program = "import sys; from fairq.cli import main; sys.argv[0] = 'fairq'; main()"
    command = [sys.executable, "-c", program, "lab", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            found = re.search(r"http://\S+/lab", process.stdout.readline())
            assert found, "the lab did not start"
            yield found[0]
        finally:
            process.terminate()


def spent(page: Page) -> Any:
    """A function that tells the page's processor time so far, ms, by kind."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    kinds = ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration", "TaskDuration")

    def now() -> dict[str, float]:
        told = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        return {kind: 1000 * told[kind] for kind in kinds}

    return now


def opened(browser: Browser, address: str) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address)
    page.locator("article.run").first.wait_for(timeout=60_000)
    page.wait_for_timeout(1000)
    return page


def play(browser: Browser, name: str, address: str) -> None:
    page = opened(browser, address)
    page.get_by_label("Speed").select_option("16")
    now = spent(page)
    before = now()
    gaps: list[float] = page.evaluate(PLAY, SECONDS)
    after = now()
    steps = int(page.locator("[data-counter]").inner_text().split(" / ")[0]) - 1
    script, style, layout, task = ((after[kind] - before[kind]) / steps for kind in before)
    gap = statistics.median(gaps)
    print(f"{name}: {len(gaps) / SECONDS:.0f} frames/s, median gap {gap:.1f} ms; each of {steps} steps took")
    print(f"    script {script:.1f}, style {style:.1f}, layout {layout:.1f}, all {task:.1f} ms")
    page.close()


def seek(browser: Browser, name: str, address: str) -> None:
    page = opened(browser, address)
    now = spent(page)
    before = now()["TaskDuration"]
    took: list[float] = page.evaluate(SEEK, SEEKS)
    each = (now()["TaskDuration"] - before) / SEEKS
    print(f"{name}: median {statistics.median(took):.0f} ms, longest {max(took):.0f} ms, processor time {each:.1f} ms")
    page.close()


def main() -> None:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        raise SystemExit("bench.lab: no Chromium on the PATH")
    with lab() as origin, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        one, two = "lang=en&p=rr:quantum=1", "lang=en&p=rr:quantum=1~stride"
        play(browser, "play 1,000 marks", f"{origin}?{one}&x={tasks(1000)}")
        play(browser, "play 2 x 1,000 marks", f"{origin}?{two}&x={tasks(1000)}")
        play(browser, "play 2 x 4,000 marks (canvas)", f"{origin}?{two}&x={tasks(4000)}")
        seek(browser, "seek in 10,000 steps", f"{origin}?{one}&x={tasks(10_000)}")
        browser.close()


if __name__ == "__main__":
    main()
