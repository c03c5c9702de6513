"""The ready list that job policies share: every waiting job has a rank of its own (JobPolicy)."""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, ClassVar

from fairq.core.errors import check
from fairq.core.job import Job
from fairq.core.memory import recall, remembered
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Pick, Policy, Stop, Time, View, Why

Entry = Any
"""(rank, seq, id) of a job, in this order of precedence. Which tuple it is counts: compiled code would copy one whose
type it knew."""


class JobPolicy(Policy):
    """The waiting job of least (rank, seq, id) goes first, whoever's it is. O(log n) for each call, n waiting jobs.

    A subclass says `rank(job)` and `why`. With `takes_over` a waiting job takes the place of a running one of higher
    rank.

    per_job  names of its attributes that are dicts by job, of which `gone` drops an entry
    memory   names of all others that hold what it remembers
    """

    takes_over: ClassVar[bool] = False
    per_job: ClassVar[tuple[str, ...]] = ()
    memory: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.jobs: dict[str, Job] = {}  # that wait, in order of arrival
        self.closed: set[str] = set()  # flows that may not be dispatched from
        self.entries: dict[str, Entry] = {}  # of the waiting jobs of open flows
        self.heap: list[Entry] = []  # the same; an entry that is not its job's present one is stale

    # What a subclass says
    def rank(self, job: Job) -> Any:
        raise NotImplementedError

    def why(self, job: Job) -> Why:
        raise NotImplementedError

    def gone(self, job: Job) -> None:
        """`job` has left for good: finished, or cancelled."""
        for name in self.per_job:
            getattr(self, name).pop(job.id, None)

    # The contract
    def flow_open(self, flow: str, open_: bool, now: Time) -> None:
        if open_:
            self.closed.discard(flow)
        else:
            self.closed.add(flow)
        for job in self.jobs.values():
            if job.flow == flow:
                self.place(job)

    def forget(self, flow: str) -> None:
        self.closed.discard(flow)

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        id_ = job.id
        self.jobs[id_] = job
        if job.flow not in self.closed:
            entry = self.entry(job)
            self.entries[id_] = entry
            heappush(self.heap, entry)

    def cancel(self, job: Job, now: Time) -> None:
        self.leave(job)
        self.gone(job)

    def select(self, now: Time, view: View) -> Decision:
        first = self.first()
        if first is None:
            return NOTHING_WAITS
        job = self.jobs[first[2]]
        return Pick(job, self.why(job))

    def take(self, now: Time, view: View) -> Job | None:
        if not self.short_take:
            return Policy.take(self, now, view)
        heap, entries = self.heap, self.entries
        while heap:
            id_ = heap[0][2]
            if entries.get(id_) is heap[0]:
                job = self.jobs[id_]
                self.leave(job)
                return job
            heappop(heap)
        return None

    def peek(self, now: Time, view: View) -> Job | None:
        if not self.short_peek:
            return Policy.peek(self, now, view)
        first = self.first()
        return None if first is None else self.jobs[first[2]]

    def admit(self, now: Time, view: View) -> Job | None:
        if not self.short_admit:
            return Policy.admit(self, now, view)
        first = self.first()
        if first is None or not view.fits(self.jobs[first[2]]):
            return None
        return self.take(now, view)

    def fitting(self, now: Time, view: View) -> Pick | None:
        """O(n log n)."""
        if not self.short_fitting:
            return Policy.fitting(self, now, view)
        for _, _, id_ in sorted(self.entries.values()):
            if view.fits(job := self.jobs[id_]):
                return Pick(job, Why("first-that-fits"))
        return None

    def commit(self, decision: Decision, now: Time) -> None:
        if isinstance(decision, Pick):
            self.leave(decision.job)

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        if reason is Stop.FINISHED:
            self.gone(job)

    def preempts(self, running: Job, now: Time) -> bool:
        if not self.takes_over:
            return False
        first = self.first()
        return first is not None and first < (self.rank(running), running.seq, running.id)

    # What subclasses and shells use
    def first(self) -> Entry | None:
        """The entry of the job that goes first."""
        heap, get = self.heap, self.entries.get
        while heap:
            first = heap[0]
            if get(first[2]) is first:
                return first
            heappop(heap)
        return None

    def entry(self, job: Job) -> Entry:
        return self.rank(job), job.seq, job.id

    def place(self, job: Job) -> None:
        """Puts a waiting job where its rank says, or takes it out while its flow is closed."""
        if job.flow in self.closed:
            self.entries.pop(job.id, None)
            return
        entry = self.entry(job)
        self.entries[job.id] = entry
        heappush(self.heap, entry)
        if len(self.heap) > 2 * len(self.entries) + 64:
            self.renew()

    def leave(self, job: Job) -> None:
        del self.jobs[job.id]
        entry = self.entries.pop(job.id, None)
        heap = self.heap
        if heap and heap[0] is entry:
            heappop(heap)
        elif len(heap) > 2 * len(self.entries) + 64:
            self.renew()

    def renew(self) -> None:
        """A heap without stale entries."""
        self.heap = list(self.entries.values())
        heapify(self.heap)

    def waiting(self) -> int:
        return len(self.jobs)

    def backlogged(self) -> Sequence[str]:
        return sorted({self.jobs[id_].flow for id_ in self.entries})

    # State
    def state(self) -> dict[str, Any]:
        return {"waiting": list(self.jobs), "closed": sorted(self.closed)} | remembered(
            self, self.memory + self.per_job
        )

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        recall(self, self.memory + self.per_job, state)
        self.closed = set(state["closed"])
        for id_ in state["waiting"]:
            self.jobs[id_] = jobs[id_]
            self.place(jobs[id_])

    def validate(self) -> None:
        open_ = {job.id for job in self.jobs.values() if job.flow not in self.closed}
        check(self.entries.keys() == open_, f"ranked {sorted(self.entries)}, waiting {sorted(open_)}")
        for id_, entry in self.entries.items():
            rank = self.rank(self.jobs[id_])
            check(entry[0] == rank, f"job {id_} is ranked {entry[0]}, its rank is {rank}")
            check(any(other is entry for other in self.heap), f"job {id_} is not in the heap")
