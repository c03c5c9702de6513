"""What tokens cost: h(n_p, n_q) of the VTC paper, for n_p input and n_q output tokens; in whole units."""

from fractions import Fraction
from math import lcm

from msgspec import Struct

from fairq.core.errors import ConfigError


class TokenCost(Struct, frozen=True):
    """h(p, q) = (once + input*p + output*q + cross*p*q + square*q*q), in 1/scale of a token's cost."""

    once: int = 0
    input: int = 1
    output: int = 2
    cross: int = 0
    square: int = 0
    scale: int = 1

    def admission(self, prompt: int) -> int:
        """h(p, 0)"""
        return self.once + self.input * prompt

    def tokens(self, prompt: int, start: int, end: int) -> int:
        """h(p, end) - h(p, start)"""
        return (end - start) * (self.output + self.cross * prompt + self.square * (end + start))


def exact_cost(*decimals: str) -> TokenCost:
    """once, input, output, cross, square as decimals -> whole units of the finest of them."""
    once, input_, output, cross, square = (Fraction(text) for text in decimals)
    scale = lcm(*(part.denominator for part in (once, input_, output, cross, square)))
    return TokenCost(
        once=int(once * scale),
        input=int(input_ * scale),
        output=int(output * scale),
        cross=int(cross * scale),
        square=int(square * scale),
        scale=scale,
    )


# Profiled by the authors of VTC on an A10G, in time units of their profile.
PROFILES = {"a10g": exact_cost("1.14601454", "0.21001891", "0.10075395", "0.0039868", "0.00324733")}


def token_cost(profile: str, input_: int, output: int) -> TokenCost:
    """`weights`: input and output tokens at these weights; or the name of a profile."""
    if profile == "weights":
        if not input_ + output:
            raise ConfigError("output", output, "input and output cannot both cost nothing")
        return TokenCost(0, input_, output)
    return PROFILES[profile]
