"""The estimator: c(r) before a request and after it, from what its tenant did before.

All arithmetic is on integers. Predictions move slowly and only with requests that finished, so that they never depend
on timing.
"""

from fractions import Fraction
from math import lcm
from typing import Any, Final

from fairq.core.cost import ONE, CostModel, Estimate, Source, Usage
from fairq.core.job import Request

GRID: Final = 1 << 16  # fixed point of the moving averages
MEMORY: Final = 8  # an average follows the last MEMORY samples, roughly
KEYS: Final = 8192  # (tenant, model) pairs remembered
UPSTREAM: Final = Source.UPSTREAM
NONE: Final = Source.NONE


class Habits:
    """What a tenant does with a model, on the grid: output tokens, tokens per input byte, cached share of input.

    Each is a moving average of so many samples. The prior counts as one; then the last MEMORY samples weigh most.
    """

    __slots__ = ("cached_share", "inputs", "output", "outputs", "shares", "tokens_per_byte")

    def __init__(
        self,
        output: int,
        tokens_per_byte: int,
        cached_share: int = 0,
        outputs: int = 1,
        inputs: int = 1,
        shares: int = 1,
    ) -> None:
        self.output = output
        self.tokens_per_byte = tokens_per_byte
        self.cached_share = cached_share
        self.outputs = outputs
        self.inputs = inputs
        self.shares = shares

    def as_list(self) -> list[int]:
        """As its arguments stand."""
        return [self.output, self.tokens_per_byte, self.cached_share, self.outputs, self.inputs, self.shares]


class Estimator:
    """c(r) before and after. Its state is a function of the requests that finished, in order."""

    def __init__(self, model: CostModel) -> None:
        self.habits: dict[tuple[str, str], Habits] = {}
        self.fading: dict[tuple[str, str], Habits] = {}  # not used since `habits` was last full
        self.adopt(model)

    def adopt(self, model: CostModel) -> None:
        """Use other rates from now on. They are brought to one denominator: rationals in a hot path are slow."""
        self.model = model
        saved = model.alpha * model.cached_discount
        self.per_unit = lcm(model.alpha.denominator, model.beta.denominator, saved.denominator)
        self.per_input, self.per_output, self.per_cached = (
            int(rate * self.per_unit) for rate in (model.alpha, model.beta, saved)
        )
        self.context = model.context_length
        # What is believed of a tenant and model never seen
        self.prior = Habits(model.default_output * GRID, int(GRID / model.bytes_per_token))
        self.multiplies = bool(model.models or model.adapters or model.tiers)
        self.multipliers: dict[tuple[str, str, str], Fraction] = {}
        self.plain = self.per_unit == 1 and not (self.multiplies or self.per_cached)  # one token, so many units

    def estimate(self, request: Request) -> Estimate:
        """Pure. O(1)."""
        if request.size is not None:  # an endpoint whose requests have a fixed cost
            return Estimate(request.size, 0, 0)
        key = (request.flow, request.model)
        habits = self.habits.get(key) or self.fading.get(key, self.prior)
        inputs, prompts, context = request.input_tokens, request.prompts, self.context
        if inputs is None:
            inputs = request.extra_tokens - (-request.input_bytes * habits.tokens_per_byte // GRID)
        if not 0 < inputs <= context * prompts:
            inputs = min(inputs or 1, context * prompts)
        outputs = -(-habits.output // GRID)
        limit, room = request.output_limit, context + -inputs // prompts
        if limit is not None and limit < outputs:
            outputs = limit
        if room < outputs:
            outputs = room
        outputs *= request.choices * prompts
        if self.plain:
            return Estimate(self.per_input * inputs + self.per_output * outputs or 1, inputs, outputs)
        cached = inputs * habits.cached_share // GRID
        return Estimate(self.price(request, inputs, outputs, cached), inputs, outputs)

    def actual(self, request: Request, usage: Usage) -> int:
        """The same price for what was really used (clipped); 0 for a request that never reached an engine."""
        if usage.source is NONE:
            return 0
        if request.size is not None:
            return request.size
        if self.plain:
            return self.per_input * usage.prompt + self.per_output * usage.completion or 1
        return self.price(request, usage.prompt, usage.completion, usage.cached)

    def learn(self, request: Request, usage: Usage, natural_end: bool) -> None:
        """A request is over; `usage` is clipped.

        An output that was cut off (natural_end false: aborted, failed) only says that it would have been at least
        that long. It counts where that is news; else a client that aborts every stream would stay cheap for ever.
        """
        source = usage.source
        if source is NONE:
            return
        key = (request.flow, request.model)
        habits = self.habits.get(key) or self.remember(key)
        output = usage.completion * GRID // (request.choices * request.prompts)
        if natural_end or output > habits.output:
            samples = habits.outputs
            if samples < MEMORY:
                habits.outputs = samples = samples + 1
            habits.output += (output - habits.output) // samples
        prompt = usage.prompt
        if prompt and source is UPSTREAM:
            if request.input_bytes and request.input_tokens is None:
                tokens = prompt - request.extra_tokens
                samples = habits.inputs
                if samples < MEMORY:
                    habits.inputs = samples = samples + 1
                rate = (tokens if tokens > 1 else 1) * GRID // request.input_bytes
                habits.tokens_per_byte += (rate - habits.tokens_per_byte) // samples
            if self.per_cached:
                share = usage.cached * GRID // prompt
                if habits.shares < MEMORY:
                    habits.shares += 1
                habits.cached_share += (share - habits.cached_share) // habits.shares

    def price(self, request: Request, inputs: int, outputs: int, cached: int) -> int:
        """ceil((alpha * (inputs - discount * cached) + beta * outputs) * multipliers), at least 1."""
        units = self.per_input * inputs - self.per_cached * cached + self.per_output * outputs
        per_unit = self.per_unit
        if self.multiplies:
            multiplier = self.multiplier(request)
            units *= multiplier.numerator
            per_unit *= multiplier.denominator
        return -(-units // per_unit) or 1

    def multiplier(self, request: Request) -> Fraction:
        model = self.model
        key = (  # only configured names: the others come from clients, without end
            request.model if request.model in model.models else "",
            request.adapter if request.adapter in model.adapters else "",
            request.tier if request.tier in model.tiers else "",
        )
        product = self.multipliers.get(key)
        if product is None:
            product = model.models.get(key[0], ONE) * model.adapters.get(key[1], ONE) * model.tiers.get(key[2], ONE)
            self.multipliers[key] = product
        return product

    def clipped(self, request: Request, usage: Usage) -> Usage:
        """An upstream cannot report more than its context holds: a broken one must not ruin a tenant."""
        prompt, completion, most = usage.prompt, usage.completion, self.context
        if 0 <= usage.cached <= prompt <= most and 0 <= completion <= most:
            return usage
        most *= request.prompts
        prompt = min(max(prompt, 0), most)
        completion = min(max(completion, 0), most * request.choices)
        return Usage(prompt, completion, min(max(usage.cached, 0), prompt), usage.source)

    def remember(self, key: tuple[str, str]) -> Habits:
        """Habits that were not used of late, to be changed. Two generations forget the least recently used ones."""
        habits = self.fading.pop(key, None) or Habits(*self.prior.as_list())
        if 2 * len(self.habits) >= KEYS:
            self.fading, self.habits = self.habits, {}
        self.habits[key] = habits
        return habits

    def state(self) -> list[Any]:
        """The fading generation, and the other one: [tenant, model, *habits] each."""
        return [
            [[tenant, model, *habits.as_list()] for (tenant, model), habits in generation.items()]
            for generation in (self.fading, self.habits)
        ]

    def restore(self, state: list[Any]) -> None:
        self.fading, self.habits = (
            {(tenant, model): Habits(*habits) for tenant, model, *habits in generation} for generation in state
        )
