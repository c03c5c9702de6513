"""What there is to run: the policies with their sources, and the gallery of teaching scenarios."""

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from fairq.core.param import Param
from fairq.core.policy import Policy
from fairq.form import source
from fairq.lab.views import ParamView, Policies, PolicyView, Scenarios, ScenarioView
from fairq.policies import POLICIES
from fairq.sim.catalogue import provided
from fairq.sim.engine.scenario import SECOND, EngineScenario
from fairq.sim.scenario import Scenario, load

RULE = re.compile(r"^    ([a-z]+)  +\S")
PLAYED = ("cpu", "router", "link", "cluster", "engine", "fleet")
"""Layers whose runs are told in steps."""
IN_SECONDS = frozenset({"at", "every", "cancel"})
APART = frozenset({"title", "look_for", "source", "policies", "max_steps"})


@cache
def policies() -> Policies:
    return Policies([_policy(policy) for policy in POLICIES.values()])


@cache
def scenarios() -> Scenarios:
    files = sorted(path for path in gallery().glob("*/*.yaml") if path.parent.name in PLAYED)
    return Scenarios([_scenario(path, load(path)) for path in files])


def gallery() -> Path:
    """In an installed fairq beside this file; in a checkout among the examples."""
    inside = Path(__file__).parent / "gallery"
    return inside if inside.is_dir() else Path(__file__).parents[3] / "examples" / "scenarios"


def plain(scenario: Scenario) -> dict[str, object]:
    """Its keys and values as a file has them, without texts, policies and limits."""
    given: dict[str, object] = scenario.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    plain = {key: value for key, value in given.items() if key not in APART}
    if isinstance(scenario, EngineScenario) and scenario.requests:
        plain["requests"] = [_in_seconds(batch) for batch in given["requests"]]  # type: ignore[attr-defined]
    return plain


def _in_seconds(batch: Mapping[str, Any]) -> dict[str, Any]:
    """An engine's scenario keeps nanoseconds; its files are written in seconds."""
    return {key: value / SECOND if key in IN_SECONDS else value for key, value in batch.items()}


def as_yaml(scenario: Scenario) -> str:
    texts = {key: value for key in ("title", "look_for", "source") if (value := getattr(scenario, key))}
    whole = {"layer": scenario.layer, **texts, "policies": list(scenario.policies), **plain(scenario)}
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)


def _scenario(path: Path, scenario: Scenario) -> ScenarioView:
    return ScenarioView(
        id=f"{path.parent.name}/{path.stem}",
        layer=scenario.layer,
        title=scenario.title,
        look_for=scenario.look_for,
        source=scenario.source,
        policies=list(scenario.policies),
        scenario=plain(scenario),
    )


def _policy(policy: type[Policy]) -> PolicyView:
    path = source(policy.__module__)
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    tree = ast.parse(text)
    end = tree.body[0].end_lineno or 0
    rules: dict[str, int] = {}
    for number, line in enumerate(lines[:end], 1):
        if found := RULE.match(line):
            rules.setdefault(found[1], number)
    methods: dict[str, tuple[int, int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            methods[node.name] = (node.lineno, node.end_lineno or node.lineno)
    return PolicyView(
        name=policy.name,
        unit=policy.unit.value,
        needs=sorted(policy.needs),
        layers=_layers(policy),
        params=[_param(param) for param in policy.params],
        file=path.name,
        source=text,
        rules=rules,
        methods=methods,
    )


def _layers(policy: type[Policy]) -> list[str]:
    """Those that can give it what it needs. In a fleet each engine has a policy."""
    given = provided()
    return [layer for layer in PLAYED if policy.needs <= given["engine" if layer == "fleet" else layer]]


def _param(param: Param) -> ParamView:
    default = param.default
    kind = "switch" if isinstance(default, bool) else "integer" if isinstance(default, int) else "ratio"
    if isinstance(default, str):
        kind = "choice"
    return ParamView(
        name=param.name,
        kind=kind,
        default=default if isinstance(default, bool | int) else str(default),
        low=param.low,
        high=param.high,
        choices=list(param.choices),
    )
