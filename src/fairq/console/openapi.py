"""The OpenAPI document of the JSON API, made from its types: all that the console serves, the lab's part included."""

from functools import cache
from typing import Any

from fairq.console import views
from fairq.lab import openapi as lab
from fairq.lab.describing import assemble, content, text, told
from fairq.lab.routes import RECORDED

NUMBER = {"type": "number"}
PROBLEMS = {
    400: "Something in the request is wrong",
    401: "The admin token is required",
    403: "Refused: host, origin, or no admin token is configured",
    404: "Unknown",
    413: "The body is too large",
    415: "The body is not JSON",
    429: "Too many",
    500: "The ledger cannot be read",
    503: "The data plane is not connected",
}
READ, CHANGE = (400, 401, 403, 429), (400, 401, 403, 404, 413, 415, 429, 503)
EVENTS = (
    "Server-sent events. `dispatch`, `ended`, `refused` and `change` carry a Happened, `state` a State without its "
    "details, `missed` a Missed."
)


@cache
def document() -> dict[str, Any]:
    from fairq.console.api import TenantPatch, UpstreamPatch  # the application imports this module

    kinds = (
        *(views.State, views.Tenants, views.Upstreams, views.Reloaded, views.Explained, views.Health, views.Failure),
        *(views.Happened, views.Missed, TenantPatch, UpstreamPatch),
    )
    token = {"type": "http", "scheme": "bearer", "description": "The admin token."}
    made = assemble(
        "fairq console", _paths() | lab.paths(live=True), (*kinds, *lab.KINDS), securitySchemes={"token": token}
    )
    lab.add_scenarios(made["components"]["schemas"])
    made["components"]["schemas"]["TenantPatch"]["minProperties"] = 1
    return made


def _paths() -> dict[str, Any]:
    return {
        "/health": {"get": _get("Does the console live?", told("OK", "Health"), (403,))},
        "/metrics": {
            "get": _get("Prometheus, or OpenMetrics for who asks for it.", text("The metrics", "text/plain"), READ)
        },
        "/api/state": {
            "get": _get(
                "Everything that is known: pools, tenants, upstreams, bounds, fairness, totals.",
                told("OK", "State"),
                READ,
                _query("tenants", "at most so many of each pool, heaviest first", NUMBER | _within(0, 10_000)),
            )
        },
        "/api/tenants": {
            "get": _get(
                "The tenants of all pools.",
                told("OK", "Tenants"),
                READ,
                _query("limit", "at most so many", NUMBER | _within(1, 10_000)),
            )
        },
        "/api/tenants/{id}": {
            "get": _get("One tenant, in each pool.", told("OK", "Tenants"), (*READ, 404), _path("id")),
            "patch": _change(
                "Change its weight, pause or resume it; from the next decision on.",
                *("Tenants", "TenantPatch", _path("id")),
            ),
        },
        "/api/upstreams": {"get": _get("The upstreams of all pools.", told("OK", "Upstreams"), READ)},
        "/api/upstreams/{pool}/{name}": {
            "patch": _change(
                "Drain an upstream, or take it back.", "Upstreams", "UpstreamPatch", _path("pool"), _path("name")
            )
        },
        "/api/reload": {"post": _change("Read the configuration file again.", "Reloaded", None)},
        "/api/explain/{request}": {
            "get": _get("Why a request waited.", told("OK", "Explained"), (*READ, 404, 500, 503), _path("request"))
        },
        "/api/events": {
            "get": _get(
                "Decisions, ends and changes as they happen. Last-Event-ID goes on where a reader was.",
                text(EVENTS, "text/event-stream"),
                (*READ, 503),
                _query("kinds", "some of dispatch, ended, refused, change; separated by commas", {"type": "string"}),
                _query("tenant", "only of this tenant", {"type": "string"}),
                _query("summary", "seconds between summaries, 0 for none", NUMBER | _within(0, 3600)),
                _query("back", "begin with what is kept of so many seconds", NUMBER | _within(0, 3600)),
            )
        },
        RECORDED: {
            "get": _get(
                "What a pool did in the last seconds, step by step, from its ledger.",
                told("The recording", "Answer"),
                (*READ, 404, 500, 503),
                _query("pool", "which", {"type": "string"}) | {"required": True},
                _query("seconds", "30 unless told", {"type": "number", "exclusiveMinimum": 0, "maximum": 3600}),
            )
        },
        "/api/openapi.json": {"get": _get("This document.", lab.DOCUMENT, READ)},
    }


def _get(summary: str, answer: dict[str, Any], problems: tuple[int, ...], *parameters: Any) -> dict[str, Any]:
    return {"summary": summary, "parameters": list(parameters), "responses": {"200": answer} | _problems(problems)}


def _change(summary: str, answer: str, body: str | None, *parameters: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": summary,
        "security": [{"token": []}],
        "parameters": list(parameters),
        "responses": {"200": told("Done, and seen in the ledger stream", answer)} | _problems(CHANGE),
    }
    if body:
        operation["requestBody"] = {"required": True, "content": content(body)}
    return operation


def _problems(statuses: tuple[int, ...]) -> dict[str, Any]:
    return {str(status): told(PROBLEMS[status], "Failure") for status in statuses}


def _query(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _within(least: int, most: int) -> dict[str, Any]:
    return {"minimum": least, "maximum": most}
