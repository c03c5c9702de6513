"""Who lives, who waits, who may be dispatched from, which slots are free: rebuilt from the lines of a ledger alone.

It follows what was recorded and never asks a scheduler or a policy, so that it can check them. Lines that contradict
each other are told to `complain` and do as little as they can.
"""

from collections.abc import Callable, Sequence
from typing import Any, get_args

from msgspec.structs import astuple, replace

from fairq.core import commands as cmd
from fairq.core import events as ev
from fairq.core.job import Flow
from fairq.core.lifecycle import State
from fairq.core.lines import of_plain
from fairq.core.placement import Upstream
from fairq.core.saved import SavedEntry, SavedTenant, SavedUpstream
from fairq.ledger.book import Book, Living, Tenant
from fairq.ledger.segment import AnyLine, Head


class World:
    """O(1) per line, plus what the books take. Memory: living requests, their tenants, configured tenants."""

    def __init__(
        self, books: Sequence[Book] = (), complain: Callable[[str, str], None] = lambda check, text: None
    ) -> None:
        self.books, self.complain = list(books), complain
        self.living: dict[str, Living] = {}
        self.retrying: dict[str, Living] = {}
        self.tenants: dict[str, Tenant] = {}
        self.backlogged: dict[str, Tenant] = {}
        self.upstreams: dict[str, Upstream] = {}
        self.flows: dict[str, Flow] = {}
        self.default = Flow(id="")
        self.waiting = self.free = self.seq = self.now = 0

    def apply(self, line: AnyLine) -> None:
        """A head does nothing here: see `restore`."""
        kind = type(line)
        if kind in EVENTS:
            self.seq, self.now = line.seq, line.time  # type: ignore[union-attr]
        action = ACTIONS.get(kind)
        if action is not None:
            action(self, line)

    def restore(self, head: Head) -> None:
        """Begin from a head: a first segment, a new process, or the end of a gap."""
        state = head.state
        self.seq, self.now = state["seq"], state["now"]
        self._terms(head.setup.flows, head.setup.default_flow)
        self.living, self.retrying, self.backlogged = {}, {}, {}
        self.waiting = self.free = 0
        self.upstreams = {
            saved.name: Upstream(*astuple(saved)) for saved in of_plain(state["upstreams"], list[SavedUpstream])
        }
        self.free = sum(max(u.free, 0) for u in self.upstreams.values())
        self.tenants = {}
        for name, saved in of_plain(state["tenants"], dict[str, SavedTenant]).items():
            tenant = self.tenants[name] = Tenant(saved.flow, saved.configured)
            tenant.inflight = saved.inflight
        for entry in of_plain(state["jobs"], list[SavedEntry]):
            self._resurrect(entry)
        for name in state["retries"]:
            self.retrying[name] = self.living[name]
        for book in self.books:
            book.restored(head)
        for tenant in self.tenants.values():
            self._judge(tenant)

    def _resurrect(self, entry: SavedEntry) -> None:
        request = entry.request
        tenant = self.tenants.get(request.flow) or Tenant(replace(self.default, id=request.flow), False)
        living = self.living[request.id] = Living(request, tenant)
        living.state, living.upstream, living.attempts = entry.state, entry.upstream, entry.attempts
        living.dispatched, living.estimate, living.charge = entry.dispatched, entry.estimate.cost, entry.charge
        living.contended, living.epoch, living.gone = entry.contended, entry.epoch, entry.gone
        if entry.state is State.WAITING:
            tenant.queue[request.id] = living
            self.waiting += 1

    # Events
    def _admitted(self, line: ev.Admitted) -> None:
        request = line.request
        if request.id in self.living:
            self.complain("one outcome each", f"{request.id} is admitted while it lives")
            return
        tenant = self._tenant(request.flow)
        self.living[request.id] = tenant.queue[request.id] = Living(request, tenant)
        self.waiting += 1
        if len(tenant.queue) == 1:
            self._judge(tenant)

    def _cancelled(self, line: ev.Cancelled) -> None:
        living = self.living.get(line.id)
        if living is None:
            self.complain("one outcome each", f"Cancelled of {line.id}, which has ended or never arrived")
        elif living.state is State.RUNNING:
            living.gone = True

    def _slot_freed(self, line: ev.SlotFreed) -> None:
        living = self._find(line.id, "SlotFreed", State.RUNNING)
        if living is not None:
            self._release(living)
            living.state = State.DELIVERING

    def _attempt_failed(self, line: ev.AttemptFailed) -> None:
        living = self._find(line.id, "AttemptFailed", State.RUNNING)
        if living is not None:
            self._free(living)
            living.state = State.RETRYING
            self.retrying[line.id] = living

    def _finished(self, line: ev.Finished) -> None:
        living = self._find(line.id, "Finished", State.RUNNING, State.DELIVERING)
        if living is not None:
            if living.state is State.RUNNING:
                self._release(living)
                living.state = State.DELIVERING
            living.finished = line

    def _upstream_changed(self, line: ev.UpstreamChanged) -> None:
        upstream = self.upstreams.get(line.upstream)
        if upstream is None:  # one that comes back may still have requests
            upstream = self.upstreams[line.upstream] = Upstream(name=line.upstream, slots=0)
            running = (living.upstream for living in self.living.values() if living.state is State.RUNNING)
            upstream.inflight = sum(name == line.upstream for name in running)
        before = max(upstream.free, 0)
        upstream.slots, upstream.healthy, upstream.draining = line.slots, line.healthy, line.draining
        self.free += max(upstream.free, 0) - before

    def _upstream_removed(self, line: ev.UpstreamRemoved) -> None:
        upstream = self.upstreams.pop(line.upstream, None)
        if upstream is not None:
            self.free -= max(upstream.free, 0)

    def _paused(self, line: ev.Paused) -> None:
        tenant = self._tenant(line.tenant)
        tenant.paused = True
        self._judge(tenant)

    def _resumed(self, line: ev.Resumed) -> None:
        tenant = self._tenant(line.tenant)
        tenant.paused = False
        self._judge(tenant)
        self._forget(tenant)

    def _reconfigured(self, line: ev.Reconfigured) -> None:
        self._terms(line.flows, line.default_flow)
        for name in [*self.tenants, *self.flows]:
            tenant = self._tenant(name)
            weight, paused = tenant.weight, tenant.paused
            tenant.adopt(self.flows.get(name) or self.default)
            tenant.configured = name in self.flows
            tenant.paused = tenant.paused or paused
            if tenant.weight != weight:
                for book in self.books:
                    book.reweighted(tenant)
            self._judge(tenant)
        for tenant in list(self.tenants.values()):
            self._forget(tenant)

    # Commands
    def _dispatch(self, line: cmd.Dispatch) -> None:
        retry = line.attempt > 1
        living = self._find(line.id, "Dispatch", State.RETRYING if retry else State.WAITING)
        if living is None:
            return
        tenant = living.tenant
        living.state = State.RUNNING
        living.upstream, living.attempts = line.upstream, living.attempts + 1
        self._move(line.upstream, 1)
        for book in self.books:
            book.placed(living)
        if retry:
            self.retrying.pop(line.id, None)
            return
        living.dispatched, living.estimate, living.charge = line.time, line.estimate, line.charge
        living.contended = line.contended
        del tenant.queue[line.id]
        self.waiting -= 1
        tenant.inflight += 1
        for book in self.books:
            book.served(living)
        self._judge(tenant)
        if not self.waiting:
            self._idle()

    def _ended(self, line: cmd.Ended) -> None:
        living = self._find(line.id, "Ended", State.WAITING, State.RETRYING, State.DELIVERING)
        if living is None:
            return
        del self.living[line.id]
        tenant = living.tenant
        was, living.state = living.state, State.ENDED
        if was is State.WAITING:
            del tenant.queue[line.id]
            self.waiting -= 1
            self._judge(tenant)
        elif was is State.RETRYING:
            self.retrying.pop(line.id, None)
            tenant.inflight -= 1
            self._judge(tenant)
        for book in self.books:
            book.ended(living, line)
        if was is State.WAITING and not self.waiting:
            self._idle()
        self._forget(tenant)

    # The parts of a change
    def _find(self, id_: str, what: str, *states: State) -> Living | None:
        living = self.living.get(id_)
        if living is None:
            self.complain("one outcome each", f"{what} of {id_}, which has ended or never arrived")
        elif living.state not in states:
            self.complain("one outcome each", f"{what} of {id_}, which is {living.state}")
        else:
            return living
        return None

    def _release(self, living: Living) -> None:
        tenant = living.tenant
        self._free(living)
        tenant.inflight -= 1
        self._judge(tenant)
        self._forget(tenant)

    def _free(self, living: Living) -> None:
        self._move(living.upstream, -1)
        for book in self.books:
            book.released(living)

    def _move(self, name: str, by: int) -> None:
        upstream = self.upstreams.get(name)
        if upstream is not None:
            before = max(upstream.free, 0)
            upstream.inflight += by
            self.free += max(upstream.free, 0) - before

    def _judge(self, tenant: Tenant) -> None:
        """Is it backlogged now?"""
        backlogged = bool(tenant.queue) and tenant.open
        if backlogged is tenant.backlogged:
            return
        tenant.backlogged = backlogged
        if backlogged:
            self.backlogged[tenant.id] = tenant
            for book in self.books:
                book.joined(tenant)
        else:
            del self.backlogged[tenant.id]
            for book in self.books:
                book.left(tenant)

    def _idle(self) -> None:
        for book in self.books:
            book.idled()

    def _terms(self, flows: list[Flow], default: Flow) -> None:
        self.flows, self.default = {flow.id: flow for flow in flows}, default

    def _tenant(self, name: str) -> Tenant:
        tenant = self.tenants.get(name)
        if tenant is None:
            flow = self.flows.get(name) or replace(self.default, id=name)
            tenant = self.tenants[name] = Tenant(flow, name in self.flows)
        return tenant

    def _forget(self, tenant: Tenant) -> None:
        idle = not (tenant.configured or tenant.queue or tenant.inflight or tenant.paused)
        if idle and self.tenants.get(tenant.id) is tenant:  # a request that is still delivered may know an older one
            del self.tenants[tenant.id]


EVENTS = frozenset(get_args(ev.AnyEvent))
ACTIONS: dict[type, Callable[[World, Any], None]] = {
    ev.Admitted: World._admitted,
    ev.Cancelled: World._cancelled,
    ev.SlotFreed: World._slot_freed,
    ev.AttemptFailed: World._attempt_failed,
    ev.Finished: World._finished,
    ev.UpstreamChanged: World._upstream_changed,
    ev.UpstreamRemoved: World._upstream_removed,
    ev.Paused: World._paused,
    ev.Resumed: World._resumed,
    ev.Reconfigured: World._reconfigured,
    cmd.Dispatch: World._dispatch,
    cmd.Ended: World._ended,
}
