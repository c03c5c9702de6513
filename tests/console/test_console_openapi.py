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
# Without the events, which never end, and the lab's part, which has tests of its own.
schema = schemathesis.openapi.from_dict(document()).exclude(path="/api/events").exclude(path_regex="^/api/lab/")


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
    async with desk(tmp_path, TENANTS) as d:
        routes: Any = d.console.app()._app.routes  # type: ignore[attr-defined]
    described = {(path, method.upper()) for path, methods in document()["paths"].items() for method in methods}
    served = {
        (_plain(route.path), method)
        for route in routes
        if not route.path.startswith(("/lab", "/static")) and route.path != "/"  # pages, not API
        for method in route.methods - {"HEAD"}
    }
    assert described == served


def _plain(path: str) -> str:
    """As the document writes it."""
    path = path.replace("{name:path}", "{pool}/{name}").replace("/explain/{id:path}", "/explain/{request}")
    return path.replace("{id:path}", "{id}")


def test_the_token_is_not_in_the_document() -> None:
    assert TOKEN not in str(document())


def test_the_documentation_names_the_same_paths() -> None:
    text = (Path(__file__).parents[2] / "docs" / "console.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    named = set(re.findall(r"`(?:(?:GET|PATCH|POST) )?(/(?:api/)?[a-z{}./]+)", "\n".join(rows)))
    own = {path for path in document()["paths"] if path.startswith("/api") and not path.startswith("/api/lab")}
    assert {path for path in named if path.startswith("/api")} == own
