"""Who may ask the console, and for what: tokens, foreign pages, foreign names."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.console.desk import ADMIN, HEADER_TENANTS, TOKEN, desk
from tests.gateway.harness import run

from fairq.console.api import Console
from fairq.console.guard import GUESSES_AT_ONCE, MAX_BODY, Access, Bucket, is_loopback
from fairq.console.link import Link
from fairq.console.live import Live
from fairq.core.errors import ConfigError

TENANTS = HEADER_TENANTS + "\ntenants: [{id: a}]"
CHANGES = [("PATCH", "/api/tenants/a"), ("PATCH", "/api/upstreams/default/u0"), ("POST", "/api/reload")]
READS = ["/", "/metrics", "/api/state", "/api/tenants", "/api/upstreams", "/api/openapi.json", "/api/explain/x"]


def alone(access: Access, host: str = "127.0.0.1") -> httpx.AsyncClient:
    """A console without a data plane."""
    live = Live()
    console = Console(live, Link(Path("/nowhere/control.sock"), live), access)
    return httpx.AsyncClient(transport=httpx.ASGITransport(console.app()), base_url=f"http://{host}")


@pytest.mark.parametrize(("method", "path"), CHANGES)
@run
async def test_changes_need_the_admin_token(method: str, path: str) -> None:
    async with alone(Access(token=TOKEN)) as client:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}, {"x-api-key": TOKEN}):
            reply = await client.request(method, path, json={"weight": 2}, headers=headers)
            assert reply.status_code == 401, headers
            assert "Bearer" in reply.headers["www-authenticate"]
            assert reply.json()["error"]["code"] == "wrong_token"


@pytest.mark.parametrize(("method", "path"), CHANGES)
@run
async def test_without_a_configured_token_nothing_can_be_changed(method: str, path: str) -> None:
    async with alone(Access()) as client:
        for headers in ({}, {"authorization": "Bearer "}, {"authorization": "Bearer x"}):
            reply = await client.request(method, path, json={"weight": 2}, headers=headers)
            assert reply.status_code == 403
            assert "console.admin_token" in reply.json()["error"]["message"]


@run
async def test_on_loopback_reading_is_free_and_off_it_nothing_is() -> None:
    async with alone(Access(token=TOKEN)) as client:
        for path in READS[:-1]:
            assert (await client.get(path)).status_code == 200, path
    outside = Access(host="0.0.0.0", names=("fairq.example.org",), token=TOKEN)
    async with alone(outside, "fairq.example.org") as client:
        for path in READS:
            assert (await client.get(path)).status_code == 401, path
        for path in READS[:-1]:
            assert (await client.get(path, headers=ADMIN)).status_code == 200, path
        assert (await client.get("/health")).status_code == 200, "a load balancer has no token"
        browser = {"authorization": "Basic " + b64encode(f"me:{TOKEN}".encode()).decode()}
        assert (await client.get("/", headers=browser)).status_code == 200
        reply = await client.request("PATCH", "/api/tenants/a", json={"weight": 2}, headers=browser)
        assert reply.status_code == 401, "what a browser sends by itself changes nothing"


def test_off_loopback_it_does_not_start_without_a_token() -> None:
    Access(host="::1").check()
    Access(host="0.0.0.0", token="x").check()
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"):
        assert not is_loopback(host)
        with pytest.raises(ConfigError, match="admin token"):
            Access(host=host).check()


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:8081", True),
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("[::1]:8081", True),
        ("fairq.example.org", True),
        ("fairq.example.org:443", True),
        ("evil.example.org", False),
        ("127.0.0.1.evil.example.org", False),
        ("fairq.example.org.evil.org", False),
        ("localhost@evil.org", False),
        ("10.0.0.7", False),
        ("[::1", False),
        ("localhost:80:80", False),
        ("localhost:x", False),
        ("", False),
    ],
)
@run
async def test_a_foreign_name_is_not_answered(host: str, allowed: bool) -> None:
    """DNS rebinding: evil.example.org resolves to 127.0.0.1, and its page asks us."""
    async with alone(Access(names=("fairq.example.org",))) as client:
        for path in ("/", "/api/state", "/metrics", "/health"):
            reply = await client.get(path, headers={"host": host})
            assert reply.status_code == (200 if allowed else 403), path


@run
async def test_bound_to_every_address_it_answers_to_numbers_but_not_to_names() -> None:
    async with alone(Access(host="0.0.0.0", token=TOKEN)) as client:
        for host, status in (("10.0.0.7:8081", 200), ("[2001:db8::1]", 200), ("evil.example.org", 403)):
            assert (await client.get("/api/state", headers=ADMIN | {"host": host})).status_code == status


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({"origin": "http://evil.example.org"}, True),
        ({"origin": "null"}, True),
        ({"origin": "http://127.0.0.1:9999"}, True),
        ({"origin": "http://127.0.0.1.evil.org"}, True),
        ({"origin": "file://127.0.0.1"}, True),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": "same-site"}, True),
        ({"origin": "http://127.0.0.1"}, False),
        ({"sec-fetch-site": "same-origin"}, False),
        ({}, False),
    ],
)
@run
async def test_a_foreign_page_changes_nothing_even_with_the_token(
    headers: dict[str, str], refused: bool, tmp_path: Path
) -> None:
    async with desk(tmp_path, TENANTS) as d:
        reply = await d.patch("/api/tenants/a", {"weight": 5}, **headers)
        assert reply.status_code == (403 if refused else 200)
        weight = d.pool.scheduler.tenants.all["a"].flow.weight
        assert weight == (1 if refused else 5)


@run
async def test_every_answer_has_the_security_headers() -> None:
    async with alone(Access(token=TOKEN)) as client:
        replies = [await client.get(path) for path in (*READS, "/nothing", "/static/status.js", "/static/status.css")]
        replies.append(await client.get("/", headers={"host": "evil.example.org"}))
        replies.append(await client.patch("/api/tenants/a"))
        for reply in replies:
            policy = reply.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.headers["referrer-policy"] == "no-referrer"
            assert reply.headers["x-frame-options"] == "DENY"
            assert "access-control-allow-origin" not in reply.headers


@run
async def test_bodies_are_bounded_with_and_without_a_length() -> None:
    headers = ADMIN | {"content-type": "application/json"}

    async def endless() -> Any:
        for _ in range(100):
            yield b" " * 1024

    async with alone(Access(token=TOKEN)) as client:
        stated = await client.patch("/api/tenants/a", content=b" " * (MAX_BODY + 1), headers=headers)
        unstated = await client.patch("/api/tenants/a", content=endless(), headers=headers)
        assert (stated.status_code, unstated.status_code) == (413, 413)


@run
async def test_guessing_is_slowed_down_and_the_right_token_still_works(tmp_path: Path) -> None:
    async with desk(tmp_path, TENANTS) as d:
        statuses = [
            (await d.patch("/api/tenants/a", {"weight": 2}, authorization=f"Bearer {guess}")).status_code
            for guess in range(GUESSES_AT_ONCE + 5)
        ]
        assert statuses[0] == 401
        assert 429 in statuses
        assert (await d.patch("/api/tenants/a", {"weight": 2})).status_code == 200


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    now = 0.0
    bucket = Bucket(2, 3, lambda: now)
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
    now = 0.5
    assert [bucket.take() for _ in range(2)] == [True, False]
    now = 100.0
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]


@run
async def test_what_is_not_there_is_an_error_in_json() -> None:
    async with alone(Access(token=TOKEN)) as client:
        for method, path, status in (
            ("GET", "/nothing", 404),
            ("GET", "/static/..%2fapi.py", 404),
            ("GET", "/static/%2e%2e/api.py", 404),
            ("POST", "/api/state", 405),
            ("DELETE", "/api/tenants/a", 405),
            ("GET", "/api/reload", 405),
            ("GET", "/api/state?tenants=x", 400),
            ("GET", "/api/state?tenants=nan", 400),
            ("GET", "/api/events?kinds=everything", 400),
            ("GET", "/api/explain/x", 503),
        ):
            reply = await client.request(method, path, headers=ADMIN)
            assert reply.status_code == status, (method, path)
            error = reply.json()["error"]
            assert error.keys() == {"code", "message"}
            assert "\n" not in error["message"]
            if status == 404:
                assert error["code"] == "unknown_path"
                assert "/api/openapi.json" in error["message"]
            if status == 405:
                assert error["code"] == "wrong_method"
                for allowed in reply.headers["allow"].split(", "):
                    assert allowed in error["message"]
