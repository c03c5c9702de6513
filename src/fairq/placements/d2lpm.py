"""D²LPM's choice of a worker (arXiv 2501.14312, Algorithm 2): locality, within a budget per client and worker.

    G      the workers that hold most of the prompt's beginning
    avail  the workers w with q[client, w] > 0; while there is none, q[client, w] += quantum for all w
    choose the shortest queue of G and avail together, else the shortest of avail
    q[client, w] -= w_e * input tokens   when it is dispatched
    q[client, w] -= w_q * output tokens  when it has finished

Each worker runs DLPM. Then the service of two backlogged clients differs by at most 2 |W| (U + quantum) over any
interval (theorems 5.1 and 5.2), U = w_e * longest input + w_q * the most tokens a worker's batch holds. With an
infinite quantum (0 here) nothing is promised: a client whose prompts all begin alike pins one worker (A.5).
"""

from collections.abc import Sequence

from fairq.core.job import Generation, Job
from fairq.core.number import ceil_div
from fairq.core.param import Param
from fairq.core.placement import Placement, Upstream
from fairq.placements.holdings import Holdings, prefix_of


class D2LPM(Placement):
    """quantum  tokens of service that a client may have from a worker before the others; 0: without end"""

    name = "d2lpm"
    needs_prefix = True
    params = (
        Param(name="quantum", default=10_000, low=0, text="param.placement.quantum"),
        Param(name="input", default=1, low=0, text="param.vtc.input"),
        Param(name="output", default=2, low=0, text="param.vtc.output"),
        Param(name="blocks", default=100_000, low=1, text="param.placement.blocks"),
    )
    quantum: int
    input: int
    output: int
    blocks: int

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.holdings = Holdings(self.blocks)
        self.rounds: dict[str, int] = {}  # refills of a client's budgets: of all workers at once
        self.spent: dict[tuple[str, str], int] = {}  # (client, worker)

    def budget(self, client: str, name: str) -> int:
        """q[client, w]"""
        return self.rounds.get(client, 0) * self.quantum - self.spent.get((client, name), 0)

    def refills(self, client: str, names: Sequence[str]) -> int:
        """How many times all budgets must be refilled until one of these is above 0."""
        most = max(self.budget(client, name) for name in names)
        return 0 if most > 0 else ceil_div(1 - most, self.quantum)

    def choose(self, job: Job, upstreams: Sequence[Upstream]) -> Upstream:
        names = available = [one.name for one in upstreams]
        if self.quantum:
            given = self.refills(job.flow, names) * self.quantum
            available = [name for name in names if self.budget(job.flow, name) + given > 0]
        _, best = self.holdings.longest(prefix_of(job), names)
        chosen = [name for name in best if name in available] or available
        return min((one for one in upstreams if one.name in chosen), key=lambda one: one.inflight)

    def dispatched(self, job: Job, upstream: Upstream) -> None:
        assert isinstance(job, Generation)
        if self.quantum:  # the chosen one was among the first to be above 0, so its own refills are those of all
            self.rounds[job.flow] = self.rounds.get(job.flow, 0) + self.refills(job.flow, [upstream.name])
        self.holdings.send(prefix_of(job), upstream.name)
        self._spend(job.flow, upstream.name, self.input * job.prompt)

    def finished(self, job: Job, upstream: Upstream) -> None:
        assert isinstance(job, Generation)
        self._spend(job.flow, upstream.name, self.output * min(job.size or 0, job.limit))

    def _spend(self, client: str, name: str, cost: int) -> None:
        self.spent[client, name] = self.spent.get((client, name), 0) + cost
