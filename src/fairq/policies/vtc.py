"""Virtual Token Counter (Sheng et al., OSDI 2024, Algorithm 2): fair by the tokens that were really served.

    arrive   u has nobody queued:  the queue is empty and l was the last to leave it:  c_u = max(c_u, c_l)
                                   somebody is queued:                                 c_u = max(c_u, min c_queued)
    select   argmin over clients with queued requests of (c_i, id); its earliest request; if that does not fit, nobody
    charge   c_i += w_p * input tokens              when it is admitted
             c_i += w_q                             for each output token, the first (made by the prefill) included

With weights the charges are divided by the client's. With `cost` a profile, h(n_p, 0) is charged at admission and
h(n_p, n) - h(n_p, n-1) for the n-th token.

Unit of fairness: normalized tokens served. With one engine, no preemption and M the most tokens a batch can hold,
U = max(w_p * longest input, w_q * M): the counters of clients with queued requests differ by at most U at all times;
the service of two clients that both have queued requests throughout an interval by at most 2U (theorem 4.4); and one
that has gets at least as much as any other, less 4U (theorem 4.9).
"""

from collections.abc import Mapping
from typing import Any

from fairq.core.counting import Counting
from fairq.core.job import Job
from fairq.core.policy import Time


class VTC(Counting):
    name = "vtc"

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.last_to_leave = ""

    def joined(self, flow: str, now: Time) -> None:
        least = self.first()
        self.lift(flow, least[0] if least else self.read(self.last_to_leave))

    def leave(self, flow: str) -> Job:
        head = Counting.leave(self, flow)
        if not self.queues[flow]:
            self.last_to_leave = flow
        return head

    def state(self) -> dict[str, Any]:
        return super().state() | {"last_to_leave": self.last_to_leave}

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        self.last_to_leave = state["last_to_leave"]
        super().restore(state, jobs)
