"""What a pool had learned of its requests when its ledger ended: a restart loses the queues, not the predictions."""

from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from fairq.core import events as ev
from fairq.core.commands import Ended
from fairq.core.cost import CostModel, Estimator
from fairq.core.entry import Entry
from fairq.core.job import Request
from fairq.core.lifecycle import Outcome
from fairq.core.lines import of_plain
from fairq.ledger.reader import Reader
from fairq.ledger.segment import Head, LedgerError, segments_in


class Learned(NamedTuple):
    """`habits`: a state of `core.cost.Estimator`. `rates`: those in force at the end, calibration included."""

    habits: list[Any]
    rates: CostModel


def learned(folder: Path) -> Learned | None:
    """Of a pool's folder; None without a segment that has a head. Raises LedgerError.

    Only the last such segment is read: its head holds all that was learned before it.
    """
    try:
        segments = segments_in(folder) if folder.is_dir() else []
    except OSError as error:
        raise LedgerError(f"{folder}: {error.strerror or error}") from None
    for path in reversed(segments):
        estimator = _at_the_end(path)
        if estimator is not None:
            return Learned(estimator.state(), estimator.model)
    return None


def _at_the_end(path: Path) -> Estimator | None:
    estimator: Estimator | None = None
    living: dict[str, Request] = {}
    for line in Reader(path):
        value = line.value
        if isinstance(value, Head):
            estimator, living = _at_the_start(value, line.where)
            continue
        assert estimator is not None  # a segment begins with its head, or the reader raises
        match value:
            case ev.Admitted():
                living[value.request.id] = value.request
            case ev.Finished():
                request = living.get(value.id)
                if request is not None:  # else its admission is in a gap
                    usage = estimator.clipped(request, value.usage)
                    estimator.learn(request, usage, value.outcome is Outcome.COMPLETED)
            case Ended():
                living.pop(value.id, None)
            case ev.Reconfigured():
                estimator.adopt(value.cost)
            case ev.CalibrationChanged():
                estimator.adopt(replace(estimator.model, alpha=value.alpha, beta=value.beta))
    return estimator


def _at_the_start(head: Head, where: str) -> tuple[Estimator, dict[str, Request]]:
    try:
        estimator = Estimator(of_plain(head.state["rates"], CostModel))
        estimator.restore(head.state["estimator"])
        jobs = of_plain(head.state["jobs"], list[Entry])
    except (ValueError, TypeError, KeyError) as error:
        raise LedgerError(f"{where}: a state that this fairq cannot read: {error}") from None
    return estimator, {entry.request.id: entry.request for entry in jobs}
