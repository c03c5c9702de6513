"""An order -> its answer: every policy on the same scenario, all steps complete. Bounded in steps, jobs and size."""

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace

from fairq.core.errors import ConfigError, FairqError, UnknownName
from fairq.lab.arrivals import together
from fairq.lab.catalogue import PLAYED, as_yaml, plain
from fairq.lab.engine import engine_steps
from fairq.lab.files import kind_of, put, told
from fairq.lab.fleet import fleet_steps
from fairq.lab.fluid import floods
from fairq.lab.router import router_steps
from fairq.lab.views import Answer, Order, RunView
from fairq.sim.cpu.scenario import CpuScenario
from fairq.sim.engine.scenario import EngineScenario
from fairq.sim.fleet.scenario import FleetScenario
from fairq.sim.scenario import Run, Scenario, build
from fairq.sim.source import InvalidScenario, read_text
from fairq.sim.trace import Step

MOST_STEPS = 20_000  # of one run
MOST_JOBS = 5_000  # of one run, told by the scenario
MOST_CELLS = 2_000_000  # steps x jobs: what is sent grows with both
AT = " @"
FIRST = 300  # requests of a trace, until the reader wants more
TRIED = ("fcfs", "vtc")  # on a trace
RECORD = {"cpu": "ticks", "engine": None, "fleet": None}
JOBS: dict[str, Callable[[Any], int]] = {
    "cpu": lambda cpu: len(cpu.tasks),
    "router": lambda router: sum(batch.count for tenant in router.tenants for batch in tenant.joins()),
    "engine": lambda engine: sum(batch.count for batch in engine.requests),
    "fleet": lambda fleet: sum(batch.count for batch in fleet.requests),
    "link": lambda link: sum(packet.count for packet in link.packets),
}


def play(order: Order) -> Answer:
    """Raises FairqError."""
    if order.files:
        return _opened(order)
    order, placements = _placed(order)
    return _played(scenario_of(order), placements)


def _placed(order: Order) -> tuple[Order, list[str]]:
    """In a fleet each run may have a placement of its own, POLICY @PLACEMENT: the policies, and the placements."""
    split = [spec.partition(AT) for spec in order.policies or ()]
    if order.layer != "fleet" or not any(placement for _, _, placement in split):
        return order, []
    return replace(order, policies=[policy for policy, _, _ in split]), [placement for _, _, placement in split]


def _opened(order: Order) -> Answer:
    kinds = {kind_of(file) for file in order.files}
    if len(kinds) > 1:
        raise FairqError(f"files: {', '.join(sorted(kinds))}: the lab opens one kind at a time")
    if kinds != {"ledger"} and len(order.files) > 1:
        raise FairqError(f"files: {len(order.files)}: several are opened together only if they are of a ledger")
    if kinds == {"scenario"}:
        try:
            text = order.files[0].data.decode()
        except UnicodeDecodeError:
            raise FairqError(f"{order.files[0].name}: not UTF-8 text") from None
        return _played(scenario_of(Order(yaml=text)))
    with TemporaryDirectory(prefix="fairq-lab-") as name:
        folder = Path(name)
        paths = put(order.files, folder)
        try:
            return told(paths) if kinds == {"ledger"} else _traced(order, paths[0])
        except FairqError as error:
            raise FairqError(re.sub(rf"{re.escape(name)}/[0-9]+/", "", str(error))) from None


def _traced(order: Order, path: Path) -> Answer:
    """Requests from a trace, on an engine or a fleet."""
    given = {"layer": "engine", "first": FIRST} | dict(order.scenario or {})
    if given["layer"] not in ("engine", "fleet"):
        raise ConfigError("layer", given["layer"], "a trace's requests go to an engine or a fleet")
    given = {key: value for key, value in given.items() if key not in ("requests", "workload")} | {"trace": str(path)}
    order, placements = _placed(replace(order, layer=str(given["layer"])))
    given["policies"] = list(order.policies or TRIED)
    answer = _played(build(given), placements)
    del answer.scenario["trace"]
    answer.file = answer.title = path.name
    answer.yaml = answer.yaml.replace(str(path), path.name)
    return answer


def _played(scenario: Scenario, placements: list[str] | None = None) -> Answer:
    _check_size(scenario)
    runs = []
    for spec, placement in zip_longest(scenario.policies, placements or ()):
        own = build(plain(scenario) | {"layer": scenario.layer, "placement": placement}) if placement else scenario
        runs.append(_run(own, spec))
        runs[-1].spec += f"{AT}{placement}" if placement else ""
    return Answer(
        layer=scenario.layer,
        title=scenario.title,
        look_for=scenario.look_for,
        source=scenario.source,
        scenario=plain(scenario),
        yaml=as_yaml(scenario),
        runs=runs,
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
    if given["layer"] in ("engine", "fleet") and given.get("trace") is not None:
        raise ConfigError("trace", given["trace"], "the lab reads no files of its server; open the file in the lab")
    if order.policies is not None:
        given.pop("policy", None)
        given["policies"] = list(order.policies)
    if given["layer"] == "cpu":
        given.setdefault("max_steps", MOST_STEPS)
    return build(given, where) if where else build(given)


def _check_size(scenario: Scenario) -> None:
    if (steps := getattr(scenario, "max_steps", 0)) > MOST_STEPS:
        raise ConfigError("max_steps", steps, f"the lab plays at most {MOST_STEPS}; `fairq sim` has no such limit")
    first = getattr(scenario, "first", None)
    if first is not None and first > MOST_JOBS:
        raise ConfigError("first", first, f"the lab plays at most {MOST_JOBS}; `fairq sim` has no limit")
    count = JOBS.get(scenario.layer)
    if count is not None and (jobs := count(scenario)) > MOST_JOBS:
        raise ConfigError("scenario", f"{jobs} jobs", f"the lab plays at most {MOST_JOBS}; `fairq sim` has no limit")


def _run(scenario: Scenario, spec: str) -> RunView:
    run: Run = scenario.run(spec, RECORD.get(scenario.layer, "events"))
    result = run.as_json()
    if isinstance(scenario, FleetScenario):
        steps, engine_of = fleet_steps(scenario, run)
        result["jobs"] = [job | {"engine": engine_of.get(job["id"])} for job in run.jobs()]
    elif isinstance(scenario, EngineScenario):
        steps = engine_steps(scenario, run)
        result["jobs"] = run.jobs()
    else:
        steps = _steps(scenario, run)
    if isinstance(scenario, CpuScenario) and scenario.cpus == 1:
        result["entitled"] = _entitled(run)
    if len(steps) > MOST_STEPS:
        raise ConfigError("scenario", f"{len(steps)} steps", f"the lab plays at most {MOST_STEPS}")
    return RunView(
        spec=spec,
        policy=run.policy,
        params={name: str(v) if isinstance(v, Fraction) else v for name, v in run.params.items()},
        steps=steps,
        result=result,
        fluid=floods(run) if scenario.layer == "link" and run.policy == "gps" else None,
    )


def _entitled(run: Run) -> list[dict[str, Any]]:
    """What share of the processor each task's weight gives it, while the same tasks are there."""
    weights = run.weights()
    found = []
    for interval in run.fairness():
        whole = sum(weights[task] for task in interval.service)
        shares = {task: float(weights[task] / whole) for task in interval.service}
        found.append({"from": float(interval.start), "to": float(interval.end), "shares": shares})
    return found


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
