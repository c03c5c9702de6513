"""The OpenAPI document of the lab's API, made from its types and from the models of scenarios."""

from functools import cache
from importlib import import_module
from typing import Any

from fairq.lab import views
from fairq.lab.catalogue import PLAYED
from fairq.lab.describing import REF, assemble, content, told
from fairq.lab.files import LONGEST_WINDOW
from fairq.sim.scenario import LAYERS

KINDS = (views.Order, views.Answer, views.Policies, views.Scenarios, views.LabFailure)
PROBLEMS = {
    400: "The order breaks a rule; the message is that of the command line",
    401: "The admin token is required: off loopback",
    403: "Refused: host or origin",
    404: "Unknown",
    413: "The body is too large",
    415: "The body is not JSON",
    429: "Too many at once; Retry-After",
    500: "The worker died; the next order starts a new one",
    503: "The lab is busy, or no gateway has connected yet",
}
RUN = (400, 401, 403, 413, 415, 429, 500, 503)
SEEN = (400, 401, 403, 429)  # by whoever reads
ARTICLE: dict[str, dict[str, Any]] = {
    "cpu": {
        "layer": "cpu",
        "scenario": {"tasks": [{"id": i, "arrival": a, "burst": b} for i, a, b in (("A", 0, 7), ("B", 1, 4))]},
        "policies": ["fcfs", "rr:quantum=2"],
    },
    "router": {
        "layer": "router",
        "scenario": {"tenants": [{"id": "A", "cost": 8, "count": 3}, {"id": "B", "cost": 2, "count": 7}]},
        "policies": ["sfq", "request-rr"],
    },
    "yaml": {"yaml": "layer: link\npackets: [{flow: A, arrival: 0, size: 8, count: 2}]\npolicies: [wfq]\n"},
}
NOTHING, TEXT, KEYS = {"type": "null"}, {"type": "string"}, {"type": "object"}


@cache
def document() -> dict[str, Any]:
    made = assemble("fairq lab", paths(live=False), KINDS)
    add_scenarios(made["components"]["schemas"])
    return made


def paths(live: bool) -> dict[str, Any]:
    """`live`: is it beside a gateway?"""
    run = {
        "summary": "Run policies on a scenario, on identical arrivals; every step is complete.",
        "requestBody": {
            "required": True,
            "content": {
                kind: value | {"examples": {name: {"value": order} for name, order in ARTICLE.items()}}
                for kind, value in content("Order").items()
            },
        },
        "responses": {"200": told("The runs", "Answer")} | _problems(*RUN),
    }
    pool = {"name": "pool", "in": "query", "required": True, "schema": TEXT}
    seconds = {
        "name": "seconds",
        "in": "query",
        "schema": {"type": "number", "exclusiveMinimum": 0, "maximum": LONGEST_WINDOW, "default": 30},
    }
    recent = {
        "summary": "The last seconds of one of the gateway's pools, as its ledger has them.",
        "parameters": [pool, seconds],
        "responses": {"200": told("The recording", "Answer")} | _problems(*SEEN, 404, 500, 503),
    }
    return ({"/api/lab/recent": {"get": recent}} if live else {}) | {
        "/api/lab/run": {"post": run},
        "/api/lab/policies": {"get": _get("The policies, their parameters and sources.", told("OK", "Policies"))},
        "/api/lab/scenarios": {"get": _get("The gallery.", told("OK", "Scenarios"))},
        "/api/lab/openapi.json": {"get": _get("The lab's part of this document.", DOCUMENT)},
    }


DOCUMENT = {"description": "OpenAPI 3.1", "content": {"application/json": {"schema": {"type": "object"}}}}


def add_scenarios(schemas: dict[str, Any]) -> None:
    """What `Order.scenario` may hold in each layer. The command line reads the same models from YAML."""
    names = []
    for layer in PLAYED:
        module, _, attribute = LAYERS[layer].partition(":")
        prefix = layer.capitalize()
        model = getattr(import_module(module), attribute)
        schema = model.model_json_schema(ref_template=REF.format(name=prefix + "{model}"))
        schemas |= {prefix + name: part for name, part in schema.pop("$defs", {}).items()}
        names.append(prefix + "Scenario")
        schemas[names[-1]] = schema
    order = schemas["Order"]
    known = {"anyOf": [*({"$ref": REF.format(name=name)} for name in names), NOTHING], "default": None}
    order["properties"] |= {"scenario": known, "layer": {"enum": [*PLAYED, None], "default": None}}
    order["anyOf"] = [
        {"required": ["layer", "scenario"], "properties": {"layer": TEXT, "scenario": KEYS, "yaml": NOTHING}},
        {"required": ["scenario"], "properties": {"scenario": KEYS | {"required": ["layer"]}, "yaml": NOTHING}},
        {"required": ["yaml"], "properties": {"yaml": TEXT, "scenario": NOTHING}},
        {"required": ["files"], "properties": {"files": {"minItems": 1}, "yaml": NOTHING}},
    ]


def _get(summary: str, answer: dict[str, Any]) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": answer} | _problems(*SEEN)}


def _problems(*statuses: int) -> dict[str, Any]:
    return {str(status): told(PROBLEMS[status], "LabFailure") for status in statuses}
