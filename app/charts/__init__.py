"""Charts: what was recorded, as Plotly figures. The only room of the app that knows the plotting library.

Figures are built from float32 arrays and carry no theme: Streamlit lays its own, light or dark, under them. Axes are
in units that people read; the arrays stay in SI.

    frame.py      what all of them share        progress.py   how runs went, one beside the other
    ranks.py      what each rank of a run did   roofline.py   how fast kernels are
"""

from app.charts.frame import CONFIG, HEIGHT, Shown, lane_names, rank_names, unit
from app.charts.progress import (
    accuracy,
    efficiency,
    loss,
    measured,
    outcome,
    panel,
    reach,
    speed_up,
    staleness,
    title,
)
from app.charts.ranks import LINKS, RANKS, WIDEST, by_rank, memory, ranked, shares, topology, traffic
from app.charts.roofline import roofline

__all__ = [
    "CONFIG",
    "HEIGHT",
    "LINKS",
    "RANKS",
    "Shown",
    "WIDEST",
    "accuracy",
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
    "title",
    "topology",
    "traffic",
    "unit",
]
