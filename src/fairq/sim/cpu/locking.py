"""Between the machine and a lock protocol: jobs here, ids and priorities there."""

from collections.abc import Callable

from msgspec.structs import replace

from fairq.core.errors import ConfigError
from fairq.core.job import Job
from fairq.core.policy import Policy
from fairq.locks import PROTOCOLS
from fairq.policies.fixed import FixedPriority
from fairq.sim.cpu.live import Live, Source


class Locking:
    """Under a policy without priorities all jobs are equal here, so that waiters are woken first come, first served.

    wake     called with each job that may ask again
    changed  called with a job's new `Job` when its effective priority changes
    """

    def __init__(
        self,
        policy: Policy,
        sources: list[Source],
        cpus: int,
        wake: Callable[[Live], None],
        changed: Callable[[Job], None],
    ) -> None:
        self.priorities = policy if isinstance(policy, FixedPriority) else None
        protocol = PROTOCOLS[self.priorities.protocol if self.priorities else "none"]
        if protocol.single_cpu and cpus > 1:
            raise ConfigError("cpus", cpus, f"protocol {protocol.name} is defined for one processor")
        ceilings: dict[str, int] = {}
        for source in sources:
            own = self.own(source.first())
            for hold in source.task.locks:
                ceilings[hold.resource] = max(own, ceilings.get(hold.resource, own))
        self.protocol = protocol(ceilings)
        self.lives: dict[str, Live] = {}
        self.wake, self.changed = wake, changed

    def own(self, job: Job) -> int:
        return self.priorities.base(job) if self.priorities else 0

    def join(self, live: Live) -> None:
        self.lives[live.id] = live
        self.protocol.join(live.id, self.own(live.job))

    def leave(self, live: Live) -> None:
        """It has ended, whatever it held."""
        woken = self.protocol.leave(live.id)
        del self.lives[live.id]
        self._after(woken)

    def release(self, live: Live, resource: str) -> None:
        self._after(self.protocol.release(live.id, resource))

    def refuses(self, live: Live) -> Live | None:
        """`live` asks for what it needs before it runs on. None: it has all; else who holds it up."""
        wanted = live.source.asks.get(live.done, ())
        while live.asked < len(wanted):
            by = self.protocol.request(live.id, wanted[live.asked])
            if by is not None:
                return self.lives[by]
            live.asked += 1
            self.tell()
        return None

    def undivided(self, live: Live) -> bool:
        """Must its slice not end now?"""
        return self.protocol.undivided and live.id in self.protocol.holder.values()

    def tell(self) -> None:
        """Tell the policy of every priority that is another one than before."""
        for id_, priority in self.protocol.changed():
            live = self.lives[id_]
            live.job = replace(live.job, priority=priority)
            self.changed(live.job)

    def _after(self, woken: list[str]) -> None:
        for id_ in woken:
            self.wake(self.lives[id_])
        self.tell()
