"""Both languages say everything. That they have the same keys, the compiler checks; here is what the server can say."""

import re
from pathlib import Path

import pytest

from fairq.console.standing import Standing
from fairq.console.state import PROMISES
from fairq.core.lifecycle import Outcome
from fairq.lab import catalogue
from fairq.ledger.explanation import Cause, Layer
from fairq.policies import POLICIES

SOURCE = Path(__file__).parents[2] / "web" / "src"
PACKAGE = Path(__file__).parents[2] / "src" / "fairq"
KEY = re.compile(r"^  (\w+):(.*)$", re.M)


def texts(name: str) -> dict[str, str]:
    """key -> what stands behind it, of a file of texts"""
    return dict(KEY.findall((SOURCE / "i18n" / name).read_text()))


@pytest.mark.parametrize("name", ["lab", "pages", "dash", "recorded"])
def test_both_languages_have_the_same_keys_and_places(name: str) -> None:
    english, japanese = texts(f"{name}.en.ts"), texts(f"{name}.ja.ts")
    assert english.keys() == japanese.keys()
    for key, text in english.items():
        places = [sorted(set(re.findall(r"\$\{v\.(\w+)", each))) for each in (text, japanese[key])]
        assert places[0] == places[1], key


def test_every_reason_of_a_policy_has_its_words() -> None:
    codes = {
        code
        for path in (PACKAGE / "policies").glob("*.py")
        for code in re.findall(r'Why\(\s*"([a-z-]+)"', path.read_text())
    }
    known = texts("lab.en.ts")
    assert codes
    assert {code for code in codes if f"why_{code.replace('-', '_')}" not in known} == set()


@pytest.mark.parametrize(
    ("family", "codes"),
    [
        ("outcome", [*Outcome]),
        ("standing", [*Standing]),
        ("cause", [*Cause]),
        ("because", [*Layer]),
        ("promise", sorted(PROMISES)),
    ],
)
def test_every_word_of_the_dashboard_has_its_text(family: str, codes: list[str]) -> None:
    """Both languages have the same keys: see above."""
    known = texts("dash.en.ts")
    assert {code for code in codes if f"{family}_{re.sub('[- ]', '_', code)}" not in known} == set()


def test_every_policy_has_a_line() -> None:
    known = texts("lab.en.ts")
    assert {name for name in POLICIES if f"policy_{name.replace('-', '_')}" not in known} == set()


def test_the_gallery_is_told_in_japanese() -> None:
    known = (SOURCE / "i18n" / "titles.ja.ts").read_text()
    assert {view.id for view in catalogue.scenarios().scenarios if f'"{view.id}"' not in known} == set()


def test_components_hold_no_text_of_their_own() -> None:
    found = [
        f"{path.name}: {text}"
        for path in SOURCE.rglob("*.tsx")
        for text in re.findall(r">\s*([A-Z][a-z]+ [a-z]+[^<{]*)<", path.read_text())
    ]
    assert found == []


def test_every_text_is_used() -> None:
    code = "\n".join(path.read_text() for path in SOURCE.rglob("*.ts*") if "i18n" not in path.parts)
    families = (
        "why_",
        "show_",
        "policy_",
        "name_",
        "param_",
        "value_",
        "outcome_",
        "standing_",
        "cause_",
        "because_",
        "promise_",
        "part_",
        "mode",
        "lead",
        "caution",
        "edge_",
        "family_",
        "choose",
        "layer",
        "check",
        "tour",
        "upstream_",
        "saw_",
    )
    unused = [
        key
        for name in ("lab", "pages", "dash", "recorded")
        for key in texts(f"{name}.en.ts")
        if not key.startswith(families) and f'"{key}"' not in code
    ]
    assert unused == []


def test_every_policy_and_parameter_has_a_name() -> None:
    english, japanese = texts("names.en.ts"), texts("names.ja.ts")
    assert english.keys() == japanese.keys()
    asked = {f"name_{policy.name}" for policy in catalogue.policies().policies}
    asked |= {f"param_{param.name}" for policy in catalogue.policies().policies for param in policy.params}
    assert {key for key in asked if key.replace("-", "_") not in english} == set()
