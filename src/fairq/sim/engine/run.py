"""One policy on one engine scenario: when each request got its first and its last token."""

import hashlib
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any

import msgspec

from fairq.core.job import Flow, Generation, Job
from fairq.core.number import to_json
from fairq.core.policy import Layer, Need, Policy
from fairq.measure.fairness import Interval
from fairq.measure.grid import Difference, grid_for
from fairq.measure.service import ServiceOverTime, slowdown
from fairq.policies import make
from fairq.sim.collector import collector_paused
from fairq.sim.draw import draws
from fairq.sim.engine.batch import Batch
from fairq.sim.engine.bounds import Bound, bounds, watch
from fairq.sim.engine.call import Call
from fairq.sim.engine.closed import Closed, ClosedJumping, ClosedStepping, without
from fairq.sim.engine.figures import OUTPUT, figures, occupied
from fairq.sim.engine.jumping import Jumping
from fairq.sim.engine.occupancy import Occupancy, both
from fairq.sim.engine.scenario import SECOND, EngineScenario
from fairq.sim.engine.stepping import Stepping
from fairq.sim.scenario import Run
from fairq.sim.trace import Trace

PROVIDES = frozenset({Need.SIZE, Need.TOKENS, Need.PREFIX, Need.DEADLINE, Need.RANDOM})
ENGINES: dict[str, type[Batch]] = {"jump": Jumping, "step": Stepping}
CLOSED: dict[str, type[Batch]] = {"jump": ClosedJumping, "step": ClosedStepping}


def cost_of(job: Job) -> int:
    """For policies that are charged once, at admission: the answer at its limit, unless there is an estimate."""
    assert isinstance(job, Generation)
    return job.prompt + OUTPUT * (job.limit if job.estimate is None else job.estimate)


def parts_of(weights: dict[str, Fraction]) -> int:
    """How many units of a counter one unit of cost is at weight 1, so that it is whole at every weight."""
    return lcm(*(weight.numerator for weight in weights.values()))


def bind(policy: Policy, engine: Batch, weights: dict[str, Fraction], seed: int) -> None:
    """Tells a policy of its engine and of the clients. Counters are whole numbers."""
    parts = parts_of(weights)
    layer = Layer(
        name="engine",
        # Of the policies that preempt, priority alone means something where only memory makes anybody stop.
        provides=PROVIDES | {Need.PREEMPTION} if policy.name == "priority" else PROVIDES,
        cost=cost_of,
        normalize=lambda amount, above, below: amount * below * parts // above,
        tag=lambda tag: tag if parts == 1 and type(tag) is int else to_json(Fraction(tag) / parts),
        random=draws(seed),
        clock=engine.service_clock,
        prefix_tokens=engine.limits.prefix_tokens,
    )
    policy.bind(layer)
    for flow, weight in weights.items():
        policy.flow_changed(Flow(id=flow, weight=weight), 0)


class EngineRun(Run):
    """calls     every request, in order of arrival
    engine    as it stands at the end
    """

    def __init__(self, scenario: EngineScenario, policy: str, record: str | None = None) -> None:
        if record is not None:
            raise ValueError(f"record = {record!r}: an engine's run has no trace of steps")
        self.scenario, self.spec = scenario, policy
        with collector_paused():
            self.calls, followers = scenario.calls()
            given = scenario.weights()
            flows = dict.fromkeys(call.job.flow for call in self.calls)
            self._weights = {flow: given.get(flow, Fraction(1)) for flow in flows}
            made = make(policy)
            self.policy, self.params = made.name, made.parameters()
            engines = CLOSED if followers else ENGINES
            self.engine = engines[scenario.engine](made, scenario.limits_for_prefixes(), scenario.cost_model())
            bind(made, self.engine, self._weights, scenario.seed)
            watching = watch(self.engine, self.calls, flows)
            self.occupancy = Occupancy(self.engine) if scenario.occupancy else None
            if self.occupancy is not None:
                self.engine.watch = both(self.engine.watch, self.occupancy)
            if isinstance(self.engine, Closed):
                self.engine.follow(followers)
            self.engine.add(without(self.calls, followers))
            self.engine.run()
        self.bounds: list[Bound] = []
        if watching is not None and self.calls:
            longest = max(call.prompt for call in self.calls)
            self.bounds = bounds(watching, parts_of(self._weights), self._weights, longest)
        self.counters: dict[str, Any] = dict(made.show().get("counters", {}))

    def weights(self) -> dict[str, Fraction]:
        return self._weights

    # What came out
    def filled(self) -> list[tuple[str, Occupancy]]:
        """Each engine's name and how full it was; empty where that was not asked for."""
        return [] if self.occupancy is None else [("", self.occupancy)]

    @cached_property
    def makespan(self) -> int:
        """When the last request left, ns."""
        return max((call.finish or 0 for call in self.calls), default=0)

    @cached_property
    def digest(self) -> str:
        """A hash of every first-token and finish time, how each request ended, all counters and iterations."""
        times = [(call.first, call.finish, call.produced, call.reason) for call in self.calls]
        told = (times, sorted(self.counters.items()), self.engine.iterations, self.engine.clock)
        return hashlib.blake2b(msgspec.json.encode(told), digest_size=16).hexdigest()

    @cached_property
    def service(self) -> ServiceOverTime:
        """Service of each client over time, spread as the paper's tables do."""
        served = ServiceOverTime(grid_for(self.calls[-1].arrival / SECOND if self.calls else 0))
        for call in self.calls:
            if call.finish is not None and call.reason not in ("error", "refused"):
                first = None if call.first is None else call.first / SECOND
                prompt = 0 if call.admitted is None else call.prompt
                served.add(call.job.flow, call.arrival / SECOND, first, call.finish / SECOND, prompt, call.produced)
        return served

    @cached_property
    def difference(self) -> Difference | None:
        return self.service.difference()

    @cached_property
    def throughput(self) -> float:
        """Tokens of prompts and answers per second, of requests that were served."""
        tokens = sum(call.prompt + call.produced for call in self.calls if call.first is not None)
        return tokens * SECOND / self.makespan if self.makespan else 0.0

    @cached_property
    def cache_hit_ratio(self) -> float | None:
        """Of the prompt tokens of admitted requests, those that were in the prefix cache; None without one."""
        prompts = sum(call.prompt for call in self.calls if call.admitted is not None)
        if self.engine.cache is None or not prompts:
            return None
        return sum(call.cached for call in self.calls) / prompts

    @cached_property
    def isolation(self) -> dict[str, float | None]:
        """Of each client: its mean response here, over the same with the engine for itself. 1 is perfect isolation."""
        alone: dict[str, dict[str, Any] | None] = {}
        for client in self.clients():
            own = self.scenario.model_copy(update={"only": client, "isolation": False})
            alone[client] = type(self)(own, self.spec).clients()[client]["response"]
        shared = {client: told["response"] for client, told in self.clients().items()}
        return slowdown(
            {client: told["mean"] for client, told in shared.items() if told},
            {client: told["mean"] for client, told in alone.items() if told},
        )

    def clients(self) -> dict[str, dict[str, Any]]:
        by_client: dict[str, list[Call]] = {flow: [] for flow in sorted(self._weights)}
        for call in self.calls:
            by_client[call.job.flow].append(call)
        return {client: figures(calls) for client, calls in by_client.items()}

    def measured(self) -> dict[str, Any]:
        told, difference = figures(self.calls), self.difference
        row: dict[str, Any] = {
            "served": told["served"],
            "ttft mean": told["ttft"] and told["ttft"]["mean"],
            "ttft p99": told["ttft"] and told["ttft"]["p99"],
            "tpot mean": told["tpot"] and told["tpot"]["mean"],
            "response mean": told["response"] and told["response"]["mean"],
            "throughput": self.throughput,
            "makespan": self.makespan / SECOND,
        }
        for name in ("max", "mean", "variance"):
            row[f"service difference {name}"] = difference and getattr(difference, name)
        if self.scenario.isolation:
            row["isolation worst"] = max((one for one in self.isolation.values() if one is not None), default=None)
        counts = {"iterations": self.engine.iterations, "preemptions": self.engine.preemptions}
        return row | counts | {"cache hit ratio": self.cache_hit_ratio}

    def as_json(self) -> dict[str, Any]:
        difference = self.difference
        return {
            "policy": self.policy,
            "params": {name: str(v) if isinstance(v, Fraction) else v for name, v in self.params.items()},
            "engine": self.scenario.engine,
            "clients": self.clients(),
            "service_difference": difference
            and {name: getattr(difference, name) for name in ("max", "mean", "variance", "accumulated")},
            "throughput": self.throughput,
            "makespan": self.makespan / SECOND,
            "iterations": self.engine.iterations,
            "preemptions": self.engine.preemptions,
            "cache_hit_ratio": self.cache_hit_ratio,
            "bounds": msgspec.to_builtins(self.bounds),
            "occupancy": None if self.occupancy is None else occupied(self.occupancy),
            "isolation": self.isolation if self.scenario.isolation else None,
            "counters": self.counters,
            "digest": self.digest,
        }

    def jobs(self) -> list[dict[str, Any]]:
        """Nanoseconds."""
        return [
            {
                "id": call.job.id,
                "client": call.job.flow,
                "arrival": call.arrival,
                "admitted": call.admitted,
                "first_token": call.first,
                "finish": call.finish,
                "input_tokens": call.prompt,
                "output_tokens": call.produced,
                "reason": call.reason,
                "preemptions": call.preemptions,
            }
            for call in self.calls
        ]

    def fairness(self) -> list[Interval]:
        return []

    def trace(self) -> Trace:
        raise ValueError("an engine's run has no trace of steps")
