"""Waiting jobs by their match, against looking at each of them."""

from random import Random

import pytest

from fairq.core.job import Generation, Job
from fairq.core.matches import Matches
from fairq.sim.engine.prefix import PrefixCache

BLOCK = 4


class Seen:
    """A view of a cache; a prompt's last token is never found, as in an engine."""

    running = ()

    def __init__(self, cache: PrefixCache) -> None:
        self.cache = cache

    def fits(self, job: Job) -> bool:
        raise AssertionError("nobody asks")

    def cached_prefix(self, job: Job) -> int:
        assert isinstance(job, Generation)
        return min(self.cache.match(job.prefix), (job.prompt - 1) // BLOCK) * BLOCK


@pytest.mark.parametrize("seed", range(30))
def test_the_order_is_that_of_looking_at_everybody(seed: int) -> None:
    """Jobs come and go, prompts enter the cache and are dropped from it; now and then somebody asks."""
    chance, cache = Random(seed), PrefixCache()
    matches, view, waiting = Matches(BLOCK), Seen(cache), {}
    for number in range(300):
        match chance.randrange(6):
            case 0 | 1:
                path = [chance.randrange(3) for _ in range(chance.randrange(6))]
                prefix = tuple(hash(tuple(path[: i + 1])) for i in range(len(path)))
                job = Generation(
                    id=str(number),
                    flow=chance.choice("AB"),
                    seq=number,
                    arrival=0,
                    size=1,
                    prompt=len(prefix) * BLOCK + chance.choice([0, 0, 2]) or 1,
                    limit=1,
                    prefix=prefix,
                )
                waiting[job.id] = job
                matches.add(job)
            case 2 if waiting:
                job = waiting.pop(chance.choice(list(waiting)))
                matches.remove(job)
            case 3 if waiting:
                prefix = chance.choice(list(waiting.values())).prefix
                had = cache.take(prefix)
                cache.add(prefix, had, len(prefix))
                matches.came(prefix[had:])
                cache.release(prefix, len(prefix))
            case 4:
                cache.evict(chance.randrange(4))
            case 5:
                flows = chance.choice(["A", "B", "AB"])
                told = [(job.id, cached) for job, cached, _ in matches.longest_first(flows, view)]
                there = [(-view.cached_prefix(job), job.seq, job.id) for job in waiting.values() if job.flow in flows]
                assert told == [(id_, -cached) for cached, _, id_ in sorted(there)]
    for job in waiting.values():
        matches.remove(job)
    assert not any([matches.where, matches.fresh, matches.next, *matches.spots.values()])


def test_nobody_is_asked_who_is_no_shorter_than_one_who_did_not_fit() -> None:
    matches = Matches(BLOCK)
    for number, prompt in enumerate([9, 12, 5, 30]):
        matches.add(Generation(id=str(number), flow="A", seq=number, arrival=0, size=1, prompt=prompt, limit=1))
    asked = []
    for job, _, spot in matches.longest_first("A", Seen(PrefixCache())):
        asked.append(job.prompt)
        spot.refuse(job)
    assert asked == [9, 12, 5]  # behind 5 nobody can be shorter
