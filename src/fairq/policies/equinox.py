"""Equinox (arXiv 2508.16646), an interpretation: users' tokens discounted by their delay, and what the engine spends.

The paper's abstract says what it counts, a user's weighted tokens and latency, and a resource's throughput and use, in
one score with predictions; it gives no formula. This reading of it is ours, and no result here is the paper's:

    select   argmin over clients with queued requests of (HF_i, arrival of the earliest request, id)
    charge   HF_i += alpha * h(n_p, n^) / (1 + delta * (wait + L^)) + beta * T^ * u^       when it is admitted
             tokens beyond n^, and those of n^ that it did not need, at the same discount, as in vtc-predict
    lift     as in VTC

n^ is the predicted length, L^ = prefill * n_p + decode * n^ its predicted latency, T^ = (n_p + n^) / L^ its throughput
(tokens per second) and u^ the share of L^ that is prefill, which keeps the processor busy; decoding waits for memory.

Unit of fairness: the score. Guarantees: none are known. With alpha = 1, beta = 0, delta = 0 and output = 2 it admits as
vtc-predict does.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from msgspec.structs import replace

from fairq.core.job import Generation, Job
from fairq.core.number import Number
from fairq.core.policy import NOTHING_WAITS, Decision, Need, Param, Pick, Stop, Time, Unit, View
from fairq.policies.vtc_predict import VTCPredict

GRID = 1 << 20  # scores are whole multiples of 1/GRID
SECOND = 1_000_000_000


class Equinox(VTCPredict):
    name = "equinox"
    unit = Unit.SERVICE
    needs = frozenset({Need.TOKENS, Need.SIZE, Need.RANDOM})
    params = (
        *(param for param in VTCPredict.params if param.name != "output"),
        Param(name="output", default=4, low=0, text="param.equinox.output"),
        Param(name="alpha", default=Fraction(7, 10), low=0, text="param.equinox.alpha"),
        Param(name="beta", default=Fraction(3, 10), low=0, text="param.equinox.beta"),
        Param(name="delta", default=Fraction(1, 10), low=0, text="param.equinox.delta"),
        Param(name="prefill", default=220_000, low=1, text="param.equinox.prefill"),
        Param(name="decode", default=30_000_000, low=1, text="param.equinox.decode"),
    )
    alpha: Fraction
    beta: Fraction
    delta: Fraction
    prefill: int
    decode: int

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.h = replace(self.h, scale=self.h.scale * GRID)
        self.flat = False  # each request has a price of its own
        self.discount: dict[str, int] = {}

    # The choice
    def first(self) -> tuple[Number, str] | None:
        """O(F): among equal scores whoever has waited longest."""
        flows = ((self.read(flow), self.queues[flow][0].arrival, flow) for flow in self.ranking)
        least = min(flows, default=None)
        return None if least is None else (least[0], least[2])

    def select(self, now: Time, view: View) -> Decision:
        first = self.first()
        if first is None:
            return NOTHING_WAITS
        return Pick(self.queues[first[1]][0], self.why(first[1], first[0]))

    # The charges
    def charge(self, job: Job, amount: int, now: Time) -> None:
        assert isinstance(job, Generation)
        promised = self.predict(job)
        prefill, decode = self.prefill * job.prompt, self.decode * promised
        latency = Fraction(max(now - job.arrival, 0) + prefill + decode, SECOND)
        self.promised[job.id] = promised
        self.discount[job.id] = int(self.alpha * GRID / (1 + self.delta * latency))
        spent = self.beta * GRID * (job.prompt + promised) * SECOND * prefill / (prefill + decode) ** 2
        paid = self.h.admission(job.prompt) * self.discount[job.id] + self.price(job, 0, promised)
        self.add(job.flow, paid + int(spent))

    def price(self, job: Job, start: int, end: int) -> int:
        return super().price(job, start, end) * self.discount[job.id]

    def pace(self, job: Job, has: int) -> tuple[int, int]:
        speed, bend = super().pace(job, has)
        return speed * self.discount[job.id], bend * self.discount[job.id]

    def stop(self, job: Job, now: Time, reason: Stop, on: str = "") -> None:
        super().stop(job, now, reason, on)
        if reason is not Stop.PREEMPTED:
            del self.discount[job.id]

    # What shells read
    def state(self) -> dict[str, Any]:
        return super().state() | {"discount": dict(self.discount)}

    def restore(self, state: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        self.discount = dict(state["discount"])
        super().restore(state, jobs)
