"""The JSON API before a running gateway: what it shows, and what a change does to the next decisions."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.console.desk import ADMIN, HEADER_TENANTS, desk
from tests.gateway.harness import run

from fairq.core.commands import Dispatch
from fairq.core.errors import ConfigError
from fairq.core.events import Paused, Reconfigured, Resumed
from fairq.ledger.reader import Reader
from fairq.testing.clock import eventually
from fairq.testing.replies import Gate, answer

TENANTS = HEADER_TENANTS + "\ntenants: [{id: a}, {id: b, weight: 2}, {id: team/c, max_inflight: 1}]"


def recorded(folder: Path, kind: type) -> list[Any]:
    return [line.value for line in Reader(folder / "ledger" / "default") if isinstance(line.value, kind)]


def tenant(state: Any, name: str) -> Any:
    return next(each for each in state["pools"][0]["tenants"] if each["id"] == name)


@run
async def test_state_shows_what_waits_and_runs(tmp_path: Path) -> None:
    async with desk(tmp_path, TENANTS, slots=1) as d:
        d.upstream.enqueue([Gate("go"), *answer({})])
        tasks = [d.later("a"), d.later("a"), d.later("b")]
        await d.waiting(2)
        await d.folded()
        state = await d.state()
        [pool] = state["pools"]
        assert state["connected"] is True
        assert (pool["waiting"], pool["inflight"], pool["slots"], pool["free"]) == (2, 1, 1, 0)
        assert pool["bounds"]["held"] is True
        assert pool["bounds"]["decisions"] == 1
        running = next(each for each in pool["tenants"] if each["inflight"])
        assert running["charged"] > 0
        assert tenant(state, "b")["weight"] == "2"
        assert tenant(state, "b")["backlogged"] is True
        assert tenant(state, "team/c")["max_inflight"] == 1
        await d.upstream.release("go")
        await asyncio.gather(*tasks)
        await d.folded()
        [pool] = (await d.state())["pools"]
        assert (pool["waiting"], pool["inflight"]) == (0, 0)
        assert pool["outcomes"] == {"completed": 3}
        charged = {each["id"]: each["charged"] for each in pool["tenants"]}
        assert charged["a"] + charged["b"] == sum(line.charge for line in recorded(tmp_path, Dispatch))


@run
async def test_a_new_weight_counts_from_the_next_decisions_on(tmp_path: Path) -> None:
    async with desk(tmp_path, TENANTS, slots=1) as d:
        d.upstream.enqueue([Gate("go"), *answer({})])
        first = d.later("z")
        await d.upstream.request(1)
        tasks = [d.later(name, max_tokens=100) for name in ("a", "b") for _ in range(20)]
        await d.waiting(40)
        reply = await d.patch("/api/tenants/b", {"weight": "1/3"})
        assert reply.status_code == 200
        assert [each["weight"] for each in reply.json()["tenants"]] == ["1/3"]
        await d.upstream.release("go")
        await asyncio.gather(first, *tasks)
        await d.folded()
        [change] = recorded(tmp_path, Reconfigured)
        assert change.by == "admin"
        assert {flow.id: str(flow.weight) for flow in change.flows}["b"] == "1/3"
        order = [line.tenant for line in recorded(tmp_path, Dispatch)][1:17]
        assert 11 <= order.count("a") <= 13, f"3:1 was asked for: {order}"
        assert (await d.state())["pools"][0]["bounds"]["held"] is True


@run
async def test_a_paused_tenant_waits_until_it_is_resumed(tmp_path: Path) -> None:
    async with desk(tmp_path, TENANTS) as d:
        reply = await d.patch("/api/tenants/team/c", {"paused": True})
        assert [each["paused"] for each in reply.json()["tenants"]] == [True]
        held = d.later("team/c")
        await d.waiting(1)
        assert (await d.chat("a")).status_code == 200
        await d.folded()
        assert tenant(await d.state(), "team/c")["waiting"] == 1
        assert tenant(await d.state(), "team/c")["backlogged"] is False
        await d.patch("/api/tenants/team/c", {"paused": False})
        assert (await held).status_code == 200
        await d.folded()
        assert len(recorded(tmp_path, Paused)) == len(recorded(tmp_path, Resumed)) == 1
        assert (await d.state())["pools"][0]["bounds"]["checks"] != []


@run
async def test_a_drained_upstream_gets_no_more_requests(tmp_path: Path) -> None:
    async with desk(tmp_path, upstreams=2) as d:
        reply = await d.patch("/api/upstreams/default/u0", {"draining": True})
        assert reply.json()["upstreams"][0]["draining"] is True
        for _ in range(6):
            assert (await d.chat()).status_code == 200
        assert (d.upstreams[0].seen, d.upstreams[1].seen) == (0, 6)
        await d.patch("/api/upstreams/default/u0", {"draining": False})
        await asyncio.gather(*(d.chat() for _ in range(6)))
        assert d.upstreams[0].seen > 0


@run
async def test_what_a_change_may_say(tmp_path: Path) -> None:
    async with desk(tmp_path, TENANTS) as d:
        for weight in (0, -1, "0", "-2", "1/0", "x", "1e-999999999", "9" * 50, 1e300, True, None, [3]):
            reply = await d.patch("/api/tenants/a", {"weight": weight})
            assert reply.status_code == 400, weight
            message = reply.json()["error"]["message"]
            assert message.startswith("weight")
            assert message.endswith('must be a positive number: 3, 1.5 or "3/2"')
        for body, message in (
            ({}, "say what to change: weight, paused"),
            ({"wait": 3}, "wait is not known here"),
            ({"weight": 3, "more": 1}, "more is not known here"),
            ({"paused": "yes"}, 'paused = "yes": must be true or false'),
            ([], "the body: must be an object, not a list"),
            ("x", "the body: must be an object, not text"),
        ):
            reply = await d.patch("/api/tenants/a", body)
            assert (reply.status_code, reply.json()["error"]["message"]) == (400, message)
        for weight, shown in ((3, "3"), (1.5, "3/2"), ("0.1", "1/10"), ("7/2", "7/2")):
            reply = await d.patch("/api/tenants/a", {"weight": weight})
            assert reply.json()["tenants"][0]["weight"] == shown
        assert (await d.patch("/api/tenants/nobody", {"weight": 3})).status_code == 404
        assert (await d.patch("/api/upstreams/default/u9", {"draining": True})).status_code == 404
        assert (await d.patch("/api/upstreams/default/u0", {"draining": "yes"})).status_code == 400
        patch = d.client.patch
        assert (await patch("/api/tenants/a", content=b'{"weight": 3}', headers=ADMIN)).status_code == 415
        json_type = ADMIN | {"content-type": "application/json"}
        assert (await patch("/api/tenants/a", content=b"{", headers=json_type)).status_code == 400


@run
async def test_a_reload_says_what_changed_or_why_it_did_not(tmp_path: Path) -> None:
    answers: list[Any] = [["tenants.a.weight = 1 -> 2"], ConfigError("tenants", "x", "is wrong")]

    def reload() -> list[str]:
        given = answers.pop(0)
        if isinstance(given, ConfigError):
            raise given
        return given

    async with desk(tmp_path, reload=reload) as d:
        good = await d.client.post("/api/reload", headers=ADMIN)
        assert (good.status_code, good.json()) == (200, {"changed": ["tenants.a.weight = 1 -> 2"]})
        bad = await d.client.post("/api/reload", headers=ADMIN)
        assert bad.status_code == 400
        assert "is wrong" in bad.json()["error"]["message"]


@run
async def test_a_request_is_explained_in_words_and_numbers(tmp_path: Path) -> None:
    async with desk(tmp_path, TENANTS, slots=1) as d:
        d.upstream.enqueue([Gate("go"), *answer({})])
        first = d.later("a")
        await d.upstream.request(1)
        second = d.later("b")
        await d.waiting(1)
        await d.upstream.release("go")
        await first
        id_ = (await second).headers["x-request-id"]
        await d.folded()
        reply = await d.get(f"/api/explain/{id_}")
        assert reply.status_code == 200
        found = reply.json()
        assert found["explanation"]["tenant"] == "b"
        assert sum(found["explanation"]["waited"].values()) > 0
        assert any(id_ in sentence for sentence in found["words"])
        assert (await d.get("/api/explain/never-was-here")).status_code == 404
        assert (await d.get("/api/explain/..%2f..%2fetc%2fpasswd")).status_code == 404


@run
async def test_without_a_data_plane_the_last_state_stays_and_changes_are_refused(tmp_path: Path) -> None:
    async with desk(tmp_path, TENANTS) as d:
        await d.chat("a")
        await d.folded()
        await d.control.close()
        await eventually(lambda: not d.live.connected, "disconnected")
        state = await d.state()
        assert state["connected"] is False
        assert state["complaint"]
        assert state["since"] <= state["time"]
        assert state["pools"][0]["outcomes"] == {"completed": 1}
        reply = await d.patch("/api/tenants/a", {"weight": 2})
        assert reply.status_code == 503
        assert reply.json()["error"]["code"] == "disconnected"
        assert "Disconnected since" in (await d.get("/")).text
        assert (await d.get("/health")).json() == {"status": "ok", "connected": False}


@run
async def test_a_data_plane_that_comes_back_is_followed_without_a_gap(tmp_path: Path) -> None:
    async with desk(tmp_path, TENANTS) as d:
        await d.chat("a")
        await d.control.close()
        await eventually(lambda: not d.live.connected, "disconnected")
        for _ in range(3):
            await d.chat("b")
        await d.control.start(d.link.path)
        await d.folded()
        [pool] = (await d.state())["pools"]
        assert pool["outcomes"] == {"completed": 4}, "the ledger told what the stream did not"
        assert pool["record"]["missed"] == 0
        assert pool["bounds"]["held"] is True


@run
async def test_the_page_works_without_script_and_escapes(tmp_path: Path) -> None:
    async with desk(tmp_path, TENANTS) as d:
        await d.api.post(
            "/v1/chat/completions",
            json={"model": "m", "messages": [{"role": "user", "content": "hi"}]},
            headers={"x-fairq-tenant": "a", "x-request-id": "<img/src=x>"},
        )
        await d.folded()
        page = (await d.get("/")).text
        assert "<td>a</td>" in page
        assert "&lt;img/src=x&gt;" in page
        assert "<img" not in page
        assert "<script>" not in page
        assert "style=" not in page


@run
async def test_no_prompt_and_no_key_reaches_the_console(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        secret = "a sentence that nobody else may read"
        await d.api.post(
            "/v1/chat/completions",
            json={"model": "m", "messages": [{"role": "user", "content": secret}]},
            headers={"authorization": "Bearer sk-very-secret", "x-fairq-tenant": "a"},
        )
        await d.folded()
        everything = json.dumps(await d.state()) + (await d.get("/metrics")).text + (await d.get("/")).text
        everything += "".join(bytes(item.line).decode() for item in d.live.ring.items)
        assert secret not in everything
        assert "sk-very-secret" not in everything
