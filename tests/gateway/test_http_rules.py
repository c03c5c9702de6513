"""The rules of the API port: who may ask for what, and what an upstream gets to see of it."""

import json
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.gateway.harness import CHAT, chat, run, world
from tests.gateway.wire import Reply, Wire, ask, request

from fairq.core import events as ev
from fairq.core.lifecycle import Outcome
from fairq.core.scheduler import Scheduler
from fairq.gateway.keys import config_line
from fairq.gateway.pool import SECOND
from fairq.testing.clock import eventually, passed
from fairq.testing.replies import Gate, answer, completion, stream
from fairq.testing.upstream import ScriptedUpstream

ALICE = {"authorization": "Bearer fq-alice"}
KEYS = f"tenants: [{{id: alice, keys: ['{config_line('fq-alice')}']}}]"


# Paths and methods
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/metrics",
        "/admin",
        "/v1",
        "/v1/responses",
        "/v1/messages",
        "/v1/chat/completions/",
        "/v1/chat%2Fcompletions",
        "/v1/chat/completions/../../../metrics",
        "/tokenize",
        "/v1/load_lora_adapter",
        "/health/x",
        "/v1/Chat/completions",
    ],
)
@run
async def test_only_listed_paths_exist(path: str) -> None:
    async with world() as w:
        for method in ("GET", "POST"):
            reply = await ask(w.gateway.server.port, request(path, chat(), method))
            assert (reply.status, reply.error["code"]) == (404, "unknown_path")
            assert reply.header("x-request-id")
        assert w.upstream.seen == 0


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "//v1///chat/completions",
        "/v1/./chat/completions",
        "/v1/x/../chat/completions",
        "/../v1/chat/completions",
        "/v1/%63hat/completions",
    ],
)
@run
async def test_paths_are_normalised_before_they_are_matched_and_passed_on(path: str) -> None:
    """What was matched is what the upstream gets; the query goes along untouched."""
    async with world() as w:
        reply = await ask(w.gateway.server.port, request(path + "?a=%2F&b=/..//", chat()))
        assert reply.status == 200
        assert (await w.upstream.request(1)).target == "/v1/chat/completions?a=%2F&b=/..//"
        await w.idle()


@run
async def test_methods() -> None:
    async with world("endpoints: [{path: /v1/rerank}, {path: /version, method: GET, cost: fixed}]") as w:
        port = w.gateway.server.port
        for path, allowed in ((CHAT, "POST"), ("/v1/models", "GET, HEAD"), ("/v1/rerank", "POST"), ("/version", "GET")):
            for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"):
                if method in allowed.split(", "):
                    continue
                async with Wire(port) as wire:
                    wire.send(request(path, None, method))
                    reply = await wire.head()
                    assert (reply.status, reply.header("allow")) == (405, allowed)
            reply = await ask(port, request(path, None, "OPTIONS"))
            assert (reply.status, reply.header("allow"), reply.body) == (204, f"{allowed}, OPTIONS", b"")
        for path in ("/v1/models", "/health", "/ready"):
            async with Wire(port) as wire:
                whole = await wire.ask(request(path, None, "GET"))
                wire.send(request(path, None, "HEAD"))
                head = await wire.head()
                assert (head.status, head.header("content-length")) == (200, str(len(whole.body)))
                assert (await wire.ask(request(path, None, "GET"))).body == whole.body  # no body came with HEAD
        assert w.upstream.seen == 0


@run
async def test_health_and_readiness() -> None:
    async with world(slots=1) as w:
        w.upstream.enqueue([Gate("go"), *completion(1)])
        assert (await w.client.get("/health")).json() == {"status": "ok"}
        assert (await w.client.get("/ready")).json() == {"status": "ready"}
        running = w.later(CHAT, chat())
        await w.running(1)
        w.gateway.drain_upstream("default", "u0", True)
        reply = await w.client.get("/ready")
        assert reply.status_code == 503
        assert "no healthy upstream in pool default" in reply.text
        assert (await w.client.get("/health")).status_code == 200
        await w.upstream.release("go")
        await running
        await w.idle()


# Request ids
@pytest.mark.parametrize("given", ["abc", "a" * 128, "!~/+=:;\"'{}[]"])
@run
async def test_a_good_request_id_is_kept(given: str) -> None:
    async with world() as w:
        reply = await ask(w.gateway.server.port, request(CHAT, chat(), x_request_id=given))
        assert reply.header("x-request-id") == given
        assert (await w.upstream.request(1)).header("x-request-id") == given
        assert [record.id for record in w.ended] == [given]
        refused = await ask(w.gateway.server.port, request(CHAT, b"no JSON", x_request_id="r" + given[1:]))
        assert refused.header("x-request-id") == w.refused[0].id == "r" + given[1:]


@pytest.mark.parametrize("given", ["", "a" * 129, "a b", "tab\there", "ümlaut", "\x7f"])
@run
async def test_a_bad_request_id_is_replaced(given: str) -> None:
    async with world() as w:
        data = request(CHAT, chat(), x_request_id="PLACE").replace(b"PLACE", given.encode())
        reply = await ask(w.gateway.server.port, data)
        made = reply.header("x-request-id") or ""
        if reply.status == 400:  # a control character is not a header's value
            assert given == "\x7f"
            return
        assert len(made) == 16
        assert (await w.upstream.request(1)).header("x-request-id") == made
        assert [record.id for record in w.ended] == [made]


@run
async def test_one_id_for_two_living_requests() -> None:
    """The second gets another one; when the first is over, the id may be used again."""
    async with world() as w:
        w.upstream.enqueue([Gate("go"), *completion(1)])
        first = w.later(CHAT, chat(), x_request_id="same")
        await w.running(1)
        second = await w.post(CHAT, chat(), x_request_id="same")
        assert second.status_code == 200
        assert second.headers["x-request-id"] != "same"
        await w.upstream.release("go")
        assert (await first).headers["x-request-id"] == "same"
        assert (await w.post(CHAT, chat(), x_request_id="same")).headers["x-request-id"] == "same"
        assert len(w.ended) == 3


# Keys and credentials
@run
async def test_without_a_key_nobody_enters() -> None:
    async with world(KEYS) as w:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic fq-alice"}, {"x-api-key": ""}):
            for reply in (await w.post(CHAT, chat(), **headers), await w.client.get("/v1/models", headers=headers)):
                assert reply.status_code == 401
                assert reply.headers["www-authenticate"].startswith("Bearer")
                assert reply.json()["error"]["type"] == "authentication_error"
        assert {(await w.post(CHAT, chat(), **h)).status_code for h in (ALICE, {"x-api-key": "fq-alice"})} == {200}
        await w.idle()
        assert {record.tenant for record in w.ended} == {"alice"}
        assert w.upstream.seen == 2


@run
async def test_questions_about_the_gateway_are_no_requests() -> None:
    """One rule: what could be dispatched has an outcome, in its answer and in every record; nothing else has one."""
    async with world(KEYS) as w:
        asked = [
            (401, await w.client.get("/v1/models")),
            (401, await w.client.get("/v1/models/m")),
            (404, await w.client.get("/v1/models/none", headers=ALICE)),
            (404, await w.client.post("/v1/none", json=chat())),
            (405, await w.client.get(CHAT)),
            (405, await w.client.post("/v1/models", json={})),
            (200, await w.client.get("/v1/models", headers=ALICE)),
            (204, await w.client.options(CHAT)),
            (200, await w.client.get("/ready")),
        ]
        for status, reply in asked:
            assert reply.status_code == status
            assert "x-fairq-outcome" not in reply.headers
            if status == 405:
                assert reply.json()["error"]["type"] == "invalid_request_error"
        assert (w.ended, w.refused) == ([], [])
        for reply in (await w.post(CHAT, chat()), await w.post(CHAT, {"model": "m", "max_tokens": "x"}, **ALICE)):
            assert reply.headers["x-fairq-outcome"] in ("refused-unauthorized", "refused-invalid")
        assert [record.outcome for record in w.refused] == ["refused-unauthorized", "refused-invalid"]


@run
async def test_the_key_is_judged_before_the_body() -> None:
    """A stranger does not get us to read, or to wait for, a body."""
    async with world(KEYS) as w:
        head = request(CHAT, b"x" * 1000, expect="100-continue").partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        async with Wire(w.gateway.server.port) as wire:
            reply = await wire.ask(head)  # and no 100 before it
            assert reply.status == 401
        async with Wire(w.gateway.server.port) as wire:
            wire.send(head.replace(b"expect", b"authorization: Bearer fq-alice\r\nexpect"))
            assert await wire.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"


SECRET = '"credential": "engine-secret"'


@pytest.mark.parametrize(
    ("config", "credential", "seen"),
    [
        (KEYS, False, (None, None)),
        (KEYS, True, ("Bearer engine-secret", None)),
        (KEYS + "\nidentity: {forward_client_key: true}", False, ("Bearer fq-alice", "fq-alice")),
        (KEYS + "\nidentity: {forward_client_key: true}", True, ("Bearer engine-secret", None)),
    ],
)
@run
async def test_whose_credential_an_upstream_sees(
    config: str, credential: bool, seen: tuple[str | None, str | None]
) -> None:
    async with ScriptedUpstream() as server:
        upstream = {"url": server.url, "max_inflight": 1} | ({"credential": "engine-secret"} if credential else {})
        async with world(config, upstreams=0, pool=json.dumps({"upstreams": [upstream]})) as w:
            reply = await w.post(CHAT, chat(), **ALICE, **{"x-api-key": "fq-alice"})
            assert reply.status_code == 200
            got = await server.request(1)
            assert (got.header("authorization"), got.header("x-api-key")) == seen
            await w.idle()


# Headers
@run
async def test_headers_on_the_way_to_the_upstream() -> None:
    """Its own host; nothing of this connection; nothing that names a tenant or steers an engine; the rest as it is."""
    async with world() as w:
        reply = await ask(
            w.gateway.server.port,
            request(
                CHAT,
                chat(),
                connection="keep-alive, x-secret",
                x_secret="nominated",
                te="trailers",
                keep_alive="timeout=5",
                proxy_connection="keep-alive",
                proxy_authorization="Basic x",
                accept_encoding="gzip, br",
                content_type="application/json",
                accept="*/*",
                x_fairq_tenant="bob",
                x_llm_d_inference_fairness_id="bob",
                x_gateway_inference_fairness_id="bob",
                x_fairq_max_queue_wait="5",
                x_vllm_priority="-1",
                x_session_id="s",
                traceparent="00-1-2-01",
                user_agent="test",
                openai_organization="org",
            ),
        )
        assert reply.status == 200
        got = await w.upstream.request(1)
        names = [name.lower() for name, _ in got.headers]
        passed = {"host", "content-type", "accept", "traceparent", "user-agent", "openai-organization"}
        assert sorted(names) == sorted(passed | {"content-length", "x-request-id"})
        assert got.header("host") == w.upstream.url.removeprefix("http://")
        await w.idle()
        assert w.ended[0].tenant == "anonymous"


@run
async def test_names_with_underscores() -> None:
    """A server behind us may read `X_Fairq_Tenant` as `X-Fairq-Tenant`: what could matter is refused, the rest goes."""
    async with world() as w:
        for name, status in (("x_fairq_tenant", 400), ("x-api_key", 400), ("x_session_id", 400), ("trace_id", 200)):
            data = request(CHAT, chat(), PLACE="b").replace(b"PLACE", name.encode())
            assert (await ask(w.gateway.server.port, data)).status == status
        assert [n for n, _ in (await w.upstream.request(1)).headers if "_" in n] == []
        await w.idle()


@run
async def test_steering_headers_pass_where_the_configuration_says_so() -> None:
    async with world("security: {allow_headers: [x-vllm-priority]}") as w:
        await w.post(CHAT, chat(), x_vllm_priority="3", x_session_id="s")
        got = await w.upstream.request(1)
        assert (got.header("x-vllm-priority"), got.header("x-session-id")) == ("3", None)


@run
async def test_headers_on_the_way_back() -> None:
    """The upstream's own pass, but for those of its connection, its name, and those that are ours to say."""
    async with world() as w:
        w.upstream.enqueue(
            answer(
                {},
                headers=[
                    ("connection", "x-inner"),
                    ("x-inner", "1"),
                    ("keep-alive", "timeout=5"),
                    ("server", "engine 9.9"),
                    ("x-request-id", "theirs"),
                    ("x-fairq-outcome", "completed"),
                    ("x-fairq-queue-ms", "99999"),
                    ("x-fairq-upstream", "inner"),
                    ("openai-processing-ms", "12"),
                    ("set-cookie", "a=1"),
                    ("set-cookie", "b=2"),
                    ("cache-control", "max-age=5"),
                ],
            )
        )
        reply = await ask(w.gateway.server.port, request(CHAT, chat(), x_request_id="ours"))
        ours = ["x-request-id", "x-fairq-queue-ms", "content-length"]
        theirs = ["content-type", "openai-processing-ms", "set-cookie", "set-cookie", "cache-control"]
        assert sorted(name for name, _ in reply.headers) == sorted(ours + theirs)
        assert reply.header("x-request-id") == "ours"
        assert int(reply.header("x-fairq-queue-ms") or "") < 10_000
        await w.idle()


@run
async def test_the_upstream_is_named_only_if_wanted() -> None:
    async with world() as w:
        assert "x-fairq-upstream" not in (await w.post(CHAT, chat())).headers
    async with world("security: {show_upstream: true}") as w:
        assert (await w.post(CHAT, chat())).headers["x-fairq-upstream"] == "u0"
        streamed = await w.post(CHAT, chat(stream=True))
        assert streamed.headers["x-fairq-upstream"] == "u0"


@run
async def test_encoded_bodies_are_refused() -> None:
    """A compressed body cannot be looked into, so it could steer."""
    async with world() as w:
        for encoding in ("gzip", "br", "identity, gzip", "x"):
            reply = await ask(w.gateway.server.port, request(CHAT, chat(), content_encoding=encoding))
            assert (reply.status, reply.header("x-fairq-outcome")) == (400, "refused-invalid")
        assert (await w.post(CHAT, chat(), content_encoding="identity")).status_code == 200
        assert (await w.upstream.request(1)).header("content-encoding") is None
        await w.idle()


# Bodies
@run
async def test_steering_fields_are_cut_out_and_nothing_else_is_touched() -> None:
    body = (
        b'{ "model" : "m","priority":-5, "messages":[{"role":"user","content":"priority \\u00e9"}],\n'
        b'"vllm_xargs":{"a":[1]},"seed":12345678901234567890,"cache_salt":"x","request_id":"r",'
        b'"kv_transfer_params":null, "temperature":0.10 }'
    )
    kept = (
        b'{ "model" : "m", "messages":[{"role":"user","content":"priority \\u00e9"}],'
        b'"seed":12345678901234567890, "temperature":0.10 }'
    )
    async with world() as w:
        assert (await ask(w.gateway.server.port, request(CHAT, body))).status == 200
        assert (await w.upstream.request(1)).body == kept
    every = "priority, vllm_xargs, cache_salt, request_id, kv_transfer_params"
    async with world(f"security: {{allow_fields: [{every}]}}") as w:
        assert (await ask(w.gateway.server.port, request(CHAT, body))).status == 200
        assert (await w.upstream.request(1)).body == body


@pytest.mark.parametrize("value", ['"1"', "1e308", "-99999999999999999999", "NaN", "true", "9223372036854775808"])
@run
async def test_a_priority_of_a_wrong_kind_is_refused(value: str) -> None:
    """D-8: never guessed, never inverted, never passed on."""
    async with world("security: {allow_fields: [priority]}") as w:
        body = json.dumps(chat())[:-1] + f', "priority": {value}}}'
        reply = await ask(w.gateway.server.port, request(CHAT, body.encode()))
        assert (reply.status, reply.header("x-fairq-outcome")) == (400, "refused-invalid")
        assert w.upstream.seen == 0


def picture(url: object) -> dict[str, Any]:
    return chat() | {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": url}]}]}


@run
async def test_remote_images() -> None:
    """An engine that fetches what a client names can be made to fetch from inside: the operator may forbid it."""
    remote: list[object] = [{"url": "http://10.0.0.1/"}, "https://x/y.png", {"url": "file:///etc/passwd"}]
    async with world("security: {refuse_remote_images: true}") as w:
        for url in remote:
            reply = await w.post(CHAT, picture(url))
            assert (reply.status_code, reply.json()["error"]["code"]) == (400, "remote_image")
        assert (await w.post(CHAT, picture({"url": "data:image/png;base64,AAAA"}))).status_code == 200
    async with world() as w:
        assert (await w.post(CHAT, picture(remote[0]))).status_code == 200


@run
async def test_work_in_the_background_is_refused() -> None:
    """Nobody would wait for it, so nobody's slot would hold it."""
    async with world() as w:
        reply = await w.post(CHAT, chat(background=True))
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, "background")


# The wait limit
@pytest.mark.parametrize(
    ("given", "seconds"),
    [("5", 5.0), ("0.5", 0.5), ("1e9", 90.0), ("inf", 90.0), (" 7 ", 7.0), (None, 60.0)],
)
@run
async def test_the_clients_own_wait_limit(given: str | None, seconds: float) -> None:
    """Seconds, at most what the configuration allows."""
    async with world("queue: {max_time_to_live: 90s}", slots=1) as w:
        headers = {} if given is None else {"x_fairq_max_queue_wait": given}
        assert (await ask(w.gateway.server.port, request(CHAT, chat(), **headers))).status == 200
        [admitted] = w.of(ev.Admitted)
        assert admitted.request.expires - admitted.request.arrival == int(seconds * SECOND)
        await w.idle()


@pytest.mark.parametrize("given", ["", "-1", "nan", "soon", "1;2", "1, 2", "0x10"])
@run
async def test_a_bad_wait_limit(given: str) -> None:
    async with world() as w:
        reply = await ask(w.gateway.server.port, request(CHAT, chat(), x_fairq_max_queue_wait=given))
        assert (reply.status, reply.error["code"]) == (400, "invalid_wait")


@run
async def test_two_wait_limits() -> None:
    async with world() as w:
        data = request(CHAT, chat(), x_fairq_max_queue_wait="1")
        data = data.replace(b"\r\nx-", b"\r\nx-fairq-max-queue-wait: 9\r\nx-", 1)
        assert (await ask(w.gateway.server.port, data)).error["code"] == "invalid_wait"


@run
async def test_no_wait_at_all() -> None:
    """`0`: now or never. With a free slot it runs; without one it is refused at once."""
    async with world(slots=1) as w:
        w.upstream.enqueue([Gate("go"), *completion(1)])
        running = w.later(CHAT, chat(), x_fairq_max_queue_wait="0")
        await w.running(1)
        reply = await w.post(CHAT, chat(), x_fairq_max_queue_wait="0")
        assert (reply.status_code, reply.headers["x-fairq-outcome"]) == (429, "expired")
        await w.upstream.release("go")
        assert (await running).status_code == 200
        await w.idle()


@run
async def test_a_slow_upload_is_no_wait_in_the_queue() -> None:
    """The wait, and its limit, begin when the request is whole."""
    async with world("queue: {time_to_live: 50ms}") as w, Wire(w.gateway.server.port) as wire:
        whole = request(CHAT, chat())
        wire.send(whole[:-1])
        await eventually(lambda: any(c.exchange is not None for c in w.gateway.server.connections))
        await passed(time.monotonic_ns() + 60_000_000, "the time to live")
        before = time.monotonic_ns()
        wire.send(whole[-1:])
        assert (await wire.reply()).status == 200
        assert w.of(ev.Admitted)[0].request.arrival > before
        await w.idle()


# Further endpoints
EXTRA = """
endpoints:
  - {path: /v1/rerank, cost: input}
  - {path: /v1/audio/transcriptions, cost: fixed, units: 500}
  - {path: /v1/responses}
  - {path: /version, method: GET, cost: fixed}
"""


@run
async def test_further_endpoints_have_their_cost_rules() -> None:
    async with world(EXTRA) as w:
        w.upstream.default = answer({})
        port = w.gateway.server.port
        reranked = {"model": "m", "query": "q", "documents": ["d" * 400], "priority": 1}
        assert (await ask(port, request("/v1/rerank", reranked))).status == 200
        spoken = b"--b\r\nContent-Disposition: form-data; name=model\r\n\r\nwhisper\r\n--b--"
        form = request("/v1/audio/transcriptions", spoken, content_type="multipart/form-data")
        assert (await ask(port, form)).status == 200
        answered = {"model": "m", "input": "hi", "max_tokens": 10, "stream": True}
        assert (await ask(port, request("/v1/responses", answered))).status == 200
        assert (await ask(port, request("/version", None, "GET"))).status == 200
        rerank, audio, responses, version = w.dispatched
        assert (rerank.output_tokens, rerank.input_tokens) == (0, -(-len(json.dumps(reranked)) // 4))
        assert (audio.charge, version.charge) == (500, 1)
        assert responses.output_tokens == 10
        got = [await w.upstream.request(n) for n in (1, 2, 3, 4)]
        assert got[0].json == {name: value for name, value in reranked.items() if name != "priority"}
        assert got[1].body == spoken
        assert got[2].json["stream_options"] == {"include_usage": True}
        assert (got[3].method, got[3].target, got[3].header("content-length")) == ("GET", "/version", None)
        await w.idle()


@run
async def test_a_fixed_cost_is_no_way_around_the_rules() -> None:
    """A body that is a JSON object is looked into, whatever it says it is: steering fields go, broken ones are refused,
    a tenant's models and the pool are found by its model."""
    config = "endpoints: [{path: /tokenize, cost: fixed}]\ntenant_defaults: {models: [a]}"
    async with world(config, pools=["models: [a]", "models: [b]"]) as w:
        port = w.gateway.server.port
        body = b' {"model": "a", "prompt": {"odd": 1}, "priority": -1}'
        assert (await ask(port, request("/tokenize", body, content_type="text/plain"))).status == 200
        assert (await w.upstreams[0].request(1)).body == b' {"model": "a", "prompt": {"odd": 1}}'
        assert (await ask(port, request("/tokenize", {"model": "b"}))).status == 403
        assert (await ask(port, request("/tokenize", b'{"model": "a", "x": NaN}'))).status == 400
        assert (await ask(port, request("/tokenize", {"model": "c"}))).status == 404
        assert w.upstreams[1].seen == 0
        await w.idle()


# Models and pools
@run
async def test_each_model_has_its_pool() -> None:
    """By exact name first, then the pool for everything else; each pool has its own order of decisions."""
    async with world(pools=["models: [a, b]", "models: ['*']"]) as w:
        for model, upstream in (("a", 0), ("b", 0), ("c", 1), ("A", 1), ("*", 1)):
            before = w.upstreams[upstream].seen
            assert (await w.post(CHAT, chat(model=model))).status_code == 200
            assert w.upstreams[upstream].seen == before + 1
        schedulers: list[Scheduler] = [pool.scheduler for pool in w.gateway.pools.values()]
        assert schedulers[0].seq > 0
        assert schedulers[1].seq > 0
        await w.idle()


@run
async def test_a_tenant_may_use_its_models_and_sees_only_them() -> None:
    """Who may use one name of a pool may not use another of the same pool."""
    keys = f"tenants: [{{id: alice, models: [a], keys: ['{config_line('fq-alice')}']}}]"
    async with world(keys, pools=["models: [a, b]", "models: ['*']"]) as w:
        assert (await w.post(CHAT, chat(model="a"), **ALICE)).status_code == 200
        for other in ("b", "c"):
            reply = await w.post(CHAT, chat(model=other), **ALICE)
            assert (reply.status_code, reply.headers["x-fairq-outcome"]) == (403, "refused-forbidden")
        listed = (await w.client.get("/v1/models", headers=ALICE)).json()
        assert [model["id"] for model in listed["data"]] == ["a"]
        assert (await w.client.get("/v1/models/a", headers=ALICE)).json() == listed["data"][0]
        assert (await w.client.get("/v1/models/b", headers=ALICE)).status_code == 404
        await w.idle()


@run
async def test_a_pool_for_everything_lists_what_its_upstreams_list() -> None:
    """Configured names and learned ones, each once, in order; a slash in a name may be escaped or not."""
    async with world(pools=["models: [b, org/a]", "models: ['*']"]) as w:
        await eventually(lambda: [*w.gateway.pools["p1"].models()] == ["scripted"])
        assert w.upstreams[0].routed["GET /v1/models"] == 0  # its names are the configuration's
        listed = (await w.client.get("/v1/models")).json()
        assert listed["object"] == "list"
        assert [model["id"] for model in listed["data"]] == ["b", "org/a", "scripted"]
        assert all(model["object"] == "model" and model["owned_by"] and model["created"] for model in listed["data"])
        for path in ("/v1/models/org/a", "/v1/models/org%2Fa"):
            assert (await w.client.get(path)).json()["id"] == "org/a"
        missing = await w.client.get("/v1/models/c")
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize(
    "said",
    [
        answer(b"not JSON"),
        answer({"data": "no list"}),
        answer({"data": [{"no": "id"}]}),
        answer({}, 404),
        answer(b"x" * (2 << 20)),
        [Gate("never")],
    ],
)
@run
async def test_an_upstream_that_lists_nothing_readable_serves_all_the_same(said: Any) -> None:
    async with ScriptedUpstream() as server:
        server.routes["GET /v1/models"] = said
        pool = {"upstreams": [{"url": server.url, "max_inflight": 1, "health": {"timeout": "100ms"}}]}
        async with world(upstreams=0, pool=json.dumps(pool)) as w:
            await eventually(lambda: server.routed["GET /v1/models"])
            [backend] = w.pool.backends.values()
            await eventually(lambda: backend._listing is not None and backend._listing.over)
            assert (await w.client.get("/v1/models")).json()["data"] == []
            assert backend.health.well
            assert (await w.post(CHAT, chat())).status_code == 200


@run
async def test_a_model_may_have_another_name_upstream() -> None:
    async with ScriptedUpstream() as server:
        pool = {"models": ["fast"], "upstreams": [{"url": server.url, "max_inflight": 1, "model": "org/real-8b"}]}
        async with world(upstreams=0, pool=json.dumps(pool)) as w:
            assert (await w.post(CHAT, chat(model="fast"))).status_code == 200
            assert (await server.request(1)).json["model"] == "org/real-8b"
            assert (await w.client.get("/v1/models")).json()["data"][0]["id"] == "fast"
            await w.idle()
            assert w.ended[0].model == "fast"


@run
async def test_a_tenants_cache_is_its_own() -> None:
    """D-7: with salts on, tenants differ, a tenant's own requests agree, and a client cannot choose."""
    config = """
        identity: {trusted_tenant_headers_from: [127.0.0.1], anonymous: allow}
        security: {cache_salt: true, allow_fields: [cache_salt]}
        tenants: [{id: given, cache_salt: of-its-own}]
    """
    async with world(config) as w:
        salts: dict[str, set[str]] = {}
        for tenant in ("a", "b", "given"):
            for body in (chat(), chat(cache_salt="of-another"), chat(stream=True)):
                assert (await w.post(CHAT, body, x_fairq_tenant=tenant)).status_code == 200
                salts.setdefault(tenant, set()).add(w.upstream.requests[-1].json["cache_salt"])
        assert salts["given"] == {"of-its-own"}
        assert len(salts["a"]) == len(salts["b"]) == 1
        assert salts["a"] != salts["b"]
        assert all("a" not in salt or len(salt) == 64 for salt in salts["a"]), "the tenant's name is not told"
        await w.idle()


@run
async def test_running_requests_of_one_tenant_can_be_capped() -> None:
    """At its cap it waits while others pass, and goes on when one of its own has ended."""
    config = """
        identity: {trusted_tenant_headers_from: [127.0.0.1], anonymous: allow}
        tenants: [{id: capped, max_inflight: 2}]
    """
    async with world(config, slots=4) as w:
        w.upstream.default = lambda seen: [Gate("go"), *completion(1)]
        mine = [w.later(CHAT, chat(), x_fairq_tenant="capped") for _ in range(5)]
        await w.waiting(3)
        assert w.inflight == 2
        other = w.later(CHAT, chat(), x_fairq_tenant="free")
        await w.running(3)
        await w.upstream.release("go", 6)
        assert {(await task).status_code for task in (*mine, other)} == {200}
        await w.idle()


# TLS to an upstream
@run
async def test_tls_upstream(tmp_path: Path) -> None:
    """With its CA it is served; with another one it is a failed connection, and nothing is sent in the clear."""
    authority, other = trustme.CA(), trustme.CA()
    for name, made in (("good.pem", authority), ("bad.pem", other)):
        made.cert_pem.write_to_path(str(tmp_path / name))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with ScriptedUpstream(context) as server:
        for ca, status in (("good.pem", 200), ("bad.pem", 502), (None, 502)):
            upstream = {"url": server.url, "max_inflight": 1}
            if ca is not None:
                upstream["ca"] = str(tmp_path / ca)
            async with world(upstreams=0, pool=json.dumps({"upstreams": [upstream]})) as w:
                reply = await w.post(CHAT, chat(stream=True))
                assert reply.status_code == status
                if status == 200:
                    assert reply.text.endswith("data: [DONE]\n\n")
                await w.idle()
                wanted = Outcome.COMPLETED if status == 200 else Outcome.FAILED_CONNECT
                assert w.ended[0].outcome is wanted
        assert server.seen == 1


@run
async def test_a_connection_is_kept_both_ways() -> None:
    async with world() as w:
        async with Wire(w.gateway.server.port) as wire:
            replies: list[Reply] = [await wire.ask(request(CHAT, chat(stream=n % 2 == 0))) for n in range(20)]
        assert {reply.status for reply in replies} == {200}
        assert w.upstream.connections <= 2  # one, and perhaps another for a probe that crossed a request
        await w.idle()


@run
async def test_a_stream_that_asked_for_usage_gets_it() -> None:
    async with world() as w:
        w.upstream.enqueue(stream(2))
        reply = await w.post(CHAT, chat(stream=True, stream_options={"include_usage": True}))
        assert '"choices":[],"usage"' in reply.text
        await w.idle()
