"""What every picture shares: colours, patterns, sizes of letters, how a panel is titled."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from unicodedata import east_asian_width

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

INK, SOFT, PALE, ALARM = "#1a1a1a", "#6b6b6b", "#d9d9d9", "#a50f15"
WIDTH, RIGHT = 9.0, 0.85  # inches; to the right there is room for names of lines
COLUMNS = 4  # of a legend

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart; without yellow, pale on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
HATCHES = ("", "///", "|||", "\\\\\\", "xxx", "---")  # no dots: they make an SVG ten times larger
MARKERS = ("o", "s", "^", "D", "v", "P")

# Letters that DejaVu Sans, which comes with matplotlib, does not have: names may be Japanese. The first one installed.
CJK = ("Noto Sans CJK JP", "Noto Sans JP", "Hiragino Sans", "Yu Gothic", "IPAexGothic", "IPAGothic")
INSTALLED = {font.name for font in fontManager.ttflist}

SETTINGS: Any = {  # matplotlib types its keys one by one
    "font.family": ["DejaVu Sans", *[name for name in CJK if name in INSTALLED][:1]],
    "font.size": 9,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "hatch.linewidth": 0.5,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "text.parse_math": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.dpi": 110,
    "savefig.dpi": 150,
    "svg.fonttype": "none",  # letters stay letters: small files that can be searched
    "svg.hashsalt": "fairq",
}

LOST: dict[str, Any] = {"facecolor": "#efefef", "edgecolor": SOFT, "linewidth": 0.0, "hatch": "////"}
"""Time in which nobody is served although somebody waits."""


BOUND: dict[str, Any] = {"color": ALARM, "linewidth": 1.3, "linestyle": (0, (5, 2))}
"""What a theorem allows."""


class Look(NamedTuple):
    """How a flow is drawn wherever it appears in a picture."""

    colour: str
    hatch: str
    marker: str

    @property
    def bar(self) -> dict[str, Any]:
        return {"facecolor": self.colour, "hatch": self.hatch, "edgecolor": INK, "linewidth": 0.5}

    @property
    def line(self) -> dict[str, Any]:
        return {"color": self.colour, "linewidth": 1.7}


def looks(flows: Iterable[str]) -> dict[str, Look]:
    """Each flow's; the pairs of colour and pattern repeat after 36."""
    found = {}
    for index, flow in enumerate(flows):
        again = index // len(COLOURS)
        shape = (index + again) % len(HATCHES)
        found[flow] = Look(COLOURS[index % len(COLOURS)], HATCHES[shape], MARKERS[shape])
    return found


class Panel(NamedTuple):
    """Inches: how high it is, and how much room there is above it."""

    height: float
    above: float = 0.54


def sheet(title: str, panels: Sequence[Panel], names: Iterable[str], keys: int) -> tuple[Figure, list[Axes]]:
    """A figure of panels, one below the other. Sizes are fixed, so the same runs make the same picture everywhere.

    names  of the rows, which stand to the left; keys: how many entries the legend will have
    """
    left = min(max(0.8, 0.3 + 0.075 * max(map(len, names), default=0)), 1.7)
    top, bottom = 0.16 if title else 0.0, 0.5 + 0.22 * -(-keys // COLUMNS)
    height = top + sum(panel.height + panel.above for panel in panels) + bottom
    figure = Figure(figsize=(WIDTH, height))
    if title:
        figure.suptitle(title, x=0.012, y=1 - 0.08 / height, ha="left", va="top", fontsize=12, fontweight="bold")
    axes, at = [], height - top
    for panel in panels:
        at -= panel.height + panel.above
        place = (left / WIDTH, at / height, (WIDTH - left - RIGHT) / WIDTH, panel.height / height)
        axes.append(figure.add_axes(place))
    return figure, axes


def caption(axes: Axes, left: str, right: str = "") -> None:
    """The policy's name, and its figures."""
    axes.set_title(left, fontweight="bold")
    if right:
        axes.set_title(right, loc="right", fontsize=8.5, color=INK)


def rows(axes: Axes, names: Sequence[str]) -> None:
    """A row for each name, from the top."""
    axes.set_ylim(len(names) - 0.5, -0.78)
    axes.set_yticks(range(len(names)), [name if len(name) <= 16 else name[:15] + "…" for name in names])
    axes.tick_params(axis="y", length=0)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=PALE, linewidth=0.6)


def whole(axes: Axes, axis: str = "x") -> None:
    """Ticks at whole numbers."""
    (axes.xaxis if axis == "x" else axes.yaxis).set_major_locator(
        MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10])
    )


def thousands(axes: Axes) -> None:
    """Ticks of the vertical axis as 0, 500, 20k, 1.5M, so that they are short."""

    def short(value: float, _: object) -> str:
        for size, letter in ((1e6, "M"), (1e3, "k")):
            if abs(value) >= size:
                return f"{value / size:g}{letter}"
        return f"{value:g}"

    axes.yaxis.set_major_formatter(FuncFormatter(short))


def short(name: str, room: int) -> str:
    """Its end, which tells more than its beginning, where it is wider than so many Latin letters."""
    widths = [2 if east_asian_width(letter) in "WF" else 1 for letter in name]
    if sum(widths) <= room:
        return name
    kept = len(name)
    while kept > 1 and sum(widths[-kept:]) > room - 1:
        kept -= 1
    return "…" + name[-kept:]


def legend(figure: Figure, handles: Sequence[Any]) -> None:
    if handles:
        figure.legend(handles=handles, loc="lower left", ncols=min(len(handles), COLUMNS), handlelength=2.2)


def patches(found: dict[str, Look]) -> list[Patch]:
    return [Patch(label=flow, **look.bar) for flow, look in found.items()]


def markers(found: dict[str, Look]) -> list[Line2D]:
    return [Line2D([], [], marker=look.marker, markersize=4, label=flow, **look.line) for flow, look in found.items()]


def beside(axes: Axes, text: str, x: float, y: float, size: float = 8) -> None:
    """To the right of a point, also outside of the panel."""
    axes.annotate(
        text, (x, y), (4, 0), textcoords="offset points", fontsize=size, va="center", annotation_clip=False
    )  # fmt: skip


def end_labels(axes: Axes, ends: Sequence[tuple[float, float, str]]) -> None:
    """Names lines where they end: (x, y, name). Names that would cover each other are moved apart."""
    low, high = axes.get_ylim()
    least = 0.13 * (high - low) / max(axes.bbox.height / axes.figure.dpi, 0.3)  # a line of letters
    order = sorted(ends, key=lambda end: (end[1], end[2]))
    heights: list[float] = []
    for _, y, _ in order:
        heights.append(max(y, heights[-1] + least) if heights else y)
    above = max(heights[-1] - high, 0) if heights else 0
    for (x, _, name), at in zip(order, heights, strict=True):
        beside(axes, name, x, at - above)
