"""The jobs of a CPU simulation, from release to end, and what the policy is told of them."""

from heapq import heapify, heappush
from itertools import count
from random import Random
from typing import Any

from fairq.core.job import Flow, Job
from fairq.core.policy import Cause, Policy, Stop
from fairq.sim.cpu.live import Live, Source
from fairq.sim.cpu.locking import Locking
from fairq.sim.cpu.processor import Processor, Processors
from fairq.sim.cpu.scenario import CpuScenario
from fairq.sim.trace import Tape

ABORT, CHANGE, RELEASE, WAKE = range(4)  # what happens first at one moment


class Jobs:
    """What is due (`events`), who lives (`by_id`), and the calls that tell the policy, through `drive`."""

    def __init__(self, scenario: CpuScenario, policy: Policy, tape: Tape | None) -> None:
        self.policy, self.tape = policy, tape
        self.drive = tape or policy
        self.now = 0
        self.end = scenario.end()
        self.cpus = [Processor() for _ in range(scenario.cpus)]
        self.view = Processors(self.cpus)
        self.sources = [
            Source(index, task, Random(f"{scenario.seed} {task.id}") if task.max_gap else None)
            for index, task in enumerate(scenario.tasks)
        ]
        self.by_id: dict[str, Live] = {}  # the jobs that have arrived and not ended
        self.lives: list[Live] = []  # all jobs, in order of release
        self.counter, self.seq = count(), count()
        self.aborts = scenario.on_miss == "abort"
        self.locks: Locking | None = None
        if any(task.locks for task in scenario.tasks):
            self.locks = Locking(policy, self.sources, scenario.cpus, self._wake, self._priority_changed)
        self.charges = tape is not None or type(policy).charge is not Policy.charge
        self.begun = False  # has a step been recorded?
        self.notes: dict[str, list[str]] = {}  # what happened since the last recorded step
        self.events: list[tuple[int, int, int, Any]] = []
        for source in self.sources:
            self.events.append((next(source.releases), RELEASE, source.index, source))
        source_of = {source.id: source for source in self.sources}
        for change in scenario.changes:
            flow = Flow(id=change.task, weight=change.weight)
            self.events.append((change.at, CHANGE, next(self.counter), (source_of[change.task], flow)))
        heapify(self.events)

    def _charge(self, cpu: Processor, live: Live, now: int) -> None:
        """For what ran since the last moment."""
        ran = now - cpu.since
        if live.first_run is None:
            live.first_run = cpu.since
        live.done += ran
        cpu.since = now
        if self.charges:
            self.drive.charge(live.job, ran, now)

    def _reach(self, cpu: Processor, live: Live) -> None:
        """The job is at a mark: it lets go of locks, sleeps, or ends."""
        source, now = live.source, self.now
        if self.locks:
            for resource in source.lets_go.get(live.done, ()):
                self.locks.release(live, resource)
        if live.done == source.work:
            if self.tape:
                self.note("finished", live)
            live.completion = now
            self._stop(cpu, live, Stop.FINISHED)
            self._over(live)
            return
        live.mark += 1
        live.goal = source.marks[live.mark]
        live.asked = 0
        if sleep := source.sleeps.get(live.done):
            self.note("slept", live)
            live.slept += sleep
            live.leaves(now, now + sleep)
            self._stop(cpu, live, Stop.BLOCKED)
            heappush(self.events, (now + sleep, WAKE, next(self.counter), live))
        else:
            cpu.due = now + live.goal - live.done
            cpu.next = min(cpu.due, cpu.end)

    def _over(self, live: Live) -> None:
        """A job is gone; the next one of its task may begin."""
        del self.by_id[live.id]
        if self.locks:
            self.locks.leave(live)
        source = live.source
        source.current = None
        if source.backlog:
            self._admit(source.backlog.popleft())

    # What comes from outside
    def _happen(self, kind: int, what: Any) -> None:
        if kind == CHANGE:
            source, flow = what
            source.flow = flow
            if source.count:
                self.drive.flow_changed(source.flow, self.now)
        elif what.completion is None and not what.aborted:
            if kind == WAKE:
                self._wake(what)
            else:
                self._abort(what)

    def _release(self, source: Source) -> None:
        if not source.count:
            self.drive.flow_changed(source.flow, self.now)
        live = Live(source, self.now, next(self.seq))
        self.lives.append(live)
        for at in source.releases:
            if self.end is None or at < self.end:
                heappush(self.events, (at, RELEASE, source.index, source))
            break
        if self.aborts and live.deadline is not None:
            heappush(self.events, (live.deadline, ABORT, next(self.counter), live))
        if source.current is not None:
            source.backlog.append(live)
        else:
            self._admit(live)

    def _admit(self, live: Live) -> None:
        live.source.current = live
        self.by_id[live.id] = live
        if self.tape:
            self.note("arrived", live)
        job = live.burst(live.seq)
        if self.locks:
            self.locks.join(live)
        live.waits = True
        self.drive.arrive(job, self.now, Cause.NEW)

    def _wake(self, live: Live) -> None:
        self.note("woken", live)
        assert live.away
        live.away[-1] = (live.away[-1][0], self.now)
        live.waits = True
        self.drive.arrive(live.burst(next(self.seq)), self.now, Cause.WOKEN)

    def _abort(self, live: Live) -> None:
        self.note("aborted", live)
        live.aborted = True
        if live.id not in self.by_id:
            live.source.backlog.remove(live)
            return
        cpu = next((cpu for cpu in self.cpus if cpu.live is live), None)
        if cpu:
            self._stop(cpu, live, Stop.FINISHED)
        elif live.waits:
            self.drive.cancel(live.job, self.now)
        else:
            self.drive.stop(live.job, self.now, Stop.FINISHED)
        self._over(live)

    def _priority_changed(self, job: Job) -> None:
        self.drive.priority_changed(job, self.now)

    def _stop(self, cpu: Processor, live: Live, reason: Stop, on: str = "") -> None:
        cpu.close(self.now)
        self.drive.stop(live.job, self.now, reason, on)

    def note(self, what: str, live: Live) -> None:
        if self.tape is not None:
            self.notes.setdefault(what, []).append(live.id)

    def record(self, now: int, ran: list[Live | None]) -> None:
        """A step: what ran in the interval that ends now, what happened then, how things stand before the choice."""
        if self.tape:
            what = {"ran": [live and live.id for live in ran], **self.notes}
            why = next((live.id for live in ran if live), None)
            self.tape.step(now, "interval" if self.begun else "initial", why, **what)
            self.begun = True
            self.notes = {}
