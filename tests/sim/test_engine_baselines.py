"""What others ship, beside VTC: each baseline does what it says, and where it is unfair it is seen to be."""

import pytest
from tests.sim.engines import engine

from fairq.sim.engine.run import EngineRun


def shares(run: EngineRun, first: int) -> dict[str, int]:
    """Tokens' cost of each client among the first so many requests that were admitted."""
    ordered = sorted((call for call in run.calls if call.admitted is not None), key=lambda call: call.order)
    got: dict[str, int] = {}
    for call in sorted(ordered, key=lambda call: call.admitted or 0)[:first]:
        got[call.job.flow] = got.get(call.job.flow, 0) + call.prompt + 2 * call.produced
    return got


SHORT_AND_LONG = [
    {"client": "long", "prompt": 4, "output": 40, "count": 60},
    {"client": "short", "prompt": 4, "output": 4, "count": 60},
]


@pytest.mark.parametrize("policy", ["request-stride", "request-rr", "prefill-drr:quantum=4"])
def test_counting_requests_or_prompts_gives_long_answers_the_most(policy: str) -> None:
    got = shares(engine(SHORT_AND_LONG, policy, max_sequences=2), 60)
    assert got["long"] == 84 * 30
    assert got["short"] == 12 * 30


@pytest.mark.parametrize("policy", ["vtc", "vtc-predict", "attained-service"])
def test_counting_tokens_gives_both_about_the_same(policy: str) -> None:
    got = shares(engine(SHORT_AND_LONG, policy, max_sequences=2), 40)
    assert got["long"] == pytest.approx(got["short"], rel=0.35)


def test_attained_service_lets_a_client_fill_the_batch_before_anything_counts() -> None:
    """Nothing is charged until a request ends: all eight places go to whoever waits longest."""
    requests = [
        {"client": "A", "prompt": 4, "output": 40, "count": 8},
        {"client": "B", "at": 1, "prompt": 4, "output": 4, "count": 8},
    ]
    keys = {"max_sequences": 9}
    first = engine(requests, "attained-service", **keys).calls
    assert {call.job.flow for call in first if (call.admitted or 0) == 0} == {"A"}
    b = [call.admitted or 0 for call in first if call.job.flow == "B"]
    assert min(b) == 10**9  # the ninth place
    assert sorted(b)[1] > 10**9


def test_attained_service_is_forgotten_by_half_lives() -> None:
    requests = [
        {"client": "A", "prompt": 100, "output": 1},
        {"client": "B", "at": 600, "prompt": 50, "output": 1},
        {"client": "X", "at": 601, "prompt": 1, "output": 5},
        {"client": "A", "at": 602, "prompt": 1, "output": 1},
        {"client": "B", "at": 602, "prompt": 1, "output": 1},
    ]
    run = engine(requests, "attained-service", max_sequences=1, step_tokens=64)
    assert (run.calls[3].admitted or 0) < (run.calls[4].admitted or 0)  # ten half-lives later A owes a tenth of B
    last = engine(requests, "attained-service:half_life=100000", max_sequences=1, step_tokens=64)
    assert (last.calls[4].admitted or 0) < (last.calls[3].admitted or 0)


def test_a_windowed_rank_is_as_old_as_the_request() -> None:
    """All of A's requests rank 0, for they came before anything was served; B's, which came later, too: in order."""
    requests = [
        {"client": "A", "prompt": 10, "output": 10, "count": 5},
        {"client": "B", "at": 1, "prompt": 10, "output": 10},
        {"client": "A", "at": 25, "prompt": 1, "output": 1},
        {"client": "C", "at": 26, "prompt": 1, "output": 1},
    ]
    run = engine(requests, "windowed", max_sequences=1)
    ordered = [call.job.id for call in sorted(run.calls, key=lambda call: call.admitted or 0)]
    assert ordered == ["0", "1", "2", "3", "4", "5", "7", "6"]
