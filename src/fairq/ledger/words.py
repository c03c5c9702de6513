"""What the ledger's commands found, in English sentences. They are made here, from codes and numbers."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from fairq.core.commands import Dispatch
from fairq.core.number import Number, of_json
from fairq.core.policy import Why
from fairq.ledger.explanation import Cause, Explanation, Layer, Step
from fairq.ledger.tags import units

NOT_PROMISED = (
    "Not promised: actual GPU seconds, KV-cache occupancy, deadlines of single requests, fairness across pools or "
    "across gateway replicas, a single server's delay bounds on parallel upstreams, intervals with changing weights."
)

SERVED_SHOWN = 8

CAUSES: dict[str, str] = {
    Cause.NO_UPSTREAM: "no upstream was usable",
    Cause.PAUSED: "its tenant was paused",
    Cause.CAPPED: "its tenant was at its own limit of running requests",
    Cause.OWN_QUEUE: "all slots were taken, and earlier requests of its tenant were before it",
    Cause.SLOTS: "all slots were taken, and it was its tenant's next",
    Cause.RETRY: "it waited for another upstream after a failure",
}

LAYERS: dict[str, str] = {
    Layer.UPSTREAMS: "the upstreams",
    Layer.LIMITS: "a limit of its tenant",
    Layer.ORDER: "the order of dispatch",
}


def duration(ns: int) -> str:
    if ns < 1000:
        return f"{ns} ns"
    if ns < 1_000_000:
        return f"{ns / 1e3:.0f} µs"
    return f"{ns / 1e6:.1f} ms" if ns < 1_000_000_000 else f"{ns / 1e9:.3f} s"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def amount(value: float) -> str:
    """Cost units: whole where they are."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def tag(why: Why, name: str) -> Number:
    return of_json(why.values.get(name, 0))


def _least_meter(why: Why) -> str:
    ahead = units(tag(why, "meter") - tag(why, "virtual_time"))
    return f"its meter was the least, {amount(ahead)} ahead of virtual time"


WHYS: dict[str, Callable[[Why], str]] = {
    "least-meter": _least_meter,
    "first-come": lambda why: f"it came first (number {tag(why, 'seq')})",
    "next-turn": lambda why: f"its tenant had the next turn (round {tag(why, 'round')})",
    "cheapest-head": lambda why: f"it was the cheapest next request (cost {tag(why, 'cost')})",
}


def reason(why: Why) -> str:
    """A decision's reason; the bare code and numbers for a policy that has no sentence here."""
    words = WHYS.get(why.code)
    return words(why) if words else " ".join([why.code, *(f"{k}={v}" for k, v in why.values.items())])


def sentences(found: Explanation) -> Iterator[str]:
    """The explanation, from arrival to end. Bounded: long waits are summed up per tenant."""
    yield _arrival(found)
    if found.lives > 1:
        yield f"The ledger knows {found.lives} requests of this id; this is the last one."
    if found.position:
        yield _queue(found)
        yield from _wait(found)
        yield from _meanwhile(found)
    for line in found.own:
        yield _dispatch(found, line)
    yield from _end(found)
    if found.truncated:
        yield "Note: it arrived before this ledger begins: earlier decisions are not known."
    if found.interrupted:
        yield f"Note: then the recording was interrupted ({found.interrupted}), and it was gone."
    yield from (f"Note: {note}." for note in found.notes)


def _arrival(found: Explanation) -> str:
    when = datetime.fromtimestamp(found.wall / 1e9, UTC).isoformat(sep=" ", timespec="milliseconds")
    model = f", model {found.model}" if found.model else ""
    return f"{found.id} of {found.tenant or '(no tenant)'} came at {when} to pool {found.pool} ({found.policy}{model})."


def _queue(found: Explanation) -> str:
    place = "next" if found.position == 1 else f"number {found.position}"
    rivals = f"{count(found.rivals, 'other tenant')} had work waiting"
    lead = "" if found.lead is None else f"; {found.tenant} was {amount(found.lead)} ahead of virtual time"
    return f"It was {place} in the queue of {found.tenant}; {rivals}{lead}."


def _wait(found: Explanation) -> Iterator[str]:
    if not any(found.waited.values()):
        yield "It did not have to wait."
        return
    parts = sorted(found.waited.items(), key=lambda part: -part[1])
    each = "; ".join(f"{duration(ns)}: {CAUSES[cause]}" for cause, ns in parts)
    total = duration(sum(found.waited.values()))
    yield f"It waited {total}, made to by {LAYERS[found.layer or Layer.ORDER]} ({each})."


def _meanwhile(found: Explanation) -> Iterator[str]:
    if not found.served:
        return
    shown = found.served[:SERVED_SHOWN]
    each = ", ".join(f"{s.tenant} {count(s.requests, 'request')} (charged {s.charge:,})" for s in shown)
    rest = found.served[SERVED_SHOWN:]
    more = ""
    if rest:
        requests, charge = sum(s.requests for s in rest), sum(s.charge for s in rest)
        more = f", and {count(len(rest), 'other tenant')} {count(requests, 'request')} (charged {charge:,})"
    yield f"Dispatched meanwhile: {each}{more}."
    early = len(found.steps) - len(found.steps) // 2 if found.left_out else len(found.steps)
    for step in found.steps[:early]:
        yield _step(found, step)
    if found.left_out:
        yield f"  ... {count(found.left_out, 'more decision')} ..."
        for step in found.steps[early:]:
            yield _step(found, step)


def _step(found: Explanation, step: Step) -> str:
    lead = "" if step.lead is None else f"; {found.tenant} was {amount(step.lead)} ahead"
    after = duration(step.time - found.arrival)
    return f"  +{after} {step.id} of {step.tenant} went, charged {step.charge:,}: {reason(step.why)}{lead}."


def _dispatch(found: Explanation, line: Dispatch) -> str:
    after = duration(line.time - found.arrival)
    if line.attempt > 1:
        return f"After {after} it was tried again, at {line.upstream}, without another charge."
    tokens = f"{line.input_tokens:,} tokens in, {line.output_tokens:,} out"
    cost = f"estimated at {line.estimate:,} ({tokens}), charged {line.charge:,}"
    return f"After {after} it went to {line.upstream}: {reason(line.why)}. It was {cost}."


def _end(found: Explanation) -> Iterator[str]:
    if found.first_byte is not None and found.generation is not None:
        delivery = f", and {duration(found.delivery)} until the client had it" if found.delivery else ""
        first, rest = duration(found.first_byte), duration(found.generation)
        yield f"At the upstream it took {first} to the first byte and {rest} to generate{delivery}."
    elif found.first_byte is not None:
        yield f"At the upstream it stayed {duration(found.first_byte)} without a byte."
    if found.outcome is None:
        yield "It runs." if found.own else "It still waits."
        return
    if not found.attempts and found.total is None:
        yield f"It was refused before it could queue: {found.outcome}, status {found.status}."
        return
    finish = f", finish reason {found.finish}" if found.finish else ""
    total = f" after {duration(found.total)}" if found.total is not None else ""
    yield f"It ended{total}: {found.outcome}{finish}, status {found.status or 'none'}."
    if found.actual:
        usage = found.usage
        cached = f" ({usage.cached:,} cached)" if usage.cached else ""
        tokens = f"{usage.prompt:,} tokens in{cached}, {usage.completion:,} out"
        yield f"It really cost {found.actual:,} ({tokens}); the estimate was {found.estimate:,}."
