"""The OpenAPI document of the lab's API, made from its types."""

from functools import cache
from typing import Any

import msgspec

from fairq import __version__
from fairq.lab import views

PROBLEMS = {
    400: "The order breaks a rule; the message is that of the command line",
    403: "Refused: host or origin",
    413: "The body is too large",
    415: "The body is not JSON",
    429: "Too many",
    500: "The worker died",
    503: "The lab is busy",
}


@cache
def document() -> dict[str, Any]:
    kinds = (views.Order, views.Answer, views.Policies, views.Scenarios, views.LabFailure)
    _, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    run = {
        "summary": "Run policies on a scenario, on identical arrivals; every step is complete.",
        "requestBody": {"required": True, "content": _content("Order")},
        "responses": {"200": _told("The runs", "Answer")} | _problems(*PROBLEMS),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "fairq lab", "version": __version__},
        "paths": {
            "/api/lab/run": {"post": run},
            "/api/lab/policies": {"get": _get("The policies, their parameters and sources.", "Policies")},
            "/api/lab/scenarios": {"get": _get("The gallery.", "Scenarios")},
        },
        "components": {"schemas": components},
    }


def _get(summary: str, answer: str) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": _told("OK", answer)} | _problems(403)}


def _told(text: str, name: str) -> dict[str, Any]:
    return {"description": text, "content": _content(name)}


def _content(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _problems(*statuses: int) -> dict[str, Any]:
    return {str(status): _told(PROBLEMS[status], "LabFailure") for status in statuses}
