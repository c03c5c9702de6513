"""What the lab's API takes and gives: its types, from which the OpenAPI document and the page's types are made."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from fairq.sim.trace import Step

MOST_POLICIES = 8
MOST_FILES = 64
LONGEST_YAML = 200_000  # characters

Spec = Annotated[str, Meta(min_length=1, max_length=300)]


class File(Struct, forbid_unknown_fields=True):
    """A file that the reader opens. data: in base64"""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    data: bytes


class Order(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to run: `scenario` as keys and values, or `yaml` as text. `policies` replaces the scenario's own.

    `files`: a scenario, a trace (`scenario` then says what else there is to it), or segments of a gateway's ledger.
    """

    layer: str | None = None
    scenario: dict[str, Any] | None = None
    yaml: Annotated[str, Meta(max_length=LONGEST_YAML)] | None = None
    policies: Annotated[list[Spec], Meta(max_length=MOST_POLICIES)] | None = None
    files: Annotated[list[File], Meta(max_length=MOST_FILES)] = []


class RunView(Struct, kw_only=True):
    """One policy on the scenario.

    spec    as it was asked for, NAME:key=value; params: all parameters, as text where they are no JSON number
    steps   every step, complete
    result  what `fairq sim --json` says of the run
    fluid   link: who is served at once by the fluid, and with what share of the rate
    """

    spec: str
    policy: str
    params: dict[str, Any]
    steps: list[Step]
    result: dict[str, Any]
    fluid: "list[Flood] | None" = None


class Flood(Struct):
    """From `start` to `end` each of these flows is given that share of the link."""

    start: float
    end: float
    shares: dict[str, float]


class Answer(Struct, kw_only=True):
    """All runs, on identical arrivals. Layer `ledger`: one run for each pool that was recorded.

    yaml   the scenario as a file
    file   the trace that its requests are from
    again  of a ledger: its requests as a router scenario, for other policies
    """

    layer: str
    title: str
    look_for: str
    source: str
    scenario: dict[str, Any]
    yaml: str
    runs: list[RunView]
    file: str = ""
    again: dict[str, Any] | None = None


class ParamView(Struct, kw_only=True):
    """kind: integer, switch, ratio or choice"""

    name: str
    kind: str
    default: int | bool | str
    low: int | None
    high: int | None
    choices: list[str]


class PolicyView(Struct, kw_only=True):
    """layers: where it runs; source: its file; rules: word of its docstring's rule -> line; methods: name -> lines"""

    name: str
    unit: str
    needs: list[str]
    layers: list[str]
    params: list[ParamView]
    file: str
    source: str
    rules: dict[str, int]
    methods: dict[str, tuple[int, int]]


class Policies(Struct):
    policies: list[PolicyView]


class ScenarioView(Struct, kw_only=True):
    """A teaching scenario. `scenario`: without its texts and policies."""

    id: str
    layer: str
    title: str
    look_for: str
    source: str
    policies: list[str]
    scenario: dict[str, Any]


class Scenarios(Struct):
    scenarios: list[ScenarioView]


class LabProblem(Struct):
    """`code` is stable; `message` is for people, one line for each broken rule.

    places  where in the scenario each line's value is, as keys and indices; empty where it is nowhere
    """

    code: str
    message: str
    places: list[list[str | int]] = []


class LabFailure(Struct):
    error: LabProblem
