"""One scenario, many settings: every value of a policy's parameter, or of a key of the scenario itself."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, product
from math import prod
from typing import Any, Literal, get_args, get_origin

from fairq.core.errors import ConfigError, UnknownName
from fairq.policies import make
from fairq.sim.scenario import Run, Scenario, build

MOST = 10_000  # runs

Setting = tuple[Scenario, str, dict[str, str]]
"""A scenario, a policy on it, and what a sweep set in the scenario."""


def settings(scenario: Scenario, sweep: Mapping[str, Sequence[str]]) -> list[Setting]:
    """All combinations, those of one policy beside each other for each setting of the scenario.

    sweep  key -> values. A parameter of some of the policies changes those; else it is a key of the scenario with a
           single value, such as seed or switch_cost

    Raises ConfigError, InvalidScenario.
    """
    parameters = {param.name for spec in scenario.policies for param in make(spec).params}
    single = {
        name
        for name, field in type(scenario).model_fields.items()
        if name not in ("layer", "title", "look_for", "source") and _is_single(field.annotation)
    }
    for key in sweep:
        if key.replace("-", "_") not in parameters | single:
            raise UnknownName("sweep", key, parameters | single)
    of_policies = {key: values for key, values in sweep.items() if key.replace("-", "_") in parameters}
    of_scenario = {key.replace("-", "_"): values for key, values in sweep.items() if key not in of_policies}
    every = (spec for policy in scenario.policies for spec in expanded(policy, of_policies))
    specs = list(islice(every, MOST + 1))
    if len(specs) * prod(map(len, of_scenario.values())) > MOST:
        raise ConfigError("sweep", " ".join(sweep), f"more than {MOST} runs")
    found: list[Setting] = []
    for values in product(*of_scenario.values()):
        chosen = dict(zip(of_scenario, values, strict=True))
        found += [(changed(scenario, chosen), spec, chosen) for spec in specs]
    return found


def _is_single(kind: Any) -> bool:
    """Is it a number or a word, perhaps None?"""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (tuple, dict):
        return False
    return origin is Literal or kind in (int, Fraction, str) or any(_is_single(part) for part in parts)


def expanded(spec: str, sweep: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The policy once for each combination of those parameters that it has."""
    own = {param.name for param in make(spec).params}
    keys = [key for key in sweep if key.replace("-", "_") in own]
    name, _, rest = spec.partition(":")
    swept = {key.replace("-", "_") for key in keys}
    kept = [item for item in rest.split(",") if item and item.partition("=")[0].replace("-", "_") not in swept]
    for values in product(*(sweep[key] for key in keys)):
        items = [*kept, *(f"{key}={value}" for key, value in zip(keys, values, strict=True))]
        told = ":".join([name, ",".join(items)]) if items else name
        make(told)
        yield told


def changed(scenario: Scenario, values: Mapping[str, str]) -> Scenario:
    """The same scenario with other values for some keys, checked again."""
    if not values:
        return scenario
    given: dict[str, Any] = scenario.model_dump(mode="json", by_alias=True, exclude_unset=True)
    told = ", ".join(f"{key}={value}" for key, value in values.items())
    return build(given | {"layer": scenario.layer} | dict(values), lambda place: f"sweep {told}")


def run(setting: Setting) -> Run:
    scenario, spec, chosen = setting
    found: Run = scenario.run(spec)
    found.swept = chosen
    return found


def parsed(texts: Sequence[str]) -> dict[str, list[str]]:
    """`quantum=1,2,4` -> {"quantum": ["1", "2", "4"]}. Raises ConfigError."""
    sweep: dict[str, list[str]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        listed = values.split(",")
        if not key or not equals or not all(listed) or key in sweep:
            raise ConfigError("sweep", text, "must be KEY=VALUE,VALUE,... with each key once")
        sweep[key] = listed
    return sweep
