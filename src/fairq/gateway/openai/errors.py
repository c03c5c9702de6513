"""What fairq itself says in OpenAI's dialect: an error, an error inside a stream, a comment while a request waits."""

import msgspec

from fairq.core.errors import FairqError


class BadRequest(FairqError):
    """The client's body breaks a rule: status 400, never forwarded.

    `message` is one clear line, `param` the path of the field (`messages[0].content`) or None for the body as a whole,
    `code` a stable word: invalid_json, invalid_type, invalid_value, missing_parameter, duplicate_parameter,
    unsupported_parameter.
    """

    def __init__(self, message: str, param: str | None, code: str) -> None:
        super().__init__(message)
        self.message, self.param, self.code = message, param, code

    def body(self) -> bytes:
        return error_body(self.message, "invalid_request_error", self.param, self.code)


def error_body(message: str, type: str, param: str | None = None, code: str | None = None) -> bytes:
    """OpenAI's error envelope, as every client library reads it."""
    error = {"message": message, "type": type, "param": param, "code": code}
    return msgspec.json.encode({"error": error})


def error_event(
    message: str,
    type: str,
    param: str | None = None,
    code: str | None = None,
    *,
    inside_event: bool = False,
) -> bytes:
    """The last event of a stream that failed after its first byte; no `[DONE]` follows it.

    With `inside_event` the stream broke in the middle of an event: that one is ended first, else the error would
    become a part of it and no client would see it.
    """
    broken = b"\n\n" if inside_event else b""
    return b"%bdata: %b\n\n" % (broken, error_body(message, type, param, code))


def waiting_comment(position: int) -> bytes:
    """Keeps proxies and clients awake while a request is queued; clients ignore comments. `position` counts from 1."""
    return b": waiting, position %d\n\n" % position
