"""The engine from event to event: what the stepping engine does, in a fraction of its steps.

While nobody is in prefill, nobody can be admitted and nobody leaves, an iteration is like the one before it but for
the context, which grows by one token per sequence. So n iterations take n*t + d*batch*n(n-1)/2 nanoseconds, t being the
first one's time, and n is the least at which something happens: a sequence ends; somebody arrives, cancels, or a timer
of the policy is due; blocks run out; newcomers are looked at again; or, when the first in turn does not fit, another
one may take its place because counters move. Policies are told when service starts and stops and read the clock.

Which sequences need a block at a reading of the clock depends on their length modulo the block, so `phase` counts them.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import isqrt

from fairq.core.policy import ROOMY, Policy, Stop, View
from fairq.sim.engine.batch import Batch
from fairq.sim.engine.call import Call
from fairq.sim.engine.cost import Cost, Limits
from fairq.sim.engine.kv import Peaks, shortest, victim


class Jumping(Batch):
    __slots__ = ("ahead", "batch", "changed", "context", "ends", "filling", "overtakes", "peaks", "phase")

    def __init__(self, policy: Policy, limits: Limits, cost: Cost) -> None:
        super().__init__(policy, limits, cost)
        self.filling: list[Call] = []  # members in prefill
        self.ends: list[tuple[int, int, Call]] = []  # (clock at which it ends, order, call); stale if the order changed
        self.batch = self.context = 0  # of those that decode
        self.phase = [0] * limits.block_tokens  # how many need a block when the clock is minus this, modulo the block
        self.ahead: set[Call] = set()  # were swapped in with the block that they need for the next token
        self.peaks = Peaks(limits) if limits.reserve == "peak" else None
        self.changed = False  # did the first decode of a stretch preempt somebody, or make the cache drop something?
        self.overtakes = type(policy).next_overtaking is not Policy.next_overtaking

    def run(self, until: int | None = None) -> None:
        policy, watched = self.policy, self.watch is not None or self.observer is not None
        coming, leaving = self.coming, self.leaving
        while not self.paused and (until is None or self.now < until):
            if leaving or (coming and coming[0].arrival <= self.now):
                self.let_in()
            if self.timed and (due := policy.next_change(self.now, self)) is not None and due <= self.now:
                policy.timer(self.now)
            if watched:
                self._look()
            special = self._plan()
            if watched:
                self._look()
            if special:
                self._iterate()
            elif self.batch:
                self._jump(until)
            else:
                times = [self.next_event(), policy.next_change(self.now, self) if self.calls else None]
                later = [time for time in times if time is not None]
                if not later or (until is not None and min(later) >= until):
                    return
                self.now = max(self.now, min(later))

    # The plan
    def _plan(self) -> bool:
        """Is the next iteration one of its own kind (prefill, swapping), not the first of a stretch of decodes?"""
        limits, busy = self.limits, self.queued or self.preempted
        if self.chunks:
            self.chunks = []
        self.moved, self.blocked = 0, False
        if self.whole:
            self.budget = limits.step_tokens
            if busy and (self.since >= limits.admit_every or not self.members):
                self._admit()
            if self.chunks:
                return True
            self._grow()
            return self.moved > 0
        preempted = self._grow()
        if not busy and not self.filling:
            return self.moved > 0
        self.budget = limits.step_tokens - self.batch
        for call in self.filling:
            self._chunk(call)
        if busy and not preempted:
            self._admit()
        return bool(self.chunks) or self.moved > 0

    def _grow(self) -> bool:
        """Blocks for the next token of every sequence that decodes; was anybody preempted?"""
        if not self.grows:
            return False
        at, preempted = -self.clock % self.size, False
        while (need := self.phase[at] - len(self.ahead)) > self.free:
            self._preempt(victim(self.members.values(), self.limits.victim))
            preempted = True
        self.free -= need
        self.changed = preempted if self.cache is None else self._trim() or preempted
        return preempted

    def _enter(self, call: Call) -> None:
        self.orders += 1
        call.order = self.orders
        if call.prefilled:
            self.moved += call.held
        self._hold(call)
        self.members[call.order] = call
        if call.prefilled == call.target:  # it was swapped out, and goes on as it was
            self.budget -= 1
            self._decode(call)
            self._started(call)
            if self.grows and (call.prompt + call.produced - 1) % self.size == 0:
                self.ahead.add(call)
        else:
            self.filling.append(call)
            self._chunk(call)

    def _fits(self, call: Call) -> bool:
        limits = self.limits
        if (self._blocks(call) if self.cache is None else self._need(call)) + limits.watermark > self.free:
            return False
        if self.whole and self.chunks and call.target - call.prefilled > self.budget:
            return False
        return self.peaks is None or self.peaks.fits(call, self.filling, self.clock)

    # Starting and ending
    def _decode(self, call: Call) -> None:
        """It has `produced` tokens and gets another one with every tick."""
        call.base = base = self.clock - call.produced
        self.batch += 1
        self.context += call.prompt + call.produced
        heappush(self.ends, (base + call.output, call.order, call))
        self.phase[(call.prompt - base - 1) % self.size] += 1
        if self.peaks is not None:
            self.peaks.add(call)

    def leave(self, call: Call) -> None:
        del self.members[call.order]
        call.order = -1  # its entry in `ends` is stale
        if call.prefilled < call.target:
            self.filling.remove(call)
            self._give_back(call, call.blocks)
            return
        base = call.base
        call.produced = produced = self.clock - base
        self.batch -= 1
        self.context -= call.prompt + produced
        self.phase[(call.prompt - base - 1) % self.size] -= 1
        blocks = -(-(call.prompt + produced - 1) // self.size) if self.grows else call.blocks
        if self.ahead and call in self.ahead:
            self.ahead.remove(call)
            blocks += 1
        self._give_back(call, blocks)
        if self.peaks is not None:
            self.peaks.drop(call)

    def _end_decodes(self) -> None:
        """Those whose last token was made by the tick that brought the clock here."""
        ends, clock = self.ends, self.clock
        while ends and ends[0][0] <= clock:
            _, order, call = heappop(ends)
            if call.order == order:
                self.leave(call)
                self._stopped(call, Stop.FINISHED)
                self._end(call, call.ended())

    # The iterations
    def _iterate(self) -> None:
        """One iteration with prefill or swapping in it."""
        prefilled, decodes = 0, not (self.whole and self.chunks)
        for _, size in self.chunks:
            prefilled += size
        batch, context = (self.batch, self.context) if decodes else (0, 0)
        cost = self.cost
        self.now += cost.a + cost.b * prefilled + cost.c * batch + cost.d * context + cost.e * self.moved
        self.iterations += 1
        self.prefilled_tokens += prefilled
        if decodes:
            self.clock += 1
            self.since += 1
            self.context += batch
            self.ahead.clear()
        else:
            self.since = 0
        over: list[Call] = []
        done = 0
        for call, size in self.chunks:
            call.prefilled += size
            if call.prefilled == call.target:
                done += 1
                if self.cache is not None:
                    self._computed(call)
                if call.output:
                    call.produced += 1
                    if call.first is None:
                        call.first = self.now
                    self._started(call, 1)
                if call.produced == call.output:
                    over.append(call)
                else:
                    self._decode(call)
        if done == len(self.filling):
            self.filling = []
        elif done:
            self.filling = [call for call in self.filling if call.prefilled < call.target]
        if decodes and self.ends and self.ends[0][0] <= self.clock:
            self._end_decodes()
        for call in over:
            del self.members[call.order]
            self._give_back(call, call.blocks)
            self._stopped(call, Stop.FINISHED)
            self._end(call, call.ended())

    def _jump(self, until: int | None) -> None:
        """As many decodes as there are until something happens; the first one's blocks have been taken."""
        ends, batch, cost = self.ends, self.batch, self.cost
        while self.members.get(ends[0][1]) is not ends[0][2]:
            heappop(ends)
        n = ends[0][0] - self.clock
        if self.whole and self.since < self.limits.admit_every and (self.queued or self.preempted):
            n = min(n, self.limits.admit_every - self.since)
        first, step = cost.a + cost.c * batch + cost.d * self.context, cost.d * batch
        due = self._due(until) if self.timed or self.leaving else until
        if self.coming and (due is None or self.coming[0].arrival < due):
            due = self.coming[0].arrival
        if due is not None and due - self.now <= n * first + step * (n * (n - 1) // 2):
            n = min(n, ticks_for(due - self.now, first, step))
        if self.changed:
            n = 1
        elif self.blocked and n > 1:
            n = self._unblocks(n)
        if self.grows and n > 1:
            n, self.free = self._afford(n, self.free)
            if self.cache is not None:
                self._trim()
        self.now += n * first + step * (n * (n - 1) // 2)
        self.clock += n
        self.since += n
        self.iterations += n
        self.context += n * batch
        self.ahead.clear()
        if ends[0][0] <= self.clock:
            self._end_decodes()

    def _unblocks(self, n: int) -> int:
        """The number of decodes, at most n, after which somebody might be admitted though nothing happens."""
        if self.skips:
            return n if self.peaks is None else 1  # there is only less and less room; but peaks fall
        view: View = self
        if self.peaks is not None:
            view, job = ROOMY, self.policy.peek(self.now, self)
            waiting = shortest(self.calls.values()) if job is None else [self.calls[job.seq]]
            n = min(n, *(self.peaks.fits_after(call, self.clock) for call in waiting))
        if self.looks and self.cache is not None:  # what is dropped changes who has most in the cache
            spare = self.free - self.cache.idle * self.pages
            n = min(n, self._afford(n, spare)[0])
        if self.overtakes and n > 1:
            overtaken = self.policy.next_overtaking(view, self.clock + n)
            if overtaken is not None:
                n = min(n, max(overtaken - self.clock, 1))
        return n

    def _due(self, until: int | None) -> int | None:
        """The next moment that has a time, not a number of iterations; arrivals apart."""
        due = until
        if self.leaving and (due is None or self.leaving[0][0] < due):
            due = self.leaving[0][0]
        if self.timed:
            timer = self.policy.next_change(self.now, self)
            if timer is not None and (due is None or timer < due):
                due = timer
        return due

    def _afford(self, n: int, free: int) -> tuple[int, int]:
        """How many of n decodes have their blocks if so many are free, and what is left. The first one's are taken."""
        phase, size, later = self.phase, self.size, n - 1
        rounds = later // size
        if free >= (rounds + 1) * self.batch:  # more than enough: `batch` in a round of `size` decodes
            at = -(self.clock + 1 + rounds * size) % size
            least = at + 1 - later % size
            needs = sum(phase[least : at + 1]) if least >= 0 else sum(phase[: at + 1]) + sum(phase[least:])
            return n, free - rounds * self.batch - needs
        rounds = max(min(rounds, free // self.batch), 0)
        done, free = rounds * size, free - rounds * self.batch
        while done < later:
            need = phase[-(self.clock + 1 + done) % size]
            if need > free:
                break
            free -= need
            done += 1
        return done + 1, free


def ticks_for(time: int, first: int, step: int) -> int:
    """The least n >= 1 with n*first + step*n(n-1)/2 >= time."""
    if time <= first:
        return 1
    if not step:
        return -(-time // first)
    doubled = 2 * first - step
    n = max((isqrt(max(doubled * doubled + 8 * step * time, 0)) - doubled) // (2 * step), 1)
    while n * first + step * (n * (n - 1) // 2) < time:
        n += 1
    while n > 1 and (n - 1) * first + step * ((n - 1) * (n - 2) // 2) >= time:
        n -= 1
    return n
