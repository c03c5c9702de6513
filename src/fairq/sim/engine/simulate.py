"""Run an engine on plain requests, without a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from fairq.core.job import Generation
from fairq.policies import make
from fairq.sim.engine.batch import Batch
from fairq.sim.engine.call import Call
from fairq.sim.engine.cost import Cost, Limits
from fairq.sim.engine.jumping import Jumping
from fairq.sim.engine.run import bind

NS = 1_000_000_000


def simulate(
    requests: Sequence[tuple[float, int, int]], cost: Cost, limits: Limits, policy: str = "fcfs"
) -> tuple[list[Call], Batch]:
    """requests: (arrival in seconds, prompt, output), one client. The calls in the given order, and the engine."""
    calls = []
    for seq, (arrival, prompt, output) in enumerate(requests):
        at = round(arrival * NS)
        job = Generation(id=str(seq), flow="all", seq=seq, arrival=at, size=output, prompt=prompt, limit=max(output, 1))
        calls.append(Call(job))
    made = make(policy)
    engine = Jumping(made, limits, cost)
    bind(made, engine, {"all": Fraction(1)}, 0)
    engine.add(sorted(calls, key=lambda call: (call.arrival, call.job.seq)))
    engine.run()
    return calls, engine
