"""Traces for ui.perfetto.dev and chrome://tracing, in the Trace Event Format (JSON object form).

Every run is a process, every flow (a CPU's task) one of its threads. One unit of time is shown as a millisecond.

    X     service: from start to end, with the decision's reason and numbers in its args
    b, e  waiting: one pair for each time a job waits in a queue
    i     what else happened: arrivals, blocking, deadlines, idle steps
    C     how many wait in each queue, and every number that the policy shows (tags, meters, deficits, lags)
    M     names and order of processes and threads

Format: "Trace Event Format", docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from fairq.core.errors import ConfigError
from fairq.core.number import Number, of_json
from fairq.core.policy import Why
from fairq.sim.trace import Step, Trace

UNIT = 1000  # microseconds for a unit of time
NOTES = ("arrived", "woken", "blocked", "slept", "expired", "finished", "aborted")  # a CPU's

Event = dict[str, Any]


def document(traces: Mapping[str, Trace]) -> dict[str, Any]:
    """traces  name of the run (the policy as it was asked for) -> its trace, shown in this order"""
    events = [
        event for pid, (name, trace) in enumerate(traces.items(), 1) for event in Process(pid, name, trace).events()
    ]
    scenario = next((trace.scenario for trace in traces.values()), {})
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"made by": "fairq", "unit": "1 ms is one unit of time", "title": scenario.get("title", "")},
    }


def write(traces: Mapping[str, Trace], path: Path) -> None:
    """Raises ConfigError when `path` cannot be written."""
    try:
        path.write_bytes(msgspec.json.encode(document(traces)))
    except OSError as error:
        raise ConfigError("perfetto", str(path), error.strerror or "cannot be written") from None


def save(runs: Sequence[Any], path: Path) -> None:
    """Any layer's runs: their traces, or the requests of an engine, which keeps no steps. Raises ConfigError."""
    if runs[0].scenario.layer in ("engine", "fleet"):
        from fairq.sim.engine.perfetto import write as write_calls

        write_calls({run.label: run.calls for run in runs}, path)
    else:
        write({run.label: run.scenario.run(run.spec, "events").trace() for run in runs}, path)


class Process:
    """The events of one run."""

    def __init__(self, pid: int, name: str, trace: Trace) -> None:
        self.pid, self.name, self.trace = pid, name, trace
        self.single = {str(task["id"]) for task in trace.scenario.get("tasks", ())}
        self.threads: dict[str, int] = {}
        self.open: dict[str, tuple[Number, Why | None, int]] = {}  # job in service -> since when, why, in which lane
        self.waits: dict[str, tuple[str, str]] = {}  # waiting job -> its flow, the id of its wait
        self.since: dict[str, Number] = {}  # waiting job -> since when
        self.over: dict[str, Number] = {}  # flow -> when its last service ended
        self.shown: dict[str, dict[str, Number]] = {}
        self.count = 0

    def events(self) -> Iterator[Event]:
        """Once."""
        events = list(self._events())
        yield self._event("M", "process_name", 0, args={"name": self.name})
        yield self._event("M", "process_sort_index", 0, args={"sort_index": self.pid})
        for flow, tid in self.threads.items():
            yield self._event("M", "thread_name", 0, tid, args={"name": flow})
            yield self._event("M", "thread_sort_index", 0, tid, args={"sort_index": tid})
        yield from events

    def _events(self) -> Iterator[Event]:
        before, now = 0, 0
        queued: dict[str, str] = {}
        for step in self.trace.steps():
            before, now = now, of_json(step.time)  # type: ignore[assignment]
            if self.trace.layer == "cpu":  # a step tells of the interval that it ends, the queue of the next one
                ran = set(step.what["ran"])
                yield from self._waiting({job: queue for job, queue in queued.items() if job not in ran}, before)
                yield from self._ran(step, before, now)
            elif step.kind == "dispatch":
                yield self._service(step.what["tenant"], step.what["tenant"], now, now + 1, step.why, step.what)
            else:
                yield from self._served(step, now)
            queued = {job: queue for queue, jobs in step.queues.items() for job in jobs}
            if self.trace.layer != "cpu":
                yield from self._waiting(queued, now)
            yield from self._happened(step, now)
            yield from self._numbers(step, now)
        yield from self._waiting({}, now)
        for job, (start, why, lane) in self.open.items():  # it runs on when the trace ends
            yield self._service(self._flow(job), job, start, now + 1, why, lane=lane)

    # Service
    def _ran(self, step: Step, before: Number, now: Number) -> Iterator[Event]:
        for cpu, job in enumerate(step.what["ran"]):
            if job is not None:
                yield self._service(self._flow(job), job, before, now, step.why, {"cpu": cpu})

    def _served(self, step: Step, now: Number) -> Iterator[Event]:
        """On a link and in a cluster a job is in service from one step to a later one."""
        for job in step.running:
            if job not in self.open:
                taken = {lane for other, (_, _, lane) in self.open.items() if self._flow(other) == self._flow(job)}
                free = next(lane for lane in range(len(taken) + 1) if lane not in taken)
                self.open[job] = now, step.why, free
        for job in [job for job in self.open if job not in step.running]:
            start, why, lane = self.open.pop(job)
            flow = self._flow(job)
            if start == now:  # a fluid: it was served all the time since it was first in its queue
                start = max(self.since.pop(job, now), self.over.get(flow, 0))
            self.over[flow] = now
            yield self._service(flow, job, start, now, why, lane=lane)

    def _service(
        self,
        flow: str,
        job: str,
        start: Number,
        end: Number,
        why: Why | None,
        more: Mapping[str, Any] | None = None,
        lane: int = 0,
    ) -> Event:
        """lane: slices of one thread may not overlap, so a flow has as many threads as it has jobs in service."""
        args = {**(more or {}), **({"why": why.code, **why.values} if why else {})}
        thread = self._thread(f"{flow} ({lane + 1})" if lane else flow)
        return self._event("X", job, start, thread, cat="service", dur=micros(end - start), args=args)

    # Waiting
    def _waiting(self, here: Mapping[str, str], now: Number) -> Iterator[Event]:
        """From now on the jobs of `here` wait, and no others."""
        for job in [job for job in self.waits if job not in here]:
            flow, id_ = self.waits.pop(job)
            yield self._event("e", job, now, self._thread(flow), cat="waiting", id=id_)
        for job in here:
            if job not in self.waits:
                self.count += 1
                self.waits[job] = flow, id_ = self._flow(job), hex(self.pid << 32 | self.count)
                self.since[job] = now
                yield self._event("b", job, now, self._thread(flow), cat="waiting", id=id_)

    # Everything else
    def _happened(self, step: Step, now: Number) -> Iterator[Event]:
        for note in NOTES if self.trace.layer == "cpu" else ():
            for job in step.what.get(note, ()):
                yield self._event("i", note, now, self._thread(self._flow(job)), cat="note", s="t", args={"job": job})
        for tenant in step.what.get("joined", ()):
            yield self._event("i", "joins", now, self._thread(tenant), cat="note", s="t")
        if step.kind == "idle":
            yield self._event("i", "idle", now, 1, cat="note", s="p")

    def _numbers(self, step: Step, now: Number) -> Iterator[Event]:
        waiting = dict.fromkeys(self.shown.get("waiting", {}), 0)
        counters: dict[str, dict[str, Number]] = {
            "waiting": {**waiting, **{q: len(ids) for q, ids in step.queues.items()}}
        }
        for key, value in step.show.items():
            counters[key] = {name: n for name, one in named(value, key).items() if (n := number(one)) is not None}
        for key, values in counters.items():
            if values and self.shown.get(key) != values:
                self.shown[key] = values
                args = {name: one if isinstance(one, int) else float(one) for name, one in values.items()}
                yield self._event("C", key, now, cat="state", args=args)

    def _event(self, ph: str, name: str, ts: Number, tid: int = 0, **more: Any) -> Event:
        return {"ph": ph, "name": name, "ts": micros(ts), "pid": self.pid, "tid": tid, **more}

    def _thread(self, flow: str) -> int:
        return self.threads.setdefault(flow, len(self.threads) + 1)

    def _flow(self, job: str) -> str:
        """Jobs are numbered, flow#n; a CPU's task that comes once is its own job."""
        return job if job in self.single else job.rpartition("#")[0]


def named(value: object, key: str) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {key: value}


def number(value: object) -> Number | None:
    """Of an int or of "7/2"; None of anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    try:
        return value if isinstance(value, int) else Fraction(value)
    except (ValueError, ZeroDivisionError):
        return None


def micros(time: Number) -> int | float:
    scaled = time * UNIT
    return int(scaled) if scaled == int(scaled) else float(scaled)
