"""Compiles fairq's hot packages with mypyc into one native library, for the wheel: python compile_build.py FOLDER

What is compiled behaves as its source does: every class may be subclassed, copied and pickled. It is started by the
build of a wheel (hatch_build.py), in a process of its own, with the build's own interpreter.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

COMPILED = (
    *("core", "policies", "placements", "gateway", "ledger/disk.py", "ledger/writer.py", "measure/service.py"),
    *("sim/draw.py", "sim/link/line.py", "sim/link/packets.py", "sim/link/room.py", "sim/link/stalls.py"),
    *("sim/cpu/alone.py", "sim/cpu/jobs.py", "sim/cpu/live.py", "sim/cpu/locking.py", "sim/cpu/machine.py"),
    *("sim/cpu/processor.py", "sim/engine/batch.py", "sim/engine/call.py", "sim/engine/figures.py"),
    *("sim/engine/jumping.py", "sim/engine/kv.py", "sim/engine/prefix.py", "sim/engine/stepping.py"),
)
"""Packages and modules of fairq."""

INTERPRETED = {
    # Structs and models, whose class statements have keywords or a metaclass that wants the whole of it.
    *("core/commands.py", "core/cost.py", "core/decision.py", "core/events.py", "core/job.py", "core/layer.py"),
    *("core/param.py", "core/saved.py", "core/setup.py", "core/tokens.py", "core/wrong_value.py"),
    *("gateway/config.py", "gateway/config_check.py", "gateway/config_docs.py", "gateway/config_names.py"),
    *("gateway/config_problems.py", "gateway/config_reload.py", "gateway/config_sections.py"),
    *("gateway/config_source.py", "gateway/config_values.py", "gateway/control.py", "gateway/identity.py"),
    *("gateway/http1/limits.py", "gateway/openai/bodies.py", "gateway/openai/reports.py", "gateway/openai/listing.py"),
    # Run once, or rarely, and use what mypyc does not know.
    *("gateway/calibration.py", "gateway/child.py", "gateway/keys.py", "gateway/models.py"),
}
"""What stays interpreted in those packages, and why."""

LIBRARY = "fairq"  # is built as fairq__mypyc


def modules(source: Path) -> list[str]:
    """Paths of all that is compiled, below `source`."""
    named = [source / "fairq" / name for name in COMPILED]
    found = [path for one in named for path in ([one] if one.suffix else sorted(one.rglob("*.py")))]
    names = [path.relative_to(source).as_posix() for path in found if path.stat().st_size]
    return [name for name in names if name.removeprefix("fairq/") not in INTERPRETED]


def compile_into(folder: Path) -> None:
    """The native modules of fairq, as they stand in a wheel. Raises SystemExit, having said what is wrong."""
    from mypyc.build import mypycify  # only here: the list above is read without mypyc
    from setuptools import setup

    root = Path(__file__).resolve().parent
    folder = folder.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        shutil.copytree(root / "src", "src", ignore=shutil.ignore_patterns("static", "__pycache__"))
        shutil.copy(root / "mypyc_plugin.py", ".")
        # `make lint` is strict; here packages may be missing that fairq needs only when it runs.
        Path("mypy.ini").write_text("[mypy]\nignore_missing_imports = True\nplugins = mypyc_plugin.py\n")
        os.environ["MYPYPATH"] = "src"
        os.chdir("src")
        options = ["--config-file=../mypy.ini", f"--cache-dir={root / 'build' / 'mypyc_cache'}"]
        level = os.environ.get("FAIRQ_OPTIMIZE", "2")
        extensions = mypycify([*options, *modules(Path())], opt_level=level, debug_level="0", group_name=LIBRARY)
        setup(name=LIBRARY, ext_modules=extensions, script_args=["--quiet", "build_ext", f"--build-lib={folder}"])


if __name__ == "__main__":
    compile_into(Path(sys.argv[1]))
