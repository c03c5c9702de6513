"""Every CPU scenario under examples/ tells the story that it promises, by values that are known from elsewhere."""

from pathlib import Path
from typing import Any

from tests.sim.timelines import by_task, ticks

from fairq.sim.scenario import build, load

GALLERY = Path(__file__).parents[2] / "examples" / "scenarios"


def runs(name: str) -> dict[str, dict[str, Any]]:
    """policy as the file writes it -> the run as JSON"""
    scenario = load(GALLERY / "cpu" / f"{name}.yaml")
    return {spec: scenario.run(spec).as_json() for spec in scenario.policies}


def letters(run: dict[str, Any]) -> str:
    """One letter a tick; a dot where nobody ran."""
    return "".join(who or "." for who in ticks(run))


def test_the_articles_lab() -> None:
    found = runs("lab")
    assert {spec: (run["mean"]["waiting"], run["mean"]["response"]) for spec, run in found.items()} == {
        "fcfs": (5.75, 5.75),
        "sjf": (4.75, 4.75),
        "srtf": (2.75, 0.5),
        "rr:quantum=1": (5.25, 0.75),
        "rr:quantum=2": (5.75, 1.5),
        "rr:quantum=3": (6.75, 3),
    }
    assert letters(found["rr:quantum=1"]) == "ABACBADBADBADAA"


def test_convoy() -> None:
    waits = {spec: run["mean"]["waiting"] for spec, run in runs("convoy").items()}
    # by hand: the bikes wait 39, 40, 41, 42 behind a truck of 40; under SRTF it waits for the 8 ticks of all of them,
    # and bikes 2 to 4, which come one tick apart and need two each, wait 1, 2, 3
    assert waits["fcfs"] == waits["sjf"] == (39 + 40 + 41 + 42) / 5
    assert waits["srtf"] == (8 + 0 + 1 + 2 + 3) / 5
    assert waits["srtf"] < waits["rr:quantum=2"] < 5


def test_srtf_starvation() -> None:
    found = runs("srtf-starvation")
    long = {spec: by_task(run, "completion")["long"] for spec, run in found.items()}
    assert long["srtf"] == max(by_task(found["srtf"], "completion").values()) > long["rr:quantum=2"] > long["fcfs"]
    assert found["srtf"]["mean"]["turnaround"] == min(run["mean"]["turnaround"] for run in found.values())
    # By hand: the first tick, then all 30 of the short ones, which come back to back, then its own 11.
    assert long["srtf"] == 1 + 30 + 11


def test_quantum_too_small() -> None:
    found = runs("quantum-too-small")
    lost = {
        spec: sum(p["end"] - p["start"] for p in run["timeline"] if p["state"] == "switch")
        for spec, run in found.items()
    }
    assert list(lost.values()) == [79, 19, 3]
    assert [run["mean"]["response"] for run in found.values()] == [3, 7.5, 31.5]


def test_mlfq_gaming() -> None:
    gamer = {spec[-3:]: by_task(run, "completion")["gamer"] for spec, run in runs("mlfq-gaming").items()}
    assert gamer == {"off": 65, "=on": 102}  # OSTEP's mlfq.py, with -S and without


def test_mlfq_learns() -> None:
    plain, boosted, rr, srtf = runs("mlfq-learns").values()
    assert by_task(plain, "turnaround") == {"long": 200, "short": 20}  # OSTEP's mlfq.py
    assert by_task(srtf, "turnaround") == by_task(plain, "turnaround")  # and nobody told it the sizes
    assert by_task(rr, "turnaround")["short"] > 20
    assert by_task(boosted, "turnaround")["short"] > 20  # the long one is at the top again when the short one comes


def test_priority_inversion() -> None:
    none, inheritance = runs("priority-inversion").values()
    assert letters(none) == "1..33.142.133221"  # five programs of Ajou's course
    assert letters(inheritance) == "1..1433.1332221"


def test_aging() -> None:
    never, always, bounded = runs("aging").values()
    assert by_task(never, "completion")["patient"] == 20
    assert by_task(always, "response")["patient"] < by_task(bounded, "response")["patient"] == 16
    assert by_task(never, "response")["patient"] == 16


def test_pathfinder() -> None:
    found = runs("pathfinder")
    assert [run["measures"]["misses"] for run in found.values()] == [1, 0, 0, 0]
    assert [by_task(run, "turnaround")["bc_dist"] for run in found.values()] == [25, 5, 5, 5]


def test_only_without_a_protocol_the_wait_grows_with_the_medium_task() -> None:
    scenario = load(GALLERY / "cpu" / "pathfinder.yaml")
    plain = scenario.model_dump(mode="json", by_alias=True, exclude_unset=True)
    found = []
    for length in (5, 20, 80):
        plain["tasks"][2]["burst"] = length
        longer = build(plain)
        found.append([by_task(longer.run(spec).as_json(), "turnaround")["bc_dist"] for spec in longer.policies])
    assert found == [[5 + length, 5, 5, 5] for length in (5, 20, 80)]


def test_chained_blocking() -> None:
    def sections(run: dict[str, Any]) -> int:
        """Less urgent tasks that run between H's arrival and its end."""
        line = ticks(run)[2 : by_task(run, "completion")["H"]]
        return len({who for who in line if who != "H"})

    assert [sections(run) for run in runs("chained-blocking").values()] == [2, 1, 1]


def test_deadlock() -> None:
    inheritance, ceiling, immediate = runs("deadlock").values()
    assert [hold["task"] for hold in inheritance["deadlock"]["cycle"]] == ["low", "high"]
    for run in (ceiling, immediate):
        assert None not in by_task(run, "completion").values()


def test_rm_misses_edf_holds() -> None:
    assert [run["measures"]["misses"] for run in runs("rm-misses-edf-holds").values()] == [1, 0]
    assert runs("rm-misses-edf-holds")["rm"]["measures"]["max_lateness"] == 1
    responses = [
        [job["response"] for job in run["jobs"] if job["task"] == "T2"] for run in runs("rm-misses-edf-holds").values()
    ]
    assert responses == [[8, 7, 6, 7, 6], [6, 5, 6, 5, 4]]  # SimSo 0.8.5


def test_lottery_against_stride() -> None:
    def worst(run: dict[str, Any]) -> float:
        line = ticks(run)
        return max(abs(line[:n].count("A") - n / 2) for n in range(1, 601))

    found = runs("lottery-against-stride")
    assert letters(found["stride"]) == "ABAABC" * 100  # MIT/LCS/TM-528: passes start at one stride
    assert worst(found["stride"]) <= 1
    assert worst(found["lottery"]) > 5
    for run in found.values():
        assert abs(ticks(run).count("A") - 300) <= 4 * (600 * 0.5 * 0.5) ** 0.5  # four standard deviations


def test_waking_sleeper() -> None:
    def after_waking(run: dict[str, Any], length: int) -> int:
        line = ticks(run)
        woken = line.index("sleeper", 100)
        return line[woken : woken + length].count("sleeper")

    found = runs("waking-sleeper")
    credit, none, eevdf, stride = (after_waking(run, 30) for run in found.values())
    assert credit >= 16  # half a latency ahead, and then its part
    assert credit > none
    assert 8 <= eevdf <= 14
    assert 9 <= stride <= 12


def test_eevdf_short_request() -> None:
    def waits(run: dict[str, Any], task: str) -> int:
        line = "".join("x" if who == task else "." for who in ticks(run))
        return max(map(len, line.split("x")))

    found = runs("eevdf-short-request")
    eevdf, cfs = found.values()
    for run in found.values():
        assert abs(ticks(run).count("interactive") - 240) <= 24
    assert waits(eevdf, "interactive") < waits(eevdf, "batch-1")
    assert waits(eevdf, "interactive") < waits(cfs, "interactive")


def test_lying_users() -> None:
    found = runs("lying-users")
    last = {
        spec: max(by_task(run, "completion"), key=by_task(run, "completion").__getitem__) for spec, run in found.items()
    }
    assert last == {"sjf": "honest-2", "srtf": "honest-2", "rr:quantum=2": "liar", "mlfq": "liar"}
