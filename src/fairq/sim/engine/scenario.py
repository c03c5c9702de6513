"""What an engine simulation is given: requests, or a recorded trace of them, and an engine."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Struct
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fairq.core.errors import ConfigError, FairqError
from fairq.core.job import Generation
from fairq.sim.engine.call import Call
from fairq.sim.engine.closed import Follower
from fairq.sim.engine.cost import DEFAULT_PRESET, PRESETS, Cost, Limits
from fairq.sim.scenario import Name, Natural, Part, Positive, Ratio, Scenario, Whole

if TYPE_CHECKING:
    from fairq.traces import Trace
    from fairq.workloads import Workload

MOST_REQUESTS = 2_000_000
MOST_TOKENS = 10_000_000  # of a prompt or an answer; no model reads as far
SECOND = 1_000_000_000  # ns


def _nanoseconds(given: object) -> int:
    """Seconds as "2", "0.25" or a number; exact."""
    try:
        value = Fraction(str(given)) * SECOND
    except (ValueError, ZeroDivisionError):
        raise ValueError("must be a number of seconds such as 2 or 0.25") from None
    if not 0 <= value <= 10**9 * SECOND:
        raise ValueError("must be from 0 to 1e9 seconds")
    return round(value)


Seconds = Annotated[int, BeforeValidator(_nanoseconds)]
"""Written in seconds, kept in nanoseconds."""


def _preset(name: str) -> str:
    if name not in PRESETS:
        raise ValueError(f"must be one of {', '.join(PRESETS)}")
    return name


class Requests(Part):
    """`count` requests of a client, the first at `at`, then one every `every`. Seconds; lengths in tokens.

    max_tokens  its limit; the answer ends there if it would be longer. Without it, the answer's own length
    cancel      the client leaves so long after it came
    """

    client: Name
    at: Seconds = 0
    prompt: Annotated[int, Field(ge=1, le=MOST_TOKENS)]
    output: Annotated[int, Field(ge=0, le=MOST_TOKENS)]
    count: Positive = 1
    every: Seconds = 0
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] | None = None
    cancel: Seconds | None = None
    priority: Whole = 0


class Client(Part):
    """weight  its share; 2 means twice the service of weight 1 while both are backlogged"""

    id: Name
    weight: Ratio = Field(default=1, validate_default=True)


class Coefficients(Part):
    """Of `a + b*prefilled + c*batch + d*context + e*moved`, in nanoseconds."""

    a: Positive
    b: Natural = 0
    c: Natural = 0
    d: Natural = 0
    e: Natural = 0


class Wish(Struct, kw_only=True):
    """A request before it is a call: times in ns. after: the place among the recorded ones of that which it follows,
    `think` later."""

    arrival: int
    client: str
    prompt: int
    output: int
    limit: int | None = None
    cancel: int | None = None
    priority: int = 0
    predicted: int | None = None
    prefix: tuple[int, ...] = ()
    after: int | None = None
    think: int = 0


class EngineScenario(Scenario):
    """preset      costs and limits of an engine; `cost` and the keys after it replace its values
    trace       a file of recorded requests, beside `requests` or instead of them
    workload    a synthetic workload, drawn with the scenario's seed, likewise: NAME or NAME:key=value,key=value
    tenants_by  who a recorded request is charged to: trace, one, hash:K, prefix:K
    only        this client's requests alone
    occupancy   measure cache, batch and gaps between tokens at every event
    isolation   run every client alone as well, and say how much longer its requests take among all
    first       only so many recorded requests
    speed       the trace's time runs so many times faster
    prefix_tokens  with prefix_cache: the tokens of a block of a prefix, where the trace does not say
    engine      jump, from event to event, or step, iteration by iteration; the results are the same
    """

    layer: Literal["engine"] = "engine"
    preset: Annotated[str, AfterValidator(_preset)] = DEFAULT_PRESET
    cost: Coefficients | None = None
    pool_tokens: Positive | None = None
    block_tokens: Annotated[int, Field(ge=1, le=65_536)] | None = None
    watermark: Natural | None = None
    max_sequences: Positive | None = None
    step_tokens: Positive | None = None
    prefill: Literal["chunked", "first"] | None = None
    admit_every: Natural | None = None
    reserve: Literal["prompt", "limit", "peak"] | None = None
    preemption: Literal["recompute", "swap"] | None = None
    victim: Literal["last", "latest", "priority"] | None = None
    head: Literal["stop", "skip"] | None = None
    prefix_cache: bool | None = None
    prefix_tokens: Positive | None = None
    engine: Literal["jump", "step"] = "jump"
    clients: Annotated[tuple[Client, ...], Field(max_length=100_000)] = ()
    requests: tuple[Requests, ...] = ()
    trace: Path | None = None
    workload: str | None = None
    tenants_by: str | None = None
    only: Name | None = None
    isolation: bool = False
    occupancy: bool = False
    first: Positive | None = None
    speed: Ratio = Field(default=1, validate_default=True)

    @model_validator(mode="after")
    def _is_whole(self) -> "EngineScenario":
        if not self.requests and self.trace is None and self.workload is None:
            raise ValueError("requests: missing (or a trace, or a workload)")
        if self.trace is not None and self.workload is not None:
            raise ValueError("workload: a trace is given already")
        seen: set[str] = set()
        for client in self.clients:
            if client.id in seen:
                raise ValueError(f"client {client.id}: id: given twice")
            seen.add(client.id)
        if sum(batch.count for batch in self.requests) > MOST_REQUESTS:
            raise ValueError(f"requests: more than {MOST_REQUESTS} in all")
        try:
            self.cost_model().check()
            self.limits().check()
        except FairqError as error:
            raise ValueError(str(error)) from None
        return self

    def cost_model(self) -> Cost:
        return PRESETS[self.preset].cost if self.cost is None else Cost(**self.cost.model_dump())

    def limits(self) -> Limits:
        given = {name: getattr(self, name) for name in Limits.__struct_fields__ if getattr(self, name) is not None}
        limits = PRESETS[self.preset].limits
        if given.get("prefill") == "chunked":  # rules of the preset that only go with the other one
            given = {"admit_every": 0} | given
            if limits.reserve == "peak":
                given = {"reserve": "prompt"} | given
        elif given.get("block_tokens", 1) != 1 and limits.reserve == "peak":
            given = {"reserve": "prompt"} | given
        return msgspec.structs.replace(limits, **given)

    def limits_for_prefixes(self) -> Limits:
        """The same; a block of a prefix is what the trace or the workload says it is. Raises ConfigError."""
        limits = self.limits()
        if limits.prefix_cache and self.prefix_tokens is None and (source := self._source()) and source.block_tokens:
            limits = msgspec.structs.replace(limits, prefix_tokens=source.block_tokens)
            limits.check()
        return limits

    def weights(self) -> dict[str, Fraction]:
        """Of the clients that were given one."""
        return {client.id: client.weight for client in self.clients}

    def calls(self) -> tuple[list[Call], list[Follower]]:
        """Every request in order of arrival, at one time those listed first come first; and which of them arrive only
        when another one has left. Raises FairqError.
        """
        recorded = list(self._recorded())
        wishes = [one for one in (*self._listed(), *recorded) if self.only in (None, one.client)]
        wishes.sort(key=lambda one: one.arrival)
        calls = [_call(seq, wish) for seq, wish in enumerate(wishes)]
        if not any(wish.after is not None for wish in recorded):
            return calls, []
        made = {id(wish): call for wish, call in zip(wishes, calls, strict=True)}
        followers = [
            Follower(made[id(wish)], made[id(recorded[wish.after])], wish.think)
            for wish in recorded
            if wish.after is not None and id(wish) in made and id(recorded[wish.after]) in made
        ]
        return calls, followers

    def _listed(self) -> Iterator[Wish]:
        for batch in self.requests:
            for number in range(batch.count):
                yield Wish(
                    arrival=batch.at + number * batch.every,
                    client=batch.client,
                    prompt=batch.prompt,
                    output=batch.output,
                    limit=batch.max_tokens,
                    cancel=batch.cancel,
                    priority=batch.priority,
                )

    def _recorded(self) -> Iterator[Wish]:
        found = self._source()
        if found is None:
            return
        from fairq.traces import default_rule, with_tenants

        for one in with_tenants(found, self.tenants_by or default_rule(found), islice(found, self.first)):
            if max(one.input_tokens, one.output_tokens, one.limit or 0) > MOST_TOKENS:
                key, value = ("trace", str(self.trace)) if self.trace else ("workload", self.workload)
                raise ConfigError(key, value, f"a prompt or an answer is longer than {MOST_TOKENS:,} tokens")
            yield Wish(
                arrival=self._hasten(one.arrival),
                client=one.client,
                prompt=max(one.input_tokens, 1),
                output=one.output_tokens,
                limit=one.limit,
                cancel=None if one.cancel is None else self._hasten(one.cancel),
                predicted=one.predicted,
                prefix=one.blocks,
                after=one.after,
                think=self._hasten(one.think),
            )

    def _source(self) -> "Trace | Workload | None":
        if self.trace is not None:
            from fairq.traces import Trace

            return Trace(self.trace)
        if self.workload is not None:
            from fairq.workloads import make

            return make(self.workload, self.seed)
        return None

    def _hasten(self, seconds: float) -> int:
        """Recorded seconds in nanoseconds of the simulation."""
        if self.speed == 1:
            return round(seconds * SECOND)
        return round(Fraction(seconds) * SECOND / self.speed)

    def for_pictures(self) -> "EngineScenario":
        return self.model_copy(update={"occupancy": True})

    def run(self, policy: str, record: str | None = None) -> Any:
        from fairq.sim.engine.run import EngineRun

        return EngineRun(self, policy, record)


def _call(seq: int, wish: Wish) -> Call:
    job = Generation(
        id=str(seq),
        flow=wish.client,
        seq=seq,
        arrival=wish.arrival,
        size=wish.output,
        estimate=wish.predicted,
        priority=wish.priority,
        prompt=wish.prompt,
        limit=max(wish.output if wish.limit is None else wish.limit, 1),
        prefix=wish.prefix,
    )
    return Call(job, None if wish.cancel is None else wish.arrival + wish.cancel)
