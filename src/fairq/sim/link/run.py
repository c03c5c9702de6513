"""One policy on one link scenario: when each packet is sent.

Time is counted in ticks in which every transmission takes a whole number: at rate p/q a tick is 1/p of a time unit,
and a packet of size s takes s*q ticks. Tags are counted in parts of 1/(lcm of the weights' numerators). So everything
is exact, and made of integers.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any

from msgspec import to_builtins

from fairq.core.job import Flow, Job
from fairq.core.number import Number, in_parts, quotient, to_json
from fairq.core.policy import Layer, Need, Policy
from fairq.measure.fairness import Interval
from fairq.measure.latency import flat
from fairq.measure.served import Measures, Served, measure, shares
from fairq.policies import make
from fairq.policies.gps import GPS
from fairq.sim.collector import collector_paused
from fairq.sim.draw import draws
from fairq.sim.link.line import Departure, pour, send
from fairq.sim.link.recorder import LinkTape
from fairq.sim.link.room import Room
from fairq.sim.link.scenario import LinkScenario
from fairq.sim.link.stalls import Stalls, random_stalls
from fairq.sim.scenario import Run
from fairq.sim.trace import Trace

PROVIDES = frozenset({Need.SIZE, Need.RATE, Need.RANDOM, Need.FLUID})


class LinkRun(Run):
    """record  None, or "events": a trace with a step for each arrival, start and finish

    departures  in order of time, which is in ticks
    dropped     packets that found a full buffer
    tick        how many ticks make a unit of time
    """

    def __init__(self, scenario: LinkScenario, policy: str, record: str | None = None) -> None:
        if record not in (None, "events"):
            raise ValueError(f"record = {record!r}: must be None or 'events'")
        self.scenario, self.spec = scenario, policy
        self.tick, self.pace = scenario.rate.as_integer_ratio()
        bound = self._bound()
        self.policy, self.params = bound.name, bound.parameters()
        self.tape = LinkTape(bound, self.tick) if record else None
        with collector_paused():
            self.departures, self.dropped = self._drive(bound, self.tape or bound)

    def _bound(self) -> Policy:
        parts = lcm(*(flow.weight.numerator for flow in self.scenario.all_flows()))
        policy = make(self.spec)
        policy.bind(
            Layer(
                name="link",
                provides=PROVIDES,
                normalize=in_parts(parts),
                tag=lambda tag: to_json(quotient(tag, parts)),
                rate=quotient(1, self.pace),
                random=draws(self.scenario.seed),
            )
        )
        return policy

    def _drive(self, bound: Policy, policy: Policy) -> tuple[list[Departure], list[Job]]:
        scenario, tick = self.scenario, self.tick
        flows = scenario.all_flows()
        for flow in flows:
            policy.flow_changed(Flow(id=flow.id, weight=flow.weight), 0)
        room = None
        if scenario.buffer is not None or any(flow.buffer is not None for flow in flows):
            room = Room(policy, scenario.buffer, {flow.id: flow.buffer for flow in flows})
        stalls = self._stalls()
        if isinstance(bound, GPS):
            departures = pour(policy, bound, scenario.jobs, tick, room, stalls)
        else:
            departures = send(policy, scenario.jobs, tick, self.pace, room, stalls)
        return departures, room.dropped if room else []

    def _stalls(self) -> Stalls | None:
        tick, scenario = self.tick, self.scenario
        if scenario.stalls:
            return Stalls((stall.at * tick, (stall.at + stall.for_) * tick) for stall in scenario.stalls)
        if scenario.random_stalls:
            every, for_ = scenario.random_stalls.every, scenario.random_stalls.for_
            drawn = random_stalls(every, for_, draws(scenario.seed))
            return Stalls((start * tick, end * tick) for start, end in drawn)
        return None

    def time(self, ticks: Number) -> Number:
        """Ticks in units of time."""
        return quotient(ticks, self.tick)

    @cached_property
    def served(self) -> list[Served]:
        """Every packet that was sent, in units of time."""
        return [
            Served(
                flow=job.flow,
                arrival=job.arrival,
                start=None if start is None else self.time(start),
                finish=self.time(finish),
                time=self.time((job.size or 0) * self.pace),
                amount=job.size or 0,
            )
            for job, start, finish in self.departures
        ]

    @cached_property
    def measures(self) -> Measures:
        return measure(self.served, self._worked())

    def measured(self) -> dict[str, Any]:
        return flat(self.measures) | {"dropped": len(self.dropped)}

    def fairness(self) -> list[Interval]:
        """Normalized service (size / weight) over the intervals in which the same flows have packets waiting."""
        return shares(self.served, self.weights(), self._worked())

    def weights(self) -> dict[str, Fraction]:
        return {flow.id: flow.weight for flow in self.scenario.all_flows()}

    def jobs(self) -> list[dict[str, Any]]:
        rows = [
            packet_json(departure[0])
            | {"start": one.start, "finish": one.finish, "turnaround": one.turnaround, "waiting": one.waiting}
            for departure, one in zip(self.departures, self.served, strict=True)
        ]
        none = dict.fromkeys(("start", "finish", "turnaround", "waiting"))
        return rows + [packet_json(job) | none for job in self.dropped]

    def _worked(self) -> Callable[[Number], Number]:
        """Time -> for how much of it the link has been able to send."""
        stalls = self._stalls()
        if stalls is None:
            return lambda time: time
        return lambda time: quotient(stalls.worked(quotient(time * self.tick, 1)), self.tick)

    def as_json(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "params": {name: str(v) if isinstance(v, Fraction) else v for name, v in self.params.items()},
            "departures": [self._departure(*departure) for departure in self.departures],
            "dropped": [packet_json(job) for job in self.dropped],
            "flows": self._flows(),
            "measures": to_builtins(self.measures),
            "fairness": self.fairness_json("flows", 2 * len(self.departures)),
        }

    def _departure(self, job: Job, start: Number | None, finish: Number) -> dict[str, Any]:
        first = None if start is None else str(self.time(start))
        return packet_json(job) | {"start": first, "finish": str(self.time(finish))}

    def _flows(self) -> dict[str, Any]:
        """Of each flow: what it sent, and the delay of its packets, from arrival to the end of transmission."""
        delays: dict[str, list[Number]] = {flow.id: [] for flow in self.scenario.all_flows()}
        sizes, lost = dict.fromkeys(delays, 0), dict.fromkeys(delays, 0)
        for job, _, finish in self.departures:
            delays[job.flow].append(self.time(finish) - job.arrival)
            sizes[job.flow] += job.size or 0
        for job in self.dropped:
            lost[job.flow] += 1
        return {
            flow: {
                "packets": len(seen),
                "size": sizes[flow],
                "dropped": lost[flow],
                "delay": {"mean": float(sum(seen) / len(seen)), "max": float(max(seen))} if seen else None,
            }
            for flow, seen in delays.items()
        }

    def trace(self) -> Trace:
        if self.tape is None:
            raise ValueError("this run was not recorded")
        self.tape.write_steps()
        return Trace.of(self, self.tape.play(self._bound))


def packet_json(job: Job) -> dict[str, Any]:
    """`seq` counts the packets of its flow, dropped ones too."""
    return {"flow": job.flow, "seq": int(job.id.rpartition("#")[2]), "size": job.size, "arrival": job.arrival}
