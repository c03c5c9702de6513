"""The engine's rules, timelines worked out by hand; an iteration takes a second. Both engines are asked."""

from typing import Any

import pytest
from tests.sim.engines import both, engine

SECOND = 10**9
TIGHT = {"pool_tokens": 8, "reserve": "prompt"}  # two prompts of 3 and an answer token each


def two(**more: Any) -> list[dict[str, Any]]:
    return [{"client": name, "prompt": 3, "output": 4} | more.get(name, {}) for name in "AB"]


def finishes(requests: list[dict[str, Any]], policy: str = "fcfs", **keys: Any) -> list[float]:
    step, jump = both(requests, policy, **keys)
    assert [call.finish for call in step.calls] == [call.finish for call in jump.calls]
    return [(call.finish or 0) / SECOND for call in step.calls]


def test_an_iteration_takes_what_the_formula_says() -> None:
    """Prefill of 6 in steps of 4, then decodes over contexts of 7 and 8."""
    cost = {"a": 1000, "b": 100, "c": 10, "d": 1}
    run = engine([{"client": "A", "prompt": 6, "output": 3}], "fcfs", cost=cost, step_tokens=4, max_sequences=4)
    (call,) = run.calls
    assert call.first == (1000 + 400) + (1000 + 200)
    assert call.finish == call.first + (1000 + 10 + 7) + (1000 + 10 + 8)


def test_who_was_admitted_last_is_preempted_and_computed_again() -> None:
    """At 2 both need a block and none is free: B goes, with 2 tokens. At 4 A ends; B's 5 tokens are computed again."""
    assert finishes(two(), **TIGHT) == [4, 6]
    run = engine(two(), "fcfs", **TIGHT)
    assert [call.preemptions for call in run.calls] == [0, 1]
    assert run.engine.prefilled_tokens == 3 + 3 + 5
    assert [call.produced for call in run.calls] == [4, 4]


def test_the_least_urgent_is_preempted() -> None:
    requests = two(B={"priority": 1})
    assert finishes(requests, victim="priority", **TIGHT) == [6, 4]


def test_the_latest_arrival_is_preempted_though_it_was_admitted_first() -> None:
    """B came later, and is admitted first because it is more urgent."""
    requests = [
        {"client": "C", "prompt": 8, "output": 0},
        {"client": "A", "at": "0.1", "prompt": 3, "output": 4},
        {"client": "B", "at": "0.2", "prompt": 3, "output": 4, "priority": 1},
    ]
    keys = {"pool_tokens": 9}
    assert finishes(requests, "priority", victim="latest", reserve="prompt", **keys)[1:] == [5, 7]
    assert finishes(requests, "priority", victim="last", reserve="prompt", **keys)[1:] == [7, 5]


def test_swapping_moves_what_is_in_the_cache_out_and_in() -> None:
    """B's 4 tokens take 4 s each way; it goes on where it was, and makes its third token at 13."""
    cost = {"a": SECOND, "e": SECOND}
    assert finishes(two(), preemption="swap", cost=cost, **TIGHT) == [8, 14]


def test_with_room_for_whole_answers_nobody_is_preempted() -> None:
    assert finishes(two(), reserve="limit", pool_tokens=8) == [4, 8]
    assert engine(two(), "fcfs", reserve="limit", pool_tokens=8).engine.preemptions == 0


def test_a_watermark_keeps_blocks_free() -> None:
    requests = [{"client": name, "prompt": 5, "output": 1} for name in "AB"]
    assert finishes(requests, watermark=0, pool_tokens=10, reserve="prompt") == [1, 1]
    assert finishes(requests, watermark=1, pool_tokens=10, reserve="prompt") == [1, 2]


def test_whole_prompts_stop_those_that_decode() -> None:
    """A decodes from 1 on; B's prompt, at 2, takes an iteration of its own; chunked, it shares one."""
    requests = [{"client": "A", "prompt": 3, "output": 4}, {"client": "B", "at": 2, "prompt": 3, "output": 1}]
    assert finishes(requests, prefill="first", admit_every=0) == [5, 3]
    assert finishes(requests, prefill="chunked") == [4, 3]


def test_newcomers_wait_for_so_many_decodes() -> None:
    """A's decodes end at 2, 3, 4, 5; B came at 1 and is looked at after three."""
    requests = [{"client": "A", "prompt": 3, "output": 6}, {"client": "B", "at": 1, "prompt": 3, "output": 1}]
    run = engine(requests, "fcfs", prefill="first", admit_every=3)
    assert run.calls[1].admitted == 4 * SECOND
    assert finishes(requests, prefill="first", admit_every=3) == [7, 5]


@pytest.mark.parametrize(
    ("request_", "reason", "tokens"),
    [
        ({"output": 5}, "stop", 5),
        ({"output": 5, "max_tokens": 3}, "limit", 3),
        ({"output": 5, "max_tokens": 9}, "stop", 5),
        ({"output": 50, "cancel": "3.5"}, "cancel", 4),
        ({"output": 5, "max_tokens": 100}, "error", 0),
    ],
)
def test_how_a_request_ends(request_: dict[str, Any], reason: str, tokens: int) -> None:
    for run in both([{"client": "A", "prompt": 3} | request_], "fcfs", pool_tokens=60):
        assert (run.calls[0].reason, run.calls[0].produced) == (reason, tokens)


def test_a_limit_of_requests_per_minute_refuses_and_lets_in_again() -> None:
    requests = [{"client": "A", "at": at, "prompt": 3, "output": 1} for at in (0, 10, 20, 59, 60, 61)]
    run = engine(requests, "rpm:limit=2")
    assert [call.reason for call in run.calls] == ["stop", "stop", "refused", "refused", "stop", "refused"]
