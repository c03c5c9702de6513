"""Waiting jobs by how much of their prompts is in the cache, without looking at each of them at every decision.

Jobs of one flow whose prompts match up to the same block stand together in a spot, for their match is one number: it is
read off any of them. When blocks are dropped from the cache that number falls by itself. When a block comes in, a match
may grow only for those who have it next; they are found by that block, and are placed anew. So a choice costs what the
number of spots says, of which the cache allows a few, and not what the number of jobs says.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator
from heapq import heapify, heappop, heapreplace

from fairq.core.job import Generation, Job
from fairq.core.layer import View

Place = tuple[int, str]
"""(seq, id): who came first."""


class Spot:
    """Jobs of `flow` that match `depth` blocks, the last of which is `block`, as long as none is dropped.

    line             them in order of arrival
    prompts, limits  what they ask for, sorted
    tried            (prompt, limit) of those that did not fit; `over`: nobody else in here need be asked
    read             has this pass over the spots read what it matches now?
    """

    __slots__ = ("block", "depth", "flow", "jobs", "limits", "line", "over", "prompts", "read", "tried")

    def __init__(self, flow: str, block: int | None, depth: int) -> None:
        self.flow, self.block, self.depth = flow, block, depth
        self.jobs: dict[str, Generation] = {}
        self.line: list[Place] = []
        self.prompts: list[int] = []
        self.limits: list[int] = []
        self.tried: set[tuple[int, int]] = set()
        self.over = self.read = False

    def add(self, job: Generation) -> None:
        self.jobs[job.id] = job
        insort(self.line, (job.seq, job.id))
        insort(self.prompts, job.prompt)
        insort(self.limits, job.limit)

    def remove(self, job: Generation) -> None:
        del self.jobs[job.id]
        del self.line[bisect_left(self.line, (job.seq, job.id))]
        del self.prompts[bisect_left(self.prompts, job.prompt)]
        del self.limits[bisect_left(self.limits, job.limit)]

    def refuse(self, job: Generation) -> None:
        """It does not fit: nobody in here does who is no shorter."""
        self.tried.add((job.prompt, job.limit))
        self.over = self.over or (self.prompts[0] >= job.prompt and self.limits[0] >= job.limit)


class Matches:
    """block_tokens: of a block of a prefix; 0 where there are none."""

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.spots: dict[str, dict[int | None, Spot]] = {}  # of each flow, by block
        self.where: dict[str, Spot] = {}  # of each job
        self.next: dict[int, dict[str, Generation]] = {}  # jobs by the block that would make their match longer
        self.fresh: dict[str, Generation] = {}  # have no spot yet

    def add(self, job: Job) -> None:
        assert isinstance(job, Generation)
        self.fresh[job.id] = job

    def remove(self, job: Job) -> None:
        assert isinstance(job, Generation)
        if self.fresh.pop(job.id, None) is not None:
            return
        spot = self.where.pop(job.id)
        spot.remove(job)
        if not spot.line:
            del self.spots[spot.flow][spot.block]
        if spot.depth < len(job.prefix):
            following = job.prefix[spot.depth]
            del self.next[following][job.id]
            if not self.next[following]:
                del self.next[following]

    def came(self, blocks: Iterable[int]) -> None:
        """These are in the cache from now on."""
        for block in blocks:
            for job in list(self.next.get(block, {}).values()):
                self.remove(job)
                self.fresh[job.id] = job

    def settle(self, view: View) -> None:
        """Everybody gets a spot."""
        for job in self.fresh.values():
            depth = view.cached_prefix(job) // self.block_tokens if self.block_tokens else 0
            block = job.prefix[depth - 1] if depth else None
            spots = self.spots.setdefault(job.flow, {})
            spot = spots.get(block)
            if spot is None:
                spot = spots[block] = Spot(job.flow, block, depth)
            spot.add(job)
            self.where[job.id] = spot
            if depth < len(job.prefix):
                self.next.setdefault(job.prefix[depth], {})[job.id] = job
        self.fresh.clear()

    def longest_first(self, flows: Collection[str], view: View) -> Iterator[tuple[Generation, int, Spot]]:
        """The jobs of these flows, the tokens of them that are cached, and their spots: the longest match first, among
        equals who came first. Whose spot is over is left out."""
        self.settle(view)
        heap: list[tuple[int, Place, int, Spot]] = []
        for flow in flows:
            for spot in self.spots.get(flow, {}).values():
                spot.read = False  # its depth is the most that can be cached, which tells the order of most of them
                heap.append((-spot.depth * self.block_tokens, spot.line[0], 0, spot))
        heapify(heap)
        while heap:
            cached, place, at, spot = heap[0]
            job = spot.jobs[place[1]]
            if not spot.read:
                spot.read, spot.over = True, False
                spot.tried.clear()
                if (found := -view.cached_prefix(job)) != cached:
                    heapreplace(heap, (found, place, at, spot))
                    continue
            if (job.prompt, job.limit) not in spot.tried:
                yield job, -cached, spot
            if spot.over or at + 1 == len(spot.line):
                heappop(heap)
            else:
                heapreplace(heap, (cached, spot.line[at + 1], at + 1, spot))
