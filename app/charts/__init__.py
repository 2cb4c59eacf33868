"""Charts of what was recorded. No other package of the app uses the plotting library.

What the first page shows is drawn by the browser itself, from plain data: curves on a canvas, bars as a table. The rest
are Plotly figures, built from float32 arrays and without a theme: Streamlit puts its own, light or dark, under them.
Axes are in units that people read; the arrays stay in SI.

    frame.py      what all of them share        lines.py      curves of runs
    progress.py   how runs compare              bars.py       what each rank did and held
    ranks.py      who sent what to whom         roofline.py   how fast kernels are
"""

from app.charts.bars import memory, shares
from app.charts.frame import CONFIG, HEIGHT, RANKS, Shown, lane_names, rank_names, unit
from app.charts.lines import accuracy, along, loss, measured, panel, reach
from app.charts.progress import efficiency, outcome, speed_up, staleness
from app.charts.ranks import LINKS, WIDEST, by_rank, ranked, topology, traffic
from app.charts.roofline import roofline

__all__ = [
    "CONFIG",
    "HEIGHT",
    "LINKS",
    "RANKS",
    "Shown",
    "WIDEST",
    "accuracy",
    "along",
    "by_rank",
    "efficiency",
    "lane_names",
    "loss",
    "measured",
    "memory",
    "outcome",
    "panel",
    "rank_names",
    "ranked",
    "reach",
    "roofline",
    "shares",
    "speed_up",
    "staleness",
    "topology",
    "traffic",
    "unit",
]
