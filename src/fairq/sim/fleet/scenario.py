"""What a fleet simulation is given: an engine scenario, and what stands before its engines."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from fairq.core.errors import ConfigError
from fairq.core.policy import Need
from fairq.placements import make as make_placement
from fairq.policies import make_for
from fairq.sim.engine.scenario import EngineScenario
from fairq.sim.scenario import Natural, Positive

ROUTER = frozenset({Need.SIZE, Need.RANDOM})


def _router(spec: str) -> str:
    try:
        make_for(spec, ROUTER)
    except ConfigError as error:
        raise ValueError(error.rule) from None
    return spec


def _placement(spec: str) -> str:
    try:
        make_placement(spec, prefix=True)
    except ConfigError as error:
        raise ValueError(error.rule) from None
    return spec


class FleetScenario(EngineScenario):
    """engines    equal ones, each with the scenario's limits and costs, and with the policy
    router     who is dispatched next: sfq, fcfs, ...
    placement  to which engine: least-loaded, prefix-affinity, d2lpm
    slots      requests in flight at each engine; 0: the router holds nobody back, so the engines' policy decides
    predict    what the router takes an answer to cost: average, of what the client's answers were; oracle, its length
    """

    layer: Literal["fleet"] = "fleet"  # type: ignore[assignment]
    engines: Positive = 2
    router: Annotated[str, AfterValidator(_router)] = "sfq"
    placement: Annotated[str, AfterValidator(_placement)] = "least-loaded"
    slots: Natural = 0
    predict: Literal["average", "oracle"] = "average"

    def run(self, policy: str, record: str | None = None) -> Any:
        from fairq.sim.fleet.run import FleetRun

        return FleetRun(self, policy, record)
