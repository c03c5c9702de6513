"""What both engines are: calls come and leave, a policy says who is next, a view tells it what it may see."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush

from fairq.core.job import Job
from fairq.core.policy import Need, Policy, Stop
from fairq.sim.engine.call import Call
from fairq.sim.engine.cost import Cost, Limits
from fairq.sim.engine.kv import longest
from fairq.sim.engine.observer import Observer
from fairq.sim.engine.prefix import PrefixCache


class Batch:
    """now         time, ns; always the boundary between two iterations
    iterations  so far
    clock       the service clock: decodes so far, each of which gave every started sequence one token
    calls       by the seq of their jobs, while they live
    preempted   sequences that wait to go on, first in turn first; nobody new is admitted while there are any
    paused      `run` returns at the next boundary
    """

    __slots__ = (  # more than 30 attributes without them are slow to read
        *("policy", "limits", "cost", "now", "iterations", "clock", "preemptions", "prefilled_tokens", "paused"),
        *("calls", "preempted", "coming", "leaving", "members", "orders", "queued", "watch", "observer"),
        *("free", "cache", "pages", "size", "grows", "longest", "whole", "chunks", "budget", "moved", "since"),
        *("blocked", "by_token", "skips", "refusing", "looks", "timed"),
    )

    def __init__(self, policy: Policy, limits: Limits, cost: Cost) -> None:
        self.paused = False
        self.policy, self.limits, self.cost = policy, limits, cost
        self.now = self.iterations = self.clock = self.preemptions = 0
        self.prefilled_tokens = 0
        self.calls: dict[int, Call] = {}
        self.preempted: deque[Call] = deque()
        self.coming: deque[Call] = deque()
        self.leaving: list[tuple[int, int]] = []  # (when, seq) of those who will cancel
        self.members: dict[int, Call] = {}  # that run, by order of admission
        self.orders = 0
        self.free = limits.blocks
        self.cache = PrefixCache() if limits.prefix_cache else None
        self.pages = limits.prefix_tokens // limits.block_tokens  # blocks of the pool that a block of a prefix takes
        self.whole = limits.prefill == "first"
        self.chunks: list[tuple[Call, int]] = []  # what the iteration that is planned computes of prompts
        self.budget = 0  # tokens that it has room for
        self.moved = 0  # tokens of cache that it swaps
        self.since = 0  # decodes since the last iteration of whole prompts
        self.blocked = False  # the first in turn does not fit, or the policy waits
        self.watch: Callable[[], None] | None = None  # called at every event, before and after admissions
        self.observer: Observer | None = None
        self.queued = 0  # calls that the policy holds
        self.longest = longest(limits)
        self.size = limits.block_tokens
        self.grows = limits.reserve != "limit"  # do sequences take blocks token by token?
        self.by_token = Need.TOKENS in policy.needs
        self.skips = limits.head == "skip" and policy.short_fitting
        self.refusing = type(policy).refuses is not Policy.refuses
        self.looks = Need.PREFIX in policy.needs  # at what is in the cache
        self.timed = type(policy).next_change is not Policy.next_change

    # The world
    def add(self, calls: Iterable[Call]) -> None:
        """Calls that will arrive, in order of (arrival, seq) and not before those added already."""
        for call in calls:
            self.coming.append(call)
            if call.cancel_at is not None:
                heappush(self.leaving, (max(call.cancel_at, call.arrival), call.job.seq))

    def next_event(self) -> int | None:
        """When somebody arrives or leaves next."""
        arrival = self.coming[0].arrival if self.coming else None
        leaves = self.leaving[0][0] if self.leaving else None
        if arrival is None or leaves is None:
            return leaves if arrival is None else arrival
        return min(arrival, leaves)

    def let_in(self) -> bool:
        """Everybody who has come or left by now, in order of time; at one time arrivals are first."""
        coming, leaving, any_ = self.coming, self.leaving, False
        while True:
            if coming and coming[0].arrival <= self.now and not (leaving and leaving[0][0] < coming[0].arrival):
                self._arrive(coming.popleft())
            elif leaving and leaving[0][0] <= self.now:
                call = self.calls.get(heappop(leaving)[1])
                if call is not None:
                    self._cancel(call)
            else:
                return any_
            any_ = True

    def _arrive(self, call: Call) -> None:
        job = call.job
        if call.prompt + job.limit > self.longest:
            call.finish, call.reason = call.arrival, "error"
        elif self.refusing and self.policy.refuses(job, self.now):
            call.finish, call.reason = call.arrival, "refused"
        else:
            self.calls[job.seq] = call
            self.queued += 1
            if self.observer is None:
                self.policy.arrive(job, self.now)
            else:
                self.observer.arrives(call)
                self.policy.arrive(job, self.now)
                self.observer.arrived(call)

    def _cancel(self, call: Call) -> None:
        if call.admitted is None:
            self.queued -= 1
            self.policy.cancel(call.job, self.now)
            if self.observer is not None:
                self.observer.abandoned(call)
        elif call in self.preempted:
            self.preempted.remove(call)
        else:
            self.leave(call)
            self._stopped(call, Stop.FINISHED)
        self._end(call, "cancel")

    def _started(self, call: Call, given: int = 0) -> None:
        """It gets a token with every tick from now on."""
        self.policy.started(call.job, self.now, given)
        if self.observer is not None:
            self.observer.started(call, given)

    def _stopped(self, call: Call, reason: Stop) -> None:
        self.policy.stop(call.job, self.now, reason)
        if self.observer is not None:
            self.observer.stopped(call)

    def _end(self, call: Call, reason: str) -> None:
        call.finish, call.reason = self.now, reason
        del self.calls[call.job.seq]

    # The plan of an iteration, as far as both make it alike
    def _admit(self) -> None:
        """Preempted sequences, then newcomers, while there are tokens and places and they fit."""
        policy, members, most = self.policy, self.members, self.limits.max_sequences
        while self.budget > 0 and len(members) < most:
            if self.preempted:
                if not self._fits(self.preempted[0]):
                    return
                self._enter(self.preempted.popleft())
                continue
            if not self.queued:
                return
            if self.skips:
                pick = policy.fitting(self.now, self)
                job = None if pick is None else pick.job
                if pick is not None:
                    policy.commit(pick, self.now)
            else:
                job = policy.admit(self.now, self)
            if job is None:
                self.blocked = True
                return
            self.queued -= 1
            call = self.calls[job.seq]
            call.admitted = self.now
            self._enter(call)
            call.cached = call.prefilled
            if self.observer is not None:
                self.observer.admitted(call)
            policy.charge(job, call.prompt - call.cached if self.by_token else policy.layer.cost(job), self.now)

    def _chunk(self, call: Call) -> None:
        """As much of its prompt as there are tokens for. A step of whole prompts may consist of one that is longer."""
        size = call.target - call.prefilled
        if not self.whole and size > self.budget:
            size = self.budget
        if size > 0:
            self.chunks.append((call, size))
            self.budget -= size

    def _preempt(self, call: Call) -> None:
        self.leave(call)
        self._stopped(call, Stop.PREEMPTED)
        self.preempted.appendleft(call)
        self.preemptions += 1
        call.preemptions += 1
        if self.limits.preemption == "swap":
            self.moved += call.held
        else:
            call.prefilled, call.target = 0, call.prompt + call.produced

    # Blocks. `free` are those that no running sequence uses; some of them may hold prefixes that nobody uses now.
    def _blocks(self, call: Call) -> int:
        """How many an admission must find or compute."""
        return -(-(call.prompt + (call.produced if self.grows else call.job.limit)) // self.size)

    def _need(self, call: Call) -> int:
        """How many it takes from the free ones: those it finds in use by others are there already."""
        if self.cache is None:
            return self._blocks(call)
        found = self._found(call)
        return self._blocks(call) - (found - self.cache.unused(call.job.prefix, found)) * self.pages

    def _found(self, call: Call) -> int:
        """Blocks of its prefix in memory; at least one token must be computed, which makes the first of the answer."""
        assert self.cache is not None
        if call.prefilled:  # swapped: it comes back with its own
            return 0
        return min(self.cache.match(call.job.prefix), (call.prompt - 1) // self.limits.prefix_tokens)

    def _hold(self, call: Call) -> None:
        """Its blocks from now on."""
        call.blocks = blocks = self._blocks(call)
        if self.cache is None:
            self.free -= blocks
            return
        self.free -= self._need(call)
        if not call.prefilled:
            call.shared = self.cache.take(call.job.prefix, self._found(call))
            call.prefilled = call.shared * self.limits.prefix_tokens
        self._trim()

    def _computed(self, call: Call) -> None:
        """Its prompt is in memory: others may share it from now on. Copies of what others computed meanwhile go."""
        cache, prefix = self.cache, call.job.prefix
        if cache is None:
            return
        end = min(len(prefix), call.prompt // self.limits.prefix_tokens)
        if end > call.shared:
            idle = cache.idle
            double = cache.add(prefix, call.shared, end)
            if self.looks:
                self.policy.cached(prefix[call.shared : end])
            self.free += (double - (idle - cache.idle)) * self.pages
            call.shared = end

    def _give_back(self, call: Call, blocks: int) -> None:
        """It has left; `blocks` is how many it spans by now."""
        self.free += blocks
        if self.cache is not None:
            self.free += (self.cache.release(call.job.prefix, call.shared) - call.shared) * self.pages
            call.shared = 0

    def _trim(self) -> bool:
        """What nobody uses stays only where there is room: the least recently used goes. Did any?"""
        if self.cache is None or (over := self.cache.idle * self.pages - self.free) <= 0:
            return False
        self.cache.evict(-(-over // self.pages))
        return True

    def _look(self) -> None:
        if self.watch is not None:
            self.watch()
        if self.observer is not None:
            self.observer.look()

    # What an engine says
    def _enter(self, call: Call) -> None:
        """It is in the batch from now on."""
        raise NotImplementedError

    def _fits(self, call: Call) -> bool:
        raise NotImplementedError

    def leave(self, call: Call) -> None:
        """Take a running call out of the batch and free its blocks."""
        raise NotImplementedError

    def run(self, until: int | None = None) -> None:
        """Iterations until `until` is reached or passed; without it, until there is no work."""
        raise NotImplementedError

    # What policies may see
    @property
    def running(self) -> Sequence[Job]:
        return [call.job for call in self.members.values()]

    def fits(self, job: Job) -> bool:
        return self._fits(self.calls[job.seq])

    def cached_prefix(self, job: Job) -> int:
        if self.cache is None:
            return 0
        return self._found(self.calls[job.seq]) * self.limits.prefix_tokens

    def service_clock(self) -> int:
        return self.clock
