"""Checks a ledger against what was promised, without asking the policy that made it.

The order and the charges are taken as recorded; who was backlogged, every tag and every bound are rebuilt from them by
the article's rules. It is incremental: the console feeds the same object as the command.
"""

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from msgspec.structs import replace

from fairq.core import commands as cmd
from fairq.core import events as ev
from fairq.core.cost import CostModel
from fairq.core.estimator import Estimator
from fairq.core.lines import of_plain
from fairq.core.number import of_json
from fairq.ledger.book import Living
from fairq.ledger.carry import Carry
from fairq.ledger.checks import FAIR, Checks
from fairq.ledger.endings import Endings
from fairq.ledger.pairs import Pair, Pairs
from fairq.ledger.report import Report, pair_report
from fairq.ledger.segment import AnyLine, Head, Opened, reading_state
from fairq.ledger.tags import Tags, policy_of, units
from fairq.ledger.world import EVENTS, World

# They keep each tenant's own order of arrival.
IN_ORDER = frozenset({"sfq", "fcfs", "request-rr", "shortest", "scfq", "drr", "hierarchical"})
TRIES = 2
WATCHED = 32


class Audit:
    """
    pairs  how many tenants are compared two by two; 0 for the live check, which is O(log tenants) per decision
    only   compare these
    """

    def __init__(self, pairs: int = WATCHED, only: Collection[str] | None = None) -> None:
        self.checks = Checks(lambda: self.world.seq)
        self.tags = Tags()
        self.carry = Carry(self.tags)
        self.pairs = Pairs(pairs, only, self._wide, lambda: self.world.now)
        self.world = World((self.tags, self.carry, self.pairs) if pairs or only else (self.tags, self.carry))
        self.world.complain = self.checks.fail
        self.estimator = Estimator(CostModel())
        self.endings = Endings(self.world, self.carry, self.estimator, self.checks)
        self.head: Head | None = None
        self.idle: Counter[str] = Counter()
        self.events = self.decisions = self.segments = self.restarts = self.gaps = self.lost = 0
        self.admitted = self.refused = self.cut_off = 0
        self.notes: list[str] = []
        self._policy = ""
        self._before: dict[type, Callable[[Any], None]] = {
            ev.Admitted: self._admitted,
            ev.Refused: self._refused,
            ev.Reconfigured: self._reconfigured,
            ev.CalibrationChanged: self._calibrated,
            ev.RecordingGap: self._gap,
            cmd.Dispatch: self._dispatched,
            **self.endings.before,
        }

    def feed(self, line: AnyLine) -> None:
        """One line, in order; the first one must be a head. Raises LedgerError for a head whose state is no state."""
        kind = type(line)
        world = self.world
        if isinstance(line, Head):
            with reading_state(line):
                self._begin(line)
            return
        if kind in EVENTS:
            self._settle()
            self.events += 1
            if not self.checks.held("sequence", line.seq == world.seq + 1 and line.time >= world.now):
                self.checks.fail("sequence", f"event {line.seq} at {line.time} after event {world.seq} at {world.now}")
        elif line.seq != world.seq or line.time != world.now:
            self.checks.fail("sequence", f"{kind.__name__} of event {line.seq} stands behind event {world.seq}")
        before = self._before.get(kind)
        if before is not None:
            before(line)
        world.apply(line)
        if kind is cmd.Dispatch and line.attempt == 1:  # type: ignore[union-attr]
            self._bounds(line.id)  # type: ignore[union-attr]

    @property
    def outcomes(self) -> Counter[str]:
        """Of all requests that have ended, refused ones too."""
        return self.endings.outcomes

    def finish(self, notes: Collection[str] = ()) -> Report:
        """The last line was fed. What its event still lacks may have been cut off: a note, not a violation."""
        self._cut_off()
        self.notes.extend(notes)
        return self.report()

    # Segments
    def _begin(self, head: Head) -> None:
        world, state = self.world, head.state
        self.segments += 1
        if self.head is None:
            self._adopt(head)
        elif head.opened is Opened.ROTATED:
            self._settle()
            agrees = state["seq"] == world.seq and {job["request"]["id"] for job in state["jobs"]} == set(world.living)
            agrees = agrees and self._same_tags(state["policy"])
            if agrees:
                self.checks["heads"].held += 1
            else:
                self.checks.fail("heads", f"the head after event {world.seq} shows another state")
                self._adopt(head)
        else:
            self._cut_off()
            self.restarts += head.opened is Opened.STARTED
            self.gaps += head.opened is Opened.GAP
            self.lost += head.lost
            alive = {job["request"]["id"] for job in state["jobs"]}
            self.cut_off += len(world.living.keys() - alive)
            self._adopt(head)

    def _adopt(self, head: Head) -> None:
        self.head = head
        self._policy = policy_of(head.setup.policy)
        for name in FAIR:
            self.checks[name].promised = self._policy == "sfq"
        self.checks["fifo"].promised = self._policy in IN_ORDER
        self.estimator.adopt(of_plain(head.state["rates"], CostModel))
        self.endings.due.clear()
        self.world.restore(head)

    def _same_tags(self, state: dict[str, Any]) -> bool:
        if self._policy != "sfq":
            return True
        meters, virtual_time, tags = state["meters"], state["virtual_time"], self.tags
        return all(
            of_json(meters[tenant.id]) - of_json(virtual_time) == tags.lead(tenant)
            for tenant in self.world.backlogged.values()
        )

    def _cut_off(self) -> None:
        world = self.world
        if self.endings.due or (world.free > 0 and world.backlogged):
            self.notes.append(f"the recording stops inside event {world.seq}, or behind it")
            self.endings.due.clear()

    # At the end of an event
    def _settle(self) -> None:
        world = self.world
        self.endings.settle()
        if not world.waiting and not world.retrying:
            return
        check = self.checks["work conservation"]
        retrying = self._stranded()
        if world.free > 0:
            if world.backlogged:
                waiting = next(iter(world.backlogged))
                check.fail(world.seq, f"{world.free} slots are free while {waiting} waits")
                return
            self.idle["paused or capped" if world.waiting else "retrying elsewhere"] += 1
        elif not any(u.healthy and not u.draining and u.slots > 0 for u in world.upstreams.values()):
            self.idle["no usable upstream"] += 1
        if retrying:
            check.fail(world.seq, f"{retrying} could be tried again at an upstream with a free slot")
        else:
            check.held += 1

    def _stranded(self) -> str:
        """A request between two upstreams that could go to another one now."""
        for living in self.world.retrying.values():
            for upstream in self.world.upstreams.values():
                if upstream.free > 0 and upstream.name != living.upstream and living.attempts < TRIES:
                    return living.request.id
        return ""

    # Before a line is applied
    def _admitted(self, line: ev.Admitted) -> None:
        self.admitted += 1

    def _refused(self, line: ev.Refused) -> None:
        self.refused += 1
        self.outcomes[line.outcome] += 1

    def _reconfigured(self, line: ev.Reconfigured) -> None:
        self.estimator.adopt(line.cost)

    def _calibrated(self, line: ev.CalibrationChanged) -> None:
        self.estimator.adopt(replace(self.estimator.model, alpha=line.alpha, beta=line.beta))

    def _gap(self, line: ev.RecordingGap) -> None:
        self.notes.append(f"event {line.seq}: {line.lost} lines are missing before it")

    def _dispatched(self, line: cmd.Dispatch) -> None:
        world = self.world
        living = world.living.get(line.id)
        upstream = world.upstreams.get(line.upstream)
        if upstream is None or upstream.free <= 0:
            self.checks.fail("slots", f"{line.id} goes to {line.upstream or '(none)'}, which has no free slot")
        else:
            self.checks["slots"].held += 1
        if living is None:
            return  # the world complains
        if line.attempt > 1:
            if line.charge or line.attempt > TRIES or line.upstream == living.upstream:
                wrong = f"attempt {line.attempt} of {line.id} at {line.upstream} costs {line.charge}"
                self.checks.fail("charges", wrong)
            return
        self.decisions += 1
        tenant = living.tenant
        if line.tenant != tenant.id:
            self.checks.fail("record", f"{line.id} belongs to {tenant.id}, not to {line.tenant}")
        if not tenant.open:
            self.checks.fail("slots", f"{line.id} is dispatched while {tenant.id} is paused or at its cap")
        if not self.checks.held("fifo", next(iter(tenant.queue), "") == line.id):
            self.checks.fail("fifo", f"{line.id} is not the oldest of {tenant.id}")
        due = self.carry.due(tenant, line.estimate)
        if not self.checks.held("charges", line.charge == due):
            self.checks.fail("charges", f"{line.id} is charged {line.charge} instead of {due}")
        contended = len(world.backlogged) > tenant.backlogged
        if contended is not line.contended:
            wrong = f"{line.id} is recorded as contended: {line.contended}; others waited: {contended}"
            self.checks.fail("charges", wrong)
        if self._policy == "sfq":
            self._order(line, living)

    def _order(self, line: cmd.Dispatch, living: Living) -> None:
        tags, tenant = self.tags, living.tenant
        first, values = tags.first(), line.why.values
        lead = tags.lead(tenant)
        meter, virtual_time = values.get("meter"), values.get("virtual_time")
        recorded = meter - virtual_time if isinstance(meter, int) and isinstance(virtual_time, int) else None
        if first is not None and first[1] != tenant.id:
            ahead = f"{units(first[0] - tags.virtual_time):g} ahead of virtual time"
            wrong = f"{tenant.id} goes at {units(lead):g}, while {first[1]} is only {ahead}"
            self.checks.fail("least meter first", wrong)
        elif not self.checks.held("least meter first", recorded == lead):
            theirs = "nowhere" if recorded is None else f"{units(recorded):g} ahead"
            self.checks.fail("least meter first", f"{line.id} is recorded {theirs}, not {units(lead):g} ahead")
        if not self.checks.held("virtual time", lead >= -tags.right):
            self.checks.fail("virtual time", f"dispatching {line.id} takes it {units(-lead):g} back")

    # After a decision
    def _bounds(self, id_: str) -> None:
        tags = self.tags
        last, first = tags.last(), tags.first()
        if last is None or first is None:
            return
        below = tags.virtual_time - first[0]
        if below > tags.right:
            self.checks.fail("band", f"{first[1]} is {units(below):g} behind virtual time")
        self.checks.within("band", last[0] - tags.virtual_time + max(below, 0), tags.reach, (last[1],))

    def _wide(self, pair: Pair, gap: int) -> None:
        self.checks.within("pairs", gap, 2 * self.tags.reach, pair.tenants)

    def report(self) -> Report:
        """So far."""
        head = self.head
        return Report(
            pool=head.pool if head else "",
            policy=head.setup.policy if head else "",
            settlement=head.setup.settlement if head else "",
            events=self.events,
            decisions=self.decisions,
            segments=self.segments,
            restarts=self.restarts,
            gaps=self.gaps,
            lost=self.lost,
            admitted=self.admitted,
            refused=self.refused,
            living=len(self.world.living),
            cut_off=self.cut_off,
            outcomes=dict(sorted(self.outcomes.items())),
            idle=dict(sorted(self.idle.items())),
            largest_carry=self.carry.largest,
            dropped_errors=self.carry.dropped,
            checks=[check.report() for check in self.checks.values()],
            pairs=[pair_report(pair) for pair in self.pairs.pairs.values()],
            watched=self.pairs.watched,
            unwatched_decisions=self.pairs.unwatched,
            notes=list(self.notes),
        )
