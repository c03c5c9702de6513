"""The CPU's event loop. It jumps from one moment at which something can happen to the next.

At one moment, in this order: service is charged; jobs let go of locks, sleep or finish; late jobs are aborted; jobs
arrive and wake; slices end; the policy's timer; then the policy chooses. Where slices of several processors end at one
moment, or their jobs sleep, that happens in order of the processors' numbers. A job asks for its locks when it is
chosen, before it runs on.
"""

from heapq import heappop

from fairq.core.errors import ConfigError
from fairq.core.policy import Cause, Policy, Stop
from fairq.locks import Hold
from fairq.sim.cpu.alone import is_alone, run_alone
from fairq.sim.cpu.jobs import RELEASE, Jobs
from fairq.sim.cpu.live import Live
from fairq.sim.cpu.processor import NEVER, Processor
from fairq.sim.cpu.scenario import CpuScenario
from fairq.sim.trace import Tape


class Machine(Jobs):
    """Runs `policy`, which is bound to its layer. `tape` records; with `ticks` every tick is a moment."""

    def __init__(self, scenario: CpuScenario, policy: Policy, tape: Tape | None = None, ticks: bool = False) -> None:
        super().__init__(scenario, policy, tape)
        self.scenario, self.ticks = scenario, ticks
        self.most, self.switch_cost = scenario.max_steps, scenario.switch_cost
        self.attempts_cost = scenario.lock_attempt == "tick"
        self.moments = self.switches = 0
        self.deadlock: tuple[int, list[Hold]] | None = None  # the first one: when, and who waits for whom
        self.changes = type(policy).next_change is not Policy.next_change

    # The loop
    def run(self) -> None:
        if self.tape is None and is_alone(self.scenario, self.policy):
            self.moments, self.switches = run_alone(self, self.most)
        else:
            self._run()
        for cpu in self.cpus:
            cpu.close(self.now)

    def _run(self) -> None:
        cpus, events, policy, end, tape = self.cpus, self.events, self.policy, self.end, self.tape
        dispatch = self._dispatch_alone if len(cpus) == 1 and not self.locks else self._dispatch
        change: int | None = None
        while True:
            now = self.now
            ran = [cpu.live for cpu in cpus] if tape else []
            for cpu in cpus:
                if cpu.since < now and cpu.live is not None:
                    self._charge(cpu, cpu.live, now)
            for cpu in cpus:
                if cpu.live is not None and cpu.live.done == cpu.live.goal:
                    self._reach(cpu, cpu.live)
            if end is not None and now >= end:
                self.record(now, ran)
                return
            while events and events[0][0] <= now:
                _, kind, _, what = heappop(events)
                if kind == RELEASE:
                    self._release(what)
                else:
                    self._happen(kind, what)
            for cpu in cpus:
                if cpu.end <= now and cpu.live is not None:
                    self._expire(cpu, cpu.live)
            if change is not None and change <= now:
                self.drive.timer(now)
            if tape:
                self.record(now, ran)
            dispatch(now)
            if self.changes:  # who has just been preempted begins to age now
                change = policy.next_change(now, self.view)
            moment = NEVER
            for cpu in cpus:
                if cpu.next < moment:
                    moment = cpu.next
            if events and events[0][0] < moment:
                moment = events[0][0]
            if change is not None and now < change < moment and (policy.waiting() or any(cpu.live for cpu in cpus)):
                moment = change
            if moment == NEVER:
                return
            if self.ticks:
                moment = now + 1
            self.now = moment if end is None or moment < end else end
            self.moments += 1
            if self.moments > self.most:
                rule = f"the run is not over at t = {now}; raise it, or ask for less"
                raise ConfigError("max_steps", self.most, rule)

    # Choosing
    def _dispatch_alone(self, now: int) -> None:
        """`_dispatch` for the common case: one processor, no locks."""
        cpu = self.cpus[0]
        live = cpu.live
        if live is not None:
            if not self.policy.preempts(live.job, now):
                return
            self._step_back(cpu, live, Stop.PREEMPTED)
        picked = self._pick(now)
        if picked is not None:
            self.switches += cpu.start(picked, now, self.switch_cost, self.policy.slice(picked.job))
        if cpu.vacated is not None:
            self._left_behind(cpu, picked is cpu.vacated)

    def _dispatch(self, now: int) -> None:
        policy = self.policy
        while True:
            for cpu in self.cpus:
                if cpu.live and policy.preempts(cpu.live.job, now):
                    self._step_back(cpu, cpu.live, Stop.PREEMPTED)
            self._fill(now)
            if self.locks is None or not any(self._is_refused(cpu, cpu.live) for cpu in self.cpus if cpu.live):
                return

    def _fill(self, now: int) -> None:
        """Each chosen job goes on where it ran a moment ago, else on a processor that nobody chosen has just left."""
        free = [cpu for cpu in self.cpus if cpu.live is None and cpu.held <= now]
        picks: list[Live] = []
        while len(picks) < len(free) and (picked := self._pick(now)) is not None:
            picks.append(picked)
        own = {cpu.vacated: cpu for cpu in free if cpu.vacated in picks}
        others = (
            cpu for left in (False, True) for cpu in free if bool(cpu.vacated) is left and cpu not in own.values()
        )
        for live in picks:
            cpu = own.get(live) or next(others)
            self.switches += cpu.start(live, now, self.switch_cost, self.policy.slice(live.job))
        for cpu in free:
            if cpu.vacated:
                self._left_behind(cpu, cpu.vacated in picks)
            if cpu.live is None:
                cpu.next = NEVER

    def _pick(self, now: int) -> Live | None:
        """Whom the policy lets run next."""
        job = self.drive.take(now, self.view)
        if job is None:
            return None
        live = self.by_id[job.id]
        live.waits = False
        return live

    def _left_behind(self, cpu: Processor, is_back: bool) -> None:
        """The job that stepped back from `cpu` a moment ago has been chosen again, or has not."""
        if cpu.vacated and not is_back:
            cpu.vacated.preemptions += 1
        cpu.vacated = None

    def _expire(self, cpu: Processor, live: Live) -> None:
        if self.locks and self.locks.undivided(live):
            cpu.end = cpu.due  # until its next mark, where it may let go
            cpu.next = cpu.due
        else:
            self.note("expired", live)
            self._step_back(cpu, live, Stop.SLICE_USED)

    def _step_back(self, cpu: Processor, live: Live, reason: Stop) -> None:
        """The running job returns to the queue; it may be chosen again at once."""
        self._stop(cpu, live, reason)
        cpu.vacated, live.waits = live, True
        self.drive.arrive(live.job, self.now, Cause.PREEMPTED)

    def _is_refused(self, cpu: Processor, live: Live) -> bool:
        """Does the job ask for a lock and not get it? Then it waits, and its processor is free again."""
        assert self.locks
        holder = self.locks.refuses(live)
        if holder is None:
            return False
        self.note("blocked", live)
        live.leaves(self.now, NEVER)
        circle = self.locks.protocol.deadlock(live.id)
        if circle and self.deadlock is None:
            self.deadlock = (self.now, circle)
        self._stop(cpu, live, Stop.BLOCKED, holder.source.task.id)
        if self.attempts_cost:
            cpu.lose(self.now)
        self.locks.tell()
        return True
