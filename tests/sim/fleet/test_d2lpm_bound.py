"""D²LPM's theorem over runs in which a client with locality floods the engines, and what happens without quotas."""

from functools import cache
from typing import Any

import pytest

from fairq.core.job import Generation
from fairq.sim.engine.call import Call
from fairq.sim.engine.drift import Drift
from fairq.sim.fleet.run import FleetRun
from fairq.sim.scenario import build
from fairq.traces import Request
from fairq.traces.write import write

ENGINE = {
    "preset": "rtx4090-llama3.1-8b",
    "pool_tokens": 8_000,
    "prefix_cache": True,
    "reserve": "limit",  # nobody is preempted, as the theorem asks
    "router": "fcfs",
    "engines": 2,
}


@pytest.fixture(scope="module")
def flood(tmp_path_factory: pytest.TempPathFactory) -> str:
    """`document` asks 24 times per second about one text of 2,000 tokens, `chat` four times something new."""
    beginning = tuple(range(125))
    requests = [
        Request(
            arrival=i / 24,
            client="document",
            input_tokens=2_032,
            output_tokens=150,
            blocks=(*beginning, 10**6 + 2 * i, 10**6 + 2 * i + 1),
        )
        for i in range(480)
    ]
    requests += [
        Request(
            arrival=i / 4,
            client="chat",
            input_tokens=320,
            output_tokens=150,
            blocks=tuple(2 * 10**6 + 20 * i + n for n in range(20)),
        )
        for i in range(80)
    ]
    path = tmp_path_factory.mktemp("flood") / "flood.jsonl"
    write(path, sorted(requests, key=lambda one: one.arrival), 16)
    return str(path)


@cache
def run(trace: str, policy: str, placement: str, **given: Any) -> FleetRun:
    found = build(ENGINE | {"layer": "fleet", "trace": trace, "placement": placement, "policies": [policy]} | given)
    made = found.run(policy)
    assert isinstance(made, FleetRun)
    return made


@pytest.mark.parametrize("quantum", [200, 2_000])
def test_the_theorem_holds_whatever_the_quantum(flood: str, quantum: int) -> None:
    bound, wait = run(flood, f"dlpm:quantum={quantum}", f"d2lpm:quantum={quantum}").bounds
    assert wait.holds
    assert wait.limit == bound.limit  # of the one other client
    assert wait.worst
    assert bound.holds
    assert bound.worst is not None
    assert bound.limit == 2 * 2 * (2_032 + 2 * 8_000 + quantum)
    assert bound.worst > 100  # they did compete


def test_without_quotas_locality_starves_the_one_that_has_none(flood: str) -> None:
    fair = run(flood, "dlpm:quantum=2000", "d2lpm:quantum=2000")
    greedy = run(flood, "lpm", "prefix-affinity")
    limit = fair.bounds[0].limit or 0
    assert drift(greedy.calls).widest > limit
    assert drift(fair.calls).widest < limit
    waits = {name: found.clients()["chat"]["ttft"]["p99"] for name, found in (("fair", fair), ("greedy", greedy))}
    assert waits["greedy"] > 2 * waits["fair"]


def test_an_endless_quantum_pins_an_engine(flood: str) -> None:
    """Theorem A.5: all of the document's requests go where its text is, however long the queue there."""
    pinned = run(flood, "dlpm:quantum=2000", "d2lpm:quantum=0")
    assert sorted(pinned.fleet.sent.values()) == [80, 480]
    shared = run(flood, "dlpm:quantum=2000", "d2lpm:quantum=2000")
    assert min(shared.fleet.sent.values()) > 250
    assert pinned.clients()["document"]["ttft"]["mean"] > 1.3 * shared.clients()["document"]["ttft"]["mean"]


def test_the_bound_is_not_claimed_where_it_is_not_promised(flood: str) -> None:
    def why(*given: str, **keys: Any) -> set[tuple[bool | None, str]]:
        return {(bound.holds, bound.unless) for bound in run(flood, *given, **keys).bounds}

    assert why("dlpm:quantum=2000", "d2lpm:quantum=0") == {(None, "the placement's quantum is endless")}
    assert why("fcfs", "d2lpm") == {(None, "the engines do not run dlpm")}
    assert why("dlpm", "d2lpm", slots=8) == {(None, "the router holds requests back (slots)")}
    assert why("vtc", "least-loaded") == {(None, "the theorem is about one engine")}
    assert why("fcfs", "least-loaded") == set()
    preempting = run(flood, "dlpm", "d2lpm", reserve="prompt", pool_tokens=3_000)
    assert preempting.measured()["preemptions"]
    assert {bound.unless for bound in preempting.bounds} == {"an engine preempted somebody"}


def drift(calls: list[Call]) -> Drift:
    return Drift(calls, dict.fromkeys((call.job.flow for call in calls), 1.0))


def call(client: str, times: tuple[int, int, int, int], prompt: int, output: int) -> Call:
    arrival, admitted, first, finish = times
    made = Call(
        Generation(id=client, flow=client, arrival=arrival, prompt=prompt, size=output, limit=output), cancel_at=None
    )
    made.admitted, made.first, made.finish, made.produced = admitted, first, finish, output
    return made


def test_a_gap_is_counted_only_while_both_wait() -> None:
    """a waits 0-100, b 50-100; a's answer of 11 tokens takes from 20 to 120, 0.2 per unit of time."""
    waiting = call("a", (0, 100, 110, 110), 5, 1)
    served = call("a", (0, 10, 20, 120), 7, 11)
    other = call("b", (50, 100, 130, 130), 9, 1)
    # Both wait in 50-100: 50 * 0.2 = 10; then, at 100, the prompts of 5 and 9 are charged while they still wait.
    found = drift([waiting, served, other])
    assert found.widest == pytest.approx(10 + 5)
    assert drift([served]).widest == 0
    # b is given nothing from 50 to 100, while a gets 0.2 per unit of time and, at 100, its prompt.
    assert found.wait == pytest.approx(10 + 5)


def test_what_is_drawn_at_a_time_is_the_widest_gap_of_the_intervals_that_go_on() -> None:
    waiting = call("a", (0, 100, 110, 110), 5, 1)
    served = call("a", (0, 10, 20, 120), 7, 11)
    other = call("b", (50, 100, 130, 130), 9, 1)
    found = Drift([waiting, served, other], {"a": 1.0, "b": 1.0}, times=[0, 49, 60, 99, 101, 500])
    assert found.seen == pytest.approx([0, 0, 2, 9.8, 0, 0])
    half = Drift([waiting, served, other], {"a": 2.0, "b": 1.0}, times=[60])
    assert half.seen == pytest.approx([1])


def test_who_leaves_early_is_charged_for_what_it_got() -> None:
    """Two engines, budgets of 100 each. 'a' pays for 10 tokens of prompt and leaves after a few of its 1,000."""
    made = build(
        {
            "layer": "fleet",
            "requests": [{"client": "a", "prompt": 10, "output": 1_000, "cancel": 0.2}],
            "placement": "d2lpm:quantum=100",
            "policies": ["fcfs"],
        }
    ).run("fcfs")
    (call,) = made.calls
    assert call.reason == "cancel"
    assert 0 < call.produced < 50
    assert made.fleet.placement.budget("a", "e0") == 100 - 10 - 2 * call.produced
