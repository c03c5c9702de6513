"""What the data plane is measured beside: nginx with its access log, and two Rust routers, each in its own environment.

A peer that cannot be had is left out, with the reason.
"""

import shutil
import socket
import subprocess
import tempfile
import venv
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

CACHE = Path(__file__).parent / ".peers"

NGINX = """
worker_processes 1; daemon off; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log {dir}/access.log; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  upstream up {{ server 127.0.0.1:{upstream}; keepalive 256; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }}
  }}
}}
"""


@dataclass
class Peer:
    name: str
    command: Callable[[int, int, Path], list[str]]
    """(own port, the upstream's port, a folder for its files) -> what to run"""


def peers() -> tuple[list[Peer], list[str]]:
    """Those that are there, and why others are not."""
    found, missing = [], []
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        missing.append("nginx: not installed (Debian's nginx-light)")
    else:
        found.append(Peer("nginx", partial(_nginx, nginx)))
    for package in ("sglang-router", "vllm-router"):
        try:
            python = environment(package)
        except subprocess.CalledProcessError:
            missing.append(f"{package}: its wheel does not install here")
        else:
            found.append(Peer(package, partial(_router, python, package)))
    return found, missing


def _nginx(program: str, port: int, upstream: int, folder: Path) -> list[str]:
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(dir=folder, port=port, upstream=upstream))
    return [program, "-c", str(config), "-p", str(folder)]


def _router(python: Path, package: str, port: int, upstream: int, folder: Path) -> list[str]:
    module = package.replace("-", "_") + ".launch_router"
    ports = ["--port", str(port), "--prometheus-port", str(free_port())]
    return [str(python), "-m", module, "--worker-urls", f"http://127.0.0.1:{upstream}", "--host", "127.0.0.1", *ports]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(package: str) -> Path:
    folder = CACHE / package
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
        subprocess.run(install, check=True, capture_output=True)
        (folder / "ready").touch()
    return python


def workplace() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fairq-bench-")
