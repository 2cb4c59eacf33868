"""Charts of what was recorded. No other package of the app uses the plotting library.

What the first page shows is drawn by the browser itself, from plain data: curves on a canvas, bars as a table. The rest
are Plotly figures, built from float32 arrays and without a theme: Streamlit puts its own, light or dark, under them.
Axes are in units that people read; the arrays stay in SI.

    frame.py      what all of them share        bars.py       what each rank did and held
    progress.py   how runs compare              ranks.py      who sent what to whom
    roofline.py   how fast kernels are

Curves of runs are described in experiments/plots/pictures.py, since exports draw them too.
"""

from app.charts.bars import memory, shares
from app.charts.frame import CONFIG, RANKS
from app.charts.progress import efficiency, outcome, speed_up, staleness
from app.charts.ranks import LINKS, WIDEST, by_rank, ranked, topology, traffic
from app.charts.roofline import roofline
from experiments.plots.lanes import lane_names, rank_names
from experiments.plots.pictures import HEIGHT, Shown, accuracy, along, growing, loss, measured, panel, reach, unit

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
    "growing",
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
