"""The built page: which files there are, and the HTML that loads them. Building is `web/`'s part."""

from pathlib import Path

import msgspec

STATIC = Path(__file__).parent / "static"
NOT_BUILT = "the lab's page is not built: run `make setup`, or `node web/build.mjs`"


class Bundle(msgspec.Struct):
    """Names in static/, with a hash of their content."""

    script: str
    style: str


class NotBuilt(Exception):
    """There is no page to serve."""


def bundle() -> Bundle:
    """Raises NotBuilt."""
    try:
        return msgspec.json.decode((STATIC / "manifest.json").read_bytes(), type=Bundle)
    except (OSError, msgspec.DecodeError):
        raise NotBuilt(NOT_BUILT) from None


def head() -> str:
    """What loads the page. Raises NotBuilt."""
    built = bundle()
    return (
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="/lab/static/icon.svg" type="image/svg+xml">\n'
        f'<link rel="stylesheet" href="/lab/static/{built.style}">\n'
        f'<script type="module" src="/lab/static/{built.script}"></script>\n'
    )


def page(live: bool) -> str:
    """The same for every address: the script reads it. `live`: is there a dashboard? Raises NotBuilt."""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>fairq</title>\n{head()}</head>\n'
        f'<body{" data-live" if live else ""}>\n<div id="app"></div>\n<noscript>The lab needs JavaScript.</noscript>\n'
        "</body>\n</html>\n"
    )
