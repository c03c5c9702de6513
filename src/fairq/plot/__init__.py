"""Pictures of runs: what every policy did, one below the other, on one axis of time. Needs matplotlib (`fairq[plot]`).

    figure(scenario, runs)      a matplotlib Figure, one part for each run of the scenario
    save(scenario, runs, path)  the same as .svg, .png or .pdf

cpu      who ran, waited, slept, was blocked or held a lock; deadlines; for proportional shares, normalized service
link     each packet, where the fluid (GPS) ends it, the tag that decided; service beside the fluid's
router   dispatches, and normalized service over each interval of joint backlog
cluster  dominant shares, task by task, and who holds what
engine   service of each client over time, how far those who wait drift apart and what the theorem allows, how full the
fleet    cache and the batch were, how long first tokens took; of a sweep over DLPM's quantum, fairness against locality

Nothing is told by colour alone: flows also have a pattern, a marker, a row or a label of their own.
"""

import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from fairq.core.errors import ConfigError
from fairq.sim.scenario import Run, Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAYERS = {layer: layer for layer in ("cpu", "link", "router", "cluster", "engine")} | {"fleet": "engine"}
FORMATS = (".svg", ".png", ".pdf")


def figure(scenario: Scenario, runs: Sequence[Run]) -> "Figure":
    """Raises ConfigError: no matplotlib, a layer without pictures."""
    if scenario.layer not in LAYERS:
        raise ConfigError("layer", scenario.layer, f"there are pictures of {', '.join(LAYERS)} only")
    check_installed()
    import matplotlib as mpl

    from fairq.plot.style import SETTINGS

    with mpl.rc_context(SETTINGS):
        drawn: Figure = import_module(f"fairq.plot.{LAYERS[scenario.layer]}").draw(scenario, runs)
    return drawn


def save(scenario: Scenario, runs: Sequence[Run], path: Path) -> None:
    """Raises ConfigError: another suffix, not writable, and what `figure` raises."""
    check(path)
    drawn = figure(scenario, runs)
    import matplotlib as mpl

    from fairq.plot.style import SETTINGS

    # Nothing of the day goes into the file: the same runs make the same bytes.
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
    try:
        with mpl.rc_context(SETTINGS), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")  # then it is drawn as a box
            drawn.savefig(path, metadata=undated)
    except OSError as error:
        raise ConfigError("--plot", str(path), f"cannot be written: {error.strerror}") from None


def check(path: Path) -> None:
    """What can be known before the runs: raises ConfigError for another suffix, a folder that is not there, or no
    matplotlib."""
    if path.suffix not in FORMATS:
        raise ConfigError("--plot", str(path), f"must end in {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise ConfigError("--plot", str(path), "cannot be written: there is no such folder")
    check_installed()


def check_installed() -> None:
    if find_spec("matplotlib") is None:
        rule = "is needed for pictures and not installed: pip install 'fairq[plot]'"
        raise ConfigError("--plot", "matplotlib", rule)
