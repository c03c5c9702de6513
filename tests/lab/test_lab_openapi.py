"""The OpenAPI document of the lab: it says what the lab really answers, and no order makes it fail."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from tests.console.desk import ADMIN, TOKEN

from fairq.console.alone import app
from fairq.console.guard import Access
from fairq.console.openapi import document as whole
from fairq.lab.openapi import ARTICLE, document
from fairq.lab.routes import Lab

schema = schemathesis.openapi.from_dict(document())


@pytest.fixture(scope="module")
def call() -> Any:
    """A function that asks a lab with its worker; both live in a loop of their own."""
    with asyncio.Runner() as runner:
        guarded = app(Access(token=TOKEN))
        client = httpx.AsyncClient(transport=httpx.ASGITransport(guarded), base_url="http://127.0.0.1", timeout=60)

        def ask(request: dict[str, Any]) -> httpx.Response:
            guarded._runs._level = 1e9
            return runner.run(client.request(**request))

        async def enter() -> Any:
            lifespan = guarded._app.router.lifespan_context(guarded._app)  # type: ignore[attr-defined]
            await lifespan.__aenter__()
            return lifespan

        lifespan = runner.run(enter())
        yield ask
        runner.run(lifespan.__aexit__(None, None, None))
        runner.run(client.aclose())


@schema.parametrize()
@settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.generate],  # the document's examples have a test of their own
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_described(case: Any, call: Callable[[dict[str, Any]], httpx.Response]) -> None:
    given = case.as_transport_kwargs(base_url="http://127.0.0.1", headers=ADMIN)
    if "data" in given:
        given["content"] = given.pop("data")
    # A scenario has rules beyond its types, and takes "7" for 7 as the command line does.
    answer = call({key: value for key, value in given.items() if key != "cookies"})
    case.validate_response(answer, excluded_checks=[negative_data_rejection, positive_data_acceptance])


@pytest.mark.parametrize("name", ARTICLE)
def test_the_documents_examples_run(name: str, call: Callable[[dict[str, Any]], httpx.Response]) -> None:
    answer = call({"method": "POST", "url": "/api/lab/run", "json": ARTICLE[name]})
    assert answer.status_code == 200, answer.text
    assert all(run["steps"] for run in answer.json()["runs"])


@pytest.mark.parametrize("live", [False, True])
def test_every_address_of_the_api_is_described(live: bool) -> None:
    routes: Any = Lab(live=live).routes()
    served = {route.path for route in routes if route.path.startswith("/api/")}
    assert served == {path for path in (whole() if live else document())["paths"] if path.startswith("/api/lab/")}


def test_beside_a_gateway_one_document_describes_both() -> None:
    assert set(document()["paths"]) < set(whole()["paths"])
    assert whole()["components"]["schemas"]["Order"] == document()["components"]["schemas"]["Order"]


def test_every_reference_leads_somewhere() -> None:
    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [found for each in value.values() for found in references(each)]
        return [found for each in value for found in references(each)] if isinstance(value, list) else []

    for made in (document(), whole()):
        known = {f"#/components/schemas/{name}" for name in made["components"]["schemas"]}
        assert set(references(made)) <= known
