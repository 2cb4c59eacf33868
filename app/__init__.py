"""The workbench: choose an algorithm, turn the knobs, run it, and see what it does.

`main.py` is the server, `pages.py` navigation; `views/` hold the pages; `controls.py` derives the widgets from
Experiment and Settings; only `charts/` uses Plotly; `components.py` mounts canvases; `session.py` reaches the pool
of processes and the folders of runs. All else comes through `experiments`; torch and Numba are never imported here.
"""
