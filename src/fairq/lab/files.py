"""Files that a reader opens in the lab: a scenario, a trace of requests, or segments of a gateway's ledger."""

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairq.lab.recorded import SECOND, Recording, last_time, read, wall_of
from fairq.lab.views import Answer, File, RunView
from fairq.ledger.segment import Head, LedgerError, decode, segments_in
from fairq.ledger.tags import policy_of

YAML = (".yaml", ".yml")
LONGEST_WINDOW = 3600.0  # seconds of a running gateway's ledger


def kind_of(file: File) -> str:
    """scenario, ledger or trace, by its name and its first line."""
    if file.name.lower().endswith(YAML):
        return "scenario"
    first = file.data.lstrip()[:200]
    return "ledger" if first.startswith(b"{") and b'"is"' in first else "trace"


def put(files: Sequence[File], folder: Path) -> list[Path]:
    """Each in `folder`, numbered, under its own name: messages tell it."""
    paths = []
    for number, file in enumerate(files):
        own = folder / str(number)
        own.mkdir()
        path = own / (Path(file.name.replace("\\", "/")).name or "file")
        path.write_bytes(file.data)
        paths.append(path)
    return paths


def told(paths: Sequence[Path]) -> Answer:
    """What is recorded in these segments, each pool by itself. Raises LedgerError."""
    pools: dict[str, list[tuple[int, Path]]] = {}
    for path in paths:
        head = head_of(path)
        pools.setdefault(head.pool, []).append((head.monotonic, path))
    return answer([(pool, read(path for _, path in sorted(found))) for pool, found in sorted(pools.items())])


def recent(folder: Path, seconds: float) -> Answer:
    """The last seconds of a pool that is written now. Raises LedgerError."""
    try:
        segments = segments_in(folder)
        while segments and not segments[-1].stat().st_size:
            segments.pop()
        if not segments:
            raise LedgerError(f"pool {folder.name}: nothing is recorded yet")
        since = last_time(segments[-1]) - round(seconds * SECOND)
        first = len(segments) - 1
        while first and head_of(segments[first]).monotonic > since:
            first -= 1
    except OSError as error:
        raise LedgerError(f"{folder.name}: {error.strerror or error}") from None
    recording, notes = read(segments[first:], since)
    assert recording.head is not None
    return answer([(recording.head.pool, (recording, notes))])


def head_of(path: Path) -> Head:
    """Raises LedgerError."""
    with path.open("rb") as file:
        raw = file.readline()
    try:
        head = decode(raw.rstrip(b"\n"))
    except (msgspec.MsgspecError, ValueError, ArithmeticError) as error:
        raise LedgerError(f"{path}:1: not a line of a ledger: {error}") from None
    if not isinstance(head, Head):
        raise LedgerError(f"{path}:1: a segment must begin with its head, not with {type(head).__name__}")
    return head


def answer(pools: Sequence[tuple[str, tuple[Recording, list[str]]]]) -> Answer:
    origin = min((_first(recording) for _, (recording, _) in pools), default=0)
    weights = {name: weight for _, (recording, _) in pools for name, weight in recording.weights.items()}
    runs = [_run(pool, recording, notes, origin) for pool, (recording, notes) in pools]
    if not any(run.steps for run in runs):
        raise LedgerError("ledger: nothing happened in it")
    return Answer(
        layer="ledger",
        title=", ".join(pool for pool, _ in pools),
        look_for="",
        source="",
        scenario={"tenants": [{"id": name, "weight": weights[name]} for name in sorted(weights)]},
        yaml="",
        runs=runs,
        again=again(pools[0][1][0]),
    )


def _first(recording: Recording) -> int:
    """When what is kept begins, ns: with a request's arrival where nothing was left out."""
    if not recording.steps:
        now: int = recording.world.now
        return now
    first = recording.times[0]
    if recording.left_out or recording.since:
        return first
    arrivals: list[int] = [one["arrival"] for one in recording.requests.values()]
    return min([first, *arrivals])


def _run(pool: str, recording: Recording, notes: list[str], origin: int) -> RunView:
    head = recording.head
    assert head is not None
    steps = [
        msgspec.structs.replace(step, time=f"{(time - origin) / SECOND:.6f}")
        for time, step in zip(recording.times, recording.steps, strict=True)
    ]
    until = recording.world.now
    requests = [_request(one, origin) for one in recording.requests.values() if (one["ended"] or until) >= origin]
    return RunView(
        spec=f"{pool} · {head.setup.policy}",
        policy=policy_of(head.setup.policy),
        params={"settlement": head.setup.settlement},
        steps=steps,
        result={
            "pool": pool,
            "until": (until - origin) / SECOND,
            "began": wall_of(head, origin),
            "left_out": recording.left_out,
            "notes": notes,
            "requests": requests,
        },
    )


def _request(one: dict[str, Any], origin: int) -> dict[str, Any]:
    moments = {
        key: None if one[key] is None else max(0.0, (one[key] - origin) / SECOND)
        for key in ("arrival", "dispatched", "freed", "ended")
    }
    wait = None if one["dispatched"] is None else (one["dispatched"] - one["arrival"]) / SECOND
    return one | moments | {"wait": wait}


def again(recording: Recording) -> dict[str, Any]:
    """The dispatched requests as a router scenario, for other policies: a model, whose time is the place in the order.

    A request joins where it had arrived by then; those of one tenant, moment and cost are one batch.
    """
    kept = {step.what["id"] for step in recording.steps if step.kind == "dispatch"}
    sent = [one for one in recording.requests.values() if one["id"] in kept and one["dispatched"] is not None]
    sent.sort(key=lambda one: one["dispatched"])
    times = [one["dispatched"] for one in sent]
    tenants: dict[str, list[dict[str, int]]] = {}
    for one in sorted(sent, key=lambda one: one["arrival"]):
        batches = tenants.setdefault(one["tenant"], [])
        join = bisect_left(times, one["arrival"])
        cost = max(one["charge"], 1)
        if batches and (batches[-1]["join"], batches[-1]["cost"]) == (join, cost):
            batches[-1]["count"] += 1
        else:
            batches.append({"count": 1, "cost": cost, "join": join})
    return {
        "tenants": [
            {"id": name, "weight": recording.weights.get(name, "1"), "batches": tenants[name]}
            for name in sorted(tenants)
        ]
    }
