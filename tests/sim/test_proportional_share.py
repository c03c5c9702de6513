"""Lottery, stride, CFS and EEVDF on the CPU: published sequences, and what each guarantees about shares."""

import random
from fractions import Fraction
from itertools import combinations, pairwise
from math import gcd
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.timelines import by_task, job, run, simulate, ticks

from fairq.core.policy import Draw
from fairq.sim.cpu.scenario import LINUX_WEIGHTS

LONG = 10_000


def clients(*weights: int, burst: int = LONG) -> list[dict[str, Any]]:
    return [job("ABCDEFGH"[n], 0, burst, weight=weight) for n, weight in enumerate(weights)]


def first(count: int, policy: str, tasks: list[dict[str, Any]], **options: Any) -> str:
    """Whose the first `count` ticks are."""
    horizon = options.pop("horizon", count)
    return "".join(ticks(simulate(policy, tasks, horizon=horizon, **options)))[:count]


def shown(policy: str, tasks: list[dict[str, Any]], horizon: int, **options: Any) -> list[dict[str, Any]]:
    """What the policy shows at every tick, from 0."""
    return [step.show for step in run(policy, tasks, "ticks", horizon=horizon, **options).trace().steps()]


# Stride


def test_stride_with_the_papers_initial_pass() -> None:
    """Tickets 3:2:1, strides 2, 3, 6, pass starting at the stride."""
    assert first(24, "stride", clients(3, 2, 1)) == "ABAABC" * 4


def test_stride_starting_from_zero() -> None:
    assert first(24, "stride:initial=zero", clients(3, 2, 1)) == "ABCABA" * 4


def test_stride_as_ostep_tells_it() -> None:
    """Tickets 100, 50, 250, strides 100, 200, 40, pass starting at 0."""
    assert first(16, "stride:initial=zero", clients(100, 50, 250)) == "ABCCCACC" * 2


weight_lists = st.lists(st.integers(1, 9), min_size=2, max_size=5)


@given(weight_lists, st.integers(1, 3), st.sampled_from(["stride", "zero"]))
@settings(max_examples=50, deadline=None)
def test_any_two_clients_are_within_one_quantum_of_their_shares_at_any_time(
    weights: list[int], quantum: int, initial: str
) -> None:
    line = first(quantum * 60, f"stride:quantum={quantum},initial={initial}", clients(*weights))[::quantum]
    for (a, one), (b, two) in combinations(zip("ABCDE", weights, strict=False), 2):
        got = {a: 0, b: 0}
        for who in line:
            if who in got:
                got[who] += 1
                assert abs(got[a] - Fraction(sum(got.values()) * one, one + two)) <= 1


@given(weight_lists)
@settings(max_examples=40, deadline=None)
def test_over_a_period_each_client_gets_exactly_its_tickets(weights: list[int]) -> None:
    divisor = gcd(*weights)
    period = sum(weights) // divisor
    line = first(3 * period, "stride", clients(*weights))
    for start in (0, period, 2 * period):
        part = line[start : start + period]
        assert [part.count(name) for name, _ in zip("ABCDE", weights, strict=False)] == [w // divisor for w in weights]


def test_a_client_that_was_away_claims_nothing_for_it_and_forfeits_nothing() -> None:
    tasks = [job("A", 0, LONG), job("B", 0, LONG), {"id": "C", "bursts": [5, 300, LONG]}]
    line = first(600, "stride", tasks)
    back = line.index("C", 100)
    assert back >= 300
    for length in (3, 30, 150):
        assert abs(line[back : back + length].count("C") - length // 3) <= 1


def test_stride_pays_for_what_was_used_not_for_the_quantum() -> None:
    """Equal tickets, quantum 10; one client sleeps after every tick it gets and still gets what it can use."""
    tasks = [job("A", 0, LONG), job("B", 0, LONG, io={"every": 1, "for": 1})]
    result = first(2000, "stride:quantum=10", tasks)
    assert abs(result.count("B") - 2000 // 11) <= 2  # as often as A's quantum lets it


def test_a_client_with_new_tickets_keeps_what_it_is_ahead_by_in_service() -> None:
    tasks = clients(1, 1)
    change = [{"at": 30, "task": "A", "weight": 9}]
    line = first(130, "stride", tasks, changes=change)
    assert line[:30].count("A") == 15
    assert 89 <= line[30:130].count("A") <= 91


# Lottery


def ostep_draws(seed: int, before: int) -> Draw:
    """OSTEP's lottery.py: winner = int(random() * 1000001) modulo the tickets, after the calls that made its jobs."""
    generator = random.Random(seed)
    values = [generator.random() for _ in range(before + 100)][before:]
    return lambda n, stop: int(values[n] * 1000001) % stop


def test_lottery_draws_as_ostep_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """lottery.py -s 0 -j 3: jobs of (length, tickets) 0:(8,75) 1:(4,25) 2:(5,40)."""
    monkeypatch.setattr("fairq.sim.cpu.run.draws", lambda seed: ostep_draws(seed, before=6))
    tasks = [job("0", 0, 8, weight=75), job("1", 0, 4, weight=25), job("2", 0, 5, weight=40)]
    assert "".join(ticks(simulate("lottery", tasks))) == "10000201200202211"


def test_lottery_as_ostep_with_jobs_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """lottery.py -s 0 -l 10:100,10:1."""
    monkeypatch.setattr("fairq.sim.cpu.run.draws", lambda seed: ostep_draws(seed, before=0))
    tasks = [job("0", 0, 10, weight=100), job("1", 0, 10, weight=1)]
    assert by_task(simulate("lottery", tasks), "completion") == {"0": 10, "1": 20}


@pytest.mark.parametrize(("drawn", "winner"), [(15, "C"), (9, "A"), (10, "B"), (11, "B"), (12, "C"), (19, "E")])
def test_the_winner_of_the_papers_figure(monkeypatch: pytest.MonkeyPatch, drawn: int, winner: str) -> None:
    """Tickets 10, 2, 5, 1, 2: the cumulative sums are 10, 12, 17, 18, 20, and number 15 wins for the third client."""
    monkeypatch.setattr("fairq.sim.cpu.run.draws", lambda seed: lambda n, stop: drawn % stop)
    assert first(1, "lottery", clients(10, 2, 5, 1, 2)) == winner


def test_the_cumulative_sum_must_exceed_the_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairq.sim.cpu.run.draws", lambda seed: lambda n, stop: n % stop)
    assert first(10, "lottery", clients(5, 3, 2)) == "AAAAABBBCC"


@pytest.mark.parametrize("seed", range(4))
def test_wins_are_binomial(seed: int) -> None:
    draws, weights = 4000, (5, 3, 2)
    line = first(draws, "lottery", clients(*weights), seed=seed)
    for name, weight in zip("ABC", weights, strict=True):
        share = weight / 10
        assert abs(line.count(name) - draws * share) <= 4 * (draws * share * (1 - share)) ** 0.5
    chi2 = sum((line.count(n) - draws * w / 10) ** 2 / (draws * w / 10) for n, w in zip("ABC", weights, strict=True))
    assert 0 < chi2 < 13.8  # the 0.1 % point of 2 degrees of freedom


def test_a_seed_repeats_a_lottery_and_another_one_does_not() -> None:
    assert first(200, "lottery", clients(1, 1), seed=1) == first(200, "lottery", clients(1, 1), seed=1)
    assert first(200, "lottery", clients(1, 1), seed=1) != first(200, "lottery", clients(1, 1), seed=2)


def test_lottery_varies_where_stride_does_not() -> None:
    """Twenty windows of 100 quanta, 3:1."""

    def spread(policy: str) -> float:
        line = first(2000, policy, clients(3, 1))
        got = [line[start : start + 100].count("A") for start in range(0, 2000, 100)]
        return max(got) - min(got)

    assert spread("stride") == 0
    assert spread("lottery") > 5


def test_a_blocked_client_lends_its_tickets_to_whoever_it_waits_for() -> None:
    lock = {"resource": "r", "at": 0, "for": 50}
    tasks = [
        job("holder", 0, 60, weight=1, locks=[lock]),
        job("rich", 1, 60, weight=98, locks=[lock | {"for": 1}]),
        job("other", 1, LONG, weight=1),
    ]
    alone = shown("lottery:transfer=off", tasks, horizon=400)
    lent = shown("lottery", tasks, horizon=400)
    assert {"holder": "99", "other": "1"} in [show["tickets"] for show in lent]
    assert not any(show["tickets"].get("holder") == "99" for show in alone)
    ends = {
        t: by_task(simulate(f"lottery:transfer={t}", tasks, horizon=400), "completion")["rich"] for t in ("on", "off")
    }
    assert ends["on"] < ends["off"]


def test_a_client_that_leaves_part_of_its_quantum_is_compensated() -> None:
    """Waldspurger and Weihl: having used a fifth of its quantum it competes with five times its tickets."""
    tasks = [job("A", 0, LONG), job("B", 0, LONG, io={"every": 2, "for": 1})]
    shows = shown("lottery:quantum=10", tasks, horizon=300)
    assert {show["tickets"]["B"] for show in shows if "B" in show["tickets"]} == {"1", "5"}
    with_, without = (first(6000, f"lottery:quantum=10,compensation={c}", tasks) for c in ("on", "off"))
    assert with_.count("B") > 1.35 * without.count("B")


# CFS


def test_linux_weights() -> None:
    assert len(LINUX_WEIGHTS) == 40
    inverse = [2**32 // weight for weight in LINUX_WEIGHTS]  # kernel: sched_prio_to_wmult
    assert [inverse[0], inverse[1], inverse[20]] == [48388, 59856, 4194304]
    assert [LINUX_WEIGHTS[nice + 20] for nice in (-20, -10, -1, 0, 1, 5, 10, 19)] == [
        *(88761, 9548, 1277, 1024, 820, 335, 110, 15)
    ]
    assert all(1.18 < one / two < 1.32 for one, two in pairwise(LINUX_WEIGHTS))


@pytest.mark.parametrize("policy", ["cfs", "eevdf", "eevdf:form=1995", "stride", "lottery"])
def test_nice_0_and_nice_5_share_three_to_one(policy: str) -> None:
    """1024 : 335, that is 75.35 % and 24.65 %."""
    tasks = [job("A", 0, LONG, nice=0), job("B", 0, LONG, nice=5)]
    share = first(8000, policy, tasks).count("A") / 8000
    assert abs(share - 0.7535) < (0.02 if policy == "lottery" else 0.002)


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=5), st.integers(2, 12))
@settings(max_examples=30, deadline=None)
def test_under_cfs_min_vruntime_never_goes_back_and_the_ready_stay_together(nices: list[int], latency: int) -> None:
    tasks = [job("ABCDE"[n], 0, LONG, nice=nice) for n, nice in enumerate(nices)]
    weights = [Fraction(LINUX_WEIGHTS[nice + 20], 1024) for nice in nices]
    period = max(Fraction(latency), len(nices) * Fraction(3, 4))
    slice_worth = max(max(int(period * w / sum(weights)), 1) / w for w in weights)
    before = Fraction(0)
    for show in shown(f"cfs:latency={latency},debit=off", tasks, horizon=150):
        least = Fraction(show["min_vruntime"])
        assert least >= before
        before = least
        vruntime = [Fraction(v) for v in show["vruntime"].values()]
        assert max(vruntime) - min(vruntime) <= slice_worth


def test_of_equal_vruntimes_cfs_takes_the_one_that_has_been_in_the_tree_for_longer() -> None:
    """kernel/sched/fair.c puts an equal key to the right of those that are there, whatever the clients are called."""
    for early, late in ("AB", "BA"):
        # When `early` has had its slice of 3 its vruntime is `late`'s entrance fee, and `late` is in the tree already.
        line = first(12, "cfs", [job(early, 0, LONG), job(late, 0, LONG)])
        assert line == (early * 3 + late * 3) * 2


def test_under_cfs_a_sleeper_gains_at_most_half_a_latency() -> None:
    tasks = [job("A", 0, LONG), job("B", 0, LONG), {"id": "S", "bursts": [1, 500, LONG]}]
    for latency in (6, 20, 60):
        shows = shown(f"cfs:latency={latency}", tasks, horizon=560)
        back = next(show for show in shows[500:] if "S" in show["vruntime"])
        assert Fraction(back["vruntime"]["S"]) == Fraction(back["min_vruntime"]) - Fraction(latency, 2)
    line = first(700, "cfs:latency=60", tasks)
    woken = line.index("S", 400)
    assert line[woken - 1 : woken + 20].count("S") >= 19  # it runs at once, and keeps on


def test_more_clients_make_cfs_slices_shorter_until_the_granularity() -> None:
    def longest(count: int) -> int:
        line = first(400, "cfs:latency=24,granularity=3", [job(f"{n:02}", 0, LONG) for n in range(count)])
        names = [line[at : at + 2] for at in range(0, len(line), 2)]
        return max(len(part) for part in _runs(names)[count:-1])

    assert [longest(count) for count in (2, 4, 8, 16)] == [12, 6, 3, 3]


def _runs(line: list[str]) -> list[list[str]]:
    parts: list[list[str]] = []
    for who in line:
        if parts and parts[-1][0] == who:
            parts[-1].append(who)
        else:
            parts.append([who])
    return parts


# EEVDF


def lags(show: dict[str, Any]) -> list[Fraction]:
    return [Fraction(lag) for lag in show["lag"].values()]


def test_lags_of_three_equal_tasks_as_lwn_tells_it() -> None:
    shows = shown("eevdf:request=30", clients(1, 1, 1, burst=90), horizon=100)
    assert [lags(shows[at]) for at in (30, 60, 90)] == [[-20, 10, 10], [-10, -10, 20], [0, 0, 0]]


def test_the_1995_papers_example() -> None:
    """Two clients of weight 2: requests of 2 from time 0, of 1 from time 1; quantum 1; ties go to the second."""
    tasks = [job("b", 0, LONG, weight=2, slice=2), job("a", 1, LONG, weight=2, slice=1)]
    assert first(8, "eevdf:form=1995", tasks) == "babababa"
    shows = shown("eevdf:form=1995", tasks, horizon=6)
    assert [Fraction(show["virtual_time"]) for show in shows[:6]] == [
        *(0, Fraction(1, 2), Fraction(3, 4), 1, Fraction(5, 4), Fraction(3, 2))
    ]
    assert [Fraction(show["deadline"]["b"]) for show in (shows[0], shows[3], shows[5])] == [1, 2, 2]
    assert [Fraction(show["deadline"]["a"]) for show in (shows[1], shows[2], shows[4])] == [1, Fraction(3, 2), 2]


@st.composite
def steady(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Clients that come, each with its weight and request, and stay."""
    return [
        job("ABCDE"[n], draw(st.integers(0, 6)), LONG, weight=draw(st.integers(1, 8)), slice=draw(st.integers(1, 6)))
        for n in range(draw(st.integers(2, 5)))
    ]


FORMS = ["form=1995", "form=linux", "form=linux,parity=off"]


@given(steady(), st.sampled_from(FORMS), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_lags_stay_within_the_longest_request(tasks: list[dict[str, Any]], form: str, quantum: int) -> None:
    """TR-95-22, theorem 1: -r_max < lag < max(r_max, q); and all lags add up to nothing."""
    longest = max(task["slice"] for task in tasks)
    slack = Fraction(len(tasks) * 8, 1 << 20)  # of the joins, which are on a grid
    for show in shown(f"eevdf:{form},quantum={quantum}", tasks, horizon=120):
        assert all(-longest - slack < lag < max(longest, quantum) + slack for lag in lags(show))
        assert sum(lags(show)) == 0


@given(steady(), st.sampled_from(FORMS[1:]))
@settings(max_examples=25, deadline=None)
def test_nobody_is_chosen_who_is_ahead_of_its_share(tasks: list[dict[str, Any]], form: str) -> None:
    for step in run(f"eevdf:{form}", tasks, "ticks", horizon=100).trace().steps():
        if step.why:
            v, mean = (Fraction(step.why.values[key]) for key in ("v", "virtual_time"))
            assert v <= mean


def test_a_short_request_is_served_sooner_and_gets_no_more() -> None:
    """The same share for all; the one that asks for little at a time waits less between its turns."""
    tasks = [job("A", 0, LONG, slice=12), job("B", 0, LONG, slice=12), job("C", 0, LONG, slice=3)]
    line = first(3600, "eevdf", tasks)
    assert [abs(line.count(name) - 1200) <= 12 for name in "ABC"] == [True] * 3

    def longest_wait(name: str) -> int:
        return max(len(part) for part in "".join("x" if who == name else "." for who in line).split("x"))

    assert longest_wait("C") < longest_wait("A")


def test_a_sleeper_comes_back_with_the_lag_it_left_with() -> None:
    """It cannot shed a debt by a nap, nor earn by sleeping (Linux's PLACE_LAG)."""
    tasks = [{"id": "0", "bursts": [3, 40, LONG]}, job("A", 0, LONG), job("B", 0, LONG)]
    shows = shown("eevdf", tasks, horizon=100)
    assert lags(shows[2]) == [Fraction(2, 3) - 2, Fraction(2, 3), Fraction(2, 3)]
    assert "0" not in shows[3]["lag"]
    back = next(show for show in shows[40:] if "0" in show["lag"])
    owed = 1 - 3  # it left after three ticks of three, of which one was its share
    assert abs(Fraction(back["lag"]["0"]) - owed) <= Fraction(1, 1 << 20)


sharers = st.lists(
    st.fixed_dictionaries(
        {
            "arrival": st.integers(0, 6),
            "bursts": st.lists(st.integers(1, 6), min_size=1, max_size=3).filter(lambda bursts: len(bursts) != 2),
            "slice": st.integers(1, 4),
            "weight": st.fractions(Fraction(1, 2), 4, max_denominator=2),
        }
    ),
    min_size=2,
    max_size=4,
)


@given(
    sharers, st.sampled_from([3, Fraction(5, 7), Fraction(1, 6)]), st.sampled_from(["", "form=1995", "parity=false"])
)
@settings(max_examples=60, deadline=None)
def test_only_the_proportions_of_weights_matter_to_eevdf(
    given: list[dict[str, Any]], factor: Fraction, option: str
) -> None:
    """Lags of 0 and equal deadlines are what they are, whatever the mean is divided by."""

    def schedule(factor: Fraction | int) -> list[str]:
        tasks = [{**one, "id": "ABCD"[n], "weight": str(one["weight"] * factor)} for n, one in enumerate(given)]
        return ticks(simulate(":".join(filter(None, ["eevdf", option])), tasks))

    assert schedule(factor) == schedule(1)
