"""One policy on one cluster scenario: whose tasks run, and what each user holds.

At one instant: tasks that end, tasks that arrive, then picks until nothing is picked or the picked task does not fit.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from fairq.core.job import Flow, Job, Task
from fairq.core.number import Number, quotient
from fairq.core.policy import Layer, Need, Pick, Policy, Stop
from fairq.measure.cluster import Held, Measures, measure, shares
from fairq.measure.fairness import Interval
from fairq.measure.latency import flat
from fairq.policies import make
from fairq.sim.cluster.scenario import ClusterScenario, User
from fairq.sim.draw import draws
from fairq.sim.scenario import Run
from fairq.sim.trace import Tape, Trace

PROVIDES = frozenset({Need.CAPACITY, Need.RANDOM})


class Room:
    """What is free: the view that a policy has of a cluster."""

    def __init__(self, capacity: Mapping[str, int]) -> None:
        self.capacity = capacity
        self.used = dict.fromkeys(capacity, 0)
        self.held: dict[str, dict[str, int]] = {}  # user -> resource -> amount
        self.tasks: dict[str, Task] = {}

    @property
    def running(self) -> Sequence[Job]:
        return list(self.tasks.values())

    def fits(self, job: Job) -> bool:
        assert isinstance(job, Task)
        return self.has(job.demand)

    def has(self, demand: Mapping[str, int]) -> bool:
        return all(self.used[resource] + amount <= self.capacity[resource] for resource, amount in demand.items())

    def cached_prefix(self, job: Job) -> int:
        return 0

    def take(self, task: Task) -> None:
        self.tasks[task.id] = task
        self._hold(task, 1)

    def give_back(self, task: Task) -> None:
        del self.tasks[task.id]
        self._hold(task, -1)

    def dominant_share(self, user: str) -> Number:
        return max((quotient(held, self.capacity[r]) for r, held in self.held.get(user, {}).items()), default=0)

    def _hold(self, task: Task, sign: int) -> None:
        held = self.held.setdefault(task.flow, {})
        for resource, amount in task.demand.items():
            self.used[resource] += sign * amount
            held[resource] = held.get(resource, 0) + sign * amount


class ClusterRun(Run):
    """record  None, or "events": a trace with a step for each task that starts or ends

    picks  users in the order in which their tasks started
    steps  (time, "start" or "finish", user, its dominant share afterwards)
    tasks  every task that was started, in that order
    ended  the tasks that ended after the last pick; with what runs then, they are how things stood at it
    """

    def __init__(self, scenario: ClusterScenario, policy: str, record: str | None = None) -> None:
        if record not in (None, "events"):
            raise ValueError(f"record = {record!r}: must be None or 'events'")
        self.scenario, self.spec = scenario, policy
        bound = self._bound()
        self.policy, self.params = bound.name, bound.parameters()
        self.tape = Tape(bound) if record else None
        self.room = Room(scenario.capacity)
        self.picks: list[str] = []
        self.steps: list[tuple[int, str, str, Number]] = []
        self.tasks: dict[str, Held] = {}
        self.ended: list[Task] = []
        self.end = 0
        self._spare = False  # was there ever room for a task that waited?
        self._waiting = dict.fromkeys((user.id for user in scenario.users), 0)
        self._backlogs: list[tuple[int, frozenset[str]]] = []  # from when on who had tasks waiting
        self._numbers = count(1)
        self._endless = {user.id: user for user in scenario.users if user.endless}
        self._durations: dict[str, int | None] = {}  # of the tasks that wait
        self._drive(self.tape or bound)

    def _bound(self) -> Policy:
        scenario = self.scenario
        policy = make(self.spec)
        layer = Layer(name="cluster", provides=PROVIDES, capacity=scenario.capacity, random=draws(scenario.seed))
        policy.bind(layer)
        return policy

    def _drive(self, policy: Policy) -> None:
        coming: list[tuple[int, int, User, int, int | None]] = []  # when, order, whose, how many, how long
        for user in self.scenario.users:
            policy.flow_changed(Flow(id=user.id, weight=user.weight), 0)
            joins = [(batch.arrival, batch.tasks, batch.duration) for batch in user.batches]
            for arrival, tasks, duration in joins or [(user.arrival, user.tasks or 1, user.duration)]:
                coming.append((arrival, len(coming), user, tasks, duration))
        coming.sort(key=lambda join: join[:2], reverse=True)
        ending: list[tuple[int, int, Task]] = []
        horizon = self.scenario.horizon
        while coming or ending:
            now = min([join[0] for join in coming[-1:]] + [end[0] for end in ending[:1]])
            if horizon is not None and now >= horizon:
                break
            while ending and ending[0][0] == now:
                task = heappop(ending)[2]
                self.room.give_back(task)
                policy.stop(task, now, Stop.FINISHED)
                self.ended.append(task)
                self.tasks[task.id] = replace(self.tasks[task.id], finish=now)
                self._note(now, "finish", task)
            while coming and coming[-1][0] == now:
                _, _, user, tasks, duration = coming.pop()
                for _ in range(tasks):
                    self._arrive(policy, user, duration, now)
            for task in self._fill(policy, now):
                duration = self._durations.pop(task.id)
                if duration is not None:
                    heappush(ending, (now + duration, task.seq, task))
            self._look(now)
        self.end = self.end if horizon is None else horizon

    def _look(self, now: int) -> None:
        """After the picks of a moment."""
        self.end = now
        waiting = frozenset(user for user, tasks in self._waiting.items() if tasks)
        self._backlogs.append((now, waiting))
        self._spare = self._spare or any(
            self.room.has(user.demand) for user in self.scenario.users if user.id in waiting
        )

    def _arrive(self, policy: Policy, user: User, duration: int | None, now: int) -> None:
        seq = next(self._numbers)
        task = Task(id=f"{user.id}#{seq}", flow=user.id, seq=seq, arrival=now, size=1, demand=user.demand)
        self._durations[task.id] = duration
        self._waiting[user.id] += 1
        policy.arrive(task, now)

    def _fill(self, policy: Policy, now: int) -> list[Task]:
        """Starts tasks until the policy picks none, or one that does not fit."""
        started: list[Task] = []
        while True:
            decision = policy.select(now, self.room)
            if not isinstance(decision, Pick) or not self.room.fits(decision.job):
                return started
            task = decision.job
            assert isinstance(task, Task)
            if user := self._endless.get(task.flow):  # its queue is never empty
                self._arrive(policy, user, user.duration, now)
            policy.commit(decision, now)
            self._waiting[task.flow] -= 1
            self.tasks[task.id] = Held(user=task.flow, demand=task.demand, arrival=task.arrival, start=now)
            self.room.take(task)
            policy.charge(task, 1, now)
            self.picks.append(task.flow)
            self.ended.clear()
            started.append(task)
            self._note(now, "start", task, decision)

    def _note(self, now: int, kind: str, task: Task, decision: Pick | None = None) -> None:
        share = self.room.dominant_share(task.flow)
        self.steps.append((now, kind, task.flow, share))
        if self.tape:
            self.tape.step(now, kind, decision.why if decision else None, user=task.flow, share=str(share))

    def at_last_pick(self) -> Room:
        """How things stood after the last pick."""
        room = Room(self.scenario.capacity)
        for task in [*self.room.tasks.values(), *self.ended]:
            room.take(task)
        return room

    @cached_property
    def measures(self) -> Measures:
        return measure(self.tasks.values(), self.room.capacity, self.end, not self._spare)

    def measured(self) -> dict[str, Any]:
        row = flat(self.measures)
        used = row.pop("utilisation") or {}
        return row | {f"{resource} used": share for resource, share in used.items()}

    def jobs(self) -> list[dict[str, Any]]:
        return [
            {"user": task.user, "arrival": task.arrival, "start": task.start, "finish": task.finish}
            | {"waiting": task.start - task.arrival}
            for task in self.tasks.values()
        ]

    def fairness(self) -> list[Interval]:
        """Dominant share * time / weight over the intervals in which the same users have tasks waiting."""
        return shares(self.tasks.values(), self._backlogs, self.end, self.room.capacity, self.weights())

    def weights(self) -> dict[str, Fraction]:
        return {user.id: user.weight for user in self.scenario.users}

    def as_json(self) -> dict[str, Any]:
        room = self.at_last_pick()
        users = [user.id for user in self.scenario.users]
        running = Counter(task.flow for task in room.tasks.values())
        return {
            "policy": self.policy,
            "params": {name: str(v) if isinstance(v, Fraction) else v for name, v in self.params.items()},
            "picks": self.picks,
            "tasks": {user: running[user] for user in users},
            "dominant_share": {user: str(room.dominant_share(user)) for user in users},
            "used": room.used,
            "measures": to_builtins(self.measures),
            "fairness": self.fairness_json("users", len(self.steps)),
            "steps": [
                {"time": time, "kind": kind, "user": user, "dominant_share": str(share)}
                for time, kind, user, share in self.steps
            ],
        }

    def trace(self) -> Trace:
        if self.tape is None:
            raise ValueError("this run was not recorded")
        return Trace.of(self, self.tape.play(self._bound))
