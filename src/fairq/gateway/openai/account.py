"""What a response says about itself: tokens used, why it ended, whether it failed.

Read beside the bytes that are passed on, whatever an upstream sends: what cannot be read counts as not said.

Usage is cumulative, so the last report wins (vLLM's `continuous_usage_stats`). But engines report two things under one
name: in a chunk with one choice, and in all of llama.cpp's, usage is that choice's own; elsewhere it is the whole
request's. Own ones are added over the choices, else ten answers could be had for the price of one.
"""

import json
from typing import Any, Final

from msgspec import Raw

from fairq.core.cost import Source, Usage
from fairq.core.number import ceil_div
from fairq.gateway.openai.reports import Choice, PromptDetails, Reported, Response, decode_response

UPSTREAM: Final = Source.UPSTREAM
WHOLE: Final = -1  # the request, where choices have indices

FINISH_REASONS: Final = frozenset({"stop", "length", "tool_calls", "content_filter"})
OTHER_NAMES: Final = {"function_call": "tool_calls", "eos": "stop", "eos_token": "stop", "stop_sequence": "stop"}


def one_word(reason: str) -> str:
    reason = OTHER_NAMES.get(reason, reason)
    return reason if reason in FINISH_REASONS else "other"


def usage_of(reported: Reported) -> Usage | None:
    prompt, completion, details = reported.prompt_tokens, reported.completion_tokens, reported.prompt_tokens_details
    if prompt is None and completion is None:
        return None
    prompt, cached = prompt or 0, (details and details.cached_tokens) or 0
    return Usage(prompt, completion or 0, cached if cached < prompt else prompt, UPSTREAM)


def read_plain(body: bytes) -> tuple[Usage | None, str] | None:
    """(usage, finish reason or "") of a whole answer with one choice, as nearly all are; None for any other body."""
    try:
        response = decode_response(body)
    except (ValueError, RecursionError):
        return None
    choices, usage = response.choices, response.usage
    if not choices or len(choices) > 1 or response.error is not None:
        return None
    reason = choices[0].finish_reason
    return (None if usage is None else usage_of(usage)), (one_word(reason) if reason else "")


class Account:
    """What was learned of a response.

    finish_reasons  by the index of the choice, in the upstream's own words
    error           the upstream's message, when it reported a failure inside the response

    `choices` is the number of answers asked for per prompt: they share its tokens.
    """

    __slots__ = ("_choices", "_ended", "_reports", "error", "finish_reasons")

    def __init__(self, choices: int = 1) -> None:
        self.finish_reasons: dict[int, str] = {}
        self.error: str | None = None
        self._choices = choices
        self._reports: dict[int, Usage] = {}  # by choice, or WHOLE alone
        self._ended: set[int] = set()  # choices that ended since without a report of their own

    @property
    def usage(self) -> Usage | None:
        """The tokens of the request as far as they were reported, or None."""
        reports = self._reports.values()
        if len(reports) < 2:
            return next(iter(reports), None)
        return Usage(
            ceil_div(sum(each.prompt for each in reports), self._choices),
            sum(each.completion for each in reports),
            sum(each.cached for each in reports) // self._choices,
            Source.UPSTREAM,
        )

    @property
    def finish_reason(self) -> str | None:
        """One word: stop, length, tool_calls, content_filter or other. The first choice to finish speaks for all."""
        if not self.finish_reasons:
            return None
        return one_word(next(iter(self.finish_reasons.values())))

    def read(self, document: bytes) -> bool:
        """Learn from one JSON document; False when it is none."""
        response = response_in(document)
        if response is not None:
            self.learn(response)
        return response is not None

    def learn(self, response: Response) -> bool:
        """Did it say anything?"""
        choices, reported, error = response.choices or [], response.usage, response.error
        usage = usage_of(reported) if reported is not None else None
        ended = False
        for choice in choices:
            if choice.finish_reason:
                ended = True
                self.finish_reasons[choice.index] = choice.finish_reason
                if usage is None:
                    self._ended.add(choice.index)
        if usage is not None:
            self._report(usage, [choice.index for choice in choices], response.timings is not None)
        if error is None and response.object == "error":  # older vLLM sends the error without an envelope
            error = {"message": response.message}
        if error is not None:
            self.error = _message(error)
        return ended or reported is not None or error is not None

    def _report(self, usage: Usage, choices: list[int], own: bool) -> None:
        if not choices:
            # llama.cpp's chat reports after each choice that ended, others once after all have.
            choices, self._ended = list(self._ended), set()
        if len(choices) == 1 or (own and choices):
            # Of a whole response with several choices llama.cpp reports one: it has to stand for each.
            self._reports.pop(WHOLE, None)
            for index in choices:
                self._reports[index] = usage
        else:
            self._reports = {WHOLE: usage}


def response_in(document: bytes) -> Response | None:
    """None: it is no JSON object."""
    try:
        response: Response = decode_response(document)
    except (ValueError, RecursionError):
        return _read_leniently(document)
    return response


def _read_leniently(document: bytes) -> Response | None:
    """Python's own decoder takes NaN and lone surrogates, which Python engines send; wrong types are left out."""
    try:
        found = json.loads(document)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    choices = found.get("choices")
    read = [
        Choice(choice["index"] if isinstance(choice.get("index"), int) else 0, choice["finish_reason"])
        for choice in (choices if isinstance(choices, list) else ())
        if isinstance(choice, dict) and isinstance(choice.get("finish_reason"), str)
    ]
    usage = found.get("usage")
    return Response(
        read,
        _reported(usage) if isinstance(usage, dict) else None,
        found.get("error"),
        found.get("object"),
        found.get("message"),
        Raw() if "timings" in found else None,
    )


def _reported(usage: dict[str, Any]) -> Reported:
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return Reported(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), PromptDetails(cached))


def _count(value: object) -> int | None:
    """A number of tokens; anything else an upstream may put there says nothing."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < 2**53 else None


def _message(error: object) -> str:
    if isinstance(error, dict):
        error = error.get("message") or error.get("type") or "unspecified"
    return str(error)[:500]
