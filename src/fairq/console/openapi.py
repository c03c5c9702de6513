"""The OpenAPI document of the JSON API, made from its types."""

from functools import cache
from typing import Any

import msgspec

from fairq import __version__
from fairq.console import views

NUMBER = {"type": "number"}
SSE = {"200": {"description": "Server-sent events", "content": {"text/event-stream": {"schema": {"type": "string"}}}}}
PROBLEMS = {
    400: "Something in the request is wrong",
    401: "The admin token is required",
    403: "Refused: host, origin, or no admin token is configured",
    404: "Unknown",
    413: "The body is too large",
    415: "The body is not JSON",
    429: "Too many",
    503: "The data plane is not connected",
}
READ, CHANGE = (400, 401, 403, 429), (400, 401, 403, 404, 413, 415, 429, 503)


@cache
def document() -> dict[str, Any]:
    from fairq.console.api import TenantPatch, UpstreamPatch  # the application imports this module

    kinds = (
        *(views.State, views.Tenants, views.Upstreams, views.Reloaded, views.Explained, views.Health, views.Failure),
        *(TenantPatch, UpstreamPatch),
    )
    _, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    components["TenantPatch"]["minProperties"] = 1
    paths = {
        "/health": {"get": _get("Does the console live?", "Health", ())},
        "/api/state": {
            "get": _get(
                "Everything that is known: pools, tenants, upstreams, bounds, fairness, totals.",
                "State",
                READ,
                _query("tenants", "at most so many of each pool, heaviest first", NUMBER | _within(0, 10_000)),
            )
        },
        "/api/tenants": {
            "get": _get(
                "The tenants of all pools.",
                "Tenants",
                READ,
                _query("limit", "at most so many", NUMBER | _within(1, 10_000)),
            )
        },
        "/api/tenants/{id}": {
            "get": _get("One tenant, in each pool.", "Tenants", (*READ, 404), _path("id")),
            "patch": _change(
                "Change its weight, pause or resume it; from the next decision on.", "Tenants", "TenantPatch"
            )
            | {"parameters": [_path("id")]},
        },
        "/api/upstreams": {"get": _get("The upstreams of all pools.", "Upstreams", READ)},
        "/api/upstreams/{pool}/{name}": {
            "patch": _change("Drain an upstream, or take it back.", "Upstreams", "UpstreamPatch")
            | {"parameters": [_path("pool"), _path("name")]}
        },
        "/api/reload": {"post": _change("Read the configuration file again.", "Reloaded", None)},
        "/api/explain/{request}": {
            "get": _get("Why a request waited.", "Explained", (*READ, 404, 500, 503), _path("request"))
        },
        "/api/events": {
            "get": {
                "summary": "Decisions, ends and changes as they happen. Last-Event-ID goes on where a reader was.",
                "parameters": [
                    _query(
                        "kinds", "some of dispatch, ended, refused, change; separated by commas", {"type": "string"}
                    ),
                    _query("tenant", "only of this tenant", {"type": "string"}),
                    _query("summary", "seconds between summaries, 0 for none", NUMBER | _within(0, 3600)),
                ],
                "responses": SSE | _problems((*READ, 503)),
            }
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "fairq console", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "The admin token."}},
        },
    }


def _get(summary: str, answer: str, problems: tuple[int, ...], *parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "summary": summary,
        "parameters": list(parameters),
        "responses": {"200": _content("OK", answer)} | _problems(problems),
    }


def _change(summary: str, answer: str, body: str | None) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": summary,
        "security": [{"token": []}],
        "responses": {"200": _content("Done, and seen in the ledger stream", answer)} | _problems(CHANGE),
    }
    if body:
        operation["requestBody"] = {"required": True} | _content("", body, "content")
    return operation


def _content(text: str, name: str, only: str = "") -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    return {"content": content} if only else {"description": text, "content": content}


def _problems(statuses: tuple[int, ...]) -> dict[str, Any]:
    return {str(status): _content(PROBLEMS.get(status, "The ledger cannot be read"), "Failure") for status in statuses}


def _query(name: str, text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": text, "schema": schema}


def _path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _within(least: int, most: int) -> dict[str, Any]:
    return {"minimum": least, "maximum": most}
