"""An engine with slots whose time is virtual: a request takes one tick per output token, and the test moves time.

A request says itself how many tokens it will use: `asks(output=100, prompt=20)` is its body. The gateway is not told:
the body has no limit, unless the test adds one. Decisions depend on the order of events alone, so a run with this
engine is exact however slow the machine is.

    async with backlogged([("A", asks(500)), ("B", asks(50))] * 10, slots=2) as engine:
        await engine.run(15)        # fifteen requests end, each at its tick
        assert told(engine.w).fair
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.gateway.harness import CHAT, World, chat, world
from tests.oracle import JointService
from wire import Reply, ask, request

from fairq.core import events as ev
from fairq.core.commands import Dispatch, Ended
from fairq.testing.clock import eventually
from fairq.testing.connection import Received
from fairq.testing.replies import Gate, Script, completion, usage

TRUSTING = "identity: {trusted_tenant_headers_from: [127.0.0.1/32], anonymous: allow}\n"
TOKENS = "cost: {alpha: 0, beta: 1, default_output: 100, context_length: 200000}\n"  # a request costs its output
OPENER = "opener"

Asked = tuple[str, dict[str, Any]]  # tenant, body


def asks(output: int, prompt: int = 1, **fields: Any) -> dict[str, Any]:
    """The body of a request that will use so many tokens."""
    return chat(f"{prompt} {output}", **fields)


def answer(seen: Received) -> Script:
    prompt, output = map(int, seen.json["messages"][0]["content"].split()[:2])
    return [Gate(seen.header("x-request-id") or ""), *completion(1, counts=usage(prompt, output))]


class Engine:
    """What runs at the upstream, and the clients.

    headers  how a client says who it is, by tenant
    now      in ticks; `started` by request id, TENANT-NUMBER
    """

    def __init__(self, w: World, headers: Callable[[str], dict[str, str]]) -> None:
        self.w, self._headers = w, headers
        self.now = 0
        self.started: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._length: dict[str, int] = {}
        self._replies: list[asyncio.Task[Reply]] = []
        self._read = 0  # lines

    async def send(self, asked: Iterable[Asked]) -> list[str]:
        """Each after the one before has been admitted or refused, so that their order is certain. Returns their ids."""
        sent = []
        for tenant, body in asked:
            id_ = f"{tenant}-{len(self._length)}"
            self._length[id_] = int(body["messages"][0]["content"].split()[1])
            data = request(CHAT, body, x_request_id=id_, **self._headers(tenant))
            before = self.w.pool.scheduler.seq
            self._replies.append(asyncio.create_task(ask(self.w.gateway.server.port, data)))
            await eventually(lambda before=before: self.w.pool.scheduler.seq > before)
            sent.append(id_)
        return sent

    async def run(self, count: int | None = None) -> None:
        """Until so many requests have ended, or all have."""
        while count is None or count > 0:
            self._start_dispatched()
            if not self._ends:
                return
            id_ = min(self._ends, key=lambda each: self._ends[each])  # of equal ones the first to be dispatched
            self.now = self._ends.pop(id_)
            await self.w.upstream.release(id_)
            await eventually(lambda id_=id_: id_ not in self.w.pool.scheduler.jobs)
            count = None if count is None else count - 1

    async def over(self) -> list[Reply]:
        """Everything has run to its end. The replies, in order of sending."""
        await self.run()
        replies = await asyncio.gather(*self._replies)
        await self.w.idle()
        return replies

    def _start_dispatched(self) -> None:
        lines = self.w.lines.all
        for line in lines[self._read :]:
            if isinstance(line, Dispatch):
                self.started[line.id] = self.now
                self._ends[line.id] = self.now + self._length[line.id]
        self._read = len(lines)


@asynccontextmanager
async def backlogged(
    asked: Iterable[Asked],
    config: str = TOKENS,
    *,
    slots: int = 1,
    policy: str = "sfq",
    settlement: str = "fixed",
    headers: Callable[[str], dict[str, str]] = lambda tenant: {"x-fairq-tenant": tenant},
) -> AsyncIterator[Engine]:
    """All of these wait before the first slot is free. At the end everything runs to its end."""
    async with world(TRUSTING + config, slots=slots, pool=f"{{policy: {policy}, settlement: {settlement}}}") as w:
        w.upstream.default = answer
        engine = Engine(w, headers)
        await engine.send([(OPENER, asks(1))] * slots)
        await engine.send(asked)
        await engine.run(slots)
        yield engine
        await engine.over()


@dataclass
class Told:
    """What the recorded lines say, by books that know the theory and nothing of fairq.

    order     tenants in order of dispatch, without the opener
    charged   by tenant, cost units; `actual` the same of what was really used, as far as it is known
    widest    the largest difference of normalized charged service between two tenants, over any time in which both
              have requests waiting; widest_actual: the same of actual service
    largest   normalized charge
    """

    order: list[str] = field(default_factory=list)
    charged: Counter[str] = field(default_factory=Counter)
    actual: Counter[str] = field(default_factory=Counter)
    widest: Fraction = Fraction(0)
    widest_actual: Fraction = Fraction(0)
    largest: Fraction = Fraction(0)

    @property
    def fair(self) -> bool:
        """The bound of Start-time Fair Queueing, on the grid of its tags."""
        return self.widest <= 2 * (self.largest + Fraction(1, 1 << 20))


def told(
    w: World, weights: Mapping[str, Fraction | int] | None = None, since: int = 0, until: int | None = None
) -> Told:
    """`since`, `until`: only what these lines say counts as service, and joint time begins and ends there."""
    weights, found = weights or {}, Told()
    ended = {record.id: record for record in w.ended}
    tenant_of: dict[str, str] = {}
    waiting = Counter[str]()
    charged, actual = JointService(), JointService()

    def left(id_: str) -> None:
        tenant = tenant_of.pop(id_)
        waiting[tenant] -= 1
        if not waiting[tenant]:
            charged.left(tenant)
            actual.left(tenant)

    for number, line in enumerate(w.lines.all[:until]):
        if number == since:
            for joint in (charged, actual):
                for tenant in joint.backlogged.copy():
                    joint.left(tenant)
                    joint.joined(tenant)
                joint.widest = 0
        match line:
            case ev.Admitted():
                tenant = tenant_of[line.request.id] = line.request.flow
                waiting[tenant] += 1
                if waiting[tenant] == 1:
                    charged.joined(tenant)
                    actual.joined(tenant)
            case Dispatch() if line.attempt == 1:
                weight = Fraction(weights.get(line.tenant, 1))
                charged.served(line.tenant, line.charge / weight)
                if line.id in ended:
                    actual.served(line.tenant, ended[line.id].actual / weight)
                if number >= since and line.tenant != OPENER:
                    found.order.append(line.tenant)
                    found.charged[line.tenant] += line.charge
                    found.actual[line.tenant] += ended[line.id].actual if line.id in ended else 0
                    found.largest = max(found.largest, line.charge / weight)
                left(line.id)
            case Ended() if line.id in tenant_of:
                left(line.id)
    found.widest, found.widest_actual = Fraction(charged.widest), Fraction(actual.widest)
    return found


def while_both_wait(w: World) -> Told:
    """Of two tenants, up to the decision that takes the last waiting request of one of them."""
    left = Counter(line.tenant for line in w.dispatched if line.attempt == 1 and line.tenant != OPENER)
    for number, line in enumerate(w.lines.all, 1):
        if isinstance(line, Dispatch) and line.attempt == 1 and line.tenant != OPENER:
            left[line.tenant] -= 1
            if not left[line.tenant]:
                return told(w, until=number)
    raise AssertionError("nothing was dispatched")
