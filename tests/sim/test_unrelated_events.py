"""A schedule depends on what it is made of, not on how often the simulator looks: unrelated events change nothing."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.sim.cpu_oracles import aged
from tests.sim.timelines import job, run, simulate, ticks

from fairq.core.param import Param
from fairq.policies import POLICIES
from fairq.sim.cpu.run import PROVIDES
from fairq.sim.scenario import Run, load

SLEEPER = Path(__file__).parents[2] / "examples/scenarios/cpu/waking-sleeper.yaml"
RATIOS = ("1", "2", "3", "1/2")
TEXTS = {
    "quantum": ("1/2/4", "2", "3/1/2"),
    "allotment": ("", "3", "2/4/6"),
    "nodes": ("sfq", "drr:quantum=3"),
    "classes": ("",),
}


def values(param: Param) -> st.SearchStrategy[Any]:
    if param.choices:
        return st.sampled_from(param.choices)
    if isinstance(param.default, bool):
        return st.sampled_from(("on", "off"))
    if param.name == "levels":
        return st.just(3)
    if isinstance(param.default, str):
        return st.sampled_from(TEXTS[param.name])
    return st.integers(param.low or 0, 5)


def specs(name: str) -> st.SearchStrategy[str]:
    """The policy with any of its options."""
    options = st.fixed_dictionaries({}, optional={param.name: values(param) for param in POLICIES[name].params})
    return options.map(lambda given: f"{name}:" + ",".join(f"{key}={value}" for key, value in given.items()))


@st.composite
def tasks(draw: st.DrawFn, locks: bool) -> dict[str, Any]:
    many: list[dict[str, Any]] = []
    for name in "ABCD"[: draw(st.integers(2, 4))]:
        bursts = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
        one = {"arrival": draw(st.integers(0, 8)), "weight": draw(st.sampled_from(RATIOS))}
        one |= {"priority": draw(st.integers(0, 3)), "slice": draw(st.sampled_from((None, 1, 2, 5)))}
        one |= {"estimate": draw(st.sampled_from((None, 2, 6)))}
        if locks:
            start, length = draw(st.integers(0, 4)), draw(st.integers(1, 4))
            one |= {"locks": [{"resource": draw(st.sampled_from("rs")), "at": start, "for": length}]}
            one |= {"burst": start + length + draw(st.integers(0, 4))}
        elif len(bursts) > 2:
            one |= {"bursts": bursts[:3]}
        else:
            one |= {"burst": sum(bursts)}
        many.append({"id": name, **one, "deadline": 60 + draw(st.integers(0, 9))})
    return {"tasks": many, "cpus": draw(st.integers(1, 2)), "switch_cost": draw(st.sampled_from((0, 0, 1, 2)))}


@st.composite
def cases(draw: st.DrawFn, name: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A policy, a scenario for it, and a change of weight that changes nothing."""
    scenario, spec = draw(tasks(draw(st.booleans()))), draw(specs(name))
    if "ceiling" in spec:
        scenario["cpus"] = 1
    ids = [one["id"] for one in scenario["tasks"]]
    moments, names = st.integers(0, 25), st.sampled_from(ids)
    scenario["changes"] = [
        {"at": draw(moments), "task": id_, "weight": draw(st.sampled_from(RATIOS))}
        for id_ in draw(st.lists(names, max_size=2, unique=True))
    ]
    at, id_ = draw(moments), draw(names)
    weights = {one["id"]: one["weight"] for one in scenario["tasks"]}
    weights |= {one["task"]: one["weight"] for one in scenario["changes"] if one["at"] <= at}
    return spec, scenario, {"at": at, "task": id_, "weight": weights[id_]}


def recorded(result: Run) -> list[list[str | None]]:
    """Who had the processors in each tick, as the run's trace tells it."""
    line: list[list[str | None]] = []
    for step in result.trace().steps():
        line += [step.what["ran"]] * (int(step.time) - len(line))
    while line and not any(line[-1]):
        line.pop()
    return line


@pytest.mark.parametrize("name", [name for name, policy in POLICIES.items() if policy.needs <= PROVIDES])
def test_a_schedule_is_the_same_however_often_it_is_looked_at(name: str) -> None:
    @given(cases(name))
    @settings(max_examples=40, deadline=None, derandomize=True, phases=(Phase.generate, Phase.shrink))
    def same(case: tuple[str, dict[str, Any], dict[str, Any]]) -> None:
        spec, scenario, nothing = case
        plain = run(spec, **scenario)
        assert recorded(plain) == recorded(run(spec, record="ticks", **scenario))
        changes = [*scenario["changes"], nothing]
        assert plain.slices == run(spec, **scenario | {"changes": changes}).slices

    same()


def both(spec: str, many: list[dict[str, Any]], at: int, **options: Any) -> list[str]:
    """The schedule as events tell it, as ticks do, and with a change of weight at `at` that changes nothing."""
    changes = [{"at": at, "task": many[-1]["id"], "weight": many[-1].get("weight", 1)}]
    results = (
        run(spec, many, **options),
        run(spec, many, record="ticks", **options),
        run(spec, many, changes=changes, **options),
    )
    return ["".join(ran[0] or "." for ran in recorded(result)) for result in results]


def test_an_aged_job_keeps_what_it_has_gained_for_a_turn() -> None:
    many = [job("A", 0, 6, priority=0), job("B", 0, 6, priority=1)]
    # B's quantum ends at 2, when A has gained 1 and is first of two equals; A's ends at 4, when B has gained 1; ...
    assert both("priority:aging=2,quantum=2", many, 3) == ["BBAABBAABBAA"] * 3
    # Without quanta A has gained 2 at 4 and passes B; B has 1 + 2 at 8 and passes A.
    assert both("priority:aging=2,quantum=0", many, 5) == ["BBBBAAAABBAA"] * 3


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 7), st.integers(0, 3)), min_size=2, max_size=5),
    st.integers(1, 3),
    st.integers(0, 3),
)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_aging_is_what_looking_at_every_tick_says(many: list[tuple[int, int, int]], aging: int, quantum: int) -> None:
    result = simulate(
        f"priority:aging={aging},quantum={quantum}",
        [job(str(n), at, burst, priority=urgency) for n, (at, burst, urgency) in enumerate(many)],
    )
    expected = aged([(at, burst) for at, burst, _ in many], [urgency for *_, urgency in many], aging, quantum)
    assert ticks(result) == ["." if who is None else str(who) for who in expected]


def test_cfs_asks_once_whether_a_newcomer_takes_over() -> None:
    many = [
        {"id": "A", "arrival": 3, "weight": 2, "bursts": [1, 3, 2]},
        {"id": "B", "weight": "1/2", "burst": 9},
    ]
    # A comes with 6 and its slice's 2.4, which B, at 6, is not ahead of; woken at 10 it has 18 - 3, and B 18.
    assert both("cfs", many, 5) == ["BBBBBBABBBAA"] * 3


def test_eevdf_asks_once_whether_a_newcomer_takes_over() -> None:
    many = [{"id": "A", "bursts": [2, 1, 1]}, job("B", 1, 2, slice=2)]
    # A is woken at 3, when it is ahead and so not eligible; at 4 it would be, before B, but is no newcomer any more.
    assert both("eevdf:request=1,parity=off,quantum=2", many, 4, switch_cost=1) == ["AABBBAA"] * 3


def test_a_job_that_has_just_been_preempted_ages_from_then_on() -> None:
    many = [job("L", 0, 9), job("H", 5, 4), job("N", 8, 2)]
    # Preempted at 5, L is on top at 7, before N.
    assert both("mlfq:levels=2,quantum=4,aging=2", many, 6) == ["LLLLLHHHHLLLLNN"] * 3


def test_a_sleeper_without_credit_waits_the_same_however_it_is_recorded() -> None:
    scenario = load(SLEEPER)
    events, ticked = (scenario.run("cfs:latency=24,sleeper-credit=off", record) for record in ("events", "ticks"))
    assert recorded(events) == recorded(ticked)
