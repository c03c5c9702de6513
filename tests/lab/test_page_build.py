"""The build of the page when fairq is installed from its sources: a failed one fails, and says why in one line.

node and npm are scripts here; what they print is what npm 10, TypeScript 7 and esbuild 0.28 printed when it was tried.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
UNREACHABLE = """npm error code ECONNREFUSED
npm error syscall connect
npm error errno ECONNREFUSED
npm error FetchError: request to http://127.0.0.1:9/uplot failed, reason: connect ECONNREFUSED 127.0.0.1:9
npm error     at ClientRequest.<anonymous> (/usr/lib/node_modules/npm/lib/index.js:130:14)
npm error A complete log of this run can be found in: /tmp/npmcache/_logs/debug-0.log"""
TYPES = "src/numbers.ts(32,14): error TS2322: Type 'string' is not assignable to type 'number'."
SYNTAX = """✘ [ERROR] Unexpected ";"

    src/numbers.ts:32:21:
      32 │ export const wrong = ;
         ╵                      ^
node:internal/process/promises:288
            triggerUncaughtException(err, true /* fromPromise */);"""
FULL = """✘ [ERROR] Failed to write to output file: write /tmp/web/.out/app.js: no space left on device
"""


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """hatch_build.py, as if hatchling were there, which it is only while a wheel is built."""
    name = "hatchling.builders.hooks.plugin.interface"
    parts = name.split(".")
    for n in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:n]), ModuleType(parts[n - 1]))
    monkeypatch.setattr(sys.modules[name], "BuildHookInterface", object, raising=False)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Web:
    """A folder with a lock file; `node` and `npm` do as they are told."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.static, self.bin = folder / "web", folder / "static", folder / "bin"
        (self.folder / "node_modules").mkdir(parents=True)
        (self.folder / "package-lock.json").write_text("{}")
        self.bin.mkdir()
        monkeypatch.setenv("PATH", f"{self.bin}:/usr/bin:/bin")
        self.npm()
        self.node()

    def npm(self, says: str = "", status: int = 0) -> None:
        self._script("npm", f"cat >&2 <<'END'\n{says}\nEND\nexit {status}")

    def node(self, on: str = "none", says: str = "", makes: str = "manifest.json icon.svg app-X.js") -> None:
        """`on`: part of the command that fails; `makes`: what the build leaves."""
        self._script(
            "node",
            'case "$*" in --version) echo v20.1.0; exit 0;; esac\n'
            f"case \"$*\" in *{on}*) cat >&2 <<'END'\n{says}\nEND\nexit 1;; esac\n"
            f'case "$*" in *build.mjs*) mkdir -p "$FAIRQ_STATIC"; cd "$FAIRQ_STATIC"; touch {makes};; esac',
        )

    def _script(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Web:
    return Web(tmp_path, monkeypatch)


def refused(hook: Any, web: Web) -> str:
    with pytest.raises(SystemExit) as failed:
        hook.build(web.folder, web.static)
    message = str(failed.value)
    assert message.startswith("fairq's page ")
    assert "\n" not in message
    return message


def stamp(web: Web) -> Path:
    return web.folder / "node_modules" / ".fairq-lock"


def test_a_page_that_is_whole_is_built_and_its_packages_are_fetched_once(hook: Any, web: Web) -> None:
    hook.build(web.folder, web.static)
    assert (web.static / "app-X.js").is_file()
    web.npm("npm must not be asked again", 1)
    hook.build(web.folder, web.static)


def test_an_unreachable_registry_is_said(hook: Any, web: Web) -> None:
    web.npm(UNREACHABLE, 1)
    assert refused(hook, web) == (
        "fairq's page was not built: npm ci: FetchError: request to http://127.0.0.1:9/uplot failed, "
        "reason: connect ECONNREFUSED 127.0.0.1:9"
    )


@pytest.mark.parametrize(
    ("on", "says", "told"),
    [
        ("tsc", TYPES, f"tsc: {TYPES}"),
        ("build.mjs", SYNTAX, 'build.mjs: ✘ [ERROR] Unexpected ";" src/numbers.ts:32:21:'),
        ("build.mjs", FULL, f"build.mjs: {FULL.strip()}"),
        ("build.mjs", "", "build.mjs: it ended with 1"),
    ],
    ids=["types", "syntax", "disk", "silent"],
)
def test_what_the_tools_complain_of_is_said_in_one_line(hook: Any, web: Web, on: str, says: str, told: str) -> None:
    web.node(on, says)
    assert refused(hook, web) == f"fairq's page was not built: {told}"
    assert not stamp(web).exists(), "on a full disk npm leaves packages out and says nothing: fetch them again"


def test_a_page_with_something_missing_is_no_page(hook: Any, web: Web) -> None:
    web.node(makes="manifest.json icon.svg")
    assert refused(hook, web) == f"fairq's page is incomplete: {web.static} has icon.svg, manifest.json"


def test_a_disk_that_refuses_is_said_too(hook: Any, web: Web) -> None:
    (web.folder / "package-lock.json").unlink()
    assert "package-lock.json" in refused(hook, web)


def test_without_any_node_it_says_what_is_needed(hook: Any, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "needs node >= 18 with npm on the PATH" in refused(hook, web)
