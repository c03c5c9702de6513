"""Scenarios: what a simulation is given. One typed model per layer; from YAML, from the command line, or from Python.

A layer adds its model in a file of its own and a line in LAYERS. Its model says what it needs and how to run it:

    class CpuScenario(Scenario):
        layer: Literal["cpu"] = "cpu"
        tasks: tuple[Task, ...]
        def run(self, policy, record=None): ...
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from fairq.core.errors import ConfigError, UnknownName
from fairq.core.number import to_json
from fairq.measure.fairness import Interval
from fairq.policies import make, spec_of
from fairq.sim.source import InvalidScenario, Place, read_yaml
from fairq.sim.trace import Trace

LAYERS = {
    "cpu": "fairq.sim.cpu.scenario:CpuScenario",
    "cluster": "fairq.sim.cluster.scenario:ClusterScenario",
    "engine": "fairq.sim.engine.scenario:EngineScenario",
    "fleet": "fairq.sim.fleet.scenario:FleetScenario",
    "link": "fairq.sim.link.scenario:LinkScenario",
    "router": "fairq.sim.router.scenario:RouterScenario",
}

MOST_CELLS = 200_000  # intervals times flows, in a document
MOST = 2**53 - 1  # what JSON readers keep exact
Natural = Annotated[int, Field(ge=0, le=MOST)]
Positive = Annotated[int, Field(ge=1, le=MOST)]
Whole = Annotated[int, Field(ge=-MOST, le=MOST)]


def _printable(given: str) -> str:
    if not given.isprintable():  # it is shown on terminals
        raise ValueError("must not hold control characters")
    return given


Name = Annotated[str, Field(min_length=1, max_length=200, coerce_numbers_to_str=True), AfterValidator(_printable)]


def _ratio(given: object) -> Fraction:
    """ "2", "1/3", "0.5" or a number."""
    try:
        value = Fraction(str(given).encode("ascii").decode())
    except (ValueError, ZeroDivisionError):
        raise ValueError("must be a number such as 2, 0.5 or 1/3") from None
    if not Fraction(1, 10**9) <= value <= 10**9:
        raise ValueError("must be greater than 0, from 1e-9 to 1e9")
    return value


Ratio = Annotated[Fraction, BeforeValidator(_ratio)]


def _specs(given: object) -> object:
    if isinstance(given, str | Mapping):
        given = [given]
    if not isinstance(given, list | tuple):
        return given
    try:
        return [spec_of(one) if isinstance(one, Mapping) else one for one in given]
    except ConfigError as error:
        raise ValueError(str(error)) from None


class Part(BaseModel):
    """A piece of a scenario: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def broken(rule: str, *at: int | str) -> PydanticCustomError:
    """For validators of a whole model: a broken rule, and the place in the model that breaks it."""
    return PydanticCustomError("rule", "{rule}", {"rule": rule, "at": at})


class Scenario(Part, ABC):
    """policies  each NAME, NAME:key=value,key=value or {policy: NAME, key: value}; side by side on identical arrivals
    seed      of every random number in the run
    title, look_for, source  for people: what it is about, what to see in it, where it is from"""

    layer: str
    title: Annotated[str, Field(max_length=200)] = ""
    look_for: Annotated[str, Field(max_length=2000)] = ""
    source: Annotated[str, Field(max_length=1000)] = ""
    policies: Annotated[
        tuple[str, ...],
        BeforeValidator(_specs),
        Field(min_length=1, validation_alias=AliasChoices("policies", "policy")),
    ] = ("fcfs",)
    seed: Natural = 0

    def for_pictures(self) -> "Scenario":
        """The same, so that its runs keep what pictures show."""
        return self

    @abstractmethod
    def run(self, policy: str, record: str | None = None) -> "Run":
        """One policy on it. `record` asks for a trace; the layer says which kinds it has."""


class Run(ABC):
    """What came out of one policy on one scenario.

    scenario        what it ran on
    spec            the policy as it was asked for, NAME:key=value
    policy, params  its name, and all its parameters
    swept           what a sweep set in its scenario
    label           the policy and that, for people
    """

    scenario: Any
    spec: str
    policy: str
    params: Mapping[str, Any]
    swept: Mapping[str, str] = {}

    @property
    def label(self) -> str:
        return " ".join([self.spec, *(f"{key}={value}" for key, value in self.swept.items())])

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """One entry of the `runs` of `--json`."""

    @abstractmethod
    def jobs(self) -> list[dict[str, Any]]:
        """A row for each job; times are exact."""

    @abstractmethod
    def measured(self) -> dict[str, Any]:
        """The layer's measures in one row."""

    @abstractmethod
    def fairness(self) -> list[Interval]:
        """Normalized service over the intervals in which the same flows compete."""

    @abstractmethod
    def weights(self) -> dict[str, Fraction]:
        """Of each flow."""

    def max_min(self, interval: Interval) -> Fraction | None:
        """The max-min index of one of the intervals of `fairness`."""
        return interval.max_min(self.weights())

    def fairness_json(self, flows: str, changes: int) -> list[dict[str, Any]] | None:
        """`fairness` for `--json`, with its indices; None where that could be far longer than the run itself.

        flows    how the layer calls them: tenants, tasks, ...
        changes  at most so often somebody begins or stops to compete
        """
        if changes * len(self.weights()) > MOST_CELLS:
            return None
        return [interval_json(interval, flows, self.max_min(interval)) for interval in self.fairness()]

    @abstractmethod
    def trace(self) -> Trace:
        """Raises ValueError when the run was not recorded."""


def interval_json(interval: Interval, flows: str, max_min: Fraction | None) -> dict[str, Any]:
    jain = interval.jain
    return {
        flows: list(interval.service),
        "from": to_json(interval.start) if isinstance(interval.start, (int, Fraction)) else interval.start,
        "to": to_json(interval.end) if isinstance(interval.end, (int, Fraction)) else interval.end,
        "normalized_service": {flow: str(service) for flow, service in interval.service.items()},
        "jain": None if jain is None else float(jain),
        "max_min": None if max_min is None else float(max_min),
    }


def model_of(layer: object) -> type[Scenario]:
    if not isinstance(layer, str) or layer not in LAYERS:
        raise UnknownName("layer", str(layer), LAYERS)
    module, _, name = LAYERS[layer].partition(":")
    model: type[Scenario] = getattr(import_module(module), name)
    return model


def load(path: Path, policies: tuple[str, ...] = (), **overrides: object) -> Scenario:
    """A scenario file. `policies` replaces its own. Raises InvalidScenario, ConfigError."""
    source = read_yaml(path)
    given = source.value | {key: value for key, value in overrides.items() if value is not None}
    if policies:
        given = {key: value for key, value in given.items() if key not in ("policy", "policies")}
        given["policies"] = list(policies)
    if "layer" not in given:
        raise InvalidScenario([f"{source.name}: layer: missing; one of {', '.join(LAYERS)}"])

    def where(place: Place) -> str:
        key = place[0] if place else ""
        if key == "policies" and policies:
            return ""
        return "options" if overrides.get(str(key)) is not None else source.where(place)

    return build(given, where)


def build(given: Mapping[str, Any], where: Callable[[Place], str] = lambda place: "scenario") -> Scenario:
    """Plain values -> a checked scenario. `where` says where a place in them was written; "" is nowhere in a file."""
    try:
        model = model_of(given["layer"])
    except UnknownName as error:
        raise InvalidScenario([f"{where(('layer',))}: {error}"]) from None
    try:
        scenario = model.model_validate(dict(given))
    except ValidationError as error:
        problems = error.errors()
        # A list whose items are wrong is not also too short.
        inner = {problem["loc"][:-n] for problem in problems for n in range(1, len(problem["loc"]))}
        problems = [problem for problem in problems if problem["loc"] not in inner]
        raise InvalidScenario([_line(model, given, problem, where) for problem in problems]) from None
    for index, spec in enumerate(scenario.policies):
        try:
            make(spec)
        except ConfigError as error:
            at = where(("policies", index) if "policies" in given else ("policy", index))
            told = error.rule if error.key == "policy" and at.endswith(f" {spec}") else str(error)
            raise InvalidScenario([f"{at}: {told}" if at else told]) from None
    return scenario


RULES = {
    "missing": "missing",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "too large",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "bool_parsing": "must be true or false",
    "too_short": "needs at least {min_length}",
    "tuple_type": "must be a list",
    "model_type": "must be keys and values",
    "value_error": "{error}",
}


def _line(model: type[Scenario], given: Any, problem: Any, where: Callable[[Place], str]) -> str:
    """where: key = value: rule"""
    place: Place = (*problem["loc"], *problem.get("ctx", {}).get("at", ()))
    kind = problem["type"]
    if kind == "extra_forbidden":
        rule = "unknown key" + _nearest(model, place)
    else:
        rule = RULES.get(kind, problem["msg"]).format(**problem.get("ctx", {}))
    key = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")
    value = given
    for step in place:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            value = None
            break
    shown = "" if value is None or isinstance(value, (dict, list)) else f" = {str(value)[:80]!r}"
    at = where(place)
    if at == "--" + key.replace("_", "-"):  # an option is named once
        return f"{at}{shown}: {rule}"
    return ": ".join(part for part in (at, key and f"{key}{shown}", rule) if part)


def _nearest(model: type[BaseModel], place: Place) -> str:
    """The known keys that look like the unknown one."""
    at: Any = model
    for step in place[:-1]:
        if isinstance(step, str) and isinstance(at, type) and issubclass(at, BaseModel):
            at = at.model_fields[step].annotation if step in at.model_fields else None
        while at is not None and not (isinstance(at, type) and issubclass(at, BaseModel)):
            at = next((arg for arg in getattr(at, "__args__", ()) if arg is not type(None) and arg is not ...), None)
    if at is None:
        return ""
    known = [field.alias or name for name, field in at.model_fields.items()]
    near = get_close_matches(str(place[-1]), known, n=2)
    return f"; did you mean {' or '.join(near)}?" if near else f"; known: {', '.join(known)}"


def inline(option: str, text: str, names: tuple[str, ...], repeated: frozenset[str] = frozenset()) -> dict[str, Any]:
    """`A:0:7:priority=3,deadline=20` with names ("id", "arrival", "burst") -> {"id": "A", ...}; values stay text.

    Keys in `repeated` may be given several times and become lists. Raises InvalidScenario.
    """
    fields: dict[str, Any] = {}

    def put(key: str, value: str) -> None:
        if key in repeated:
            fields.setdefault(key, []).append(value)
        elif key in fields:
            raise InvalidScenario([f"{option} {text}: {key}: given twice"])
        else:
            fields[key] = value

    positions = iter(names)
    for part in text.split(":"):
        if "=" in part:
            for item in part.split(","):
                key, equals, value = item.partition("=")
                if not equals or not key:
                    raise InvalidScenario([f"{option} {text}: {item!r}: must be key=value"])
                put(key, value)
        else:
            name = next(positions, None)
            if name is None:
                form = ":".join(n.upper() for n in names)
                raise InvalidScenario([f"{option} {text}: too many parts; the form is {form}:key=value,..."])
            put(name, part)
    return fields
