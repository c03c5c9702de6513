"""The scenarios under examples/: all say what they show and run; all but the CPU's tell their story here."""

from collections import Counter
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import fairq

from fairq.sim.cpu.run import CpuRun
from fairq.sim.engine.scenario import SECOND
from fairq.sim.scenario import load

GALLERY = Path(__file__).parents[2] / "examples" / "scenarios"
FILES = sorted(GALLERY.glob("*/*.yaml"))


def runs(name: str) -> dict[str, dict[str, Any]]:
    """policy as the file writes it -> the run as JSON"""
    scenario = load(GALLERY / f"{name}.yaml")
    return {spec: scenario.run(spec).as_json() for spec in scenario.policies}


def finishes(run: dict[str, Any]) -> dict[str, list[int]]:
    """flow -> when each of its packets is over"""
    found: dict[str, list[int]] = {}
    for one in run["departures"]:
        found.setdefault(one["flow"], []).append(int(one["finish"]))
    return found


def flows(run: dict[str, Any]) -> list[str]:
    return [one["flow"] for one in run["departures"]]


# All of them
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_every_file_says_what_it_shows_and_runs_as_a_command(file: Path) -> None:
    scenario = load(file)
    assert scenario.title
    assert scenario.look_for
    assert scenario.source
    assert scenario.layer == file.parent.name
    assert len(scenario.policies) > 1 or scenario.layer == "fleet"  # which compares placements
    recorded = scenario.layer not in ("engine", "fleet")  # whose steps are too many
    for spec in scenario.policies:
        run = scenario.run(spec, "events" if recorded else None)
        if recorded:
            assert len(run.trace()) > 1
        if isinstance(run, CpuRun):
            assert run.measures.work_conserving
    result = fairq("sim", scenario.layer, str(file))
    assert result.status == (2 if file.stem == "deadlock" else 0)


def test_all_are_there() -> None:
    assert Counter(file.parent.name for file in FILES) == {
        "cpu": 16,
        "link": 7,
        "router": 6,
        "cluster": 3,
        "engine": 5,
    } | {"fleet": 1}


# Link
def test_fluid_and_packets() -> None:
    found = runs("link/fluid-and-packets")
    assert finishes(found["gps"]) == {"f1": [3, 5, 9, 13], "f2": [5, 9, 11]}
    assert finishes(found["wfq"]) == {"f1": [4, 5, 7, 13], "f2": [3, 9, 11]}


def test_eights_and_twos() -> None:
    found = runs("link/eights-and-twos")
    assert "".join(flows(found["wfq"])) == "BBBABBBBAA"
    assert finishes(found["gps"]) == {"A": [16, 30, 38], "B": [4, 8, 12, 16, 20, 24, 28]}
    for spec, run in found.items():
        if spec in ("wfq", "wf2q"):  # no packet later than in GPS by more than the largest takes
            for flow, times in finishes(run).items():
                assert all(at - fluid <= 8 for at, fluid in zip(times, finishes(found["gps"])[flow], strict=True))


def test_wf2q_burst() -> None:
    found = runs("link/wf2q-burst")
    assert flows(found["wfq"])[:10] == ["burst"] * 10
    assert flows(found["wf2q"])[::2] == ["burst"] * 11
    assert finishes(found["gps"])["burst"] == [*range(2, 21, 2), 21]


def test_lying_lengths() -> None:
    """While both wait: all that is sent until the liar's twenty are gone."""

    def taken(run: dict[str, Any]) -> tuple[int, int]:
        order = flows(run)
        last = len(order) - order[::-1].index("liar")
        return order[:last].count("liar"), order[:last].count("honest")

    found = {spec: taken(run) for spec, run in runs("link/lying-lengths").items()}
    assert found == {"wfq": (20, 2), "scfq": (20, 2), "sfq": (20, 20)}


def test_drr_small_quantum() -> None:
    found = runs("link/drr-small-quantum")
    told = [(int(one["finish"]), one["flow"], one["size"]) for one in found["drr:quantum=500"]["departures"]]
    assert told == [  # ns.py 0.4.3
        *((200, "f0", 200), (700, "f1", 500), (750, "f2", 50), (1500, "f0", 750)),
        *((2000, "f1", 500), (2700, "f2", 700), (2880, "f2", 180), (3080, "f0", 200)),
    ]
    scenario = load(GALLERY / "link" / "drr-small-quantum.yaml")
    idle = {}
    for spec in scenario.policies:
        whys = [step.why for step in scenario.run(spec, "events").trace().steps() if step.kind == "start"]
        idle[spec] = sum(int(why.values["visits"]) for why in whys if why) - len(whys)
    assert idle["drr:quantum=750"] <= 0 < idle["drr:quantum=100"]


def test_stalled_link() -> None:
    found = {spec: flows(run) for spec, run in runs("link/stalled-link").items()}
    assert found["wfq"][:20] == ["A"] * 20
    for spec in ("sfq", "drr:quantum=1"):
        for n in range(1, 41):  # |W_A - W_B| at most a packet of each, and DRR here goes in turns
            assert abs(found[spec][:n].count("A") - found[spec][:n].count("B")) <= 1


def test_idle_capacity() -> None:
    after = {spec: flows(run)[20:60] for spec, run in runs("link/idle-capacity").items()}
    # A's clock stands at 40 when B comes at 20, whose packets are stamped 22, 24, ...; ties go to A at 42
    assert "".join(after["virtual-clock"])[:10] == "B" * 10
    for spec in ("wfq", "sfq"):
        assert abs(after[spec][:20].count("A") - 10) <= 1


# Router
def test_the_articles_router() -> None:
    assert {spec: "".join(run["order"]) for spec, run in runs("router/lab").items()} == {
        "fcfs": "AAABBBBBBBCCCC",
        "request-rr": "ABABCABCBCBCBB",
        "shortest": "BBBBBBBCCCCAAA",
        "sfq": "ABBCBBCABBCBCA",
    }
    assert runs("router/lab")["sfq"]["final_virtual_time"] == "24"


def test_count_fair_cost_fair() -> None:
    rr, sfq = runs("router/count-fair-cost-fair").values()
    assert "".join(rr["order"][:12]) == "AB" * 6
    assert "".join(sfq["order"][:25]) == "ABBBB" * 5
    together = rr["fairness"][0]
    assert (together["tenants"], together["normalized_service"]) == (["A", "B"], {"A": "48", "B": "10"})
    service = [Fraction(value) for value in sfq["fairness"][0]["normalized_service"].values()]
    assert abs(service[0] - service[1]) <= 2 * 8


def test_idle_tenant() -> None:
    for run in runs("router/idle-tenant").values():
        back = "".join(run["order"][20:58])
        assert max(len(list(group)) for _, group in groupby(back)) == 1


def test_bounded_credit() -> None:
    """B's requests cost 1, so a credit of n is n requests in a row before those that it would have sent anyway."""
    ahead = {spec: len("".join(run["order"][20:]).split("A")[0]) for spec, run in runs("router/bounded-credit").items()}
    assert ahead == {"sfq": 1, "sfq:credit=3": 1 + 3, "sfq:credit=6": 1 + 6}
    for run in runs("router/bounded-credit").values():
        after = "".join(run["order"][27:50])
        assert max(len(list(group)) for _, group in groupby(after)) == 1


def test_debt_stays() -> None:
    sfq, rr = runs("router/debt-stays").values()
    assert "".join(sfq["order"])[:12] == "A" + "B" * 10 + "A"
    assert "".join(rr["order"])[3:9] == "ABABAB"


def test_departments() -> None:
    tree, flat = runs("router/departments").values()
    assert Counter(name.split("/")[0] for name in tree["order"][:24]) == {"law": 12, "lab": 12}
    assert Counter(tree["order"][:24]) == {"law/ann": 12, "lab/bob": 4, "lab/cat": 4, "lab/dan": 4}
    assert Counter(name.split("/")[0] for name in flat["order"][:24]) == {"law": 6, "lab": 18}


# Cluster
def test_the_example_of_the_drf_paper() -> None:
    found = runs("cluster/drf-paper")
    for run in found.values():
        assert run["tasks"] == {"A": 3, "B": 2}
        assert run["dominant_share"] == {"A": "2/3", "B": "2/3"}
        assert run["used"] == {"cpu": 9, "mem": 14}
    assert "".join(found["drf"]["picks"]) == "ABABA"


def test_one_resource_is_not_enough() -> None:
    """a and b tasks: 5 a <= 100 where a = b; equal cpu is a = 4 b, and then 4 a + b <= 100."""
    found = {spec: run["tasks"] for spec, run in runs("cluster/one-resource-is-not-enough").items()}
    assert found["drf"] == {"A": 20, "B": 20}
    assert found["drf:by=cpu"]["B"] * 4 < 50  # half a cluster of its own would have held 12 of its tasks
    assert found["drf:by=mem"]["A"] * 4 < 50


def test_large_task_waits() -> None:
    found = runs("cluster/large-task-waits")

    def starts(run: dict[str, Any]) -> list[int]:
        return [step["time"] for step in run["steps"] if (step["kind"], step["user"]) == ("start", "large")]

    assert starts(found["drf:misfit=stop"]) == [4]  # when the first five have ended
    late = starts(found["drf:misfit=skip"])
    assert not late or late[0] > 12


# Engine
def served(run: Any, start: int, end: int) -> dict[str, int]:
    """Client -> service of the requests that were admitted from `start` to `end` (s)."""
    found: dict[str, int] = dict.fromkeys(run.weights(), 0)
    for call in run.calls:
        if call.admitted is not None and start <= call.admitted / SECOND < end:
            found[call.job.flow] += call.prompt + 2 * call.produced
    return found


BOUND = 2 * max(1 * 256, 2 * 10_000)  # 2U of theorem 4.4: a prompt's service, and a full batch's


def test_noisy_neighbour() -> None:
    scenario = load(GALLERY / "engine" / "noisy-neighbour.yaml")
    fcfs, vtc = (scenario.run(spec) for spec in scenario.policies)
    assert vtc.difference.accumulated <= BOUND < fcfs.difference.accumulated
    assert vtc.throughput == pytest.approx(fcfs.throughput, rel=0.01)
    waits = {client: told["ttft"]["mean"] for client, told in vtc.clients().items()}
    assert waits["A"] < waits["B"] / 2


def test_unequal_answers() -> None:
    scenario = load(GALLERY / "engine" / "unequal-answers.yaml")
    vtc, *others = (scenario.run(spec) for spec in scenario.policies)
    assert vtc.difference.accumulated <= BOUND
    for run in others:
        assert run.difference.accumulated > BOUND
        during = served(run, 0, 100)
        assert during["B"] > 2 * during["A"]


def test_returning_client() -> None:
    scenario = load(GALLERY / "engine" / "returning-client.yaml")
    vtc, lcf = (served(scenario.run(spec), 100, 200) for spec in scenario.policies)
    assert lcf["A"] == 0
    assert abs(vtc["A"] - vtc["B"]) <= BOUND
    assert min(vtc.values()) > 0.4 * sum(vtc.values())


def test_locality() -> None:
    """The paper's trade: hits and throughput go up with the quota, and so does the gap between clients."""
    scenario = load(GALLERY / "engine" / "locality.yaml")
    found = {spec: scenario.run(spec) for spec in scenario.policies}
    hits = [sum(call.cached for call in run.calls) for run in found.values()]
    assert hits[0] < hits[1] / 2
    assert hits[1] < hits[2]
    made = [run.throughput for run in found.values()]
    assert made[0] < made[1] < made[2]
    gaps = [run.difference.accumulated for run in found.values()]
    assert gaps[0] < gaps[1] < gaps[2]
    for quantum, gap in ((500, gaps[1]), (20_000, gaps[2])):  # theorem 4.1: 2 (U + Q)
        longest = max(call.prompt for call in found["vtc"].calls)
        assert gap <= 2 * (longest + 2 * 10_000 + quantum)


# Fleet
def test_two_clients_three_workers() -> None:
    """Affinity alone leaves the third worker idle; with budgets all work, and first tokens come twice as soon."""
    found = {}
    for placement in ("prefix-affinity:imbalance=0", "d2lpm:quantum=2000"):
        scenario = load(GALLERY / "fleet" / "two-clients-three-workers.yaml", placement=placement)
        run = scenario.run(*scenario.policies).as_json()
        shares = [engine["dispatched"] for engine in run["engines"]]
        found[placement] = shares, max(client["ttft"]["mean"] for client in run["clients"].values())
    (affine, late), (budgeted, soon) = found.values()
    assert affine[2] == 0
    assert min(budgeted) > sum(budgeted) / 4
    assert 2 * soon < late
