"""Examples and exercises of textbooks and papers, with the answers that are printed there."""

from fractions import Fraction
from typing import Any

import pytest
from tests.sim.timelines import by_task, job, misses, periodic, simulate

from fairq.sim.link.run import LinkRun
from fairq.sim.link.scenario import LinkScenario


def line(run: dict[str, Any]) -> str:
    """The timeline in short: who, and until when."""
    return " ".join(f"{one['task'] or one['state']}-{one['end']}" for one in run["timeline"])


def sent(policy: str, packets: list[tuple[str, int, int]], **more: Any) -> list[tuple[str, str, str]]:
    """(flow, start, finish) of every packet; `packets`: flow, arrival, size."""
    given = [{"flow": flow, "arrival": at, "size": size} for flow, at, size in packets]
    told = LinkRun(LinkScenario.model_validate({"packets": given, **more}), policy).as_json()["departures"]
    return [(one["flow"], one["start"], one["finish"]) for one in told]


# Silberschatz, Galvin, Gagne, Operating System Concepts, chapter "CPU Scheduling"
@pytest.mark.parametrize(
    ("policy", "tasks", "mean"),
    [
        ("fcfs", [("P1", 0, 24), ("P2", 0, 3), ("P3", 0, 3)], Fraction(17)),
        ("rr:quantum=4", [("P1", 0, 24), ("P2", 0, 3), ("P3", 0, 3)], Fraction(17, 3)),
        ("sjf", [("P1", 0, 6), ("P2", 0, 8), ("P3", 0, 7), ("P4", 0, 3)], Fraction(7)),
        ("srtf", [("P1", 0, 8), ("P2", 1, 4), ("P3", 2, 9), ("P4", 3, 5)], Fraction(13, 2)),
        ("sjf", [("P1", 0, 8), ("P2", 1, 4), ("P3", 2, 9), ("P4", 3, 5)], Fraction(31, 4)),
    ],
)
def test_mean_waits_of_the_dinosaur_book(policy: str, tasks: list[tuple[str, int, int]], mean: Fraction) -> None:
    assert simulate(policy, [job(*one) for one in tasks])["mean"]["waiting"] == float(mean)


def ranked(*pairs: tuple[int, int]) -> list[dict[str, Any]]:
    """(burst, rank) each, as P1, P2, ...; in the book a smaller rank is more urgent."""
    return [job(f"P{n}", 0, burst, priority=-rank) for n, (burst, rank) in enumerate(pairs, 1)]


def test_priorities_with_and_without_turns() -> None:
    alone = ranked((10, 3), (1, 1), (2, 4), (1, 5), (5, 2))
    assert simulate("priority:preemptive=false", alone)["mean"]["waiting"] == 8.2
    told = "P4-7 P2-9 P3-11 P2-13 P3-15 P2-16 P3-20 P1-22 P5-24 P1-26 P5-27"
    assert line(simulate("priority:quantum=2", ranked((4, 3), (5, 2), (8, 2), (7, 1), (3, 3)))) == told


def test_rate_monotonic_misses_a_deadline_that_earliest_deadline_keeps() -> None:
    assert line(simulate("rm", periodic((20, 50), (35, 100)))) == "T1-20 T2-50 T1-70 T2-75 idle-100"
    late = simulate("rm", periodic((25, 50), (35, 80)), horizon=160)
    assert [(one["task"], one["completion"]) for one in late["jobs"] if one["missed"]] == [("T2", 85)]
    kept = simulate("edf", periodic((25, 50), (35, 80)), horizon=160)
    assert misses(kept) == 0
    assert line(kept) == "T1-25 T2-60 T1-85 T2-100 T1-125 T2-145 idle-150 T1-160"


# Stallings, Operating Systems, chapter "Uniprocessor Scheduling": five processes, finish times
@pytest.mark.parametrize(
    ("policy", "ends"),
    [
        ("fcfs", (3, 9, 13, 18, 20)),
        ("rr:quantum=1", (4, 18, 17, 20, 15)),
        ("rr:quantum=4", (3, 17, 11, 20, 19)),
        ("sjf", (3, 9, 15, 20, 11)),
        ("srtf", (3, 15, 8, 20, 10)),
        ("mlfq:levels=5,quantum=1/2/4/8/16", (4, 17, 18, 20, 14)),
    ],
)
def test_finish_times_of_five_processes(policy: str, ends: tuple[int, ...]) -> None:
    tasks = [job(*one) for one in (("A", 0, 3), ("B", 2, 6), ("C", 4, 4), ("D", 6, 5), ("E", 8, 2))]
    assert tuple(by_task(simulate(policy, tasks), "completion").values()) == ends


# Liu, Real-Time Systems, chapter 6
def test_a_rate_monotonic_schedule() -> None:
    told = "T1-1 T2-3 T3-4 T1-5 T2-7 T3-8 T1-9 T3-10 T2-12 T1-13 T3-15 T2-16 T1-17 T2-18 idle-20"
    assert line(simulate("rm", periodic((1, 4), (2, 5), (5, 20)))) == told


def test_deadline_monotonic_keeps_what_rate_monotonic_misses() -> None:
    """Periods 50, 62.5, 125 with deadlines 100, 20, 50, in halves."""
    tasks = [
        {"id": "T1", "offset": 100, "period": 100, "wcet": 50, "deadline": 200},
        {"id": "T2", "period": 125, "wcet": 20, "deadline": 40},
        {"id": "T3", "period": 250, "wcet": 50, "deadline": 100},
    ]
    assert misses(simulate("rm:by=deadline", tasks, horizon=1000)) == 0
    late = {one["task"] for one in simulate("rm", tasks, horizon=1000)["jobs"] if one["missed"]}
    assert late == {"T2", "T3"}


# Sha, Rajkumar, Lehoczky 1990, section 4
def test_the_ceiling_protocol_lets_nobody_in_who_could_block_a_more_urgent_job() -> None:
    """J0 is stopped at S0, which is free, since J2 holds S1 and J0 may ask for it later."""

    def lock(resource: str, at: int, for_: int) -> dict[str, Any]:
        return {"resource": resource, "at": at, "for": for_}

    tasks = [
        job("J2", 0, 7, priority=1, locks=[lock("S2", 1, 5), lock("S1", 2, 2)]),
        job("J1", 2, 3, priority=2, locks=[lock("S2", 1, 1)]),
        job("J0", 4, 4, priority=3, locks=[lock("S0", 1, 1), lock("S1", 2, 1)]),
    ]
    told = "J2-2 J1-3 J2-4 J0-5 J2-6 J0-9 J2-11 J1-13 J2-14"
    assert line(simulate("priority:protocol=ceiling", tasks)) == told


# Graham, Bounds on Multiprocessing Timing Anomalies, 1969
def test_longest_first_on_four_processors_is_a_quarter_too_long() -> None:
    """Of 48 ticks of work on four processors the list 7 7 6 6 5 5 4 4 4 makes 15, 12 would do."""

    def ends(bursts: tuple[int, ...]) -> int:
        run = simulate("fcfs", [job(f"j{n}", 0, burst) for n, burst in enumerate(bursts)], cpus=4)
        return int(max(by_task(run, "completion").values()))

    assert ends((7, 7, 6, 6, 5, 5, 4, 4, 4)) == 15
    assert ends((7, 7, 6, 4, 4, 6, 5, 5, 4)) == 12


# Keshav, An Engineering Approach to Computer Networking, chapter "Scheduling"
def test_finish_numbers_of_three_connections() -> None:
    """Packets of 1, 2 and 2 at 0, one of 2 at 4: the round number is 1.5 then, so its finish number is 3.5."""
    packets = [("A", 0, 1), ("B", 0, 2), ("C", 0, 2), ("A", 4, 2)]
    assert [(flow, end) for flow, _, end in sent("wfq", packets)] == [("A", "1"), ("B", "3"), ("C", "5"), ("A", "7")]
    assert [(flow, end) for flow, _, end in sent("gps", packets)] == [
        ("A", "3"),
        ("B", "11/2"),
        ("C", "11/2"),
        ("A", "7"),
    ]


# Goyal, Vin, Cheng 1996, section 1: a server whose rate varies
def test_on_a_server_of_varying_rate_wfq_serves_one_flow_and_sfq_both() -> None:
    """f sends eleven packets at 0; the link sends one and stops until 10. Then m sends ten: WFQ's clock says 10."""
    packets = [("f", 0, 1)] * 11 + [("m", 10, 1)] * 10
    stalls = [{"at": 1, "for": 9}]
    after = {
        policy: [flow for flow, start, _ in sent(policy, packets, stalls=stalls) if 10 <= int(start) < 20]
        for policy in ("wfq", "sfq")
    }
    assert after["wfq"].count("f") >= 9
    assert after["sfq"].count("f") == after["sfq"].count("m") == 5
