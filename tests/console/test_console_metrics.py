"""/metrics: every promised name, gauges that come back to zero, few labels however many tenants there are."""

import asyncio
from pathlib import Path
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from tests.console.desk import Desk, desk
from tests.gateway.harness import run
from tests.ledger.recording import FAR, Recording

from fairq.console.engines import ask, waiting
from fairq.console.heaviest import OTHER
from fairq.console.live import Live
from fairq.console.metrics import Families
from fairq.console.snapshot import snapshot
from fairq.core.events import Refused
from fairq.core.lifecycle import Outcome
from fairq.core.lines import encode
from fairq.core.setup import Setup
from fairq.testing.replies import Gate, Reset, answer
from fairq.testing.upstream import ScriptedUpstream

PROMISED = {
    "fairq_requests_total": {"tenant", "pool", "outcome"},
    "fairq_queue_wait_seconds": {"tenant"},
    "fairq_queue_requests": {"tenant"},
    "fairq_queue_bytes": {"tenant"},
    "fairq_inflight": {"tenant", "upstream"},
    "fairq_slots": {"upstream"},
    "fairq_service_tokens_total": {"tenant", "kind"},
    "fairq_charged_cost_total": {"tenant"},
    "fairq_normalized_service": {"tenant"},
    "fairq_virtual_time": set(),
    "fairq_meter": {"tenant"},
    "fairq_bound_margin": set(),
    "fairq_meter_bound": set(),
    "fairq_share": {"tenant"},
    "fairq_fair_share": {"tenant"},
    "fairq_starved": {"tenant"},
    "fairq_fairness_index": set(),
    "fairq_queue_oldest_seconds": {"tenant"},
    "fairq_bound_violations_total": set(),
    "fairq_work_conservation_violations_total": set(),
    "fairq_cost_estimate_ratio": set(),
    "fairq_time_to_first_token_seconds": {"tenant"},
    "fairq_time_per_output_token_seconds": {"tenant"},
    "fairq_upstream_up": {"upstream"},
    "fairq_upstream_queue": {"upstream"},
    "fairq_ledger_events_total": set(),
    "fairq_ledger_lag_seconds": set(),
    "fairq_ledger_recording": {"pool"},
    "fairq_retries_total": set(),
}


async def samples(d: Desk) -> list[Any]:
    text = (await d.get("/metrics")).text
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def value(found: list[Any], name: str, **labels: str) -> float:
    matching = [s.value for s in found if s.name == name and labels.items() <= s.labels.items()]
    return sum(matching)


@run
async def test_every_promised_name_is_there_with_its_labels_and_a_help_text(tmp_path: Path) -> None:
    async with desk(tmp_path, slots=1) as d:
        d.upstream.enqueue([Gate("go"), *answer({})])
        first = d.later("a")
        await d.upstream.request(1)
        rest = [d.later(name, stream=True) for name in ("a", "b", "a", "b")]
        await d.waiting(4)
        await d.folded()
        d.live.engines = {("default", "u0"): 3.0}
        meters = [sample for sample in await samples(d) if sample.name == "fairq_meter"]
        assert {sample.labels["tenant"] for sample in meters} == {"a", "b"}
        await d.upstream.release("go")
        await asyncio.gather(first, *rest)
        await d.folded()
        text = (await d.get("/metrics")).text
        families = {family.name: family for family in text_string_to_metric_families(text)}
        described = {name: families.get(name.removesuffix("_total")) for name in PROMISED}
        assert [name for name, family in described.items() if family is None] == []
        for name, labels in PROMISED.items():
            family = described[name]
            assert family is not None
            assert len(family.documentation) > 10, name
            if name != "fairq_meter":
                assert family.samples, name
                assert labels <= family.samples[0].labels.keys(), name
        for unit in ("time_to_first_token", "time_per_output_token"):
            family = families[f"fairq_{unit}_seconds"]
            assert {sample.labels["wait"] for sample in family.samples} == {"included", "excluded"}
            assert "wait=included" in family.documentation
            assert "wait=excluded" in family.documentation
        assert not [name for name in families if not name.startswith("fairq_")]


@run
async def test_numbers_are_those_of_the_requests(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        for _ in range(3):
            await d.chat("a", max_tokens=7)
        await d.api.post("/v1/chat/completions", content=b"{")
        await d.folded()
        found = await samples(d)
        assert value(found, "fairq_requests_total", tenant="a", outcome="completed") == 3
        assert value(found, "fairq_requests_total", outcome="refused-invalid") == 1
        assert value(found, "fairq_service_tokens_total", tenant="a", kind="completion") == 21
        assert value(found, "fairq_queue_wait_seconds_count", tenant="a") == 3
        assert value(found, "fairq_queue_wait_seconds_bucket", tenant="a", le="+Inf") == 3
        assert 0 < value(found, "fairq_queue_wait_seconds_sum", tenant="a") < 5, "in seconds"
        charged = value(found, "fairq_charged_cost_total", tenant="a")
        assert charged == d.live.pools["default"].tenants["a"].charged > 0
        assert value(found, "fairq_slots", upstream="u0") == 4
        assert value(found, "fairq_upstream_up", upstream="u0") == 1


@run
async def test_gauges_come_back_to_zero_whatever_ended_the_requests(tmp_path: Path) -> None:
    async with desk(tmp_path, slots=2) as d:
        d.upstream.enqueue(answer({}, 500), answer({}, 502), [Gate("go"), *answer({})], [Gate("go"), *answer({})])
        for _ in range(2):
            await d.chat("a")
        tasks = [d.later("a") for _ in range(4)]
        await d.waiting(2)
        await d.folded()
        found = await samples(d)
        assert value(found, "fairq_inflight", tenant="a") == 2
        assert value(found, "fairq_queue_requests", tenant="a") == 2
        assert value(found, "fairq_queue_bytes", tenant="a") > 0
        tasks[-1].cancel()
        await d.waiting(1)
        await d.upstream.release("go", 2)
        await asyncio.gather(*tasks[:-1])
        await d.folded()
        found = await samples(d)
        gauges = [s for s in found if s.name in ("fairq_inflight", "fairq_queue_requests", "fairq_queue_bytes")]
        assert {sample.name for sample in gauges} == {"fairq_inflight", "fairq_queue_requests", "fairq_queue_bytes"}
        assert all(sample.value == 0 for sample in gauges)
        assert value(found, "fairq_requests_total") == 6


@run
async def test_openmetrics_is_spoken_to_those_who_ask(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        await d.chat("a")
        await d.folded()
        reply = await d.get("/metrics", accept="application/openmetrics-text; version=1.0.0")
        assert reply.headers["content-type"].startswith("application/openmetrics-text")
        assert any(family.name == "fairq_requests" for family in openmetrics(reply.text))


def feed(live: Live, run: Recording, since: int = 0) -> int:
    pool = live.take("default", encode(run.head))
    assert pool is not None
    pool.follow()
    for raw in run.lines[since:]:
        live.take("default", raw[:-1])
    assert live.unreadable == 0
    return len(run.lines)


def test_made_up_ids_cost_few_labels_and_no_memory() -> None:
    """D-6, scaled down: ids that come once share a label, and nothing of theirs is kept."""
    run = Recording(Setup(wait_for_upstream=FAR))
    run.upstream(2)
    live = Live(labels=5)
    for number in range(1500):
        run.admit(f"made-up-{number}", 2)
        run.admit("real", 2)
        for id_ in run.running():
            run.now += 1000
            run.finish(id_)
    feed(live, run)
    pool = live.pools["default"]
    assert len(pool.tenants) <= 5
    assert len(pool.latency) <= 6
    assert not pool.world.tenants
    assert not pool.world.living
    assert len(pool.tags.meters) < 1500
    found = list(Families(snapshot(live)).collect())
    labels = {sample.labels["tenant"] for family in found for sample in family.samples if "tenant" in sample.labels}
    assert len(labels) <= 6
    assert {"real", OTHER} <= labels
    total = sum(sample.value for family in found if family.name == "fairq_requests" for sample in family.samples)
    lost = 3000 - total
    assert 0 <= lost <= 50, "only what was counted for a label that gave way is gone"


def test_an_alert_can_be_set_on_who_is_starved() -> None:
    """First come, first served before one slot: the crowd's forty against the two of `few`."""
    live, run = Live(), Recording(Setup(policy="fcfs", wait_for_upstream=FAR))
    run.upstream(1)
    for name, clients in (("crowd", 38), ("few", 2)):
        for _ in range(clients):
            run.admit(name, 10)
    for _ in range(700):
        run.now += 100_000_000
        [running] = run.running()
        run.finish(running)
        run.admit(running.rstrip("0123456789"), 10)
    feed(live, run)
    found = {
        (sample.name, sample.labels.get("tenant")): sample.value
        for family in Families(snapshot(live)).collect()
        for sample in family.samples
    }
    assert found["fairq_starved", "few"] == 1
    assert found["fairq_starved", "crowd"] == 0
    assert found["fairq_fair_share", "few"] == 0.5
    assert found["fairq_share", "few"] < 0.1
    assert found["fairq_fairness_index", None] < 0.6
    assert found["fairq_queue_oldest_seconds", "few"] > 1
    assert found["fairq_meter_bound", None] == 10


def test_a_tenant_whose_first_request_is_refused_has_its_label_at_once() -> None:
    run = Recording(Setup(wait_for_upstream=FAR))
    run.upstream(1)
    live = Live(labels=5)
    for number in range(2):
        run.emit(Refused, id=f"bad-{number}", tenant="zoe", outcome=Outcome.REFUSED_INVALID, status=400)
    feed(live, run)
    families = {family.name: family for family in Families(snapshot(live)).collect()}
    counted = {s.labels["tenant"]: s.value for s in families["fairq_requests"].samples}
    assert counted == {"zoe": 2}


def test_a_tenant_called_other_is_counted_with_the_others() -> None:
    run = Recording(Setup(wait_for_upstream=FAR))
    run.upstream(1)
    live = Live(labels=1)
    for name in ("a", OTHER, "b"):
        run.admit(name, 2)
        run.finish(run.running()[0])
    feed(live, run)
    families = {family.name: family for family in Families(snapshot(live)).collect()}
    counted = {s.labels["tenant"]: s.value for s in families["fairq_requests"].samples}
    assert counted == {"a": 1, OTHER: 2}


def test_an_engines_own_queue_is_read_from_its_metrics() -> None:
    vllm = '# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{model_name="m"} 4.0\n'
    llama = "# TYPE llamacpp:requests_deferred gauge\nllamacpp:requests_deferred 2\n"
    sglang = '# TYPE sglang:num_queue_reqs gauge\nsglang:num_queue_reqs{tp="0"} 1\nsglang:num_queue_reqs{tp="1"} 2\n'
    assert (waiting(vllm), waiting(llama), waiting(sglang)) == (4, 2, 3)
    assert waiting("# TYPE up gauge\nup 1\n") is None
    assert waiting(vllm.replace("4.0", "-1")) is None


@run
async def test_an_engine_that_tells_nothing_is_no_empty_queue(tmp_path: Path) -> None:
    async with ScriptedUpstream() as upstream:
        text = b"vllm:num_requests_waiting 7\n"
        upstream.routes["GET /metrics"] = answer(text)
        assert await asyncio.to_thread(ask, upstream.url) == 7
        for script in (answer(b"", 500), answer(b"\xff\xfe"), answer(b"{}"), [Reset()]):
            upstream.routes["GET /metrics"] = script
            assert await asyncio.to_thread(ask, upstream.url) is None
        upstream.routes["GET /metrics"] = answer(b"", 302, [("location", f"{upstream.url}/elsewhere")])
        upstream.routes["GET /elsewhere"] = answer(text)
        assert await asyncio.to_thread(ask, upstream.url) is None
        assert upstream.routed["GET /elsewhere"] == 0, "addresses come from the configuration only"
