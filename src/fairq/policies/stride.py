"""Stride scheduling (Waldspurger, Weihl, MIT/LCS/TM-528, 1995): lottery without luck.

    stride_i     = quantum / w_i                          in normalized service: what a whole quantum costs
    select       argmin over waiting clients of (pass_i, id)
    charge       pass_i      += used / w_i
                 global_pass += used / (sum of w over the clients that are here)
    leave        remain_i = pass_i - global_pass
    join         pass_i   = global_pass + remain_i        first time: remain_i = stride_i, or with `initial=zero` 0
    tickets      remain_i = remain_i * w_i / w_i'          when the weight changes from w_i to w_i'

What a client is ahead or behind by when it leaves it keeps, neither more nor less.

Unit of fairness: normalized service. Guarantees, for clients that stay: any two differ from their shares by at most
one quantum (relative error), over every prefix; against the ideal share the error is O(clients) quanta. Over
sum(w) / gcd(w) quanta each client gets exactly w_i / gcd(w) of them.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from fairq.core.clients import ClientPolicy
from fairq.core.job import Job
from fairq.core.number import Number, quotient, to_json
from fairq.core.policy import Cause, Param, Unit, Why


class Stride(ClientPolicy):
    name = "stride"
    unit = Unit.NORMALIZED
    per_flow = ("remain",)
    memory = ("passes", "global_pass")
    params = (
        Param(name="quantum", default=1, low=1, text="param.stride.quantum"),
        Param(name="initial", default="stride", choices=("stride", "zero"), text="param.stride.initial"),
    )
    quantum: int
    initial: str

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.passes: dict[str, Number] = {}  # of the clients that are here
        self.remain: dict[str, Number] = {}  # of those that have left
        self.global_pass: Number = 0

    def rank(self, flow: str) -> Number:
        return self.passes[flow]

    def slice(self, job: Job) -> int:
        return self.quantum

    def charged(self, flow: str, amount: int) -> None:
        self.passes[flow] += self.normalized(flow, amount)
        self.global_pass += self.layer.normalize(amount, *self.total.as_integer_ratio())

    def entered(self, flow: str, cause: Cause) -> None:
        first = self.normalized(flow, self.quantum) if self.initial == "stride" else 0
        self.passes[flow] = self.global_pass + self.remain.pop(flow, first)

    def left(self, flow: str) -> None:
        self.remain[flow] = self.passes.pop(flow) - self.global_pass

    def reweighted(self, flow: str, old: Number) -> None:
        ratio = Fraction(old) / self.weight(flow)
        if flow in self.here:
            remain = self.passes[flow] - self.global_pass
            self.passes[flow] = self.global_pass + quotient(remain * ratio, 1)
        elif flow in self.remain:
            self.remain[flow] = quotient(self.remain[flow] * ratio, 1)

    def why(self, flow: str, rank: Number) -> Why:
        return Why("least-pass", {"pass": to_json(rank), "global_pass": to_json(self.global_pass)})

    def show(self) -> Mapping[str, Any]:
        passes = {flow: to_json(pass_) for flow, pass_ in sorted(self.passes.items())}
        return {"pass": passes, "global_pass": to_json(self.global_pass)}
