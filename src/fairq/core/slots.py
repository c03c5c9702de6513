"""The slots of a pool: its upstreams, how many of their slots are free, and where."""

from bisect import insort
from collections.abc import Iterable, Iterator

from fairq.core.placement import Upstream


def by_name(upstream: Upstream) -> str:
    return upstream.name


class Slots:
    """O(upstreams) at a change, and at most that to take and to release.

    usable  healthy, not draining, with slots at all; in order of name
    room    those of them that have a free slot; in order of name
    free    slots in all
    """

    def __init__(self) -> None:
        self.upstreams: dict[str, Upstream] = {}
        self.usable: list[Upstream] = []
        self.room: list[Upstream] = []
        self.free = 0

    def change(self, name: str, slots: int, healthy: bool, draining: bool, running: Iterable[str]) -> None:
        """`running`: where each running job is; an upstream that comes back may still hold some."""
        upstream = self.upstreams.get(name)
        if upstream is None:
            upstream = self.upstreams[name] = Upstream(name=name, slots=slots)
            upstream.inflight = sum(where == name for where in running)
        upstream.slots, upstream.healthy, upstream.draining = slots, healthy, draining
        self.count()

    def remove(self, name: str) -> None:
        self.upstreams.pop(name, None)
        self.count()

    def count(self) -> None:
        self.usable = sorted((u for u in self.upstreams.values() if u.usable), key=by_name)
        self.room = [upstream for upstream in self.usable if upstream.free > 0]
        self.free = sum(upstream.free for upstream in self.room)

    def others(self, name: str) -> Iterator[Upstream]:
        """Usable upstreams but this one."""
        return (upstream for upstream in self.usable if upstream.name != name)

    def take(self, upstream: Upstream) -> None:
        """One of `room`."""
        self.free -= 1
        upstream.inflight = inflight = upstream.inflight + 1
        if inflight == upstream.slots:
            self.room.remove(upstream)

    def release(self, name: str) -> Upstream | None:
        """None: it has been removed meanwhile."""
        upstream = self.upstreams.get(name)
        if upstream is None:
            return None
        upstream.inflight = inflight = upstream.inflight - 1
        spare = upstream.slots - inflight
        if spare > 0 and upstream.healthy and not upstream.draining:
            self.free += 1
            if spare == 1:  # it was full
                if self.room:
                    insort(self.room, upstream, key=by_name)
                else:
                    self.room.append(upstream)
        return upstream
