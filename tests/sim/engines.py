"""Small engines and random traffic for the tests of the engine layer."""

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from fairq.core.job import Generation
from fairq.policies import make
from fairq.sim.engine.batch import Batch
from fairq.sim.engine.call import Call
from fairq.sim.engine.cost import Cost, Limits
from fairq.sim.engine.run import EngineRun, bind
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


@st.composite
def families(draw: st.DrawFn, block: int, most: int = 40) -> list[Call]:
    """Requests whose prompts begin alike: each is a path in a tree of blocks, and a rest of its own."""
    made: list[Call] = []
    arrival = 0
    for number in range(draw(st.integers(2, most))):
        arrival += draw(st.sampled_from([0, 0, 1, 50, 300])) * 10**6
        path = draw(st.lists(st.integers(0, 1), max_size=4))
        prefix = tuple(hash(tuple(path[: depth + 1])) for depth in range(len(path)))
        output = draw(st.integers(0, 25))
        job = Generation(
            id=str(number),
            flow=draw(st.sampled_from(CLIENTS)),
            seq=number,
            arrival=arrival,
            size=output,
            prompt=len(prefix) * block + draw(st.integers(1, block)),
            limit=max(output, 1),
            prefix=prefix,
        )
        made.append(Call(job, draw(st.none() | st.none() | st.integers(arrival, arrival + 10**9))))
    return made


def drive(kind: type[Batch], policy: str, calls: list[Call], rules: dict[str, Any]) -> Batch:
    """An engine with any policy, when all calls have left."""
    given = {key: value for key, value in rules.items() if key in Limits.__struct_fields__}
    one = kind(made := make(policy), Limits(**given), Cost(**rules["cost"]))
    bind(made, one, dict.fromkeys(CLIENTS, Fraction(1)), 0)
    one.add(calls)
    one.run()
    return one
