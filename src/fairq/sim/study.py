"""Many runs on many cores, their measures in one Parquet file, and no run done twice.

What is finished is kept beside the file at once, so a study that was stopped goes on where it was; and asking for more
values later runs only the new ones.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec

from fairq import __version__
from fairq.core.errors import ConfigError
from fairq.progress import watched
from fairq.sim.backends import EXTRAS, done
from fairq.sim.sweep import Setting, run
from fairq.tables import Row, Table

BACKENDS = tuple(EXTRAS)


def study(settings: Sequence[Setting], results: Path, jobs: int = -1, backend: str = "loky") -> Table:
    """One row per setting, in their order: policy, what was swept, seed, the layer's measures; also in `results`.

    jobs     processes; -1: as many as there are cores; 1: none but this one
    backend  loky or threading, on this machine; ray or dask, also on many

    Raises ConfigError: a library is not installed, the file cannot be read or written.
    """
    part = results.with_name(results.name + ".part")
    keys = [key_of(setting) for setting in settings]
    known = _known(results) | _parts(part)
    todo = {key: setting for key, setting in zip(keys, settings, strict=True) if key not in known}
    if todo:
        found = done(list(todo.items()), row_of, jobs, backend)
        try:
            with part.open("ab") as file:
                for key, row in watched(found, name=_named, total=len(todo)):
                    known[key] = row
                    file.write(msgspec.json.encode({"key": key, "row": row}) + b"\n")
                    file.flush()
        except OSError as error:
            raise ConfigError("--results", str(results), f"cannot be written: {error.strerror}") from None
    table = Table({"key": key} | known[key] for key in keys)
    try:
        results.write_bytes(table.parquet())
        part.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError("--results", str(results), f"cannot be written: {error.strerror}") from None
    return table


def key_of(setting: Setting) -> str:
    """What a run depends on: the scenario, the policy and this version of the program."""
    scenario, spec, _ = setting
    told = (__version__, scenario.model_dump_json(exclude={"policies", "title", "look_for", "source"}), spec)
    return blake2b("\n".join(told).encode(), digest_size=12).hexdigest()


def row_of(key: str, setting: Setting) -> tuple[str, Row]:
    scenario, spec, chosen = setting
    found = run(setting)
    row: Row = {"policy": spec, **chosen, "seed": scenario.seed, **found.measured()}
    return key, msgspec.to_builtins(row, enc_hook=float)


def _named(one: tuple[str, Row]) -> str:
    return str(one[1]["policy"])


def _parts(part: Path) -> dict[str, Row]:
    """What a study that was stopped has finished; a last line that was cut off is left out."""
    found: dict[str, Row] = {}
    if part.exists():
        for line in part.read_bytes().split(b"\n"):
            try:
                told = msgspec.json.decode(line)
                found[told["key"]] = told["row"]
            except msgspec.DecodeError:
                continue
    return found


def _known(results: Path) -> dict[str, Row]:
    """The rows of an earlier study of the same file, by key."""
    if not results.exists():
        return {}
    try:
        import polars

        frame = polars.read_parquet(io.BytesIO(results.read_bytes()))
        return {row.pop("key"): row for row in frame.to_dicts()}
    except ImportError:
        raise ConfigError("--results", str(results), "needs polars: pip install 'fairq[frame]'") from None
    except Exception:
        rule = "is there already and is not the result of a study; give another name"
        raise ConfigError("--results", str(results), rule) from None
