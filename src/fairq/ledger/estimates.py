"""What the last run had learnt about its tenants' requests: all that a new run takes over from its ledger."""

from pathlib import Path

from msgspec.structs import replace

from fairq.core import events as ev
from fairq.core.commands import Ended
from fairq.core.cost import CostModel
from fairq.core.estimator import Estimator
from fairq.core.job import Request
from fairq.core.lifecycle import Outcome
from fairq.core.lines import of_plain
from fairq.core.saved import SavedEntry
from fairq.ledger.reader import Reader
from fairq.ledger.segment import AnyLine, Head, reading_state, segments_in


def last_estimator(folder: Path) -> Estimator | None:
    """As it was at the end of a pool's ledger, with its rates; None where there is none.

    Queues and meters of a run that is over mean nothing to the next one: its clients are gone. Reads one segment.
    Raises LedgerError for a segment that cannot be read.
    """
    for segment in reversed(segments_in(folder) if folder.is_dir() else []):
        school = School()
        for line in Reader(segment):
            school.feed(line.value)
        if school.estimator is not None:  # else empty or torn
            return school.estimator
    return None


class School:
    """An estimator that learns from recorded requests as a scheduler's does."""

    def __init__(self) -> None:
        self.estimator: Estimator | None = None
        self._requests: dict[str, Request] = {}

    def feed(self, line: AnyLine) -> None:
        if isinstance(line, Head):
            with reading_state(line):
                self.estimator = Estimator(of_plain(line.state["rates"], CostModel))
                self.estimator.restore(line.state["estimator"])
                self._requests = {e.request.id: e.request for e in of_plain(line.state["jobs"], list[SavedEntry])}
            return
        estimator = self.estimator
        assert estimator is not None  # readers give a head first
        match line:
            case ev.Admitted():
                self._requests[line.request.id] = line.request
            case ev.Finished(id=id_) if id_ in self._requests:
                request = self._requests[id_]
                estimator.learn(request, estimator.clipped(request, line.usage), line.outcome is Outcome.COMPLETED)
            case Ended():
                self._requests.pop(line.id, None)
            case ev.Reconfigured():
                estimator.adopt(line.cost)
            case ev.CalibrationChanged():
                estimator.adopt(replace(estimator.model, alpha=line.alpha, beta=line.beta))
