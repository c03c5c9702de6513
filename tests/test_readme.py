"""The two READMEs tell the same story, and point at things that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ENGLISH, JAPANESE = (ROOT / name for name in ("README.md", "README.ja.md"))


def blocks(path: Path) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", path.read_text(), re.M | re.S)


def test_both_languages_have_the_same_sections() -> None:
    english, japanese = (re.findall(r"^#+ ", path.read_text(), re.M) for path in (ENGLISH, JAPANESE))
    assert english == japanese
    assert len(english) > 8


def test_both_languages_show_the_same_commands() -> None:
    without_comments = [[re.sub(r"\s+#.*", "", block) for block in blocks(path)] for path in (ENGLISH, JAPANESE)]
    assert without_comments[0] == without_comments[1]


@pytest.mark.parametrize("path", [ENGLISH, JAPANESE, ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_every_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for block in blocks(ENGLISH):
        for target in re.findall(r"^make (\w+)", block, re.M):
            assert re.search(rf"^{target}:", makefile, re.M), target


def test_every_fairq_command_exists() -> None:
    from fairq.cli import COMMANDS

    for block in blocks(ENGLISH):
        for command in re.findall(r"bin/fairq (\w+)", block):
            assert command in COMMANDS
