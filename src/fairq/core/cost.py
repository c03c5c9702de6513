"""What a request costs: c(r) = alpha * n_input + beta * n_output, estimated at dispatch, final, never refunded.

Costs are in cost units: one input token of a model with multiplier 1 at alpha = 1. `core.estimator` computes them.
"""

from enum import StrEnum
from fractions import Fraction

from msgspec import Struct

ONE = Fraction(1)


class Source(StrEnum):
    """Where the token counts of a finished request come from."""

    UPSTREAM = "upstream"  # its own usage report
    COUNTED = "counted"  # an aborted stream: chunks that were delivered
    NONE = "none"  # it never reached an engine


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens of one request. `cached` is part of `prompt`; reasoning tokens are part of `completion`."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    source: Source = Source.NONE


UNUSED = Usage()


class CostModel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The rates. Multipliers apply per model, adapter and service tier, and multiply.

    cached_discount   share of an input token's cost that a prefix-cache hit saves, 0..1
    default_output    predicted output of a tenant and model never seen, tokens
    context_length    of the model; caps every prediction and every usage report
    image_tokens      what one image counts as input
    """

    alpha: Fraction = ONE
    beta: Fraction = Fraction(2)
    cached_discount: Fraction = Fraction(0)
    default_output: int = 256
    context_length: int = 131_072
    bytes_per_token: Fraction = Fraction(4)
    models: dict[str, Fraction] = {}
    adapters: dict[str, Fraction] = {}
    tiers: dict[str, Fraction] = {}


class Estimate(Struct, frozen=True):
    """What was believed of a request when it was dispatched. `cost` is a positive integer."""

    cost: int
    input_tokens: int
    output_tokens: int
