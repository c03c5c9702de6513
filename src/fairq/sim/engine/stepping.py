"""The engine iteration by iteration: the definition. The jumping engine must agree with it bit for bit.

At every boundary: arrivals and cancels up to now, timers, then the plan of the next iteration.

    chunked   sequences that decode get their blocks (somebody may be preempted), unfinished prompts what is left of
              the step's tokens in order of admission, then preempted sequences and newcomers while tokens are left
    first     if somebody can be admitted, whole prompts of newcomers only; otherwise one token for all that run

An iteration that preempts admits nobody. The first token comes out of the iteration that ends the prefill.
"""

from collections.abc import Sequence

from fairq.core.job import Job
from fairq.core.policy import Policy, Stop
from fairq.sim.engine.batch import Batch
from fairq.sim.engine.call import Call
from fairq.sim.engine.cost import Cost, Limits
from fairq.sim.engine.kv import growing, peak, victim


class Stepping(Batch):
    def __init__(self, policy: Policy, limits: Limits, cost: Cost) -> None:
        super().__init__(policy, limits, cost)
        self.batch: list[Call] = []  # in order of admission
        self.chunks: list[tuple[Call, int]] = []  # of the iteration that is planned
        self.budget = self.moved = self.since = 0

    def run(self, until: int | None = None) -> None:
        while until is None or self.now < until:
            self.let_in()
            if self.timed and (due := self.policy.next_change(self.now, self)) is not None and due <= self.now:
                self.policy.timer(self.now)
            decoding = self._plan()
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
        if limits.prefill == "first":
            self.budget = limits.step_tokens
            if self.since >= limits.admit_every or not self.batch:
                self._admit()
            if self.chunks:
                return []
            self._grow()
            return list(self.batch)
        preempted = self._grow()
        self.budget = limits.step_tokens - len(self._decoding())
        for call in self.batch:
            self._chunk(call)
        if not preempted:
            self._admit()
        return self._decoding()

    def _decoding(self) -> list[Call]:
        return [call for call in self.batch if call.prefilled == call.target]

    def _grow(self) -> bool:
        """Blocks for the next token of every sequence that decodes; was anybody preempted?"""
        if self.limits.reserve == "limit":
            return False
        preempted = False
        while True:
            more = [(call, self.limits.blocks_for(call.prompt + call.produced)) for call in self._decoding()]
            if sum(blocks - call.blocks for call, blocks in more) <= self.free:
                break
            self._preempt(victim(self.batch, self.limits.victim))
            preempted = True
        for call, blocks in more:
            self.free -= blocks - call.blocks
            call.blocks = blocks
        return preempted

    def _preempt(self, call: Call) -> None:
        self.policy.stop(call.job, self.now, Stop.PREEMPTED)
        held = call.held
        self.leave(call)
        self.preempted.appendleft(call)
        self.preemptions += 1
        call.preemptions += 1
        if self.limits.preemption == "swap":
            self.moved += held
        else:
            call.prefilled, call.target = 0, call.prompt + call.produced

    def _chunk(self, call: Call) -> None:
        """As much of its prompt as there are tokens for. A step of whole prompts may consist of one that is longer."""
        size = call.target - call.prefilled
        if self.limits.prefill == "chunked":
            size = min(size, self.budget)
        if size > 0:
            self.chunks.append((call, size))
            self.budget -= size

    def _admit(self) -> None:
        limits, policy = self.limits, self.policy
        while self.budget > 0 and len(self.batch) < limits.max_sequences:
            if self.preempted:
                call = self.preempted[0]
                if not self._fits(call):
                    return
                self.preempted.popleft()
                self._enter(call)
                continue
            if limits.head == "skip":
                pick = policy.fitting(self.now, self)
                if pick is None:
                    return
                job: Job | None = pick.job
                policy.commit(pick, self.now)
            else:
                job = policy.peek(self.now, self)
                if job is not None and not self.fits(job):
                    return
                job = policy.take(self.now, self)
            if job is None:
                return
            call = self.calls[job.seq]
            call.admitted = self.now
            policy.charge(job, policy.layer.cost(job), self.now)
            self._enter(call)

    def _enter(self, call: Call) -> None:
        self.orders += 1
        call.order = self.orders
        call.blocks = self._blocks(call)
        self.free -= call.blocks
        self.batch.append(call)
        if call.prefilled == call.target:  # it was swapped out, and goes on as it was
            self.moved += call.held
            self.budget -= 1
            self.policy.started(call.job, self.now)
        else:
            self.moved += call.held
            self._chunk(call)

    def _blocks(self, call: Call) -> int:
        """What an admission takes from the pool."""
        if self.limits.reserve == "limit":
            return self.limits.blocks_for(call.prompt + call.job.limit)
        return self.limits.blocks_for(call.prompt + call.produced)

    def _fits(self, call: Call) -> bool:
        limits = self.limits
        if self._blocks(call) + limits.watermark > self.free:
            return False
        if limits.prefill == "first" and self.chunks and call.target - call.prefilled > self.budget:
            return False
        if limits.reserve == "peak":
            return peak([growing(other) for other in [*self.batch, call]]) < limits.pool_tokens
        return True

    # The iteration
    def _carry_out(self, decoding: list[Call]) -> None:
        prefilled = sum(size for _, size in self.chunks)
        context = sum(call.prompt + call.produced for call in decoding)
        self.now += self.cost.duration(prefilled, len(decoding), context, self.moved)
        self.iterations += 1
        self.prefilled_tokens += prefilled
        if self.limits.prefill == "chunked" or decoding:
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
                if call.output:
                    call.produced += 1
                    if call.first is None:
                        call.first = self.now
                    self.policy.started(call.job, self.now, 1)
                if call.produced == call.output:
                    ended.append(call)
        for call in ended:
            self.leave(call)
            self.policy.stop(call.job, self.now, Stop.FINISHED)
            self._end(call, call.ended())

    def leave(self, call: Call) -> None:
        self.batch.remove(call)
        self.free += call.blocks
        call.blocks = 0

    # What policies may see
    @property
    def running(self) -> Sequence[Job]:
        return [call.job for call in self.batch]

    def fits(self, job: Job) -> bool:
        return self._fits(self.calls[job.seq])
