"""Synthetic workloads: requests drawn from a seed. `make("poisson:rate=3,clients=8", seed=1)`.

A workload can be iterated like a trace, as often as one likes, and written to a file as one (`fairq trace make`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from inspect import Parameter, signature
from random import Random
from typing import Any

from msgspec.structs import fields

from fairq.core.errors import ConfigError, UnknownName
from fairq.traces.request import Request
from fairq.workloads import plain, sharing, vtc

Make = Callable[..., list[Request]]

PLAIN: dict[str, Make] = {
    "poisson": plain.poisson,
    "on-off": plain.on_off,
    "ramp": plain.ramp,
    "burst": plain.burst,
    "heavy-tail": plain.heavy_tail,
    "re-entry": plain.re_entry,
    "cancels": plain.cancelled,
    "mispredicted": plain.mispredicted,
}
SHARING: dict[str, Make] = {
    "shared-prefix": sharing.shared_prefix,
    "multi-turn": sharing.multi_turn,
    "tree-of-thoughts": sharing.tree_of_thoughts,
    "document-questions": sharing.document_questions,
}
SUITES = {f"vtc-{name}": name for name in vtc.SUITES}
NAMES = (*PLAIN, *SHARING, *SUITES)


class Workload:
    """spec, seed      what it was made from
    name, clients, block_tokens   as a `Trace` has them
    """

    clients = True

    def __init__(self, spec: str, seed: int, requests: list[Request], block_tokens: int) -> None:
        self.spec, self.seed, self.requests, self.block_tokens = spec, seed, requests, block_tokens
        self.name = spec

    def __iter__(self) -> Iterator[Request]:
        return iter(self.requests)

    def __len__(self) -> int:
        return len(self.requests)


def make(spec: str, seed: int = 0) -> Workload:
    """NAME or NAME:key=value,key=value. Requests come in order of arrival. Raises UnknownName, ConfigError."""
    name, _, rest = spec.partition(":")
    given = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise ConfigError("workload", spec, f"{item}: must be key=value")
        given[key] = value
    if name in SUITES:
        seconds = _values(name, given, {"duration": (float, None)})["duration"]
        return Workload(spec, 42, vtc.suite(SUITES[name], seconds), 0)
    if name not in NAMES:
        raise UnknownName("workload", name, NAMES)
    chance, values = Random(seed), _values(name, given, parameters(name))
    if name in SHARING:
        requests = SHARING[name](chance, **values)
        requests_in_order = requests if any(one.after is not None for one in requests) else _sorted(requests)
        return Workload(spec, seed, requests_in_order, values["block"])
    shape = {field.name: values.pop(field.name) for field in fields(plain.Traffic)}
    traffic = plain.Traffic(**shape)
    traffic.check()
    return Workload(spec, seed, _sorted(PLAIN[name](chance, traffic, **values)), 0)


def parameters(name: str) -> dict[str, tuple[type, Any]]:
    """The parameters of a workload: kind and default of each. Empty for the suites but their duration."""
    if name in SUITES:
        return {"duration": (float, None)}
    made = PLAIN.get(name) or SHARING[name]
    own = {
        key: (_kind(known.annotation), known.default)
        for key, known in signature(made, eval_str=True).parameters.items()
        if known.kind is Parameter.KEYWORD_ONLY
    }
    if name in SHARING:
        return own
    return own | {field.name: (_kind(field.type), field.default) for field in fields(plain.Traffic)}


def _kind(annotation: Any) -> type:
    kind: type = annotation if annotation in (int, float, str) else float
    return kind


def _values(name: str, given: Mapping[str, str], known: Mapping[str, tuple[type, Any]]) -> dict[str, Any]:
    values = {key: default for key, (_, default) in known.items()}
    for key, text in given.items():
        if key not in known:
            raise UnknownName(f"{name} parameter", key, known)
        kind = known[key][0]
        try:
            values[key] = kind(text)
        except ValueError:
            rule = "must be a whole number" if kind is int else "must be a number"
            raise ConfigError(f"{name}.{key}", text, rule) from None
        if kind is not str and not 0 <= values[key] <= 1e9:
            raise ConfigError(f"{name}.{key}", text, "must be from 0 to 1e9")
        if values[key] == 0 and key in POSITIVE:
            raise ConfigError(f"{name}.{key}", text, "must be greater than 0")
    return values


POSITIVE = {
    "block",
    "branches",
    "clients",
    "conversations",
    "documents",
    "duration",
    "every",
    "input",
    "on",
    "output",
    "patience",
    "rate",
}
_sorted = partial(sorted, key=lambda one: one.arrival)
