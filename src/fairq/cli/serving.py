"""What `fairq serve` does once it is running: start everything in order, watch, reload, and stop everything."""

import asyncio
import gc
import os
import resource
import signal
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from fairq.cli.greeting import greeting
from fairq.core.errors import CannotListen, ConfigError, FairqError, UnknownName
from fairq.core.settlement import SETTLEMENTS
from fairq.engines.process import Engines, start_engines
from fairq.engines.settings import EngineSettings
from fairq.gateway.child import Child
from fairq.gateway.config import Config, load
from fairq.gateway.config_check import token_warnings, warnings
from fairq.gateway.config_names import gateway_policy
from fairq.gateway.config_problems import rule_of
from fairq.gateway.control import Control
from fairq.gateway.gateway import Gateway
from fairq.gateway.log import RequestLog
from fairq.gateway.recording import Recorder
from fairq.ledger.segment import LedgerError

DESCRIPTORS = 1 << 16
COLLECT = 20_000, 20, 20  # objects made and not freed, younger collections: what the garbage collector waits for
LONGEST_SOCKET_PATH = 100  # bytes; Linux takes 107
MODELS_SECONDS = 1.0
SIMULATED_SERVERS = 2
SIMULATED_SLOTS = 8  # of each: few enough that a laptop's load fills them

SETTINGS = {  # option -> section and key of the configuration
    "--host": ("listen", "host"),
    "--port": ("listen", "port"),
    "--console-port": ("console", "port"),
    "--ledger": ("ledger", "dir"),
}


@dataclass(frozen=True, slots=True)
class Options:
    """The command line. What it leaves at None is the configuration's.

    settings  by option, those of SETTINGS
    """

    config: Path | None
    upstreams: list[str]
    max_inflight: int | None
    settings: dict[str, Any]
    pool: dict[str, str | None]
    log: str | None

    def load(self) -> Config:
        """The configuration, with what the command line changes. Raises ConfigError, InvalidConfig."""
        if self.config is not None and self.upstreams:
            raise ConfigError("--upstream", self.upstreams[0], "cannot stand beside --config, which names upstreams")
        if self.max_inflight is not None and not self.upstreams:
            raise ConfigError("--max-inflight", self.max_inflight, "has no meaning without --upstream")
        if self.upstreams:
            config = Config.quick(self.upstreams, self.max_inflight or 1)
            if not self.max_inflight:
                rule = "must say how many requests each --upstream runs at once"
                raise ConfigError("--max-inflight", self.max_inflight, rule)
        else:
            config = load(self.config) if self.config is not None else Config()
        return self.over(config)

    def key(self, section: str, key: str) -> str:
        """What to call a setting in a message: as it was given, or could have been."""
        for option, place in SETTINGS.items():
            if place == (section, key) and (self.config is None or self.settings[option] is not None):
                return option
        return f"{section}.{key}"

    def over(self, config: Config) -> Config:
        """`config` with what the command line says."""
        changes: dict[str, Any] = {name: self._section(config, name) for name, _ in SETTINGS.values()}
        changes["pools"] = tuple(pool.model_copy(update=self._pool()) for pool in config.pools)
        if self.log is not None:
            changes["log"] = self.log
        return config.model_copy(update=changes)

    def _section(self, config: Config, name: str) -> BaseModel:
        section: BaseModel = getattr(config, name)
        settings = {key: self.settings[option] for option, (of, key) in SETTINGS.items() if of == name}
        given = {key: value for key, value in settings.items() if value is not None}
        try:
            checked = type(section).model_validate(section.model_dump(exclude_unset=True) | given)
        except ValidationError as error:
            detail = error.errors()[0]
            key = str(detail["loc"][0])
            raise ConfigError(self.key(name, key), given[key], rule_of(detail)) from None
        return section.model_copy(update={key: getattr(checked, key) for key in given})

    def _pool(self) -> dict[str, str]:
        given = {key: value for key, value in self.pool.items() if value is not None}
        if "policy" in given:
            gateway_policy(given["policy"])
        if given.get("settlement", "fixed") not in SETTLEMENTS:
            raise UnknownName("--settlement", given["settlement"], SETTLEMENTS)
        return given


class Serving:
    def __init__(self, options: Options, config: Config) -> None:
        self.options, self.config = options, config
        self.stopping = asyncio.Event()
        self.engines: Engines | None = None
        self._reloading = asyncio.Lock()
        self._reloads: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until SIGTERM or SIGINT. Raises FairqError or OSError when something cannot start."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        _allow_descriptors()
        if not self.config.pools:
            await self._start_engines()
        log = RequestLog(self.config.log)
        try:
            await self._serve(log)
        finally:
            if self.engines is not None:
                await self.engines.stop()
            log.close()

    async def _serve(self, log: RequestLog) -> None:
        config = self.config
        control: Control | None = None

        def send(pool: str, lines: bytes) -> None:
            if control is not None:
                control.send(pool, lines)

        listener = self._listen_for_console()
        recorder = Recorder(config, complain, send)
        self.gateway = gateway = Gateway(config, recorder, log, complain)
        try:
            await gateway.start()
        except OSError as error:
            keys = self.options.key("listen", "host"), self.options.key("listen", "port")
            raise CannotListen(*keys, config.listen.host, config.listen.port, error) from None
        except LedgerError as error:
            raise self._bad_ledger(str(error)) from None
        gc.collect()
        gc.freeze()  # what is there now stays; and requests leave no cycles, so the rest need not be searched often
        gc.set_threshold(*COLLECT)
        control = Control(gateway, self._reload, recorder)
        with tempfile.TemporaryDirectory(prefix="fairq-") as folder:
            path = _socket_path(config.ledger.dir, Path(folder))
            try:
                await control.start(path)
            except OSError as error:
                raise self._bad_ledger(f"{path}: {error.strerror or error}") from None
            console = self._console(path, listener) if listener is not None else None
            if console is not None:
                console.start()
            await self._greet(listener)
            self._warn()
            await self.stopping.wait()
            complain("draining; a second signal ends it at once")
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, os._exit, 128 + number)
            await gateway.drain()
            await control.close()
            if console is not None:
                await console.stop()
            path.unlink(missing_ok=True)

    def _bad_ledger(self, rule: str) -> ConfigError:
        return ConfigError(self.options.key("ledger", "dir"), str(self.config.ledger.dir), rule)

    async def _start_engines(self) -> None:
        self.engines = engines = await start_engines(EngineSettings(count=SIMULATED_SERVERS))
        quick = Config.quick(engines.urls, min(SIMULATED_SLOTS, engines.max_sequences))
        pools = tuple(pool.model_copy(update={"models": (engines.model, "*")}) for pool in quick.pools)
        self.config = self.options.over(self.config.model_copy(update={"pools": pools}))

    def _listen_for_console(self) -> socket.socket | None:
        """The console's port is ours, so that it is known, and the same when the console dies and comes back."""
        console = self.config.console
        if not console.enabled:
            return None
        try:
            family = socket.getaddrinfo(console.host, console.port, type=socket.SOCK_STREAM)[0][0]
            return socket.create_server((console.host, console.port), family=family, backlog=128)
        except OSError as error:
            port = self.options.key("console", "port")
            raise CannotListen("console.host", port, console.host, console.port, error) from None

    def _console(self, control: Path, listener: socket.socket) -> Child:
        console = self.config.console
        environ = dict(os.environ)  # whose FAIRQ_CONSOLE_TOKEN counts where the configuration gives no token
        if console.admin_token is not None:
            environ["FAIRQ_CONSOLE_TOKEN"] = console.admin_token.get_secret_value()
        hosts = [option for host in console.hosts for option in ("--allow-host", host)]
        command = ["-m", "fairq.console", "--socket", str(control), "--host", console.host]
        command += ["--fd", str(listener.fileno()), "--ledger", str(self.config.ledger.dir)]
        command += ["--tenants", str(console.tenants), *hosts]
        return Child(command, environ, complain, [listener.fileno()])

    async def _reload(self) -> list[str]:
        """Read the file again, beside the event loop, and apply it as a whole. Raises FairqError or OSError; then
        nothing has changed."""
        if self.options.config is None:
            raise ConfigError("reload", None, "the gateway was started without a configuration file")
        async with self._reloading:
            config = await asyncio.to_thread(load, self.options.config)
            if self.engines is not None and not config.pools:
                config = config.model_copy(update={"pools": self.config.pools})
            config = self.options.over(config)
            changed = [str(change) for change in self.gateway.reload(config)]
            self.config = config
        self._warn()
        return changed

    def _warn(self) -> None:
        found = warnings(self.config)
        if self.config.console.enabled and self.config.console.admin_token is None:
            found += token_warnings("FAIRQ_CONSOLE_TOKEN", os.environ.get("FAIRQ_CONSOLE_TOKEN", ""))
        for line in found:
            complain(f"warning: {line}")

    def _on_hangup(self) -> None:
        task = asyncio.get_running_loop().create_task(self._reload_on_signal())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def _reload_on_signal(self) -> None:
        try:
            changed = await self._reload()
        except (FairqError, OSError) as error:
            complain(f"not reloaded: {error}")
        else:
            complain(f"reloaded: {'; '.join(changed) or 'nothing has changed'}")

    async def _greet(self, console: socket.socket | None) -> None:
        models = await self._models()
        print(  # noqa: T201
            greeting(
                self.config,
                self.gateway.server.port,
                models=models,
                simulated=len(self.engines.urls) if self.engines is not None else 0,
                console_port=None if console is None else console.getsockname()[1],
            ),
            flush=True,
        )

    async def _models(self) -> list[str]:
        """That may be asked for. Upstreams that run say so within milliseconds; the others are not waited for."""
        deadline = time.monotonic() + MODELS_SECONDS
        while True:
            found = [model for pool in self.gateway.pools.values() for model in pool.models()]
            if found or time.monotonic() > deadline or self.stopping.is_set():
                return found
            await asyncio.sleep(0.02)


def _allow_descriptors() -> None:
    """Two for each request under way; the usual soft limit of 1,024 is soon reached, and raising it is free."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or soft < hard:
        wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def _socket_path(ledger: Path, fallback: Path) -> Path:
    """Beside the ledger, where `fairq console` finds it; a path can be too long for a socket."""
    path = ledger.absolute() / "control.sock"
    return path if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH else fallback / "control.sock"


def complain(line: str) -> None:
    print(f"fairq: {line}", file=sys.stderr, flush=True)  # noqa: T201
