"""Recording of a link: a step for each arrival, start and finish of a packet."""

from collections.abc import Iterator
from typing import Any

from fairq.core.job import Job
from fairq.core.number import Number, quotient
from fairq.core.policy import Policy, Stop, Time, View
from fairq.policies.wfq import WFQ
from fairq.sim.trace import Tape


class LinkTape(Tape):
    """A tape that knows what the calls of a link mean, so the steps need not be written down while it runs.

    tick  how many ticks make a unit of time
    """

    def __init__(self, policy: Policy, tick: int) -> None:
        super().__init__(policy)
        self.tick = tick
        self.taken: list[str] = []  # packets, in order
        self.written = False
        self.hears_stop = type(policy).stop is not Policy.stop

    def take(self, now: Time, view: View) -> Job | None:
        job = self.policy.take(now, view)
        if job is not None:
            self.calls.append(("take", now))
            self.taken.append(job.id)
        return job

    def shown(self, policy: Policy, now: Number) -> dict[str, Any]:
        """V moves all the time; the policy itself moves it only when it needs it."""
        shown = super().shown(policy, now)
        return shown | {"virtual_time": policy.virtual_time(now * self.tick)} if isinstance(policy, WFQ) else shown

    def write_steps(self) -> None:
        """Before it is played."""
        if not self.written:
            self.calls, self.written = list(self._with_steps(self.calls)), True

    def _with_steps(self, calls: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        taken = iter(self.taken)
        for call in calls:
            yield call
            match call[0]:
                case "arrive":
                    yield self._step(call[2], "arrive", call[1].id)
                case "take":
                    packet = next(taken)
                    yield self._step(call[1], "start", packet, packet)
                case "charge":
                    if not self.hears_stop:
                        yield ("stop", call[1], call[3], Stop.FINISHED, "")
                        yield self._step(call[3], "finish", call[1].id)
                case "stop":
                    yield self._step(call[2], "finish", call[1].id)

    def _step(self, now: Number, kind: str, packet: str, why: str | None = None) -> tuple[Any, ...]:
        return (None, quotient(now, self.tick), kind, why, {"packet": packet})
