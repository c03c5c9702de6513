"""Multi-level feedback queue (OSTEP, chapter 8): learn from what a job did that it is short or interactive.

    1, 2  the highest level that has a job runs; within it round robin with the level's quantum
    3     a job starts at the top
    4     a job that has used up its allotment at a level goes one down, however often it gave the processor up
    5     every `boost` ticks all jobs go to the top, behind those there, the lowest level first (as OSTEP's program);
          a job that arrives at that very moment stands before them (OSTEP's program boosts first)

`quantum` and `allotment` are one number for all levels or one per level from the top ("10/20/40"); the allotment is in
ticks, one quantum unless given. Without `anti-gaming` a job that sleeps starts its quantum and allotment afresh (the
old rule 4: who sleeps just before the quantum ends stays on top for ever). `aging`: a job that has waited so many
ticks goes one level up. A job that is preempted stays first in its queue with the rest of its quantum.

Unit of fairness: service within a level, else none; it approximates SRTF without knowing sizes. Guarantees: a job gets
at most allotment(level) ticks at a level between promotions; with `boost` = S every job is at the top at some moment
of any S ticks, so none starves. One level is round robin.
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.errors import ConfigError
from fairq.core.job import Job
from fairq.core.policy import Cause, Need, Param, Stop, Time, Unit, View, Why
from fairq.core.ranking import Ranking
from fairq.core.ready import JobPolicy


class MLFQ(JobPolicy):
    name = "mlfq"
    unit = Unit.PRIORITY
    needs = frozenset({Need.PREEMPTION})
    per_job = ("level", "used", "turn")
    memory = ("rises", "turns", "boosts_at", "boosted")
    params = (
        Param(name="levels", default=3, low=1, high=64, text="param.mlfq.levels"),
        Param(name="quantum", default="1/2/4", text="param.mlfq.quantum"),
        Param(name="allotment", default="", text="param.mlfq.allotment"),
        Param(name="boost", default=0, low=0, text="param.mlfq.boost"),
        Param(name="anti_gaming", default=True, text="param.mlfq.anti-gaming"),
        Param(name="aging", default=0, low=0, text="param.mlfq.aging"),
    )
    levels: int
    quantum: str
    allotment: str
    boost: int
    anti_gaming: bool
    aging: int

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.quanta = self._per_level("quantum", self.quantum)
        self.allotments = self._per_level("allotment", self.allotment or self.quantum)
        self.level: dict[str, int] = {}  # 0 is the top; of all jobs that live
        self.used: dict[str, tuple[int, int]] = {}  # of the quantum, of the allotment
        self.turn: dict[str, int] = {}  # place in the level's queue, kept while it runs
        self.rises: Ranking[str, int] = Ranking()  # when aging promotes a waiting job
        self.turns = 0
        self.boosts_at = self.boost
        self.boosted: set[str] = set()  # jobs that were boosted while they ran, until they have taken their new place

    def _per_level(self, name: str, text: str) -> list[int]:
        try:
            ticks = [int(part) for part in text.split("/")]
        except ValueError:
            ticks = [0]
        if min(ticks) < 1 or len(ticks) not in (1, self.levels):
            rule = f"must be ticks of at least 1: one number, or {self.levels} (the levels) separated by /"
            raise ConfigError(f"{self.name}.{name}", text, rule)
        return ticks * self.levels if len(ticks) == 1 else ticks

    # The rules
    def rank(self, job: Job) -> tuple[int, int]:
        return self.level[job.id], self.turn[job.id]

    def slice(self, job: Job) -> int:
        level, (quantum, allotment) = self.level[job.id], self.used[job.id]
        return min(self.quanta[level] - quantum, self.allotments[level] - allotment)

    def preempts(self, running: Job, now: Time) -> bool:
        first = self.first()
        return running.id in self.boosted or (first is not None and first[0] < self.rank(running))

    def charge(self, job: Job, amount: int, now: Time) -> None:
        quantum, allotment = self.used[job.id]
        self.used[job.id] = quantum + amount, allotment + amount

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        id_ = job.id
        level = self.level.setdefault(id_, 0)
        quantum, allotment = self.used.setdefault(id_, (0, 0))
        self.boosted.discard(id_)
        keeps_turn = cause is Cause.PREEMPTED
        if allotment >= self.allotments[level]:
            self.level[id_], self.used[id_], keeps_turn = min(level + 1, self.levels - 1), (0, 0), False
        elif quantum >= self.quanta[level]:
            self.used[id_], keeps_turn = (0, allotment), False
        if not keeps_turn:
            self.turns += 1
            self.turn[id_] = self.turns
        if self.aging and self.level[id_]:
            self.rises.put(id_, now + self.aging)
        super().arrive(job, now, cause)

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        if reason is Stop.BLOCKED and not self.anti_gaming:
            self.used[job.id] = 0, 0
        super().stop(job, now, reason, on)

    def leave(self, job: Job) -> None:
        super().leave(job)
        self.rises.drop(job.id)

    def gone(self, job: Job) -> None:
        super().gone(job)
        self.boosted.discard(job.id)

    # Promotions
    def next_change(self, now: Time, view: View) -> Time | None:
        rise = self.rises.first()
        moments = [at for at in (self.boosts_at, rise[0] if rise else 0) if at]
        return min(moments, default=None)

    def timer(self, now: Time) -> None:
        while (rise := self.rises.first()) and rise[0] <= now:
            at, id_ = rise
            self.rises.put(id_, at + self.aging)
            self._promote(id_, self.level[id_] - 1)
        if self.boost and self.boosts_at <= now:
            self.boosts_at += self.boost * ((now - self.boosts_at) // self.boost + 1)
            lower = sorted((-level, self.turn[id_], id_) for id_, level in self.level.items() if level)
            for _, _, id_ in lower:
                self._promote(id_, 0)
            self.used = dict.fromkeys(self.used, (0, 0))

    def _promote(self, id_: str, level: int) -> None:
        self.turns += 1
        self.level[id_], self.used[id_], self.turn[id_] = level, (0, 0), self.turns
        if level == 0:
            self.rises.drop(id_)
        if id_ in self.jobs:
            self.place(self.jobs[id_])
        else:
            self.boosted.add(id_)

    # What shells read
    def why(self, job: Job) -> Why:
        return Why("highest-level", {"level": self.level[job.id]})

    def show(self) -> Mapping[str, Any]:
        return {"level": dict(self.level), "used": {id_: allotment for id_, (_, allotment) in self.used.items()}}
