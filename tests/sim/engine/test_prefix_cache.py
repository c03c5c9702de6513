"""The prefix cache against published ratios, and against a cache that is a list of whole prompts."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq.sim.engine.prefix import PrefixCache, hit_ratio
from fairq.traces import Trace
from fairq.workloads import make

DATA = Path(__file__).parents[3] / "data"


@pytest.mark.parametrize(
    ("name", "ratio"),
    [
        ("mooncake_conversation.jsonl.xz", 0.3664),
        ("mooncake_synthetic.jsonl.xz", 0.6396),
        ("sharegpt.jsonl", 0.0765),
    ],
)
def test_a_cache_without_limit_hits_the_known_share(name: str, ratio: float) -> None:
    found = hit_ratio([one.blocks for one in Trace(DATA / name)])
    assert found is not None
    assert round(found, 4) == ratio


def test_more_memory_never_hits_less_and_enough_hits_all() -> None:
    prefixes = [one.blocks for one in Trace(DATA / "heads" / "mooncake_conversation.jsonl")]
    ratios = [hit_ratio(prefixes, blocks) or 0 for blocks in (0, 100, 500, 2_000, 10**6)]
    assert ratios == sorted(ratios)
    assert ratios[0] == 0
    assert ratios[-1] == hit_ratio(prefixes)


class Listed:
    """The same rules, said with whole prompts: every beginning in memory, with its users and its last use."""

    def __init__(self) -> None:
        self.users: dict[tuple[str, ...], int] = {}
        self.used: dict[tuple[str, ...], int] = {}
        self.clock = 0

    def match(self, text: str) -> int:
        return next((n for n in range(len(text)) if tuple(text[: n + 1]) not in self.users), len(text))

    def start(self, text: str) -> int:
        found = self.match(text)
        for n in range(1, len(text) + 1):
            self.users[tuple(text[:n])] = self.users.get(tuple(text[:n]), 0) + 1
        return found

    def end(self, text: str) -> None:
        self.clock += 1
        for n in range(1, len(text) + 1):
            self.users[tuple(text[:n])] -= 1
            self.used[tuple(text[:n])] = self.clock

    def evict(self) -> None:
        """The unused beginning that was used longest ago; of one prompt's the longest."""
        idle = [key for key, users in self.users.items() if not users]
        if idle:
            gone = min(idle, key=lambda key: (self.used[key], -len(key)))
            del self.users[gone]


texts = st.text("ab", min_size=1, max_size=6)
steps = st.lists(st.one_of(texts, st.integers(0, 4)), max_size=40)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_it_agrees_with_a_list_of_prompts(moves: list[str | int]) -> None:
    cache, listed = PrefixCache(), Listed()
    running: list[str] = []
    for move in moves:
        if isinstance(move, str):
            blocks = _blocks(move)
            assert cache.match(blocks) == listed.match(move)
            unused = cache.unused(blocks, cache.match(blocks))
            held = cache.held
            found = cache.take(blocks)
            assert cache.held == held + unused
            assert found == listed.start(move)
            assert cache.add(blocks, found, len(blocks)) == 0
            running.append(move)
        elif running and move < 3:
            text = running.pop(move % len(running))
            cache.release(_blocks(text), len(text))
            listed.end(text)
        else:
            cache.evict(1)
            listed.evict()
        cache.validate()
        assert len(cache.users) == len(listed.users)
        for text in running:
            assert cache.match(_blocks(text)) == len(text)  # what is in use is never dropped
    assert {block: users for block, users in cache.users.items() if users} == {
        _blocks("".join(key))[-1]: users for key, users in listed.users.items() if users
    }


def _blocks(text: str) -> tuple[int, ...]:
    """Block n of a prompt: a number for its first n letters."""
    return tuple(int("1" + text[: n + 1].replace("a", "2").replace("b", "3")) for n in range(len(text)))


def test_two_that_compute_the_same_prompt_at_once_keep_one_copy() -> None:
    cache = PrefixCache()
    assert cache.take((1, 2, 3)) == 0
    assert cache.take((1, 2, 3)) == 0
    assert cache.add((1, 2, 3), 0, 3) == 0
    assert cache.add((1, 2, 3), 0, 3) == 3
    assert cache.held == 3
    assert cache.release((1, 2, 3), 3) == 0
    assert cache.release((1, 2, 3), 3) == 3
    assert (cache.held, cache.idle, cache.evict(9)) == (0, 3, 3)


def test_the_least_recently_used_prompt_goes_from_its_end() -> None:
    cache = PrefixCache()
    for prefix in ((1, 2, 3), (4, 5)):
        cache.take(prefix)
        cache.add(prefix, 0, len(prefix))
        cache.release(prefix, len(prefix))
    cache.evict(1)
    assert (cache.match((1, 2, 3)), cache.match((4, 5))) == (2, 2)
    cache.take((1,))  # used again: the other prompt is older now, and so is block 2
    cache.release((1,), 1)
    cache.evict(3)
    assert (cache.match((1, 2, 3)), cache.match((4, 5))) == (1, 0)


def test_shared_system_prompts_survive_in_little_memory() -> None:
    """Three prompts of 64 blocks are used all the time, questions once: LRU keeps the prompts."""
    made = make("shared-prefix:prefix=1024,clients=3,rate=10,input=64", 1)
    total = sum(len(one.blocks) for one in made)
    found = hit_ratio([one.blocks for one in made], blocks=400)
    assert found is not None
    assert found * total == (len(made) - 3) * 64


def test_matching_a_million_blocks_looks_at_twenty() -> None:
    class Counted(dict[int, int]):
        looked = 0

        def __contains__(self, key: object) -> bool:
            self.looked += 1
            return super().__contains__(key)

    cache, chance = PrefixCache(), Random(1)
    for _ in range(50):
        prefix = tuple(chance.randrange(10**9) for _ in range(100))
        cache.take(prefix)
        cache.add(prefix, 0, 100)
    cache.users = Counted(cache.users)
    known = next(iter(cache.users))
    assert cache.match((known, *range(10**6, 2 * 10**6))) == 1
    assert cache.users.looked <= 20
