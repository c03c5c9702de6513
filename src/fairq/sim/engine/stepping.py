"""The engine iteration by iteration: the definition. The jumping engine must agree with it bit for bit.

At every boundary: arrivals and cancels up to now, timers, then the plan of the next iteration.

    chunked   sequences that decode get their blocks (somebody may be preempted), unfinished prompts what is left of
              the step's tokens in order of admission, then preempted sequences and newcomers while tokens are left
    first     if somebody can be admitted, whole prompts of newcomers only; otherwise one token for all that run

An iteration that preempts admits nobody. The first token comes out of the iteration that ends the prefill.
"""

from fairq.core.policy import Stop
from fairq.sim.engine.batch import Batch
from fairq.sim.engine.call import Call
from fairq.sim.engine.kv import growing, peak, victim


class Stepping(Batch):
    def run(self, until: int | None = None) -> None:
        watched = self.watch is not None or self.observer is not None
        while until is None or self.now < until:
            self.let_in()
            if self.timed and (due := self.policy.next_change(self.now, self)) is not None and due <= self.now:
                self.policy.timer(self.now)
            if watched:
                self._look()
            decoding = self._plan()
            if watched:
                self._look()
            if decoding or self.chunks:
                self._carry_out(decoding)
                continue
            times = [self.next_event(), self.policy.next_change(self.now, self) if self.calls else None]
            later = [time for time in times if time is not None]
            if not later or (until is not None and min(later) >= until):
                return
            self.now = max(self.now, min(later))

    # The plan
    def _plan(self) -> list[Call]:
        """Fills `chunks`; returns the sequences that decode."""
        limits = self.limits
        self.chunks, self.moved = [], 0
        if self.whole:
            self.budget = limits.step_tokens
            if self.since >= limits.admit_every or not self.members:
                self._admit()
            if self.chunks:
                return []
            self._grow()
            return self._decoding()
        preempted = self._grow()
        self.budget = limits.step_tokens - len(self._decoding())
        for call in self.members.values():
            self._chunk(call)
        if not preempted:
            self._admit()
        return self._decoding()

    def _decoding(self) -> list[Call]:
        return [call for call in self.members.values() if call.prefilled == call.target]

    def _grow(self) -> bool:
        """Blocks for the next token of every sequence that decodes; was anybody preempted?"""
        if self.limits.reserve == "limit":
            return False
        preempted = False
        while True:
            more = [(call, self.limits.blocks_for(call.prompt + call.produced)) for call in self._decoding()]
            if sum(blocks - call.blocks for call, blocks in more) <= self.free:
                break
            self._preempt(victim(self.members.values(), self.limits.victim))
            preempted = True
        for call, blocks in more:
            self.free -= blocks - call.blocks
            call.blocks = blocks
        self._trim()
        return preempted

    def _enter(self, call: Call) -> None:
        self.orders += 1
        call.order = self.orders
        self.moved += call.held
        self._hold(call)
        self.members[call.order] = call
        if call.prefilled == call.target:  # it was swapped out, and goes on as it was
            self.budget -= 1
            self._started(call)
        else:
            self._chunk(call)

    def _fits(self, call: Call) -> bool:
        limits = self.limits
        if self._need(call) + limits.watermark > self.free:
            return False
        if self.whole and self.chunks and call.target - call.prefilled > self.budget:
            return False
        if limits.reserve == "peak":
            return peak([growing(other) for other in [*self.members.values(), call]]) < limits.pool_tokens
        return True

    # The iteration
    def _carry_out(self, decoding: list[Call]) -> None:
        prefilled = sum(size for _, size in self.chunks)
        context = sum(call.prompt + call.produced for call in decoding)
        self.now += self.cost.duration(prefilled, len(decoding), context, self.moved)
        self.iterations += 1
        self.prefilled_tokens += prefilled
        if decoding or not self.whole:
            self.clock += 1
            self.since += 1
        else:
            self.since = 0
        for call in decoding:
            call.produced += 1
        ended = [call for call in decoding if call.produced == call.output]
        for call, size in self.chunks:
            call.prefilled += size
            if call.prefilled == call.target:
                self._computed(call)
                if call.output:
                    call.produced += 1
                    if call.first is None:
                        call.first = self.now
                    self._started(call, 1)
                if call.produced == call.output:
                    ended.append(call)
        for call in ended:
            self.leave(call)
            self._stopped(call, Stop.FINISHED)
            self._end(call, call.ended())

    def leave(self, call: Call) -> None:
        del self.members[call.order]
        self._give_back(call, call.blocks)
        call.blocks = 0
