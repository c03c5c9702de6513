"""A scenario from a file, from inline options, or from both: inline ones replace what the file says."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import typer

from fairq.sim.scenario import Scenario, build
from fairq.sim.source import InvalidScenario, Place, Source, read_yaml

S = TypeVar("S", bound=Scenario)

Part = tuple[str, str, dict[str, Any]]
"""An option as it was written: (--tenant, A:cost=8, its fields)."""


def assemble(
    model: type[S],
    file: Path | None,
    parts: Mapping[str, Sequence[Part]],
    policies: Sequence[str],
    options: Mapping[str, object],
    form: str,
) -> S:
    """parts    key of the scenario -> the options that make its list
    options  key -> value, None where it was not given
    form     what to say when neither a file nor parts are given

    Raises InvalidScenario, which says where, also when that is an option.
    """
    layer = model.model_fields["layer"].default
    requested = any(parts.values()) or any(options.get(key) is not None for key in ("trace", "workload"))
    if not file and not requested:
        raise InvalidScenario([f"{next(iter(parts))}: missing; give {form}, or a scenario file"])
    source = read_yaml(file) if file else Source("options", {"layer": layer}, {})
    given: dict[str, Any] = dict(source.value)
    given |= {
        key: str(value) if isinstance(value, Path) else value for key, value in options.items() if value is not None
    }
    given |= {key: [fields for _, _, fields in written] for key, written in parts.items() if written}
    if policies:
        given.pop("policy", None)
        given["policies"] = list(dict.fromkeys(policies))
        for spec in given["policies"]:
            if policies.count(spec) > 1:
                typer.echo(f"--policy {spec}: given {policies.count(spec)} times, run once", err=True)
    if given.get("layer") != layer:
        wrong = f"layer = {given['layer']!r}: must be" if "layer" in given else "layer: missing; must be"
        raise InvalidScenario([f"{source.where(('layer',))}: {wrong} {layer} here"])

    def where(place: Place) -> str:
        key = str(place[0]) if place else ""
        if len(place) > 1 and isinstance(place[1], int) and parts.get(key):
            option, text, _ = parts[key][place[1]]
            return f"{option} {text}"
        if key == "policies" and policies:
            return f"--policy {given['policies'][place[1]]}" if len(place) > 1 else "--policy"
        return "--" + key.replace("_", "-") if options.get(key) is not None else source.where(place)

    scenario = build(given, where)
    assert isinstance(scenario, model)
    return scenario
