"""How a link goes through its packets: whole ones, or all flows at once as a fluid. All times are in ticks.

At one instant: the end of a transmission with its charge, arrivals, the next choice.
"""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from fairq.core.errors import ConfigError
from fairq.core.job import Job
from fairq.core.number import Number
from fairq.core.policy import ROOMY, Policy, Stop
from fairq.policies.gps import GPS
from fairq.sim.link.stalls import Stalls
from fairq.sim.trace import Tape

Departure = tuple[Job, Number | None, Number]
"""A packet, when the first and when the last of it was sent; None from a fluid, which sends all at once."""

Arrival = tuple[Any, Job]
"""When, and what."""

END: Arrival = (inf, Job(id=""))
WIDEST = 1 << 14
"""Bits of a fluid's rationals. A run with more would go on for very long."""

Enter = Callable[[Job, Any], None]
Leave = Callable[[Job], None]


def send(
    policy: Policy,
    arrivals: Iterable[Arrival],
    pace: int,
    enter: Enter | None = None,
    leave: Leave | None = None,
    stalls: Stalls | None = None,
) -> list[Departure]:
    """Whole packets, one after the other, `pace` ticks for each unit of size.

    enter, leave  instead of `policy.arrive`, and when a packet leaves its queue: for buffers
    """
    take, charge, enter = policy.take, policy.charge, enter or policy.arrive
    kind = type(policy.policy if isinstance(policy, Tape) else policy)
    told = kind.stop is not Policy.stop
    timed = kind.next_change is not Policy.next_change
    coming = iter(arrivals)
    at, job = next(coming, END)
    now: Any = 0
    departures: list[Departure] = []
    while True:
        while at <= now:
            enter(job, at)
            at, job = next(coming, END)
        if stalls and (works := stalls.works_from(now)) > now:
            now = works
            continue
        if timed and (due := policy.next_change(now, ROOMY)) is not None and due <= now:
            policy.timer(now)
        sent = take(now, ROOMY)
        if sent is None:
            if at == inf:
                break
            now = at
            continue
        if leave:
            leave(sent)
        size: int = sent.size  # type: ignore[assignment]
        finish = now + size * pace
        if stalls:
            finish = stalls.when(stalls.worked(now) + size * pace)
        while at < finish:
            enter(job, at)
            at, job = next(coming, END)
        charge(sent, size, finish)
        if told:
            policy.stop(sent, finish, Stop.FINISHED)
        departures.append((sent, now, finish))
        now = finish
    if policy.waiting():
        raise ConfigError("policy", policy.name, "lets packets wait; a link cannot")
    return departures


def pour(
    policy: Policy,
    fluid: GPS,
    arrivals: Iterable[Arrival],
    enter: Enter | None = None,
    leave: Leave | None = None,
    stalls: Stalls | None = None,
) -> list[Departure]:
    """All backlogged flows at once, as `fluid` says; `policy` is it, or a tape around it.

    Time goes on only while the link works, so a stall is a moment to the fluid. Raises ConfigError when a busy period
    is so long that its times cannot be kept exact.
    """
    enter = enter or policy.arrive
    departures: list[Departure] = []
    coming = iter(arrivals)
    at, job = next(coming, END)
    while at != inf or fluid.waiting():
        worked: Any = stalls.worked(at) if stalls and at != inf else at
        end: Any = fluid.next_end() if fluid.waiting() else inf
        if end > worked:
            enter(job, worked)
            at, job = next(coming, END)
            continue
        if max(end.denominator, fluid.fluid.scale).bit_length() > WIDEST:
            rule = f"exact times need more than {WIDEST} bits after {len(departures)} packets; give it fewer packets"
            raise ConfigError("policy", policy.name, rule)
        done = policy.take(end, ROOMY)
        assert done is not None
        if leave:
            leave(done)
        policy.charge(done, done.size or 0, end)
        departures.append((done, None, stalls.when(end) if stalls else end))
    return departures
