"""A counter that grows by itself with a service clock, and is read, not ticked.

While it runs, n ticks after it was last set, it is worth value + unit * n * (speed + bend * n): a jump over a hundred
decode iterations costs what one costs, and a cost of tokens that grows with the length of the answer stays exact.
"""

from fairq.core.number import Number


class Counter:
    """value        at `at`, a reading of the clock
    speed, bend  what is charged per tick and per tick squared from then on, for all jobs of the flow that run
    unit         what a cost of 1 is at the flow's weight
    """

    __slots__ = ("at", "bend", "speed", "unit", "value")

    def __init__(self, unit: Number = 1) -> None:
        self.value: Number = 0
        self.unit = unit
        self.at = self.speed = self.bend = 0

    def read(self, clock: int) -> Number:
        ticks = clock - self.at
        if not ticks or not self.speed:
            return self.value
        return self.value + self.unit * ticks * (self.speed + self.bend * ticks)

    def settle(self, clock: int) -> None:
        """Write down what it is worth now."""
        ticks = clock - self.at
        if ticks and self.speed:
            self.value += self.unit * ticks * (self.speed + self.bend * ticks)
            self.speed += 2 * self.bend * ticks
        self.at = clock
