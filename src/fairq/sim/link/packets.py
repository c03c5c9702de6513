"""The packets of a link as jobs; a file of its own, for it can be compiled as a model cannot."""

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from fairq.core.job import Job


def jobs_of(packets: Iterable[Any]) -> list[Job]:
    """Of a scenario's `packets` each single one, in order of arrival; those of one instant as they are listed."""
    single: list[tuple[Any, Any]] = []
    for packet in packets:
        given = vars(packet)  # a model's fields one by one take twice as long
        at, count = given["arrival"], given["count"]
        if count == 1:  # nearly always
            single.append((at, given))
        else:
            single += [(at + n * given["every"], given) for n in range(count)]
    single.sort(key=itemgetter(0))
    numbers: dict[str, int] = {}
    jobs = []
    for seq, (at, given) in enumerate(single, 1):
        flow: str = given["flow"]
        numbers[flow] = number = numbers.get(flow, 0) + 1
        size, told = given["size"], given["estimate"]
        jobs.append(Job(id=f"{flow}#{number}", flow=flow, seq=seq, arrival=at, size=size, estimate=told))
    return jobs
