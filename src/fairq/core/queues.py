"""The queues that policies share: one FIFO per flow (FlowPolicy)."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from fairq.core.errors import ValidationFailed
from fairq.core.job import Flow, Job
from fairq.core.memory import recall, remembered
from fairq.core.policy import NOTHING_WAITS, Cause, Decision, Layer, Pick, Policy, Time, View, Why
from fairq.core.ranking import Ranking

ONE: Final = (1, 1)


class FlowPolicy(Policy):
    """One FIFO per flow, and the backlogged flow of least `rank` goes first; ties break on the flow's id.

    A subclass says `rank(flow)` and `why`, `next_flow` too where it is not the one of least rank, and may hook `joined`
    (the flow became backlogged), `picked` (its head is taken), `charged` (the amount is known) and `idled` (all queues
    are empty). O(log F) for each call, F = backlogged flows.

    per_flow  names of its attributes that are dicts by flow, of which `forget` drops an entry
    memory    names of all others that hold what it remembers
    """

    keeps_order = True
    per_flow: ClassVar[tuple[str, ...]] = ()
    memory: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.queues: dict[str, deque[Job]] = {}  # of every flow that had a job since it became known; made once
        self.cancelled: set[str] = set()  # jobs that are still in their queue, never at its head
        self.weights: dict[str, tuple[int, int]] = {}  # as numerator, denominator: tags are made in the hot path
        self.closed: set[str] = set()
        self.ranking: Ranking[str, Any] = Ranking()
        self._waiting = 0

    # What a subclass says
    def rank(self, flow: str) -> Any:
        raise NotImplementedError

    def next_flow(self, now: Time) -> str | None:
        """The backlogged flow that goes first, if there is any. Pure."""
        return self.ranking.least()

    def joined(self, flow: str, now: Time) -> None: ...
    def picked(self, flow: str) -> None: ...
    def charged(self, flow: str, amount: int) -> None: ...
    def idled(self, now: Time) -> None: ...
    def why(self, flow: str, rank: Any) -> Why:
        raise NotImplementedError

    # The contract
    def bind(self, layer: Layer) -> None:
        super().bind(layer)
        self.normalize, self.cost_of = layer.normalize, layer.cost

    def flow_changed(self, flow: Flow, now: Time) -> None:
        self.weights[flow.id] = flow.weight.as_integer_ratio()

    def flow_open(self, flow: str, open_: bool, now: Time) -> None:
        if open_ and flow in self.closed:
            self.closed.discard(flow)
            if self.queues.get(flow):
                self.joined(flow, now)
                self.ranking.put(flow, self.rank(flow))
        elif not open_:
            self.closed.add(flow)
            self.ranking.drop(flow)

    def forget(self, flow: str) -> None:
        self.weights.pop(flow, None)
        self.queues.pop(flow, None)
        self.closed.discard(flow)
        for name in self.per_flow:
            getattr(self, name).pop(flow, None)

    def arrive(self, job: Job, now: Time, cause: Cause = Cause.NEW) -> None:
        flow = job.flow
        self._waiting += 1
        if self.cancelled and job.id in self.cancelled:
            self._purge()  # the name is used again
        queue = self.queues.get(flow)
        if queue is None:
            queue = self.queues[flow] = deque()
        queue.append(job)
        if len(queue) == 1 and flow not in self.closed:
            self.joined(flow, now)
            self.ranking.put(flow, self.rank(flow))

    def cancel(self, job: Job, now: Time) -> None:
        """O(1) amortised: a job inside its queue is only marked, and leaves when it comes to the head."""
        flow = job.flow
        if self.queues[flow][0].id != job.id:
            self._waiting -= 1
            self.cancelled.add(job.id)
            if len(self.cancelled) > self._waiting + 64:
                self._purge()
            return
        self.leave(flow)
        if flow in self.ranking:
            self.ranking.put(flow, self.rank(flow))
        if not self._waiting:
            self.idled(now)

    def select(self, now: Time, view: View) -> Decision:
        flow = self.next_flow(now)
        if flow is None:
            return NOTHING_WAITS
        return Pick(self.queues[flow][0], self.why(flow, self.ranking.key[flow]))

    def commit(self, decision: Decision, now: Time) -> None:
        """The head of a flow leaves its queue. Its new place, and the idle reset, wait for `charge`."""
        if isinstance(decision, Pick):
            flow = decision.job.flow
            self.picked(flow)
            self.leave(flow)

    def take(self, now: Time, view: View) -> Job | None:
        if not self.short_take:
            return Policy.take(self, now, view)
        flow = self.next_flow(now)
        if flow is None:
            return None
        self.picked(flow)
        return self.leave(flow)

    def peek(self, now: Time, view: View) -> Job | None:
        if not self.short_peek:
            return Policy.peek(self, now, view)
        flow = self.next_flow(now)
        return None if flow is None else self.queues[flow][0]

    def admit(self, now: Time, view: View) -> Job | None:
        if not self.short_admit:
            return Policy.admit(self, now, view)
        flow = self.next_flow(now)
        if flow is None or not view.fits(self.queues[flow][0]):
            return None
        return self.take(now, view)

    def fitting(self, now: Time, view: View) -> Pick | None:
        """O(F log F): flows in order of rank; inside a flow nobody is passed over."""
        if not self.short_fitting:
            return Policy.fitting(self, now, view)
        for _, flow in sorted((self.rank(flow), flow) for flow in self.ranking):
            if view.fits(self.queues[flow][0]):
                return Pick(self.queues[flow][0], Why("first-that-fits"))
        return None

    def charge(self, job: Job, amount: int, now: Time) -> None:
        """Called once after `commit`: the amount is known, so the flow takes its new place."""
        flow = job.flow
        self.charged(flow, amount)
        ranking = self.ranking
        if flow in ranking.key:
            ranking.put(flow, self.rank(flow))
        if not self._waiting:
            self.idled(now)

    # What subclasses and shells use
    def head(self, flow: str) -> Job:
        return self.queues[flow][0]

    def length(self, flow: str) -> int:
        """Jobs that wait. O(length), for displays and checks."""
        return sum(job.id not in self.cancelled for job in self.queues.get(flow, ()))

    def normalized(self, flow: str, amount: int) -> Any:
        """amount / weight, as the layer counts it."""
        weight = self.weights.get(flow)
        if weight is None:
            return self.normalize(amount, 1, 1)
        above, below = weight
        return self.normalize(amount, above, below)

    def waiting(self) -> int:
        return self._waiting

    def backlogged(self) -> Sequence[str]:
        return sorted(self.ranking)

    def is_backlogged(self, flow: str) -> bool:
        return flow in self.ranking

    def contended(self, flow: str) -> bool:
        return len(self.ranking) > (flow in self.ranking)

    def leave(self, flow: str) -> Job:
        """The head of a flow leaves its queue, and with it those behind it that were cancelled."""
        self._waiting -= 1
        queue = self.queues[flow]
        head = queue.popleft()
        if self.cancelled:
            while queue and queue[0].id in self.cancelled:
                self.cancelled.remove(queue.popleft().id)
        if not queue:
            self.ranking.drop(flow)
        return head

    def _purge(self) -> None:
        for flow, queue in self.queues.items():
            self.queues[flow] = deque(job for job in queue if job.id not in self.cancelled)
        self.cancelled.clear()

    def ranked(self, flow: str) -> bool:
        """Is a backlogged flow's place in the ranking right?"""
        return bool(self.ranking.key[flow] == self.rank(flow))

    # State
    def state(self) -> dict[str, Any]:
        return {
            "queues": {
                flow: [job.id for job in queue if job.id not in self.cancelled]
                for flow, queue in sorted(self.queues.items())
                if queue
            },
            "weights": {flow: list(weight) for flow, weight in sorted(self.weights.items()) if weight != ONE},
            "closed": sorted(self.closed),
            **remembered(self, self.memory + self.per_flow),
        }

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        """What else there is a subclass restores first; then this ranks every backlogged flow again."""
        recall(self, self.memory + self.per_flow, state)
        self.weights = {flow: (above, below) for flow, (above, below) in state["weights"].items()}
        self.closed = set(state["closed"])
        for flow, queue in state["queues"].items():
            self.queues[flow] = deque(jobs[id_] for id_ in queue)
            if flow not in self.closed:
                self.ranking.put(flow, self.rank(flow))
        self._waiting = sum(map(len, self.queues.values()))

    def validate(self) -> None:
        lengths = sum(map(len, self.queues.values())) - len(self.cancelled)
        if self._waiting != lengths or self._waiting != sum(map(self.length, self.queues)):
            raise ValidationFailed(f"{self._waiting} jobs counted, {lengths} in queues")
        if any(queue and queue[0].id in self.cancelled for queue in self.queues.values()):
            raise ValidationFailed("a cancelled job is the head of its queue")
        backlogged = {flow for flow, queue in self.queues.items() if queue} - self.closed
        if set(self.ranking) != backlogged:
            raise ValidationFailed(f"ranked {sorted(self.ranking)}, backlogged {sorted(backlogged)}")
        for flow in self.ranking:
            if not self.ranked(flow):
                raise ValidationFailed(f"flow {flow} is ranked {self.ranking.key[flow]}, its rank is {self.rank(flow)}")
