"""The OpenAPI document: it says what the console really answers."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import ignored_auth
from tests.console.desk import ADMIN, HEADER_TENANTS, TOKEN, desk
from tests.gateway.harness import run

from fairq.console.openapi import document

TENANTS = HEADER_TENANTS + "\ntenants: [{id: a}, {id: b, weight: 2}]"
schema = schemathesis.openapi.from_dict(document()).exclude(path="/api/events")  # which never ends


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that asks a console before a gateway with some traffic; both live in a loop of their own."""
    with asyncio.Runner() as runner:
        context = desk(tmp_path_factory.mktemp("desk"), TENANTS)
        d = runner.run(context.__aenter__())
        for name in ("a", "b", "a"):
            runner.run(d.chat(name))
        runner.run(d.folded())

        def ask(request: dict[str, Any]) -> httpx.Response:
            if "data" in request:
                request["content"] = request.pop("data")
            d.console.app()._changes._level = 1e9
            return runner.run(d.client.request(**request))

        yield ask
        runner.run(context.__aexit__(None, None, None))


@schema.parametrize()
@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_described(case: Any, call: Callable[[dict[str, Any]], httpx.Response]) -> None:
    given = case.as_transport_kwargs(base_url="http://127.0.0.1", headers=ADMIN)
    given = {
        key: given[key] for key in ("method", "url", "params", "json", "content", "data", "headers") if key in given
    }
    # Which token is needed for what stands in test_console_security; that check would call a server on port 80.
    case.validate_response(call(given), headers=ADMIN, excluded_checks=[ignored_auth])


@run
async def test_every_route_is_described_and_the_reverse(tmp_path: Path) -> None:
    described = {path for path in document()["paths"] if path != "/api/openapi.json"}
    async with desk(tmp_path, TENANTS) as d:
        app = d.console.app()._app
        lab = {route.path for route in d.console.lab.routes()}  # type: ignore[attr-defined]  # has a document of its own
        served = {route.path for route in app.routes} - lab  # type: ignore[attr-defined]
    plain = {path.replace("{id:path}", "{id}").replace("/explain/{id}", "/explain/{request}") for path in served}
    plain = {path.replace("{name:path}", "{pool}/{name}") for path in plain}
    assert {path for path in plain if path.startswith("/api")} - {"/api/openapi.json"} == {
        path for path in described if path.startswith("/api")
    }


def test_the_token_is_not_in_the_document() -> None:
    assert TOKEN not in str(document())


def test_the_documentation_names_the_same_paths() -> None:
    text = (Path(__file__).parents[2] / "docs" / "console.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    named = set(re.findall(r"`(?:(?:GET|PATCH|POST) )?(/(?:api/)?[a-z{}./]+)", "\n".join(rows)))
    assert {path for path in named if path.startswith("/api")} - {"/api/openapi.json"} == {
        path for path in document()["paths"] if path.startswith("/api")
    }
