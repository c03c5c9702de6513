"""What a router simulation is given: tenants, each with batches of requests that join together."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fairq.core.job import Job
from fairq.sim.scenario import Name, Natural, Part, Positive, Ratio, Scenario, broken

MOST_REQUESTS = 1_000_000


class Batch(Part):
    """`count` requests of `cost` each, all at logical time `join`."""

    count: Positive
    cost: Positive
    join: Natural = 0


class Tenant(Part):
    """weight  its share; 2 means twice the cost of weight 1 while both are backlogged
    cost, count, join  one batch; `batches` for several"""

    id: Name
    weight: Ratio = Field(default=1, validate_default=True)
    cost: Positive | None = None
    count: Positive | None = None
    join: Natural = 0
    batches: Annotated[tuple[Batch, ...], Field(max_length=MOST_REQUESTS)] = ()

    @model_validator(mode="after")
    def _is_one_kind(self) -> "Tenant":
        if self.batches:
            if wrong := self.model_fields_set & {"cost", "count", "join"}:
                raise broken("stands in each batch when there are batches", min(wrong))
        elif self.cost is None or self.count is None:
            raise broken("missing (or batches)", "cost" if self.cost is None else "count")
        return self

    def joins(self) -> tuple[Batch, ...]:
        return self.batches or (Batch.model_construct(count=self.count, cost=self.cost, join=self.join),)


class RouterScenario(Scenario):
    """Logical time goes up by one with every dispatch. Costs are what is charged, in whole units."""

    layer: Literal["router"] = "router"
    tenants: Annotated[tuple[Tenant, ...], Field(min_length=1, max_length=100_000)]

    @model_validator(mode="after")
    def _is_whole(self) -> "RouterScenario":
        seen: set[str] = set()
        for index, tenant in enumerate(self.tenants):
            if tenant.id in seen:
                raise broken("given twice", "tenants", index, "id")
            seen.add(tenant.id)
        requests = sum(batch.count for tenant in self.tenants for batch in tenant.joins())
        if requests > MOST_REQUESTS:
            raise broken(f"{requests} requests in all, more than {MOST_REQUESTS}", "tenants")
        return self

    def arrivals(self) -> list[tuple[int, list[Job]]]:
        """(time, requests that join then), in order of time; at one time, tenants as they are listed."""
        batches = [(batch.join, tenant.id, batch) for tenant in self.tenants for batch in tenant.joins()]
        batches.sort(key=lambda item: item[0])
        found: list[tuple[int, list[Job]]] = []
        numbers: dict[str, int] = {}
        seq = 0
        for join, id_, batch in batches:
            if not found or found[-1][0] != join:
                found.append((join, []))
            for _ in range(batch.count):
                seq += 1
                numbers[id_] = number = numbers.get(id_, 0) + 1
                job = Job(id=f"{id_}#{number}", flow=id_, seq=seq, arrival=join, size=batch.cost)
                found[-1][1].append(job)
        return found

    def run(self, policy: str, record: str | None = None) -> Any:
        from fairq.sim.router.run import RouterRun

        return RouterRun(self, policy, record)
