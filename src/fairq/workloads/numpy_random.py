"""The random numbers of `numpy.random.seed(n)`, which published workloads were drawn with, without numpy.

numpy's legacy generator is the Mersenne Twister of the standard library, seeded in another way (Matsumoto and
Nishimura's init_genrand); what is drawn from it is redone here as numpy documents it: doubles of 53 bits, integers by
masking and rejecting, exponentials by inversion.
"""

from __future__ import annotations

from math import log
from random import Random


class NumpyRandom:
    def __init__(self, seed: int) -> None:
        words = [seed & 0xFFFFFFFF]
        for i in range(1, 624):
            words.append((1812433253 * (words[-1] ^ words[-1] >> 30) + i) & 0xFFFFFFFF)
        self._twister = Random()
        self._twister.setstate((3, (*words, 624), None))

    def rand(self) -> float:
        """Uniform in [0, 1)."""
        return self._twister.random()

    def integers(self, low: int, high: int, count: int) -> list[int]:
        """`randint(low, high, count)`: uniform in low .. high - 1. A range of one number draws nothing."""
        largest = high - 1 - low
        return [low + self._below(largest) for _ in range(count)] if largest else [low] * count

    def _below(self, largest: int) -> int:
        bits = largest.bit_length()
        while True:
            value = self._twister.getrandbits(32) & ((1 << bits) - 1)
            if value <= largest:
                return value

    def exponential(self, scale: float) -> float:
        """`gamma(1, scale)`, of which the legacy generator makes an exponential."""
        return scale * -log(1.0 - self._twister.random())
