"""Time of one decision, and of a request's whole way through the scheduler, at 10, 1,000 and 100,000 tenants.

    python -m bench scheduler [--rounds 50] [--requests 250]

Every tenant has work waiting all the time. *path*: the event that admits a request, the one that ends another, the
dispatch that follows with its reason, and the ledger lines of all of it; one settlement after the other. *decision*:
what the policy alone does for a dispatch (select, commit, charge). The best of rounds is shown, since a shared machine
only ever adds time, and its share of the limit where there is one.
"""

import argparse
import gc
import sys
import time
from collections import deque
from collections.abc import Callable

from fairq import placements, policies
from fairq.core import events as ev
from fairq.core.commands import Dispatch
from fairq.core.cost import Source, Usage
from fairq.core.job import Request
from fairq.core.lifecycle import Outcome
from fairq.core.lines import encode_lines
from fairq.core.number import fixed
from fairq.core.policy import ROOMY, Layer, Pick
from fairq.core.scheduler import Scheduler
from fairq.core.setup import Setup

TENANTS = (10, 1_000, 100_000)
SLOTS = 64
DEPTH = 2  # requests that each tenant has waiting
LIMITS = {("path", 1_000): 20.0, ("decision", 1_000): 2.0, ("decision", 100_000): 8.0}  # us
SECOND = 1_000_000_000
COMPLETED, UPSTREAM = Outcome.COMPLETED, Source.UPSTREAM


def names_of(tenants: int) -> list[str]:
    """One text per tenant, as a gateway has it from its keys."""
    return [f"tenant-{tenant}" for tenant in range(tenants)]


def request_of(tenant: str, seq: int) -> Request:
    return Request(
        id=f"{seq:016x}",
        flow=tenant,
        seq=seq,
        arrival=seq * 1000,
        model="m",
        input_bytes=1024,
        extra_tokens=8,
        output_limit=64,
        expires=seq * 1000 + 60 * SECOND,
    )


class Path:
    """A pool under full load: whoever is served asks again."""

    def __init__(self, tenants: int, settlement: str) -> None:
        setup = Setup(settlement=settlement)
        self.scheduler = Scheduler(setup, policies.make(setup.policy), placements.make(setup.placement))
        self.running: deque[Dispatch] = deque()
        self.requests = self.bytes = 0
        self.send(ev.UpstreamChanged(seq=1, time=0, upstream="gpu0", slots=SLOTS, healthy=True))
        names = names_of(tenants)
        for tenant in [*names * DEPTH, *(names[slot % tenants] for slot in range(SLOTS))]:
            self.admit(tenant)

    def send(self, event: ev.AnyEvent) -> None:
        commands = self.scheduler.handle(event)
        self.bytes += len(encode_lines([event, *commands]))
        for command in commands:
            if type(command) is Dispatch:
                self.running.append(command)

    def admit(self, tenant: str) -> None:
        self.requests += 1
        request = request_of(tenant, self.requests)
        self.send(ev.Admitted(seq=self.scheduler.seq + 1, time=request.arrival, request=request))

    def run(self, requests: int) -> None:
        scheduler, running = self.scheduler, self.running
        for _ in range(requests):
            done, now = running.popleft(), scheduler.now
            self.send(
                ev.Finished(
                    seq=scheduler.seq + 1,
                    time=now,
                    id=done.id,
                    outcome=COMPLETED,
                    usage=Usage(256, self.requests % 100 + 1, 0, UPSTREAM),
                    status=200,
                    first_byte=now,
                    last_byte=now,
                    finish="stop",
                )
            )
            self.admit(done.tenant)


class Decisions:
    """The policy alone, in a layer like the gateway's."""

    def __init__(self, tenants: int, policy: str, count: int) -> None:
        self.policy = policies.make(policy)
        self.policy.bind(Layer(name="bench", normalize=fixed, rebase=True))
        names = names_of(tenants)
        for seq in range(max(DEPTH * tenants, count)):
            self.policy.arrive(request_of(names[seq % tenants], seq), 0)

    def run(self, decisions: int) -> None:
        policy = self.policy
        for _ in range(decisions):
            decision = policy.select(0, ROOMY)
            assert type(decision) is Pick
            policy.commit(decision, 0)
            policy.charge(decision.job, 100, 0)


def best(make: Callable[[], Callable[[int], None]], rounds: int, count: int) -> float:
    """us each."""
    run = make()
    run(count // 10)
    gc.collect()
    gc.freeze()  # what a long-lived process does too: see fairq.cli.serving
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        run(count)
        taken.append(time.process_time() - start)
    gc.unfreeze()
    return min(taken) / count * 1e6


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench scheduler", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--requests", type=int, default=250, help="per round: short ones find a quiet moment")
    given = parser.parse_args(arguments)
    print(f"{'CPU us, best of rounds':28}" + "".join(f"{tenants:>20,}" for tenants in TENANTS) + "  tenants")
    for settlement in ("fixed", "forward"):
        _show("path", settlement, given, lambda n, name=settlement: Path(n, name).run, given.requests)  # type: ignore[misc]
    enough = given.requests * (given.rounds + 2)
    _show("decision", "sfq", given, lambda n: Decisions(n, "sfq", enough).run, given.requests)


def _show(
    what: str, name: str, given: argparse.Namespace, make: Callable[[int], Callable[[int], None]], count: int
) -> None:
    row = f"{what + ' (' + name + ')':28}"
    for tenants in TENANTS:
        us = best(lambda tenants=tenants: make(tenants), given.rounds, count)  # type: ignore[misc]
        limit = LIMITS.get((what, tenants))
        share = f"{us / limit:5.0%} of {limit:g}" if limit else ""
        row += f"{us:8.2f}{share:>12}"
    print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
