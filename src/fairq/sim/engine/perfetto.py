"""An engine's run for ui.perfetto.dev, in the Trace Event Format of `fairq.sim.perfetto`; times are the simulated ones.

Every run is a process, every client one of its threads.

    b, e  a request while it waits, is in prefill, decodes: one pair of each, with its tokens and its end in the args
    C     how many requests wait, and how many run, of each client
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from fairq.core.errors import ConfigError
from fairq.sim.engine.call import Call

MICRO = 1_000  # ns
Event = dict[str, Any]


def document(runs: Mapping[str, Iterable[Call]]) -> dict[str, Any]:
    """runs  name of the run -> its requests, all of which have left"""
    events = [event for pid, (name, calls) in enumerate(runs.items(), 1) for event in _process(pid, name, list(calls))]
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"made by": "fairq"}}


def write(runs: Mapping[str, Iterable[Call]], path: Path) -> None:
    """Raises ConfigError when `path` cannot be written."""
    try:
        path.write_bytes(msgspec.json.encode(document(runs)))
    except OSError as error:
        raise ConfigError("perfetto", str(path), error.strerror or "cannot be written") from None


def stages(call: Call) -> Iterator[tuple[str, int, int]]:
    """(stage, start, end), ns; a request that leaves early has fewer. A preempted one stays in its stage."""
    end = call.arrival if call.finish is None else call.finish
    starts = {"waiting": call.arrival, "prefill": call.admitted, "decode": call.first}
    reached = [(stage, start) for stage, start in starts.items() if start is not None]
    for (stage, start), (_, until) in zip(reached, [*reached[1:], ("", end)], strict=True):
        yield stage, start, until


def _process(pid: int, name: str, calls: list[Call]) -> Iterator[Event]:
    threads = {flow: tid for tid, flow in enumerate(sorted({call.job.flow for call in calls}), 1)}

    def event(ph: str, called: str, at: int, tid: int = 0, **more: Any) -> Event:
        return {"ph": ph, "name": called, "ts": at / MICRO, "pid": pid, "tid": tid, **more}

    yield event("M", "process_name", 0, args={"name": name})
    yield event("M", "process_sort_index", 0, args={"sort_index": pid})
    for flow, tid in threads.items():
        yield event("M", "thread_name", 0, tid, args={"name": flow})
        yield event("M", "thread_sort_index", 0, tid, args={"sort_index": tid})
    changes: list[tuple[int, str, str, int]] = []
    for number, call in enumerate(calls):
        tid, flow = threads[call.job.flow], call.job.flow
        told = {"request": call.job.id, "input": call.prompt, "cached": call.cached, "output": call.produced}
        told |= {"reason": call.reason, "preemptions": call.preemptions}
        for stage, start, end in stages(call):
            id_ = f"{pid}-{number}-{stage}"
            yield event("b", stage, start, tid, cat=stage, id=id_, args=told)
            yield event("e", stage, end, tid, cat=stage, id=id_)
            counter = "waiting" if stage == "waiting" else "running"
            changes += [(start, counter, flow, 1), (end, counter, flow, -1)]
    counts = {counter: dict.fromkeys(threads, 0) for counter in ("waiting", "running")}
    changes.sort()
    for at, (now, counter, flow, change) in enumerate(changes):
        counts[counter][flow] += change
        if at + 1 == len(changes) or changes[at + 1][:2] != (now, counter):
            yield event("C", counter, now, cat="state", args=dict(counts[counter]))
