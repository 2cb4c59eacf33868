"""The workbench: choose an algorithm, change its settings, run it, and see what it does.

`main.py` is the server, `pages.py` navigation, `cli.py` the commands of `lockstep`. A folder is a room, and
each imports only what stands above it here:

    browser/       what the workbench adds to a page, and all that leans on Streamlit's inner life
    session/       a reader's runs, pins and answers, and the link to what is on the page
    settings/      what widgets an experiment has, what is chosen, whether it can run
    charts/        pictures of runs; only here is Plotly used
    comparison/    runs next to each other
    guide/         the first screen, the tour, questions, predictions
    workbench/     choose, run, see
    textbook/ schedules/ kernel_pages/ embed/ survey.py upload.py network.py      a page each

All else comes through `experiments` and `lessons`; torch and Numba are never imported here.
"""
