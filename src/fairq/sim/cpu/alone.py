"""The machine's loop for its commonest case, three times as quick: one processor and jobs that only compute.

No locks, no sleep, no switch cost, no changes of weight, no aborts, no timers of the policy, no recording. It does what
`Machine` does then, call for call (a test compares them), with everything at hand in local variables.
"""

from heapq import heappop, heapreplace

from fairq.core.errors import ConfigError
from fairq.core.policy import Cause, Policy, Stop
from fairq.sim.cpu.jobs import RELEASE, Jobs
from fairq.sim.cpu.live import Live
from fairq.sim.cpu.processor import NEVER, Slice
from fairq.sim.cpu.scenario import CpuScenario


def is_alone(scenario: CpuScenario, policy: Policy) -> bool:
    return (
        scenario.cpus == 1
        and scenario.switch_cost == 0
        and scenario.on_miss == "continue"
        and not scenario.changes
        and not any(task.locks or task.io or task.bursts for task in scenario.tasks)
        and type(policy).next_change is Policy.next_change
    )


def run_alone(jobs: Jobs, most: int) -> tuple[int, int]:
    """Runs `jobs` to the end. (moments, switches)"""
    policy, events, lives, by_id = jobs.policy, jobs.events, jobs.lives, jobs.by_id
    kind, view, slices, seq = type(policy), jobs.view, jobs.cpus[0].slices, jobs.seq
    arrive, take, new, finished = policy.arrive, policy.take, Cause.NEW, Stop.FINISHED
    charge = policy.charge if jobs.charges else None
    stop = policy.stop if kind.stop is not Policy.stop else None
    slice_ = policy.slice if kind.slice is not Policy.slice else None
    preempts = policy.preempts if kind.preempts is not Policy.preempts else None
    end = NEVER if jobs.end is None else jobs.end
    live: Live | None = None
    last: object = None
    moments = switches = now = began = since = 0  # the job's run began; it is charged up to `since`
    due = expiry = NEVER  # when the job is done; when its slice ends

    while True:
        if live is not None:
            if charge is not None and since < now:
                charge(live.job, now - since, now)
                since = now
            if due == now:
                extend(slices, live.source.id, began, now)
                live.completion = now
                if stop is not None:
                    stop(live.job, now, finished)
                source = live.source
                del by_id[live.id]
                source.current = live = None
                if source.backlog:
                    after = source.current = source.backlog.popleft()
                    by_id[after.id] = after
                    arrive(after.burst(after.seq), now, new)
        if now >= end:
            break
        while events and events[0][0] <= now:
            source = events[0][3]
            if not source.count:
                policy.flow_changed(source.flow, now)
            coming = Live(source, now, next(seq))
            lives.append(coming)
            at = next(source.releases, end)
            if at < end:
                heapreplace(events, (at, RELEASE, source.index, source))
            else:
                heappop(events)
            if source.current is None:
                source.current = by_id[coming.id] = coming
                arrive(coming.burst(coming.seq), now, new)
            else:
                source.backlog.append(coming)
        left: Live | None = None  # who steps back from the processor
        if live is not None:
            expired = expiry <= now
            if expired or (preempts is not None and preempts(live.job, now)):
                left, live = live, None
                left.done += now - began
                extend(slices, left.source.id, began, now)
                if stop is not None:
                    stop(left.job, now, Stop.SLICE_USED if expired else Stop.PREEMPTED)
                arrive(left.job, now, Cause.PREEMPTED)
        if live is None:
            job = take(now, view)
            due = expiry = NEVER
            if job is not None:
                live = by_id[job.id]
                if live.first_run is None:
                    live.first_run = now
                if live.source is not last:
                    switches += last is not None
                    last = live.source
                began = since = now
                due = now + live.goal - live.done
                if slice_ is not None and (ticks := slice_(job)) is not None:
                    expiry = now + ticks
            if left is not None and left is not live:
                left.preemptions += 1
        moment = due if due < expiry else expiry
        if events and events[0][0] < moment:
            moment = events[0][0]
        if moment == NEVER:
            break
        now = moment if moment < end else end
        moments += 1
        if moments > most:
            rule = f"the run is not over at t = {now}; raise it, or ask for less"
            raise ConfigError("max_steps", most, rule)
    if live is not None:
        extend(slices, live.source.id, began, now)
    jobs.now = now
    return moments, switches


def extend(slices: list[Slice], task: str, start: int, end: int) -> None:
    if end > start:
        if slices:
            before = slices[-1]
            if before[2] == start and before[0] == task:
                slices[-1] = (task, before[1], end, "run")
                return
        slices.append((task, start, end, "run"))
