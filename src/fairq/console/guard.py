"""Who may ask, and for what: checked before any handler runs, and the same for every path.

Host      must be a name of this console: else a foreign page could point its own name here (DNS rebinding)
Origin    of a change must be this console itself: a foreign page cannot use a browser's access (CSRF)
token     for every change; for everything but /health when the console can be reached from other machines

The lab's runs are posted and change nothing: of a change they have the Origin check and a limit, not the token.
"""

import hmac
import ipaddress
import time
from base64 import b64decode
from collections.abc import Callable, Iterable
from hashlib import sha256

import msgspec
from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairq.console.views import Failure, Problem
from fairq.core.errors import ConfigError
from fairq.lab.routes import MAX_ORDER, RUN

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN_PATHS = frozenset({"/health"})
COMPUTING = frozenset({RUN})
MAX_BODY = 16 << 10
CHANGES_PER_SECOND, CHANGES_AT_ONCE = 10, 50
RUNS_PER_SECOND, RUNS_AT_ONCE = 20, 100
GUESSES_PER_SECOND, GUESSES_AT_ONCE = 1, 10

HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Access(Struct, frozen=True):
    """
    host   address that the console is bound to
    names  further Host names that it answers to
    token  of the administrator; "" refuses every change
    """

    host: str = "127.0.0.1"
    names: tuple[str, ...] = ()
    token: str = ""

    def check(self) -> None:
        """Raises ConfigError for a console that anybody could read."""
        if not self.local and not self.token:
            raise ConfigError("--host", self.host, "off loopback the console needs an admin token: FAIRQ_CONSOLE_TOKEN")

    @property
    def local(self) -> bool:
        """Can only this machine reach it?"""
        return is_loopback(self.host)

    def answers_to(self, name: str) -> bool:
        if name in LOOPBACK_NAMES or name == self.host.lower() or name in map(str.lower, self.names):
            return True
        try:
            bound, asked = ipaddress.ip_address(self.host), ipaddress.ip_address(name)
        except ValueError:
            return False
        # Bound to every address it has no name of its own; a number in Host cannot be rebound to another place.
        return bound.is_unspecified and not asked.is_unspecified

    def knows(self, authorization: bytes, *, browser: bool) -> bool:
        """Is it `Bearer TOKEN`? Where `browser`, Basic with the token as password counts too. In constant time."""
        scheme, _, given = authorization.strip().partition(b" ")
        given = given.strip()
        if browser and scheme.lower() == b"basic":
            try:
                given = b64decode(given, validate=True).partition(b":")[2]
            except ValueError:
                given = b""
        elif scheme.lower() != b"bearer":
            given = b""
        same = hmac.compare_digest(sha256(given).digest(), sha256(self.token.encode()).digest())
        return same and bool(self.token)


class Bucket:
    """At most `burst` at once, and `rate` per second."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._level, self._at = float(burst), clock()

    def take(self) -> bool:
        now = self._clock()
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        if self._level < 1:
            return False
        self._level -= 1
        return True


class Refusal(Exception):
    """An answer instead of what was asked for."""

    def __init__(self, status: int, code: str, message: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, tuple(headers)

    @property
    def body(self) -> bytes:
        return msgspec.json.encode(Failure(Problem(self.code, str(self))))


class Guard:
    """ASGI middleware. It also adds the security headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access
        self._changes = Bucket(CHANGES_PER_SECOND, CHANGES_AT_ONCE)
        self._guesses = Bucket(GUESSES_PER_SECOND, GUESSES_AT_ONCE)
        self._runs = Bucket(RUNS_PER_SECOND, RUNS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = message.get("headers", ())
                names = {name.lower() for name, _ in own}
                message["headers"] = [*own, *(header for header in HEADERS if header[0] not in names)]
            await send(message)

        try:
            self._check(scope)
        except Refusal as refusal:
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(refusal.body)).encode())]
            await send_with_headers(
                {"type": "http.response.start", "status": refusal.status, "headers": [*headers, *refusal.headers]}
            )
            body = b"" if scope["method"] == "HEAD" else refusal.body
            await send({"type": "http.response.body", "body": body})
        else:
            await self._app(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> None:
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in (b"host", b"origin", b"authorization", b"content-length") and name in headers:
                raise Refusal(400, "repeated_header", f"{name.decode()} must not be repeated")
            headers[name] = value
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if not self._access.answers_to(_name_in(host)):
            raise Refusal(403, "wrong_host", f"this console does not answer to {host!r}; see console.hosts")
        posts = scope["method"] not in SAFE
        computes = scope["path"] in COMPUTING
        changes = posts and not computes
        if posts:
            self._check_origin(headers, host)
        if changes or not (self._access.local or scope["path"] in OPEN_PATHS):
            self._check_token(headers.get(b"authorization", b""), changes)
        if posts:
            length, most = headers.get(b"content-length", b"0"), MAX_ORDER if computes else MAX_BODY
            if not length.isdigit() or int(length[:18]) > most:
                raise Refusal(413, "too_large", f"a body may have {most} bytes")
            if not (self._runs if computes else self._changes).take():
                raise Refusal(429, "too_many_changes", "too many changes at once", ((b"retry-after", b"1"),))

    def _check_origin(self, headers: dict[bytes, bytes], host: str) -> None:
        origin = headers.get(b"origin")
        if origin is not None:
            scheme, _, authority = origin.decode("latin-1").lower().partition("://")
            if scheme not in ("http", "https") or authority != host:
                raise Refusal(403, "wrong_origin", "a page of another origin must not change anything here")
        elif headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            raise Refusal(403, "wrong_origin", "a page of another site must not change anything here")

    def _check_token(self, authorization: bytes, changes: bool) -> None:
        if not self._access.token:
            raise Refusal(
                403,
                "no_admin_token",
                "changes are refused: no admin token is configured (console.admin_token, or FAIRQ_CONSOLE_TOKEN)",
            )
        if self._access.knows(authorization, browser=not changes):
            return
        if authorization and not self._guesses.take():
            raise Refusal(429, "too_many_guesses", "too many wrong tokens", ((b"retry-after", b"1"),))
        ways = [(b"www-authenticate", b'Bearer realm="fairq console"')]
        if not changes:
            ways.append((b"www-authenticate", b'Basic realm="fairq console, password: admin token", charset="UTF-8"'))
        raise Refusal(401, "wrong_token", "the admin token is required: Authorization: Bearer TOKEN", ways)


def _name_in(host: str) -> str:
    """The name in a Host header, without port and brackets; "" if it is none."""
    if host.startswith("["):
        name, bracket, port = host[1:].partition("]")
        port = port.removeprefix(":")
    else:
        name, bracket, port = host.partition(":")
        bracket = "]"
    return name.removesuffix(".") if bracket and (not port or port.isdecimal()) else ""
