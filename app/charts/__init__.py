"""Charts of recorded runs. No other package of the app uses the plotting library.

The browser itself draws the first page from plain data: curves on a canvas, bars as a table. The rest are Plotly
figures, built from float32 arrays and without a theme: Streamlit applies its own, light or dark. Axes have readable
units; the arrays stay in SI units.

    frame.py      what all of them share        progress.py   how runs compare
    ranks.py      who sent what to whom         roofline.py   how fast kernels are
    sweep.py      what a setting does           published.py  predictions against published throughput

Curves of runs and bars of ranks are described in experiments/viewer/, because reports have them, too.
"""

from app.charts.frame import CONFIG
from app.charts.progress import efficiency, scalings, speed_up, staleness, step_time
from app.charts.published import published_dots
from app.charts.ranks import LINKS, WIDEST, by_rank, rank_series, topology, traffic
from app.charts.roofline import roofline
from app.charts.sweep import Combinations, heat, outcome, overlaid
from experiments.viewer.bars import memory, shares
from experiments.viewer.lanes import RANKS, lane_names
from experiments.viewer.pictures import AnyShown, Shown, accuracy, growing, loss, measurements, panel, reach, unit
