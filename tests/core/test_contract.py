"""The contract carries ten schedulers from five fields, each on a page (tests/core/sketches) and on a known value."""

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.layers import Engine, bound, cpu, held, link, pick, serve, slices
from tests.core.sketches.dlpm import DLPM
from tests.core.sketches.drr import DRR
from tests.core.sketches.edf import EDF
from tests.core.sketches.eevdf import EEVDF
from tests.core.sketches.lottery import Lottery
from tests.core.sketches.mlfq import MLFQ
from tests.core.sketches.stride import Stride
from tests.core.sketches.vtc import VTC
from tests.core.sketches.wfq import WFQ

from fairq.core.job import Flow, Job
from fairq.core.policy import Cause, Stop
from fairq.policies.sfq import SFQ


def jobs(*flows: tuple[str, int, list[int]]) -> list[Job]:
    """(flow, arrival, sizes) ..."""
    out: list[Job] = []
    for flow, arrival, sizes in flows:
        for size in sizes:
            out.append(Job(id=f"{flow}{len(out)}", flow=flow, seq=len(out), arrival=arrival, size=size))
    return out


def test_drr_sends_what_fits_the_deficit_and_carries_the_rest() -> None:
    """Shreedhar and Varghese's figures 2-3, continued by ns.py 0.4.3 on a link of one byte per unit."""
    drr = bound(DRR())
    packets = jobs(("0", 0, [200, 750, 200]), ("1", 0, [500, 500]), ("2", 0, [50, 700, 180]))
    for packet in packets:
        drr.arrive(packet, 0)
    first = pick(drr)
    drr.charge(first, 200, 0)
    assert drr.round[1]["0"] == 300
    drr = bound(DRR())
    assert link(drr, packets) == [
        ("0", 200),
        ("1", 700),
        ("2", 750),
        ("0", 1500),
        ("1", 2000),
        ("2", 2700),
        ("2", 2880),
        ("0", 3080),
    ]


def tickets_won(lottery: Lottery, total: int) -> dict[str, int]:
    """How many of all possible draws each client wins: its probability, exactly."""
    won: dict[str, int] = {}
    for ticket in range(total):
        lottery.layer.random = lambda n, stop, ticket=ticket: ticket  # type: ignore[misc]
        winner = lottery.select(0, lottery.layer).job.flow  # type: ignore[union-attr, arg-type]
        won[winner] = won.get(winner, 0) + 1
    return won


def test_lottery_gives_each_client_its_tickets_in_draws() -> None:
    """The slides of the 1994 paper: A 5, B 3, C 2 -> P(B) = 0.3, and 0.6 once A is gone."""
    lottery = bound(Lottery(), {"A": 5, "B": 3, "C": 2}, random=lambda n, stop: 0)
    for job in jobs(("A", 0, [1]), ("B", 0, [1]), ("C", 0, [1])):
        lottery.arrive(job, 0)
    assert tickets_won(lottery, 10) == {"A": 5, "B": 3, "C": 2}
    del lottery.ready["A"]
    assert tickets_won(lottery, 5) == {"B": 3, "C": 2}


def test_a_client_blocked_on_another_lends_it_its_tickets() -> None:
    lottery = bound(Lottery(), {"A": 5, "B": 3, "C": 2}, random=lambda n, stop: 0)
    a, b, c = jobs(("A", 0, [1]), ("B", 0, [1]), ("C", 0, [1]))
    for job in (a, b, c):
        lottery.arrive(job, 0)
    assert pick(lottery) == a
    lottery.stop(a, 0, Stop.BLOCKED, on="C")
    assert tickets_won(lottery, 10) == {"B": 3, "C": 7}
    lottery.arrive(a, 0, Cause.WOKEN)
    assert tickets_won(lottery, 10) == {"A": 5, "B": 3, "C": 2}


def test_lottery_draws_as_ostep_does() -> None:
    """ostep-homework's lottery.py, seed 0, three jobs: lengths, tickets and draws from one generator."""
    generator = random.Random(0)
    drawn = [(int(10 * generator.random()), int(100 * generator.random())) for _ in range(3)]
    assert drawn == [(8, 75), (4, 25), (5, 40)]
    draws: list[int] = []

    def draw(n: int, stop: int) -> int:
        while len(draws) <= n:
            draws.append(int(generator.random() * 1000001))
        return draws[n] % stop

    lottery = bound(Lottery(), {str(i): tickets for i, (_, tickets) in enumerate(drawn)}, random=draw)
    lottery.slice = lambda job: 1  # type: ignore[method-assign, assignment]
    order = cpu(lottery, [Job(id=str(i), flow=str(i), size=length) for i, (length, _) in enumerate(drawn)])
    assert "".join(order) == "10000201200202211"


@pytest.mark.parametrize(
    ("tasks", "boost", "expected"),
    [
        ([(0, 180), (100, 20)], 0, "0:0-100 1:100-120 0:120-200"),
        (
            [(0, 200), (0, 200)],
            50,
            "0:0-10 1:10-20 0:20-30 1:30-40 0:40-50 1:50-60 0:60-70",
        ),
    ],
)
def test_mlfq_demotes_and_boosts_as_ostep_does(tasks: list[tuple[int, int]], boost: int, expected: str) -> None:
    """ostep-homework's mlfq.py -l 0,180,0:100,20,0 and -l 0,200,0:0,200,0 -B 50."""
    line = cpu(
        bound(MLFQ(boost=boost)),
        [Job(id=str(i), flow=str(i), seq=i, arrival=arrival, size=size) for i, (arrival, size) in enumerate(tasks)],
    )
    got = " ".join(f"{job}:{start}-{end}" for job, start, end in slices(line))
    assert got.startswith(expected)
    if boost:
        assert [max(at for at, job in enumerate(line) if job == name) + 1 for name in "01"] == [390, 400]


def periodic(task: str, wcet: int, period: int, until: int) -> list[Job]:
    return [
        Job(id=f"{task}{at // period}", flow=task, seq=at, arrival=at, size=wcet, deadline=at + period)
        for at in range(0, until, period)
    ]


def test_edf_meets_the_deadlines_that_rate_monotonic_misses() -> None:
    """SimSo 0.8.5 on (2,5) (4,7), U = 0.97: responses of successive jobs."""
    tasks = periodic("T1", 2, 5, 35) + periodic("T2", 4, 7, 35)
    line = cpu(bound(EDF()), tasks)
    ends = {job: end for job, _, end in slices(line)}
    response = {name: [ends[j.id] - j.arrival for j in tasks if j.flow == name] for name in ("T1", "T2")}
    assert response["T1"][:6] == [2, 3, 4, 2, 2, 3]
    assert response["T2"] == [6, 5, 6, 5, 4]


def test_stride_serves_three_two_one_as_abaabc() -> None:
    """TM-528: a client starts one stride behind; ties in listed order."""
    stride = bound(Stride(), {"A": 3, "B": 2, "C": 1})
    stride.slice = lambda job: 1  # type: ignore[method-assign, assignment]
    line = cpu(stride, [Job(id=name, flow=name, size=100) for name in "ABC"])
    assert "".join(line[:18]) == "ABAABC" * 3


def test_a_stride_client_that_sleeps_comes_back_with_what_it_was_owed() -> None:
    """TM-528: remain = pass - global pass survives; and no pair is ever more than a quantum from its shares."""
    stride = bound(Stride(), {"A": 3, "B": 2, "C": 1})
    stride.slice = lambda job: 1  # type: ignore[method-assign, assignment]
    line = cpu(stride, [Job(id=name, flow=name, size=240) for name in "ABC"], {"C": {5: 60, 9: 7}})
    a = b = 0
    for job in line[:300]:
        a, b = a + (job == "A"), b + (job == "B")
        assert abs(Fraction(2 * a - 3 * b, 5)) <= 1
    nap = [at for at, job in enumerate(line) if job == "C"]
    before, after = line[: nap[4] + 1], line[nap[5] : nap[8] + 1]
    assert before.count("C") * 6 == len(before)  # five of thirty
    assert abs(after.count("C") * 6 - len(after)) <= 6


PG93 = {
    "equal": ({"1": 1, "2": 1}, [4, 5, 7, 13], [3, 9, 11]),
    "double": ({"1": 1, "2": 2}, [4, 5, 9, 13], [3, 7, 11]),
}


@pytest.mark.parametrize("case", PG93)
def test_wfq_departs_as_in_parekh_and_gallager_figure_3(case: str) -> None:
    weights, first, second = PG93[case]
    packets = [
        Job(id=f"{flow}{i}", flow=flow, seq=at, arrival=at, size=size)
        for flow, sizes in (("1", [(1, 1), (2, 1), (3, 2), (11, 2)]), ("2", [(0, 3), (5, 2), (9, 2)]))
        for i, (at, size) in enumerate(sizes)
    ]
    left = link(bound(WFQ(), weights), packets)
    assert [at for flow, at in left if flow == "1"] == first
    assert [at for flow, at in left if flow == "2"] == second


def test_wfq_lets_short_packets_pass_where_they_would_end_first_in_the_fluid_system() -> None:
    left = link(bound(WFQ(), {"A": 1, "B": 1}), jobs(("A", 0, [8] * 3), ("B", 0, [2] * 7)))
    assert "".join(flow for flow, _ in left) == "BBBABBBBAA"
    assert [at for flow, at in left if flow == "B"] == [2, 4, 6, 16, 18, 20, 22]


def test_eevdf_keeps_the_lags_that_lwn_prints() -> None:
    """Corbet: three equal tasks, slices of 30: lags (-20, 10, 10), (-10, -10, 20), (0, 0, 0)."""
    eevdf = bound(EEVDF(), dict.fromkeys("ABC", 1))
    for name in "ABC":
        eevdf.arrive(Job(id=name, flow=name, slice=30), 0)
    seen = []
    for _ in range(3):
        job = pick(eevdf)
        eevdf.charge(job, 30, 0)
        seen.append([eevdf.lag(name) for name in "ABC"])
        eevdf.stop(job, 0, Stop.SLICE_USED)
        eevdf.arrive(job, 0, Cause.PREEMPTED)
    assert seen == [[-20, 10, 10], [-10, -10, 20], [0, 0, 0]]


def test_eevdf_alternates_two_clients_of_which_one_came_later() -> None:
    """The example of TR-95-22: weights 2 and 2, requests of 2 and 1, the second joins at 1 and wins ties."""
    eevdf = bound(EEVDF(), {"1st": 2, "0th": 2})
    eevdf.slice = lambda job: 1  # type: ignore[method-assign, assignment]
    line = cpu(
        eevdf,
        [
            Job(id="1", flow="1st", size=8, slice=2),
            Job(id="2", flow="0th", size=8, slice=1, arrival=1),
        ],
    )
    assert "".join(line[:10]) == "1212121212"


def test_an_eevdf_sleeper_gets_neither_credit_nor_penalty_for_sleeping() -> None:
    eevdf = bound(EEVDF(), {"A": 1, "B": 2, "C": 3})
    for name in "ABC":
        eevdf.arrive(Job(id=name, flow=name, slice=3), 0)
    job = pick(eevdf)
    eevdf.charge(job, 3, 0)
    lag = eevdf.lag(job.flow)
    eevdf.stop(job, 3, Stop.BLOCKED)
    assert sum(map(eevdf.lag, eevdf.virtual)) == 0
    for now in range(3, 60, 3):
        other = pick(eevdf, now)
        eevdf.charge(other, 3, now)
        eevdf.stop(other, now, Stop.SLICE_USED)
        eevdf.arrive(other, now, Cause.PREEMPTED)
    eevdf.arrive(job, 60, Cause.WOKEN)
    assert eevdf.lag(job.flow) == lag
    assert sum(map(eevdf.lag, eevdf.virtual)) == 0


def test_sfq_takes_a_paused_flow_back_level_with_the_others() -> None:
    """The article's 8.2, for a pause and a cap alike: a flow that could not be dispatched from banks nothing."""
    sfq = bound(SFQ(), {"A": 1, "B": 1})
    sfq.flow_open("B", False, 0)
    waiting = jobs(("A", 0, [1] * 12), ("B", 0, [1] * 6))
    for job in waiting:
        sfq.arrive(job, 0)
    for _ in range(6):
        job = pick(sfq)
        assert job.flow == "A"
        sfq.charge(job, 1, 0)
    sfq.flow_open("B", True, 0)
    assert serve(sfq, []) == "BABABABABABA"


def test_a_change_of_weight_holds_from_the_next_charge_on() -> None:
    sfq = bound(SFQ(), {"A": 1, "B": 1})
    for job in jobs(("A", 0, [6] * 4), ("B", 0, [6] * 9)):
        sfq.arrive(job, 0)
    assert [pick(sfq).flow] == ["A"]
    sfq.flow_changed(Flow(id="B", weight=Fraction(3)), 0)
    sfq.charge(jobs(("A", 0, [6]))[0], 6, 0)
    assert serve(sfq, []) == "BBBABBBABBBA"


@pytest.mark.parametrize("jump", [True, False])
def test_vtc_ends_level_where_the_artifact_overcharges(jump: bool) -> None:
    """Two clients, four requests of 4 + 4 tokens each in a pool of 24: 4 * (4 + 2 * 4) = 48 for either."""
    vtc = VTC()
    engine = Engine(vtc, pool=24, jump=jump)
    engine.run([Job(id=f"{flow}{i}", flow=flow, seq=i, size=4, slice=4) for flow in "AB" for i in range(4)])
    assert [vtc.counter(flow) for flow in "AB"] == [48, 48]


workloads = st.lists(
    st.tuples(st.sampled_from("ABC"), st.integers(0, 60), st.integers(1, 9), st.integers(1, 12)),
    min_size=1,
    max_size=25,
)


@given(workloads, st.integers(21, 50))
def test_vtc_decides_alike_whether_service_is_told_or_read(work: list[tuple[str, int, int, int]], pool: int) -> None:
    """An engine that jumps from event to event admits what one that charges every token admits, at the same step."""
    requests = [
        Job(id=f"{flow}{i}", flow=flow, seq=i, arrival=at, size=size, slice=output)
        for i, (flow, at, size, output) in enumerate(sorted(work, key=lambda one: one[1]))
    ]
    stepping, jumping = Engine(VTC(), pool, jump=False), Engine(VTC(), pool, jump=True)
    stepping.run(requests)
    jumping.run(requests)
    assert jumping.admitted == stepping.admitted
    assert [jumping.policy.counter(c) for c in "ABC"] == [stepping.policy.counter(c) for c in "ABC"]


@given(workloads, st.integers(21, 50), st.integers(1, 80), st.data())
def test_dlpm_quotas_stay_within_lemma_a1(
    work: list[tuple[str, int, int, int]], pool: int, quantum: int, data: st.DataObject
) -> None:
    """-U < q <= Q with U = w_e L_input + w_q M."""
    requests = [
        Job(id=f"{flow}{i}", flow=flow, seq=i, arrival=at, size=size, slice=output)
        for i, (flow, at, size, output) in enumerate(work)
    ]
    cached = {job.id: data.draw(st.integers(0, job.size or 0)) for job in requests}
    limit = max(job.size or 0 for job in requests) + 2 * pool

    class Watched(Engine):
        def seen(self) -> None:
            assert all(-limit < quota <= quantum for quota in dlpm.quota.values())

    dlpm = DLPM(quantum=quantum)
    engine = Watched(dlpm, pool, jump=False, cached=cached)
    engine.run(requests)
    assert len(engine.admitted) == len(requests)


def test_dlpm_with_endless_quota_is_longest_prefix_first() -> None:
    requests = [Job(id=str(i), flow="AB"[i % 2], seq=i, size=10, slice=5) for i in range(8)]
    cached = {str(i): i for i in range(8)}
    engine = Engine(DLPM(quantum=10**9), held(requests[0]), jump=False, cached=cached)
    engine.run(requests)
    assert "".join(job for _, job in engine.admitted) == "76543210"
