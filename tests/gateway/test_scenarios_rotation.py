"""Who leaves the rotation, and what is said of it: to the operator, and in the log of the requests."""

import ssl
from pathlib import Path

import pytest
import trustme
from tests.gateway.harness import CHAT, chat, run, world
from tests.gateway.test_scenarios_reload import listed, with_upstreams
from tests.gateway.test_scenarios_upstreams import OFTEN, in_rotation, probe
from tests.gateway.wire import ask, request

from fairq.gateway.http1.failure import MAX_DETAIL, Failure
from fairq.testing.clock import eventually
from fairq.testing.replies import Hang, Reset, Script, Send, answer, stream
from fairq.testing.upstream import ScriptedUpstream


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (answer({"error": "no CUDA device"}, 500), "answered 500"),
        (answer({}, 507), "answered 507"),
        ([*stream(3)[:1], Reset()], "the upstream closed the connection in the middle of the response"),
    ],
    ids=["500", "507", "streams that break"],
)
@run
async def test_an_upstream_that_answers_everything_badly_leaves_too(script: Script, why: str) -> None:
    """Its answers are not tried elsewhere, and it is always the first to be free: it would swallow the pool. One line
    says that it leaves, and why."""
    async with world(upstreams=2) as w:
        probe(w, {"interval": "10m"})
        w.upstreams[0].default = script
        for _ in range(20):
            reply = await ask(w.gateway.server.port, request(CHAT, chat(stream=True)))
        assert reply.status == 200
        assert in_rotation(w) == ["u1"]
        assert [upstream.seen for upstream in w.upstreams] == [3, 17]
        [line] = w.complaints
        assert line.startswith(f"pool default: upstream u0 leaves the rotation: {why}")
        assert line.endswith("(requests that failed in a row: 3)")
        await w.idle()


@pytest.mark.parametrize("status", [400, 404, 429, 501, 505])
@run
async def test_an_upstream_that_judges_requests_stays(status: int) -> None:
    async with world(upstreams=2) as w:
        w.upstreams[0].default = answer({"error": {}}, status)
        assert {(await w.post(CHAT, chat())).status_code for _ in range(10)} == {status}
        assert in_rotation(w) == ["u0", "u1"]
        await w.idle()


@run
async def test_an_upstream_says_why_it_leaves_and_that_it_is_back() -> None:
    """A wrong certificate, a refused connection, a sick probe: whoever runs the gateway reads it in one line."""
    async with world(upstreams=2) as w:
        w.upstreams[0].routes["GET /health"] = answer({}, 503)
        probe(w, OFTEN)
        await eventually(lambda: in_rotation(w) == ["u1"])
        w.upstreams[0].routes["GET /health"] = answer({})
        await eventually(lambda: in_rotation(w) == ["u0", "u1"])
        assert w.complaints == [
            "pool default: upstream u0 leaves the rotation: probe: answered 503 (failures in a row: 3)",
            "pool default: upstream u0 is back in rotation: answered a probe with 200",
        ]
        w.upstreams[0].routes["GET /health"] = [Hang()]
        await eventually(lambda: len(w.complaints) == 3)
        assert "probe: no whole answer within 0.03 s (failures in a row: 3)" in w.complaints[2]


@run
async def test_a_wrong_certificate_is_told_apart_from_a_closed_port(tmp_path: Path) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    stranger.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with world() as w, ScriptedUpstream(context) as encrypted, ScriptedUpstream() as closed:
        await closed.stop()
        for server, ca, why in ((encrypted, "ca.pem", "certificate verify failed"), (closed, None, "Connect")):
            known = {"ca": str(tmp_path / ca)} if ca else {}
            w.gateway.reload(with_upstreams(w.gateway.config, [listed(why[:4], server, 4) | {"health": OFTEN} | known]))
            failed = await w.post(CHAT, chat(), x_request_id=why[:4])
            assert failed.headers["x-fairq-outcome"] == "failed-connect"
            assert why in w.failures[why[:4]]
            await eventually(lambda: in_rotation(w) == [])
            assert f"upstream {why[:4]} leaves the rotation: probe: " in w.complaints[-1]
            assert why in w.complaints[-1]
        await w.idle()


ATTEMPTS: dict[str, tuple[Script, str]] = {
    "503": (answer({}, 503), "answered 503"),
    "reset": ([Reset()], "the upstream closed the connection before the response"),
    "silence": ([Hang()], "no response within 0.1 s"),
    "garbage": ([Send(b"\0\0\0\0 no HTTP\r\n\r\n")], "the status line is not"),
}


@pytest.mark.parametrize(("script", "why"), ATTEMPTS.values(), ids=ATTEMPTS.keys())
@run
async def test_the_log_says_where_an_attempt_failed_and_why(script: Script, why: str) -> None:
    """Of a request that was saved by another upstream, and of one that was not; of a plain success it says nothing."""
    async with world("timeouts: {first_byte: 100ms}", upstreams=2) as w:
        assert (await w.post(CHAT, chat(), x_request_id="plain")).status_code == 200
        w.upstreams[0].default = script
        assert (await w.post(CHAT, chat(), x_request_id="saved")).status_code == 200
        w.upstreams[1].default = [Reset()]
        assert (await w.post(CHAT, chat(), x_request_id="lost")).status_code == 502
        await w.idle()
        assert w.failures["saved"].startswith("u0: ")
        assert why in w.failures["saved"]
        assert w.failures["lost"].startswith("u1: the upstream closed the connection")
        assert "plain" not in w.failures


@run
async def test_the_log_says_why_a_stream_broke() -> None:
    async with world() as w:
        w.upstream.default = [*stream(9)[:3], Reset()]
        await ask(w.gateway.server.port, request(CHAT, chat(stream=True), x_request_id="it"))
        await w.idle()
        assert w.failures["it"].startswith("u0: the upstream failed: the upstream closed the connection in the middle")


def test_what_an_upstream_makes_of_an_error_is_one_short_line() -> None:
    """The text of an error may hold what a server sent: it must not forge lines, colour terminals or fill disks."""
    detail = Failure("protocol", "a\r\nfairq: b\x1b[31m\u2028\udcff\u202e é", False).detail
    assert detail == r"a\r\nfairq: b\x1b[31m\u2028\udcff\u202e é"
    assert Failure("protocol", "\0" * 10_000, False).detail == (r"\x00" * MAX_DETAIL)[:MAX_DETAIL]
