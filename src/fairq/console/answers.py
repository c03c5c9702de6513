"""Answers, and what they are made from: JSON, bodies, numbers in queries, errors."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from fairq.console import views
from fairq.console.guard import MAX_BODY, Refusal
from fairq.core.lines import encode
from fairq.core.wrong_value import WrongValue

Handlers = dict[Any, Callable[[Request, Exception], Response | Awaitable[Response]]]


def json(value: object, status: int = 200) -> Response:
    return Response(encode(value), status, media_type="application/json")


async def body_of(request: Request, kind: type[Any]) -> Any:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refusal(415, "wrong_type", "the body must be application/json")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise Refusal(413, "too_large", f"a body may have {MAX_BODY} bytes")
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        wrong = WrongValue.read(error, body)
        if wrong.key == "weight":
            wrong = msgspec.structs.replace(wrong, rule='must be a positive number: 3, 1.5 or "3/2"')
        raise Refusal(400, "wrong_body", str(wrong)) from None
    except msgspec.DecodeError as error:
        raise Refusal(400, "wrong_body", f"the body is not valid JSON: {error}") from None


def number_of(request: Request, name: str, default: float, least: float, most: float) -> float:
    text = request.query_params.get(name)
    try:
        value = default if text is None else float(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise Refusal(400, "wrong_query", f"{name} must be a number from {least:g} to {most:g}")
    return value


def refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    headers = {name.decode(): value.decode() for name, value in error.headers}
    return Response(error.body, error.status, headers, media_type="application/json")


def no_such_thing(request: Request, error: Exception) -> Response:
    """What Starlette's router raises: 404 and 405."""
    assert isinstance(error, HTTPException)
    path = request.url.path[:256]
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        problem = views.Problem("wrong_method", f"{path} takes {allowed}, not {request.method}")
    else:
        problem = views.Problem("unknown_path", f"there is nothing at {path}; /api/openapi.json lists what there is")
    return Response(encode(views.Failure(problem)), error.status_code, error.headers, media_type="application/json")


def unavailable(request: Request, error: Exception) -> Response:
    failure = views.Failure(views.Problem("disconnected", str(error)))
    return Response(encode(failure), 503, {"retry-after": "1"}, media_type="application/json")


def broken(request: Request, error: Exception) -> Response:
    """A defect of ours; uvicorn prints the traceback."""
    failure = views.Failure(views.Problem("defect", f"the console failed: {type(error).__name__}"))
    return Response(encode(failure), 500, media_type="application/json")
