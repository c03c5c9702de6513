"""Schedulers from Python: `fairq.run(scenario)` runs them, and a `Result` shows and exports what came out.

import fairq
result = fairq.run("convoy.yaml", "fcfs", "sjf")
result.compare()                  # measures down, policies across; print() it where there is no notebook
result.frame("jobs")              # polars
result.why(3, "sjf")              # the decision in force at t = 3
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairq.core.errors import ConfigError, UnknownName
from fairq.core.number import of_json
from fairq.policies import make
from fairq.progress import watched
from fairq.sim.scenario import Run, Scenario, build, load
from fairq.sim.sweep import run as run_setting
from fairq.sim.sweep import settings
from fairq.sim.trace import Step, Trace
from fairq.tables import Row, Table

if TYPE_CHECKING:
    import polars
    from matplotlib.figure import Figure

KINDS = {
    "measures": "one row per policy, to compare them",
    "jobs": "one row per job",
    "fairness": "one row per interval in which the same flows are backlogged, and flow",
    "steps": "one row per step of the trace, with the decision's reason",
}


def run(
    scenario: Scenario | Mapping[str, Any] | str | Path,
    *policies: str,
    seed: int | None = None,
    sweep: Mapping[str, Iterable[object]] | None = None,
) -> "Result":
    """Runs every policy on identical arrivals.

    scenario  a file, the same as keys and values, or a Scenario
    policies  NAME or NAME:key=value,key=value; none: the scenario's own
    seed      instead of the scenario's own
    sweep     key -> values, all of which are run: parameters of policies, or keys of the scenario

    Raises InvalidScenario, ConfigError.
    """
    given: dict[str, Any] = {} if seed is None else {"seed": seed}
    if isinstance(scenario, (str, Path)):
        scenario = load(Path(scenario), policies, **given)
    elif isinstance(scenario, Mapping):
        if "layer" not in scenario:
            raise ConfigError("layer", None, "missing from the scenario")
        rest = {key: value for key, value in scenario.items() if not policies or key not in ("policy", "policies")}
        scenario = build(rest | given | ({"policies": list(policies)} if policies else {}))
    elif given or policies:
        for spec in policies:
            make(spec)
        if seed is not None and seed < 0:
            raise ConfigError("seed", seed, "must be at least 0")
        scenario = scenario.model_copy(update=given | ({"policies": policies} if policies else {}))
    return Result(scenario, {key: [str(value) for value in values] for key, values in (sweep or {}).items()})


class Result:
    """Several policies on one scenario. `result["sjf"]` or `result[1]` is one run; of a sweep, also by its label.

    scenario  what was run
    runs      one for each policy, in the scenario's order, and for each setting of a sweep
    """

    def __init__(self, scenario: Scenario, sweep: Mapping[str, Sequence[str]] | None = None) -> None:
        self.scenario = scenario
        found = settings(scenario, sweep or {})
        self.runs: tuple[Run, ...] = tuple(run_setting(one) for one in watched(found, name=lambda setting: setting[1]))
        self._traces: dict[tuple[str, str | None], Trace] = {}

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, policy: str | int) -> Run:
        if isinstance(policy, int):
            return self.runs[policy]
        for one in self.runs:
            if policy in (one.label, one.spec):
                return one
        raise UnknownName("policy", policy, (one.label for one in self.runs))

    def __repr__(self) -> str:
        return f"<fairq.Result {self.scenario.layer}: {', '.join(one.label for one in self.runs)}>"

    def _repr_html_(self) -> str:
        return self.compare()._repr_html_()

    def as_json(self) -> dict[str, Any]:
        """What `fairq sim LAYER --json` prints, as plain values."""
        return {"layer": self.scenario.layer, "runs": [one.as_json() for one in self.runs]}

    def trace(self, policy: str | int = 0, record: str | None = None) -> Trace:
        """What happened step by step, and why. `record="ticks"` makes a CPU's steps single ticks.

        Runs are functions of their scenario, so a trace is made by running again, watched; once for each policy.
        """
        one = self[policy]
        if (one.label, record) not in self._traces:
            self._traces[one.label, record] = one.scenario.run(one.spec, record or "events").trace()
        return self._traces[one.label, record]

    def why(self, time: int, policy: str | int = 0) -> Step:
        """The step in force at `time`: its `why` is the decision's reason, the rest is how things stood after it.

        On a CPU a step tells of the interval that it ends, so it is the first one later than `time`; elsewhere, the
        last one up to `time`. IndexError outside the run.
        """
        steps = list(self.trace(policy).steps())
        if self.scenario.layer == "cpu":
            found = [step for step in steps if of_json(step.time) > time and step.kind == "interval"][:1]
        else:
            found = [step for step in steps if of_json(step.time) <= time and step.why][-1:]
        if time < 0 or not found:
            raise IndexError(f"time = {time}: nothing was decided then")
        return found[0]

    # As rows
    def rows(self, kind: str = "measures") -> list[Row]:
        """Plain values, times and tags exact. kind: measures, jobs, fairness or steps."""
        if kind not in KINDS:
            raise UnknownName("kind", kind, KINDS)
        found = {"measures": self._measures, "jobs": self._jobs, "fairness": self._fairness, "steps": self._steps}[kind]
        return [{"policy": one.spec, **one.swept, **row} for one in self.runs for row in found(one)]

    def _measures(self, one: Run) -> list[Row]:
        return [one.measured()]

    def _jobs(self, one: Run) -> list[Row]:
        return one.jobs()

    def _fairness(self, one: Run) -> list[Row]:
        return [
            {"from": interval.start, "to": interval.end, "flow": flow, "normalized_service": service}
            | {"jain": interval.jain, "max_min": one.max_min(interval)}
            for interval in one.fairness()
            for flow, service in interval.service.items()
        ]

    def _steps(self, one: Run) -> list[Row]:
        return [
            {
                "time": step.time,
                "kind": step.kind,
                "why": step.why.code if step.why else None,
                "values": ", ".join(f"{key}={value}" for key, value in step.why.values.items()) if step.why else None,
                "running": " ".join(step.running),
                "waiting": " ".join(id_ for ids in step.queues.values() for id_ in ids),
            }
            for step in self.trace(one.label).steps()
        ]

    def table(self, kind: str = "jobs") -> Table:
        """For people: prints as text, and as HTML in a notebook."""
        return Table(self.rows(kind))

    def compare(self) -> Table:
        """The measures side by side: one row for each, one column per policy."""
        return compare(self.runs)

    def frame(self, kind: str = "jobs") -> "polars.DataFrame":
        """A polars frame; fractions become floats. Raises ConfigError without polars (`fairq[frame]`)."""
        return self.table(kind).frame()

    def figure(self) -> "Figure":
        """Who ran, waited or was served when, one picture for each policy. ConfigError without matplotlib."""
        from fairq.plot import figure

        return figure(self.scenario, self.runs)

    gantt = figure

    def to_plot(self, path: str | Path) -> None:
        """`figure` as .svg, .png or .pdf. Raises ConfigError."""
        from fairq.plot import save

        save(self.scenario, self.runs, Path(path))

    def to_perfetto(self, path: str | Path) -> None:
        """The traces of all runs, of an engine its requests, for ui.perfetto.dev. Raises ConfigError."""
        from fairq.sim.perfetto import save

        save(self.runs, Path(path))

    def to_csv(self, path: str | Path, kind: str = "jobs") -> None:
        """Exact: a fraction is written as 7/2."""
        Path(path).write_text(self.table(kind).csv(), encoding="utf-8")

    def to_parquet(self, path: str | Path, kind: str = "jobs") -> None:
        """As `frame` has it. Raises ConfigError without polars (`fairq[frame]`)."""
        Path(path).write_bytes(self.table(kind).parquet())


def compare(runs: Iterable[Run]) -> Table:
    """Every measure that some run has, one column per run."""
    columns = {one.label: one.measured() for one in runs}
    names = dict.fromkeys(name for measured in columns.values() for name in measured)
    told = [name for name in names if any(measured.get(name) is not None for measured in columns.values())]
    return Table(
        {"measure": name} | {label: measured.get(name) for label, measured in columns.items()} for name in told
    )
