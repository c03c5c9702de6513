"""How a link goes through its packets: whole ones, or all flows at once as a fluid. All times are in ticks.

At one instant: the end of a transmission with its charge, arrivals, the next choice.
"""

from collections.abc import Sequence
from math import inf
from typing import Any

from fairq.core.errors import ConfigError
from fairq.core.job import Job
from fairq.core.number import Number
from fairq.core.policy import ROOMY, Policy, Stop
from fairq.policies.gps import GPS
from fairq.sim.link.room import Room
from fairq.sim.link.stalls import Stalls
from fairq.sim.trace import Tape

Departure = tuple[Job, Number | None, Number]
"""A packet, when the first and when the last of it was sent; None from a fluid, which sends all at once."""

END = Job(id="", arrival=1 << 200)
"""Comes after all that arrive, and after the last is sent."""

WIDEST = 1 << 14
"""Bits of a fluid's rationals. A run with more would go on for very long."""


def send(
    policy: Policy, jobs: Sequence[Job], tick: int, pace: int, room: Room | None = None, stalls: Stalls | None = None
) -> list[Departure]:
    """Whole packets, one after the other, `pace` ticks for each unit of size.

    jobs  in order of arrival, of which `tick` ticks make a unit
    room  the buffers, where they are limited
    """
    kind = type(policy.policy if isinstance(policy, Tape) else policy)
    told = kind.stop is not Policy.stop
    timed = kind.next_change is not Policy.next_change
    coming = [*jobs, END]
    seen = 0
    job = coming[0]
    at: Any = job.arrival * tick
    now: Any = 0
    departures: list[Departure] = []
    while True:
        while at <= now:
            if room:
                room.enter(job, at)
            else:
                policy.arrive(job, at)
            seen += 1
            job = coming[seen]
            at = job.arrival * tick
        if stalls and (works := stalls.works_from(now)) > now:
            now = works
            continue
        if timed and (due := policy.next_change(now, ROOMY)) is not None and due <= now:
            policy.timer(now)
        sent = policy.take(now, ROOMY)
        if sent is None:
            if job is END:
                break
            now = at
            continue
        if room:
            room.leave(sent)
        size: int = sent.size  # type: ignore[assignment]
        finish = now + size * pace
        if stalls:
            finish = stalls.when(stalls.worked(now) + size * pace)
        while at < finish:
            if room:
                room.enter(job, at)
            else:
                policy.arrive(job, at)
            seen += 1
            job = coming[seen]
            at = job.arrival * tick
        policy.charge(sent, size, finish)
        if told:
            policy.stop(sent, finish, Stop.FINISHED)
        departures.append((sent, now, finish))
        now = finish
    if policy.waiting():
        raise ConfigError("policy", policy.name, "lets packets wait; a link cannot")
    return departures


def pour(
    policy: Policy, fluid: GPS, jobs: Sequence[Job], tick: int, room: Room | None = None, stalls: Stalls | None = None
) -> list[Departure]:
    """All backlogged flows at once, as `fluid` says; `policy` is it, or a tape around it.

    Time goes on only while the link works, so a stall is a moment to the fluid. Raises ConfigError when a busy period
    is so long that its times cannot be kept exact.
    """
    enter = room.enter if room else policy.arrive
    departures: list[Departure] = []
    coming = iter([*jobs, END])
    job = next(coming)
    while job is not END or fluid.waiting():
        at: Any = job.arrival * tick
        worked: Any = stalls.worked(at) if stalls and job is not END else at
        end: Any = fluid.next_end() if fluid.waiting() else inf
        if end > worked:
            enter(job, worked)
            job = next(coming)
            continue
        if max(end.denominator, fluid.fluid.scale).bit_length() > WIDEST:
            rule = f"exact times need more than {WIDEST} bits after {len(departures)} packets; give it fewer packets"
            raise ConfigError("policy", policy.name, rule)
        done = policy.take(end, ROOMY)
        assert done is not None
        if room:
            room.leave(done)
        policy.charge(done, done.size or 0, end)
        departures.append((done, None, stalls.when(end) if stalls else end))
    return departures
