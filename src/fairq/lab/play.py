"""An order -> its answer: every policy on the same scenario, all steps complete. Bounded in steps, jobs and size."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from fairq.core.errors import ConfigError, FairqError, UnknownName
from fairq.lab.arrivals import together
from fairq.lab.catalogue import PLAYED, as_yaml, plain
from fairq.lab.engine import engine_steps
from fairq.lab.fluid import floods
from fairq.lab.router import router_steps
from fairq.lab.views import Answer, Order, RunView
from fairq.sim.engine.scenario import EngineScenario
from fairq.sim.scenario import Run, Scenario, build
from fairq.sim.source import InvalidScenario, read_text
from fairq.sim.trace import Step

MOST_STEPS = 20_000  # of one run
MOST_JOBS = 5_000  # of one run, told by the scenario
MOST_CELLS = 2_000_000  # steps x jobs: what is sent grows with both
RECORD = {"cpu": "ticks", "engine": None}
JOBS: dict[str, Callable[[Any], int]] = {
    "cpu": lambda cpu: len(cpu.tasks),
    "router": lambda router: sum(batch.count for tenant in router.tenants for batch in tenant.joins()),
    "engine": lambda engine: sum(batch.count for batch in engine.requests),
    "link": lambda link: sum(packet.count for packet in link.packets),
}


def play(order: Order) -> Answer:
    """Raises FairqError."""
    scenario = scenario_of(order)
    _check_size(scenario)
    return Answer(
        layer=scenario.layer,
        title=scenario.title,
        look_for=scenario.look_for,
        source=scenario.source,
        scenario=plain(scenario),
        yaml=as_yaml(scenario),
        runs=[_run(scenario, spec) for spec in scenario.policies],
    )


def scenario_of(order: Order) -> Scenario:
    """Raises InvalidScenario, ConfigError."""
    if (order.yaml is None) == (order.scenario is None):
        raise InvalidScenario(["scenario: give keys and values, or yaml, not both"])
    where = None
    if order.yaml is not None:
        source = read_text("scenario.yaml", order.yaml)
        given, where = dict(source.value), source.where
    else:
        given = dict(order.scenario or {})
    if order.layer is not None and given.setdefault("layer", order.layer) != order.layer:
        raise ConfigError("layer", order.layer, f"the scenario's is {given['layer']!r}")
    if "layer" not in given:
        raise InvalidScenario(["scenario: layer: missing"])
    if given["layer"] not in PLAYED:
        raise UnknownName("layer", str(given["layer"]), PLAYED)
    if given["layer"] == "engine" and given.get("trace") is not None:
        raise ConfigError("trace", given["trace"], "the lab reads no files of its server; `fairq sim engine` does")
    if order.policies is not None:
        given.pop("policy", None)
        given["policies"] = list(order.policies)
    if given["layer"] == "cpu":
        given.setdefault("max_steps", MOST_STEPS)
    return build(given, where) if where else build(given)


def _check_size(scenario: Scenario) -> None:
    if (steps := getattr(scenario, "max_steps", 0)) > MOST_STEPS:
        raise ConfigError("max_steps", steps, f"the lab plays at most {MOST_STEPS}; `fairq sim` has no such limit")
    count = JOBS.get(scenario.layer)
    if count is not None and (jobs := count(scenario)) > MOST_JOBS:
        raise ConfigError("scenario", f"{jobs} jobs", f"the lab plays at most {MOST_JOBS}; `fairq sim` has no limit")


def _run(scenario: Scenario, spec: str) -> RunView:
    run: Run = scenario.run(spec, RECORD.get(scenario.layer, "events"))
    steps = engine_steps(scenario, run) if isinstance(scenario, EngineScenario) else _steps(scenario, run)
    result = run.as_json() | ({"jobs": run.jobs()} if scenario.layer == "engine" else {})
    return RunView(
        spec=spec,
        policy=run.policy,
        params={name: str(v) if isinstance(v, Fraction) else v for name, v in run.params.items()},
        steps=steps,
        result=result,
        fluid=floods(run) if scenario.layer == "link" and run.policy == "gps" else None,
    )


def _steps(scenario: Scenario, run: Run) -> list[Step]:
    trace = run.trace()
    if len(trace) > MOST_STEPS:
        raise ConfigError("scenario", f"{len(trace)} steps", f"the lab plays at most {MOST_STEPS}")
    steps: list[Step] = []
    cells = 0
    for step in trace.steps():
        cells += len(step.remaining)
        if cells > MOST_CELLS:
            raise FairqError("scenario: too large to be sent step by step; `fairq sim` has no such limit")
        steps.append(step)
    match scenario.layer:
        case "router":
            return router_steps(run, steps)
        case "link":
            return together(steps)
    return steps


def as_text(value: Any) -> Any:
    """What JSON has no word for: fractions become text."""
    if isinstance(value, Fraction):
        return str(value)
    raise TypeError(type(value).__name__)
