"""The slots of a pool: its upstreams, how many of their slots are free, and since when none of them is usable."""

from collections.abc import Iterable, Iterator

from fairq.core.placement import Upstream


class Slots:
    """O(1) to take and to release; O(upstreams) at a change and to list who has room."""

    def __init__(self) -> None:
        self.upstreams: dict[str, Upstream] = {}
        self.usable: list[Upstream] = []  # healthy, not draining, with slots at all; in order of name
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
        self.usable = sorted((u for u in self.upstreams.values() if u.usable), key=lambda u: u.name)
        self.free = sum(max(u.free, 0) for u in self.usable)

    def with_room(self) -> list[Upstream]:
        """To be asked for while a slot is free; not to be changed."""
        usable = self.usable
        if len(usable) == 1:
            return usable
        return [upstream for upstream in usable if upstream.inflight < upstream.slots]

    def others(self, name: str) -> Iterator[Upstream]:
        """Usable upstreams but this one."""
        return (upstream for upstream in self.usable if upstream.name != name)

    def take(self, upstream: Upstream) -> None:
        upstream.inflight += 1
        self.free -= 1

    def release(self, name: str) -> Upstream | None:
        """None: it has been removed meanwhile."""
        upstream = self.upstreams.get(name)
        if upstream is not None:
            upstream.inflight = inflight = upstream.inflight - 1
            if inflight < upstream.slots and upstream.healthy and not upstream.draining:
                self.free += 1
        return upstream
