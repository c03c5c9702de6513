"""Random traffic for a `Recording`: everything that can happen to a pool, in an order that a seed decides."""

from fractions import Fraction
from random import Random

from tests.ledger.recording import FAR, Recording

from fairq.core import events as ev
from fairq.core.cost import CostModel, Source, Usage
from fairq.core.job import Flow
from fairq.core.lifecycle import Outcome, State
from fairq.core.lines import encode
from fairq.core.setup import Setup
from fairq.ledger.segment import Opened

TENANTS = "abcdef"
WEIGHTS = (Fraction(1), Fraction(2), Fraction(1, 3), Fraction(5, 2))
FAILURES = (Outcome.FAILED_CONNECT, Outcome.FAILED_TIMEOUT, Outcome.FAILED_UPSTREAM)
ENDS = (Outcome.COMPLETED, Outcome.FAILED_MIDSTREAM, Outcome.CANCELLED_RUNNING, Outcome.STALLED_CLIENT)


def setup(policy: str = "sfq", settlement: str = "fixed", patience: int = FAR) -> Setup:
    flows = [Flow(id="a", weight=Fraction(3)), Flow(id="b", max_inflight=2), Flow(id="c", weight=Fraction(1, 2))]
    cost = CostModel(context_length=5000, cached_discount=Fraction(1, 2), default_output=50)
    return Setup(policy=policy, settlement=settlement, flows=flows, cost=cost, wait_for_upstream=patience)


class Traffic(Recording):
    """`segments`: what was recorded, cut wherever `rotate` was called. Requests of tenants d.. are not configured."""

    def __init__(self, seed: int, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.random = Random(seed)
        self.segments: list[list[bytes]] = [[encode(self.head) + b"\n"]]
        self._cut = 0
        self.upstream(2, "u")
        self.upstream(1, "v")

    def rotate(self) -> None:
        from msgspec.structs import replace

        self.segments[-1] += self.lines[self._cut :]
        self._cut = len(self.lines)
        self.segments.append([encode(replace(self.make_head(), opened=Opened.ROTATED)) + b"\n"])

    def end(self) -> list[list[bytes]]:
        self.segments[-1] += self.lines[self._cut :]
        return self.segments

    def step(self) -> None:
        random = self.random
        self.now += random.choice((0, 0, 1, 7, 1000))
        due = self.scheduler.next_deadline()
        if due is not None and due <= self.now:
            self.emit(ev.Tick)
        kinds = (self._arrival, self._end, self._failure, self._departure, self._operator, self._server)
        random.choices(kinds, weights=(40, 30, 6, 8, 8, 4))[0]()

    def _arrival(self) -> None:
        random = self.random
        for _ in range(random.choice((1, 1, 1, 6))):
            self.admit(
                random.choice(TENANTS),
                random.choice((None, None, None, random.randrange(1, 2000))),
                model=random.choice(("m", "n")),
                input_bytes=random.randrange(1, 4000),
                output_limit=random.choice((None, 10, 400)),
                choices=random.choice((1, 1, 3)),
                expires=self.now + random.choice((FAR, FAR, 500)),
            )

    def _some(self, *states: State) -> str | None:
        ids = [id_ for id_, entry in self.scheduler.jobs.items() if entry.state in states]
        return self.random.choice(ids) if ids else None

    def _end(self) -> None:
        random = self.random
        for _ in range(random.choice((1, 1, 3))):
            id_ = self._some(State.RUNNING, State.DELIVERING)
            if id_ is None:
                return
            if random.random() < 0.2 and self.scheduler.jobs[id_].state is State.RUNNING:
                self.emit(ev.SlotFreed, id=id_)
                continue
            prompt = random.randrange(9000)  # more than fits, at times: to be clipped
            usage = Usage(prompt, random.randrange(9000), random.randrange(prompt + 1), random.choice(tuple(Source)))
            first, last = sorted((self.now - random.randrange(50), self.now - random.randrange(50)))
            self.emit(
                ev.Finished,
                id=id_,
                outcome=random.choice((*ENDS, *FAILURES)),
                usage=usage,
                status=200,
                first_byte=max(first, 1),
                last_byte=max(last, 1),
                finish="stop",
            )

    def _failure(self) -> None:
        id_ = self._some(State.RUNNING)
        if id_ is not None:
            self.emit(ev.AttemptFailed, id=id_, outcome=self.random.choice(FAILURES))

    def _departure(self) -> None:
        id_ = self._some(*State)
        if id_ is not None:
            kinds = (ev.Cancelled, ev.Evicted) if self.scheduler.jobs[id_].state is State.WAITING else (ev.Cancelled,)
            self.emit(self.random.choice(kinds), id=id_)

    def _operator(self) -> None:
        random = self.random
        match random.randrange(5):
            case 0:
                self.emit(ev.Paused, tenant=random.choice(TENANTS))
            case 1 | 2:
                self.emit(ev.Resumed, tenant=random.choice(TENANTS))
            case 3:
                flows = [
                    Flow(id=name, weight=random.choice(WEIGHTS), max_inflight=random.choice((None, None, 1, 3)))
                    for name in random.sample(TENANTS, 3)
                ]
                default = Flow(id="", weight=random.choice(WEIGHTS))
                self.emit(
                    ev.Reconfigured, flows=flows, default_flow=default, wait_for_upstream=FAR, cost=self.setup.cost
                )
            case _:
                self.emit(ev.CalibrationChanged, alpha=random.choice(WEIGHTS), beta=random.choice(WEIGHTS))

    def _server(self) -> None:
        random = self.random
        name = random.choice("uvw")
        if name in self.scheduler.upstreams and random.random() < 0.2:
            self.emit(ev.UpstreamRemoved, upstream=name)
        else:
            well, drains = random.random() < 0.8, random.random() < 0.2
            self.upstream(random.choice((1, 2, 4)), name, healthy=well, draining=drains)
