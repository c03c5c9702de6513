"""Who pays (D): one share for a tenant, whatever it calls itself, however many keys or names it has."""

import pytest
from tests.gateway.harness import CHAT, chat, run, world
from tests.gateway.slots import OPENER, TOKENS, TRUSTING, asks, backlogged, told
from wire import Wire, request

from fairq.core.lifecycle import Outcome
from fairq.gateway.keys import config_line
from fairq.policies.sfq import SFQ
from fairq.testing.replies import Gate, completion

TENANT_HEADERS = ["x-fairq-tenant", "x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id"]
KEYED = f"tenants: [{{id: A, keys: ['{config_line('key-a')}']}}, {{id: B, keys: ['{config_line('key-b')}']}}]\n"


# D-1
@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("name", TENANT_HEADERS)
@run
async def test_a_key_says_who_pays_and_nothing_else_does(name: str, trusted: bool) -> None:
    """D-1: A's key, and B in a header, the body and the query. The upstream hears of neither."""
    config = KEYED + ("identity: {trusted_tenant_headers_from: [127.0.0.1/32]}" if trusted else "")
    async with world(config) as w:
        headers = {"authorization": "Bearer key-a", name: "B"}
        reply = await w.post(f"{CHAT}?tenant=B", chat(user="B", metadata={"tenant": "B"}), **headers)
        assert reply.status_code == 200
        await w.idle()
        assert [(record.tenant, record.charge > 0) for record in w.ended] == [("A", True)]
        seen = {key.lower() for key, _ in w.upstream.requests[0].headers}
        assert seen.isdisjoint({*TENANT_HEADERS, "authorization"})


@pytest.mark.parametrize("name", TENANT_HEADERS)
@run
async def test_a_name_without_a_key_is_nobody(name: str) -> None:
    """D-1: from a peer that nobody trusts."""
    async with world(KEYED) as w:
        assert (await w.post(CHAT, chat(), **{name: "B"})).status_code == 401
        assert w.upstream.seen == 0
        assert [(record.outcome, record.tenant) for record in w.refused] == [(Outcome.REFUSED_UNAUTHORIZED, "")]


@pytest.mark.parametrize("lines", [("A", "B"), ("A", "A")])
@run
async def test_two_names_are_none(lines: tuple[str, str]) -> None:
    """D-1: a proxy that appends a header to the client's own does not make a choice for us."""
    async with world(TRUSTING) as w, Wire(w.gateway.server.port) as wire:
        first, second = (f"x-fairq-tenant: {name}\r\n".encode() for name in lines)
        data = request(CHAT, chat()).replace(b"host:", first + second + b"host:")
        assert (await wire.ask(data)).status == 400
        assert w.upstream.seen == 0


# D-4
@pytest.mark.parametrize("together", [True, False])
@run
async def test_fifty_keys_are_one_share(together: bool) -> None:
    """D-4: A spreads its requests over fifty keys and gets what B gets with one. It would not if a key were a share."""
    keys = [f"a{number}" for number in range(50)]
    if together:
        lines = ", ".join(f"'{config_line(key)}'" for key in keys)
        tenants = f"{{id: A, keys: [{lines}]}}"
    else:
        tenants = ", ".join(f"{{id: {key}, keys: ['{config_line(key)}']}}" for key in keys)
    others = ", ".join(f"{{id: {name}, keys: ['{config_line(name)}']}}" for name in ("B", OPENER))
    config = TOKENS + f"tenants: [{tenants}, {others}]"
    asked = [(key, asks(100)) for key in keys * 2] + [("B", asks(100))] * 40
    async with backlogged(asked, config, slots=2, headers=lambda key: {"authorization": f"Bearer {key}"}) as engine:
        await engine.run(40)
        order = told(engine.w).order
        mine = order.count("B")
        assert (abs(len(order) - 2 * mine) <= 1) == together
        assert (mine <= 2) != together


# D-6
@run
async def test_made_up_names_leave_nothing_behind_and_lose_nobody() -> None:
    """D-6: a thousand names, fifty remembered. Ten that wait or run all the while are never forgotten."""
    config = "identity: {trusted_tenant_headers_from: [127.0.0.1/32], anonymous: allow, max_auto_tenants: 50}"
    async with world(config, slots=6, pool="settlement: forward") as w:
        w.upstream.enqueue(*[[Gate("open"), *completion(1)]] * 5)
        living = [w.later(CHAT, chat(), x_fairq_tenant=f"living-{n}") for n in range(5)]
        await w.running(5)
        w.gateway.pause("paused-0", True)
        waiting = [w.later(CHAT, chat(), x_fairq_tenant="paused-0") for _ in range(5)]
        await w.waiting(5)
        pool = w.pool
        sizes = []
        async with Wire(w.gateway.server.port) as wire:
            for number in range(1000):
                reply = await wire.ask(request(CHAT, chat(max_tokens=1), x_fairq_tenant=f"made-up-{number}"))
                assert reply.status == 200
                if number % 250 == 249:
                    policy = pool.scheduler.policy
                    assert isinstance(policy, SFQ)
                    sizes.append(
                        (
                            len(w.gateway._auto),
                            len(pool.scheduler.tenants.all),
                            len(policy.queues) <= 6,
                            len(policy.weights),
                            len(pool.admission._holdings),
                            len(pool._derived) <= 50,
                            len(policy.meters) <= 2048 + 8,
                        )
                    )
        assert set(sizes) == {(50, 6, True, sizes[0][3], 1, True, True)}
        w.gateway.pause("paused-0", False)
        await w.upstream.release("open", 5)
        assert {(await task).status_code for task in (*living, *waiting)} == {200}
        await w.idle()


# D-7
@pytest.mark.parametrize("salts", ["on", "off"])
@run
async def test_nobody_measures_another_tenants_cache(salts: str) -> None:
    """D-7: B sends A's prompt and guesses A's salt. With salts on the engine keeps the two apart; with salts off the
    client's own is removed all the same."""
    async with world(TRUSTING + f"security: {{cache_salt: {salts}}}") as w:
        await w.post(CHAT, chat("secret"), x_fairq_tenant="A")
        as_a = w.upstream.requests[0].json.get("cache_salt")
        for guess in (as_a, "A", ""):
            await w.post(CHAT, chat("secret", cache_salt=guess), x_fairq_tenant="B")
        await w.post(CHAT, chat("secret", cache_salt="mine"), x_fairq_tenant="A")
        await w.idle()
        seen = [each.json.get("cache_salt") for each in w.upstream.requests]
        if salts == "off":
            assert seen == [None] * 5
        else:
            one, *guessed, again = seen
            assert one == again
            assert len({one, None, *guessed}) == 3
