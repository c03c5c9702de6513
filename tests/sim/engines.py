"""Small engines and random traffic for the tests of the engine layer."""

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from fairq.sim.engine.run import EngineRun
from fairq.sim.engine.scenario import EngineScenario

CLIENTS = "ABCDE"


def engine(requests: list[dict[str, Any]], policy: str = "vtc", **keys: Any) -> EngineRun:
    """A run with an iteration of 1 s, unless `keys` say otherwise."""
    given: dict[str, Any] = {"cost": {"a": 10**9}, "pool_tokens": 1000, "block_tokens": 1, "reserve": "prompt"}
    given |= {"prefill": "chunked", "max_sequences": 8, "step_tokens": 64}
    return EngineRun(EngineScenario.model_validate({"requests": requests} | given | keys), policy)


def both(requests: list[dict[str, Any]], policy: str, **keys: Any) -> tuple[EngineRun, EngineRun]:
    return engine(requests, policy, engine="step", **keys), engine(requests, policy, engine="jump", **keys)


@st.composite
def traffic(draw: st.DrawFn, most: int = 30, longest: int = 30) -> list[dict[str, Any]]:
    clients = st.sampled_from(CLIENTS[: draw(st.integers(1, len(CLIENTS)))])
    seconds = st.integers(0, 900).map(lambda ms: Fraction(ms, 1000))
    return draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "client": clients,
                    "at": seconds,
                    "prompt": st.integers(1, longest),
                    "output": st.integers(0, longest),
                    "priority": st.integers(0, 2),
                },
                optional={"max_tokens": st.integers(1, longest), "cancel": seconds},
            ),
            min_size=1,
            max_size=most,
        )
    )


@st.composite
def engines(draw: st.DrawFn) -> dict[str, Any]:
    """Costs, limits and rules of every kind; small enough that memory binds."""
    whole = draw(st.booleans())
    block = draw(st.sampled_from([1, 2, 16]))
    sequences = draw(st.sampled_from([2, 4, 16]))
    reserves = ["prompt", "limit"] + (["peak"] if whole and block == 1 else [])
    weights = st.sampled_from([1, 2, 3, Fraction(1, 2)])
    return {
        "cost": {
            "a": draw(st.sampled_from([1, 10**7])),
            "b": draw(st.sampled_from([0, 10**5])),
            "c": draw(st.sampled_from([0, 3 * 10**5])),
            "d": draw(st.sampled_from([0, 1_200, 10**5])),
            "e": draw(st.sampled_from([0, 5_000])),
        },
        "pool_tokens": max(draw(st.sampled_from([64, 100, 300])), 4 * block),
        "block_tokens": block,
        "max_sequences": sequences,
        "step_tokens": draw(st.sampled_from([sequences, sequences + 5, 64])),
        "prefill": "first" if whole else "chunked",
        "admit_every": draw(st.sampled_from([0, 1, 10])) if whole else 0,
        "reserve": draw(st.sampled_from(reserves)),
        "watermark": draw(st.sampled_from([0, 0, 1])),
        "preemption": draw(st.sampled_from(["recompute", "swap"])),
        "victim": draw(st.sampled_from(["last", "latest", "priority"])),
        "head": draw(st.sampled_from(["stop", "stop", "skip"])),
        "clients": [{"id": client, "weight": draw(weights)} for client in CLIENTS],
    }
