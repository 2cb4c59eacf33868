"""The workbench: choose an algorithm, turn the knobs, run it, and see what it does.

`main.py` is the server, `pages.py` navigation; `views/` say what is on a page; `controls.py` derives the widgets from
Experiment and Settings; `charts/` is the only room that knows Plotly; `components/` are two small canvases; `runs.py`
is the door to the pool outside this process. Neither torch nor Numba is ever imported here.
"""
