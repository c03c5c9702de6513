"""What an engine simulation is given: requests, or a recorded trace of them, and an engine."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fairq.core.errors import FairqError
from fairq.core.job import Generation
from fairq.sim.engine.call import Call
from fairq.sim.engine.cost import DEFAULT_PRESET, PRESETS, Cost, Limits
from fairq.sim.scenario import Name, Natural, Part, Positive, Ratio, Scenario, Whole

MOST_REQUESTS = 2_000_000
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
    prompt: Positive
    output: Natural
    count: Positive = 1
    every: Seconds = 0
    max_tokens: Positive | None = None
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


class EngineScenario(Scenario):
    """preset      costs and limits of an engine; `cost` and the keys after it replace its values
    trace       a file of recorded requests, beside `requests` or instead of them
    tenants_by  who a recorded request is charged to: trace, one, hash:K, prefix:K
    first       only so many recorded requests
    speed       the trace's time runs so many times faster
    engine      jump, from event to event, or step, iteration by iteration; the results are the same
    """

    layer: Literal["engine"] = "engine"
    preset: Annotated[str, AfterValidator(_preset)] = DEFAULT_PRESET
    cost: Coefficients | None = None
    pool_tokens: Positive | None = None
    block_tokens: Positive | None = None
    watermark: Natural | None = None
    max_sequences: Positive | None = None
    step_tokens: Positive | None = None
    prefill: Literal["chunked", "first"] | None = None
    admit_every: Natural | None = None
    reserve: Literal["prompt", "limit", "peak"] | None = None
    preemption: Literal["recompute", "swap"] | None = None
    victim: Literal["last", "latest", "priority"] | None = None
    head: Literal["stop", "skip"] | None = None
    engine: Literal["jump", "step"] = "jump"
    clients: Annotated[tuple[Client, ...], Field(max_length=100_000)] = ()
    requests: tuple[Requests, ...] = ()
    trace: Path | None = None
    tenants_by: str | None = None
    first: Positive | None = None
    speed: Ratio = Field(default=1, validate_default=True)

    @model_validator(mode="after")
    def _is_whole(self) -> "EngineScenario":
        if not self.requests and self.trace is None:
            raise ValueError("requests: missing (or a trace)")
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

    def weights(self) -> dict[str, Fraction]:
        """Of the clients that were given one."""
        return {client.id: client.weight for client in self.clients}

    def calls(self) -> list[Call]:
        """Every request in order of arrival; at one time those listed first come first. Raises FairqError."""
        found = sorted([*self._listed(), *self._recorded()], key=lambda one: one[0])
        calls = []
        for seq, (arrival, client, prompt, output, batch, prefix) in enumerate(found):
            limit = output if batch is None or batch.max_tokens is None else batch.max_tokens
            job = Generation(
                id=str(seq),
                flow=client,
                seq=seq,
                arrival=arrival,
                size=output,
                priority=batch.priority if batch else 0,
                prompt=prompt,
                limit=max(limit, 1),
                prefix=prefix,
            )
            calls.append(Call(job, arrival + batch.cancel if batch and batch.cancel is not None else None))
        return calls

    def _listed(self) -> Iterator[tuple[int, str, int, int, Requests | None, tuple[int, ...]]]:
        for batch in self.requests:
            for number in range(batch.count):
                yield batch.at + number * batch.every, batch.client, batch.prompt, batch.output, batch, ()

    def _recorded(self) -> Iterator[tuple[int, str, int, int, Requests | None, tuple[int, ...]]]:
        if self.trace is None:
            return
        from fairq.traces import Trace, default_rule, with_tenants

        trace = Trace(self.trace)
        recorded = with_tenants(trace, self.tenants_by or default_rule(trace), islice(trace, self.first))
        for one in recorded:
            at = round(Fraction(one.arrival) * SECOND / self.speed)
            yield at, one.client, max(one.input_tokens, 1), one.output_tokens, None, one.blocks

    def run(self, policy: str, record: str | None = None) -> Any:
        from fairq.sim.engine.run import EngineRun

        return EngineRun(self, policy, record)
