"""Job and Flow: the unit of work, and who it is charged to."""

from fractions import Fraction

from msgspec import Struct


class Job(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One unit of work. What a layer does not have stays at its default.

    id        unique while the job lives
    flow      who is charged (tenant, process, network flow); a path such as "org/team/user", flat by default
    seq       arrival order, the tie-break of last resort but one (then id)
    arrival   time of arrival in the layer's time unit (ns at the gateway, ticks on a CPU)
    size      exact need in the layer's unit, None while unknown (an LLM's output)
    estimate  what a policy is told instead of `size`
    priority  larger is more urgent
    deadline  absolute; a deadline of the work, not of its wait
    slice     how much service it asks for at a time (EEVDF's request), None where the policy decides
    period    between the releases of its task (rate monotonic), None for a job that comes once
    """

    id: str
    flow: str = ""
    seq: int = 0
    arrival: int = 0
    size: int | None = None
    estimate: int | None = None
    priority: int = 0
    deadline: int | None = None
    slice: int | None = None
    period: int | None = None


class Request(Job, frozen=True, kw_only=True, omit_defaults=True):
    """A job at the gateway: what the cost model may know of it. Never the text.

    model, adapter, tier   select the multipliers of the cost model
    input_bytes            bytes of text that will be tokenised
    input_tokens           exact, when the prompt was given as token ids
    extra_tokens           input that is not text: templates, images
    output_limit           the client's limit per choice, None if absent
    choices, prompts       n or best_of, and the length of a prompt array
    expires                when it stops waiting (absolute, ns)
    """

    model: str = ""
    adapter: str = ""
    tier: str = ""
    input_bytes: int = 0
    input_tokens: int | None = None
    extra_tokens: int = 0
    output_limit: int | None = None
    choices: int = 1
    prompts: int = 1
    expires: int = 0


class Generation(Job, frozen=True, kw_only=True, omit_defaults=True):
    """A job in an engine; `size` is the true length of its answer, which only an oracle may read.

    prompt   input tokens
    limit    max_tokens: the most output tokens it may have
    prefix   hashes of the prompt's blocks, each of the whole beginning up to its end
    """

    prompt: int
    limit: int
    prefix: tuple[int, ...] = ()


class Task(Job, frozen=True, kw_only=True, omit_defaults=True, gc=True):
    """A job in a cluster. `demand`: resource -> how much of it the task holds while it runs."""

    demand: dict[str, int] = {}


class Flow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A share. `weight` 2 means twice the service of weight 1 while both are backlogged.

    max_inflight  how many of its jobs may run at once, None for no cap
    paused        an operator has stopped it: it may queue, it is not backlogged
    """

    id: str
    weight: Fraction = Fraction(1)
    max_inflight: int | None = None
    paused: bool = False
