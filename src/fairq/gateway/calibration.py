"""Optional slow calibration: how much more an output token costs than an input token, from measured service times.

Time at an engine is taken to be a * input + b * output + c. Only the ratio b/a is used: alpha stays as configured, so
that cost units stay comparable. A decision never waits for a measurement; what changes is said in an event, and holds
for requests that are dispatched after it.

The fit is least squares over a sliding window, without the samples that are far from it: a client that read slowly, an
engine that was restarted. Each change is bounded, and so is the distance from the configured ratio.
"""

from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from fairq.core.commands import Ended
from fairq.core.cost import Source
from fairq.core.lifecycle import Outcome

WINDOW = 512  # samples that are looked at
EVERY = 64  # samples between two looks
STEP = Fraction(5, 4)  # the most that one change may multiply or divide by
REACH = 16  # the most that all changes together may
GRID = 64  # ratios are multiples of 1/GRID
ROUNDS = 3  # of leaving out what is far from the fit
FAR = 4  # times the median distance
UNALIKE = Fraction(
    1, 16
)  # share of the variation of inputs that outputs must not explain, or b and a cannot be told apart


class Sample(NamedTuple):
    """One request: tokens that were worked on, and ns from its dispatch to its last byte."""

    inputs: int
    outputs: int
    time: int


class Fit(NamedTuple):
    """time * scale = inputs * a + outputs * b + c, all integers, scale > 0."""

    a: int
    b: int
    c: int
    scale: int

    def distance(self, sample: Sample) -> int:
        return abs(sample.inputs * self.a + sample.outputs * self.b + self.c - sample.time * self.scale)


class Calibration:
    def __init__(self, configured: Fraction, ratio: Fraction | None = None) -> None:
        """`ratio`: what was found before."""
        self.lowest, self.highest = configured / REACH, configured * REACH
        self.ratio = configured if ratio is None else min(max(ratio, self.lowest), self.highest)
        self._samples: deque[Sample] = deque(maxlen=WINDOW)
        self._until_look = EVERY

    def observe(self, record: Ended) -> bool:
        """A request is over. True: `ratio` has changed."""
        sample = sample_of(record)
        if sample is None:
            return False
        self._samples.append(sample)
        self._until_look -= 1
        if self._until_look:
            return False
        self._until_look = EVERY
        found = ratio_of(self._samples)
        if found is None:
            return False
        return self._move(found)

    def _move(self, found: Fraction) -> bool:
        before = self.ratio
        bounded = min(max(found, before / STEP, self.lowest), before * STEP, self.highest)
        if abs(bounded - before) * GRID >= 1:
            self.ratio = max(Fraction(round(bounded * GRID), GRID), Fraction(1, GRID))
        return self.ratio != before


def sample_of(record: Ended) -> Sample | None:
    """None for a request that says nothing about its engine's speed."""
    usage = record.usage
    if record.outcome is not Outcome.COMPLETED or usage.source is not Source.UPSTREAM:
        return None
    if record.attempts != 1 or not usage.completion or not record.ttft:
        return None
    time = record.ttft - record.wait + record.tpot * (usage.completion - 1)
    return Sample(usage.prompt - usage.cached, usage.completion, time) if time > 0 else None


def ratio_of(samples: Sequence[Sample]) -> Fraction | None:
    """b/a, or None where the samples cannot tell. O(samples)."""
    kept = list(samples)
    for _ in range(ROUNDS):
        fit = fit_of(kept)
        if fit is None:
            return None
        distances = sorted(map(fit.distance, kept))
        near = FAR * distances[len(distances) // 2]
        if distances[-1] <= near:
            break
        kept = [sample for sample in kept if fit.distance(sample) <= near]
    fit = fit_of(kept)
    return Fraction(fit.b, fit.a) if fit is not None and fit.a > 0 and fit.b > 0 else None


def fit_of(samples: Sequence[Sample]) -> Fit | None:
    """Ordinary least squares, exactly. None when inputs or outputs vary too little, or only together."""
    n = len(samples)
    x, y, t = (sum(column) for column in zip(*samples, strict=True))
    xx = n * sum(s.inputs * s.inputs for s in samples) - x * x
    yy = n * sum(s.outputs * s.outputs for s in samples) - y * y
    xy = n * sum(s.inputs * s.outputs for s in samples) - x * y
    xt = n * sum(s.inputs * s.time for s in samples) - x * t
    yt = n * sum(s.outputs * s.time for s in samples) - y * t
    scale = xx * yy - xy * xy
    if scale <= UNALIKE * xx * yy:
        return None
    a, b = xt * yy - yt * xy, yt * xx - xt * xy
    return Fit(a * n, b * n, t * scale - x * a - y * b, scale * n)
