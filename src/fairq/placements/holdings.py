"""Which upstream was sent which beginnings of prompts: what a router can know of the engines' prefix caches."""

from collections.abc import Sequence

from fairq.core.job import Job


def prefix_of(job: Job) -> Sequence[int]:
    """The ids of a job's blocks, each of the whole prompt up to its end; none where the layer has none."""
    return getattr(job, "prefix", ())


class Holdings:
    """A tree over blocks, as a table: an id stands for the whole beginning, so its holders are all one needs.

    most  blocks that are remembered of each upstream; the least recently sent are forgotten first
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.holders: dict[int, dict[str, None]] = {}
        self.sent: dict[str, dict[int, None]] = {}  # of each upstream, least recent first

    def longest(self, prefix: Sequence[int], names: Sequence[str]) -> tuple[int, list[str]]:
        """Of these upstreams those that hold most of the prompt's beginning, and how many blocks that is."""
        best = list(names)
        for count, block in enumerate(prefix):
            holders = self.holders.get(block, {})
            still = [name for name in best if name in holders]
            if not still:
                return count, best
            best = still
        return len(prefix), best

    def send(self, prefix: Sequence[int], name: str) -> None:
        sent = self.sent.setdefault(name, {})
        for block in reversed(prefix):  # ends are forgotten before beginnings
            sent.pop(block, None)
            sent[block] = None
            self.holders.setdefault(block, {})[name] = None
        while len(sent) > self.most:
            block = next(iter(sent))
            del sent[block], self.holders[block][name]
            if not self.holders[block]:
                del self.holders[block]
