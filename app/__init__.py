"""The workbench: choose an algorithm, turn the knobs, run it, and see what it does.

`main.py` is the server, `pages.py` navigation; `views/` hold the pages. `controls.py` derives the controls from
Experiment and Settings, `widgets.py` draws them, `chosen.py` keeps what is chosen. Only `charts/` uses Plotly;
`components.py` mounts canvases; `session.py` reaches the pool of processes and the folders of runs, `pins.py` has those
that stay to be compared with. All else comes through `experiments`; torch and Numba are never imported here.
"""
