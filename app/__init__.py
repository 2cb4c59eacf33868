"""The workbench: choose an algorithm, change its settings, run it, and see what it does.

`main.py` is the server, `pages.py` the navigation, `cli.py` the commands of `lockstep`. Each folder is a room, and
imports only rooms above it in this list:

    browser/       what the workbench adds to a page, and all code that depends on Streamlit's internals
    session/       a reader's runs, pins and answers, and the link to what is on the page
    settings/      an experiment's widgets, their values, and whether it can run
    charts/        pictures of runs; the only user of Plotly
    comparison/    runs next to each other
    guide/         the first screen, the tour, questions, predictions
    workbench/     choose, run, see
    textbook/ schedules/ kernel_pages/ embed/ survey.py upload.py network.py      a page each

Everything else comes through `experiments` and `lessons`; torch and Numba are never imported here.
"""
