"""What a request costs: c(r) = alpha * n_input + beta * n_output, estimated at dispatch, final, never refunded.

All arithmetic is on integers. Costs are in cost units: one input token of a model with multiplier 1 at alpha = 1.
Predictions move slowly and only with requests that finished, so that they never depend on timing.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import StrEnum
from fractions import Fraction
from math import lcm
from typing import Any

from msgspec import Struct

from fairq.core.job import Request
from fairq.core.number import ceil_div

ONE = Fraction(1)
GRID = 1 << 16  # fixed point of the moving averages
MEMORY = 8  # an average follows the last MEMORY samples, roughly
KEYS = 8192  # (tenant, model) pairs remembered; the least recently used one is forgotten


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


class Average(Struct):
    """A moving average on the grid. The prior counts as one sample; then the last MEMORY samples weigh most."""

    value: int
    samples: int = 1

    def add(self, sample: int) -> None:
        self.samples = min(self.samples + 1, MEMORY)
        self.value += (sample - self.value) // self.samples


class Habits(Struct):
    """What a tenant does with a model, on the grid: output tokens, tokens per input byte, cached share of input."""

    output: Average
    tokens_per_byte: Average
    cached_share: Average


class Estimator:
    """c(r) before and after. Its state is a function of the requests that finished, in order."""

    def __init__(self, model: CostModel) -> None:
        self.habits: OrderedDict[tuple[str, str], Habits] = OrderedDict()
        self.adopt(model)

    def adopt(self, model: CostModel) -> None:
        """Use other rates from now on. They are brought to one denominator: rationals in a hot path are slow."""
        self.model = model
        saved = model.alpha * model.cached_discount
        self.per_unit = lcm(model.alpha.denominator, model.beta.denominator, saved.denominator)
        self.per_input, self.per_output, self.per_cached = (
            int(rate * self.per_unit) for rate in (model.alpha, model.beta, saved)
        )
        self._multipliers: dict[tuple[str, str, str], tuple[int, int]] = {}

    def estimate(self, request: Request) -> Estimate:
        """Pure. O(1)."""
        if request.size is not None:  # an endpoint whose requests have a fixed cost
            return Estimate(request.size, 0, 0)
        habits = self.habits.get((request.flow, request.model)) or self.prior()
        model = self.model
        inputs = request.input_tokens
        if inputs is None:
            inputs = request.extra_tokens + ceil_div(request.input_bytes * habits.tokens_per_byte.value, GRID)
        inputs = min(max(inputs, 1), model.context_length * request.prompts)
        outputs = ceil_div(habits.output.value, GRID)
        if request.output_limit is not None:
            outputs = min(outputs, request.output_limit)
        room = max(model.context_length - ceil_div(inputs, request.prompts), 0)
        outputs = min(outputs, room) * request.choices * request.prompts
        cached = inputs * habits.cached_share.value // GRID
        return Estimate(self.price(request, inputs, outputs, cached), inputs, outputs)

    def actual(self, request: Request, usage: Usage) -> int:
        """The same price for what was really used; 0 for a request that never reached an engine."""
        if usage.source is Source.NONE:
            return 0
        if request.size is not None:
            return request.size
        usage = self.clipped(request, usage)
        return self.price(request, usage.prompt, usage.completion, usage.cached)

    def learn(self, request: Request, usage: Usage, natural_end: bool) -> None:
        """A request finished. Only outputs that ended by themselves (stop, length) say how long outputs are."""
        if usage.source is not Source.UPSTREAM:
            return
        usage = self.clipped(request, usage)
        key = (request.flow, request.model)
        habits = self.habits.pop(key, None) or self.prior()
        self.habits[key] = habits
        if len(self.habits) > KEYS:
            self.habits.popitem(last=False)
        if natural_end:
            habits.output.add(usage.completion * GRID // (request.choices * request.prompts))
        if usage.prompt:
            if request.input_bytes and request.input_tokens is None:
                habits.tokens_per_byte.add(max(usage.prompt - request.extra_tokens, 1) * GRID // request.input_bytes)
            if self.model.cached_discount:
                habits.cached_share.add(usage.cached * GRID // usage.prompt)

    def price(self, request: Request, inputs: int, outputs: int, cached: int) -> int:
        """ceil((alpha * (inputs - discount * cached) + beta * outputs) * multipliers), at least 1."""
        units = self.per_input * inputs - self.per_cached * cached + self.per_output * outputs
        numerator, denominator = self.multiplier(request)
        return max(1, ceil_div(units * numerator, self.per_unit * denominator))

    def multiplier(self, request: Request) -> tuple[int, int]:
        key = (request.model, request.adapter, request.tier)
        found = self._multipliers.get(key)
        if found is None:
            model = self.model
            product = model.models.get(key[0], ONE) * model.adapters.get(key[1], ONE) * model.tiers.get(key[2], ONE)
            found = (product.numerator, product.denominator)
            if len(self._multipliers) < KEYS:  # names come from clients
                self._multipliers[key] = found
        return found

    def clipped(self, request: Request, usage: Usage) -> Usage:
        """An upstream cannot report more than its context holds: a broken one must not ruin a tenant."""
        most = self.model.context_length * request.prompts
        prompt = min(max(usage.prompt, 0), most)
        completion = min(max(usage.completion, 0), most * request.choices)
        return Usage(prompt, completion, min(max(usage.cached, 0), prompt), usage.source)

    def prior(self) -> Habits:
        model = self.model
        return Habits(
            Average(model.default_output * GRID),
            Average(int(GRID / model.bytes_per_token)),
            Average(0),
        )

    def state(self) -> list[Any]:
        return [
            [tenant, model, *((a.value, a.samples) for a in (h.output, h.tokens_per_byte, h.cached_share))]
            for (tenant, model), h in self.habits.items()
        ]

    def restore(self, state: list[Any]) -> None:
        self.habits = OrderedDict(
            ((tenant, model), Habits(*(Average(*average) for average in averages)))
            for tenant, model, *averages in state
        )


class Settlement:
    """`fixed`: what was charged at dispatch stays. The article's rule."""

    name = "fixed"

    def charge(self, flow: str, estimate: int) -> int:
        """Now, for real: may use up a carry."""
        return estimate

    def preview(self, flow: str, estimate: int) -> int:
        """What `charge` would say, changing nothing."""
        return estimate

    def joined(self, flow: str, lead: Callable[[str], int]) -> None:
        """A flow became backlogged; `lead` says how far its meter is ahead of virtual time, in cost units."""

    def finished(self, flow: str, error: int, epoch: int, contended: bool) -> None: ...
    def idled(self) -> None: ...

    @property
    def epoch(self) -> int:
        return 0

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None: ...


class Forward(Settlement):
    """`forward`: a finished request's error (actual - its own estimate) goes onto its tenant's next charges.

    Meters stay monotone, since no charge is below 1, and long-run actual service follows the weights even when
    estimates are wrong by a factor. What simulation showed to be necessary:

    * an error counts only if somebody else was backlogged when its request was dispatched;
    * at a join credit is clipped so that M + carry/w >= V: no banked idle time through the back door;
    * the idle reset zeroes every carry and starts an epoch; late errors of an older epoch are dropped;
    * a debt outlives a leave within its epoch.
    """

    name = "forward"

    def __init__(self) -> None:
        self.carry: dict[str, int] = {}
        self._epoch = 0

    @property
    def epoch(self) -> int:
        return self._epoch

    def preview(self, flow: str, estimate: int) -> int:
        return max(1, estimate + self.carry.get(flow, 0))

    def charge(self, flow: str, estimate: int) -> int:
        due = estimate + self.carry.pop(flow, 0)
        charge = max(1, due)
        if due != charge:
            self.carry[flow] = due - charge
        return charge

    def joined(self, flow: str, lead: Callable[[str], int]) -> None:
        carry = self.carry.get(flow, 0)
        if carry < 0:
            self.carry[flow] = max(carry, -max(lead(flow), 0))

    def finished(self, flow: str, error: int, epoch: int, contended: bool) -> None:
        if contended and epoch == self._epoch and error:
            self.carry[flow] = self.carry.get(flow, 0) + error

    def idled(self) -> None:
        self.carry.clear()
        self._epoch += 1

    def state(self) -> dict[str, Any]:
        return {"carry": dict(self.carry), "epoch": self._epoch}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.carry, self._epoch = dict(state["carry"]), state["epoch"]


SETTLEMENTS: dict[str, type[Settlement]] = {kind.name: kind for kind in (Settlement, Forward)}
