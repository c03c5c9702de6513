"""The ready list that job policies share: every waiting job has a rank of its own (JobPolicy)."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fairq.core.errors import check
from fairq.core.job import Job
from fairq.core.memory import pack, unpack
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Pick, Policy, Stop, Time, View, Why
from fairq.core.ranking import Ranking


class JobPolicy(Policy):
    """The waiting job of least (rank, seq, id) goes first, whoever's it is. O(log n) for each call, n waiting jobs.

    A subclass says `rank(job)` and `why`. With `preemptive` a waiting job takes the place of a running one of higher
    rank. What it remembers of a job beyond its wait it drops in `gone`; `memory` names the attributes that hold it.
    """

    preemptive: bool = False
    memory: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.jobs: dict[str, Job] = {}  # that wait, in order of arrival
        self.closed: set[str] = set()  # flows that may not be dispatched from
        self.ranking: Ranking[str, Any] = Ranking()  # of the jobs of open flows

    # What a subclass says
    def rank(self, job: Job) -> Any:
        raise NotImplementedError

    def why(self, job: Job) -> Why:
        raise NotImplementedError

    def gone(self, job: Job) -> None:
        """`job` has left for good: finished, or cancelled."""

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
        self.jobs[job.id] = job
        if self.closed:
            self.place(job)
        else:
            self.ranking.put(job.id, (self.rank(job), job.seq))

    def cancel(self, job: Job, now: Time) -> None:
        self.leave(job)
        self.gone(job)

    def select(self, now: Time, view: View) -> Decision:
        first = self.ranking.first()
        if first is None:
            return NOTHING_WAITS
        job = self.jobs[first[1]]
        return Pick(job, self.why(job))

    def take(self, now: Time, view: View) -> Job | None:
        heap = self.ranking.heap
        if not heap:
            return None
        job = self.jobs[heap[0][1]]
        self.leave(job)
        return job

    def commit(self, decision: Decision, now: Time) -> None:
        if isinstance(decision, Pick):
            self.leave(decision.job)

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        if reason is Stop.FINISHED:
            self.gone(job)

    def preempts(self, running: Job, now: Time) -> bool:
        if not self.preemptive:
            return False
        first = self.ranking.first()
        return first is not None and first < ((self.rank(running), running.seq), running.id)

    # What subclasses and shells use
    def place(self, job: Job) -> None:
        """Puts a waiting job where its rank says, or takes it out while its flow is closed."""
        if job.flow in self.closed:
            self.ranking.drop(job.id)
        else:
            self.ranking.put(job.id, (self.rank(job), job.seq))

    def leave(self, job: Job) -> None:
        del self.jobs[job.id]
        self.ranking.drop(job.id)

    def waiting(self) -> int:
        return len(self.jobs)

    def backlogged(self) -> Sequence[str]:
        return sorted({self.jobs[id_].flow for id_ in self.ranking})

    # State
    def state(self) -> dict[str, Any]:
        kept = {name: pack(getattr(self, name)) for name in self.memory}
        return {"waiting": list(self.jobs), "closed": sorted(self.closed), **kept}

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        for name in self.memory:
            setattr(self, name, unpack(state[name]))
        self.closed = set(state["closed"])
        for id_ in state["waiting"]:
            self.jobs[id_] = jobs[id_]
            self.place(jobs[id_])

    def validate(self) -> None:
        open_ = {job.id for job in self.jobs.values() if job.flow not in self.closed}
        check(set(self.ranking) == open_, f"ranked {sorted(self.ranking)}, waiting {sorted(open_)}")
        for id_ in self.ranking:
            rank = (self.rank(self.jobs[id_]), self.jobs[id_].seq)
            check(self.ranking[id_] == rank, f"job {id_} is ranked {self.ranking[id_]}, its rank is {rank}")
