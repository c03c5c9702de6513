"""Service of an engine's clients over time, and how far apart it is: the measures of the VTC paper.

A request's service is w_p * input + w_q * output tokens. Only its first and last token are timed, so its service is
spread evenly between them. At each tick the rate of service and the rate of demand of every client are taken over a
window around it:

    s_j  service of client j in the window, divided by the window's length
    d_j  service that its arrivals in the window ask for, divided likewise
    difference = sum over clients of min(max_k s_k - s_j, |d_j - s_j|)

A client that gets what it asks for, or as much as the best served, adds nothing. (Sheng et al., "Fairness in Serving
Large Language Models", OSDI 2024; the ticks and the second case of |d - s| as in the artifact's plots.)

Memory: clients x ticks, whatever the number of requests and tokens.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import ceil, floor

from fairq.measure.grid import Difference, Grid

WEIGHTS = (1, 2)  # of an input and an output token


class ServiceOverTime:
    """Feed it requests with `add`, in any order; read rates and differences at any time."""

    def __init__(self, grid: Grid | None = None, weights: tuple[float, float] = WEIGHTS) -> None:
        self.grid = Grid() if grid is None else grid
        self.weights = weights
        self._times, self._step = self.grid.times(), self.grid.step
        self._half, self._warm_up = self.grid.window / 2, self.grid.warm_up
        self._begins = [tick - self._half for tick in self._times]  # of the windows around them
        self._ends = [tick + self._half for tick in self._times]
        # Of each client per tick: units served inside the window, units asked for there, units since the warm-up.
        self._rows: dict[str, tuple[list[float], list[float], list[float]]] = {}

    def add(
        self, client: str, arrival: float, first: float | None, last: float, input_tokens: int, output_tokens: int
    ) -> None:
        """A request that was served: its arrival, first and last token (s). `first` None: it got no token."""
        rows = self._rows.get(client)
        if rows is None:
            ticks = len(self._times)
            rows = self._rows[client] = [0.0] * ticks, [0.0] * ticks, [0.0] * ticks
        served, demanded, grown = rows
        times, half, warm_up, step = self._times, self._half, self._warm_up, self._step
        units = self.weights[0] * input_tokens + self.weights[1] * output_tokens
        # Tick i of the list stands at warm_up + (i + 1) * step; all from `since` to `until`, both included, are
        # those from max(ceil((since - warm_up) / step), 1) - 1 to floor((until - warm_up) / step) - 1.
        ticks = len(times)
        after = floor((arrival + half - warm_up) / step)
        for i in range(max(ceil((arrival - half - warm_up) / step), 1) - 1, after if after < ticks else ticks):
            demanded[i] += units
        # Of one whose first token is its last there is no stretch to spread over; the artifact leaves it out, too.
        if first is None or last - first <= 1e-5 or last < 1:
            return
        rate, begins, ends = units / (last - first), self._begins, self._ends
        after = floor((last + half - warm_up) / step)
        for i in range(max(ceil((first - half - warm_up) / step), 1) - 1, after if after < ticks else ticks):
            since, until = begins[i], ends[i]
            if first > since:
                since = first
            if last < until:
                until = last
            if until > since:
                served[i] += rate * (until - since)
        since = first if first > warm_up else warm_up
        if last <= since:
            return
        ended = bisect_right(times, last)
        for i in range(max(ceil((first - warm_up) / step), 1) - 1, ended):
            if times[i] > since:
                grown[i] += rate * (times[i] - since)
        whole = rate * (last - since)
        grown[ended:] = [before + whole for before in grown[ended:]]

    def rates(self) -> Mapping[str, Sequence[float]]:
        """Service per second of each client at each tick."""
        return {client: [units / self.grid.window for units in rows[0]] for client, rows in self._rows.items()}

    def demand(self) -> Mapping[str, Sequence[float]]:
        """Requested service per second of each client at each tick."""
        return {client: [units / self.grid.window for units in rows[1]] for client, rows in self._rows.items()}

    def accumulated(self) -> Mapping[str, Sequence[float]]:
        """Service of each client since the warm-up, up to each tick."""
        return {client: rows[2] for client, rows in self._rows.items()}

    def difference(self) -> Difference | None:
        """None when there is no client."""
        if not self._rows:
            return None
        served, demanded, grown = (zip(*rows, strict=True) for rows in zip(*self._rows.values(), strict=True))
        series = [self._apart(own, wished) for own, wished in zip(served, demanded, strict=True)]
        mean = sum(series) / len(series)
        apart = max(max(column) - min(column) for column in grown)
        variance = sum((value - mean) ** 2 for value in series) / len(series)
        return Difference(max(series), mean, variance, apart, series)

    def _apart(self, served: Sequence[float], demanded: Sequence[float]) -> float:
        """The difference at one tick. Most clients of many neither are served nor ask for anything there."""
        if not any(served) and not any(demanded):
            return 0.0
        window, found = self.grid.window, []
        best = max(served) / window
        for own, wished in zip(served, demanded, strict=True):
            if own or wished:
                got = own / window
                missed, behind = abs(wished / window - got), best - got
                found.append(missed if missed < behind else behind)
        return sum(found, 0.0)


def slowdown(shared: Mapping[str, float], alone: Mapping[str, float]) -> dict[str, float | None]:
    """Isolation: a client's time among all divided by its time with the same requests alone in the engine.

    1 is perfect isolation. None where it took no time alone. Clients that are in both.
    """
    return {client: shared[client] / alone[client] if alone[client] else None for client in shared if client in alone}
