"""The page of every policy and lock protocol says the same sorts of things, and says what the code does now."""

import re
from collections import Counter
from pathlib import Path

import pytest
from docs.build import BLOCK, PAGES, ROOT, SCENARIOS, digest, drawn, examples, ran, stale

from fairq.locks import PROTOCOLS
from fairq.policies import POLICIES
from fairq.sim.catalogue import entry

HEADINGS = {
    "What it decides",
    "Unit of fairness",
    "What it must know",
    "Guarantees and assumptions",
    "When it hurts",
    "Parameters",
    "Sources",
}
WRITTEN = [
    page for page in sorted(PAGES.glob("*.md")) if page.stem in POLICIES and "Worked example" in page.read_text()
]
ALL = [*sorted(PAGES.rglob("*.md")), SCENARIOS / "README.md"]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_nothing_is_stale() -> None:
    found = [named(path) for path, _ in stale(pictures=False)]
    assert not found, f"run `python -m docs.build`: {', '.join(found)}"


def test_every_policy_and_protocol_has_its_page() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} - {"index"} == set(POLICIES)
    assert {page.stem for page in (PAGES / "locks").glob("*.md")} == set(PROTOCOLS)
    assert len(WRITTEN) >= 23


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_a_page_answers_the_same_questions_as_the_others(page: Path) -> None:
    text = page.read_text()
    assert set(re.findall(r"^## (.+)$", text, re.M)) >= HEADINGS
    assert page.with_suffix(".svg").exists()
    for param in entry(page.stem).params:
        assert re.search(rf"^\* `{param.name.replace('_', '-')}`: ", text, re.M), param.name
    assert re.search(r"^> .*[ぁ-ん]", text, re.M)  # a summary in Japanese


@pytest.mark.parametrize("page", ALL, ids=named)
def test_every_link_and_every_named_file_exists(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).resolve().exists(), target
    for named_file in re.findall(r"examples/scenarios/[\w/-]+\.yaml", text):
        assert (ROOT / named_file).exists(), named_file


@pytest.mark.parametrize("page", ALL, ids=named)
def test_numbers_stand_in_generated_blocks_only(page: Path) -> None:
    """What a person typed may name a year or a version, no result."""
    typed = BLOCK.sub("", page.read_text())
    assert not re.findall(r"(?<![.\d])(?!\d{4}\.\d{5})\d+\.\d{2,}(?![.\d])|\d %", typed)


def test_a_number_of_an_example_is_the_articles() -> None:
    """The generator is not its own witness: these means are printed in the article."""
    text = (PAGES / "sjf.md").read_text()
    assert "| `fcfs` | A 0–7 · B 7–11 · C 11–12 · D 12–15 | 9.5 | 5.75 | 5.75 | 3 | 0 |" in text
    assert "| `sfq` | ABBCBBCABBCBCA |" in (PAGES / "sfq.md").read_text()


def test_a_changed_run_makes_a_picture_stale() -> None:
    page, file, specs = next(examples())
    scenario, runs = ran(file, specs)
    assert f"<!-- runs {digest(scenario, runs)} -->" in page.with_suffix(".svg").read_text()
    assert digest(scenario, runs) != digest(scenario, runs[:1])


@pytest.mark.parametrize(("page", "file", "specs"), list(examples()), ids=lambda value: getattr(value, "stem", ""))
def test_a_picture_drawn_anew_says_the_same(page: Path, file: str, specs: list[str]) -> None:
    def said(svg: str) -> Counter[str]:
        return Counter(re.findall(r"<text[^>]*>([^<]*)</text>", svg))

    assert said(drawn(*ran(file, specs))) == said(page.with_suffix(".svg").read_text())
